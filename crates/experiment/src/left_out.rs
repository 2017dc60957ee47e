//! What waits for `--full`: runs that say so, and the measures, claims and series that depend on them.

use crate::description::{Claim, Description, MeasureKind, OptimiseSpec, PanelSpec, RunSpec, Series};
use crate::measures::Dependency;

/// Names of runs and measures that are left out.
pub(crate) struct LeftOut {
    runs: Vec<String>,
    measures: Vec<String>,
}

impl LeftOut {
    /// What a description loses without these runs.
    pub(crate) fn of(description: &Description, runs: &[RunSpec]) -> Self {
        let mut all = Self { runs: runs.iter().map(|run| run.name.clone()).collect(), measures: Vec::new() };
        // A measure may depend on a measure that is left out: repeat until no further one does.
        loop {
            let known = |name: &String| all.measures.contains(name);
            let more = description.measure.iter().filter(|m| !known(&m.name) && all.measure(&m.kind));
            let more: Vec<String> = more.map(|m| m.name.clone()).collect();
            if more.is_empty() {
                return all;
            }
            all.measures.extend(more);
        }
    }

    /// Whether a measure depends on what is left out.
    pub(crate) fn measure(&self, kind: &MeasureKind) -> bool {
        let is_in = |names: &[String], name: &str| names.iter().any(|n| n == name);
        kind.depends_on().iter().any(|dependency| match dependency {
            Dependency::Column { run, .. } | Dependency::Event { run, .. } => is_in(&self.runs, run.name),
            Dependency::Measure(measure) => is_in(&self.measures, measure.name),
            Dependency::Optimise(named) => is_in(&self.runs, &OptimiseSpec::table_name(named.name)),
            Dependency::Scan(_) | Dependency::SweptKey(_) | Dependency::Quantity { .. } => false,
        })
    }

    /// Whether a series does.
    pub(crate) fn series(&self, series: &Series) -> bool {
        series.run.as_ref().is_some_and(|run| self.runs.contains(run))
            || series.measure.as_ref().is_some_and(|measure| self.measures.contains(measure))
    }

    /// Whether a claim does.
    pub(crate) fn claim(&self, claim: &Claim) -> bool {
        let other = claim.check.equals_measure.iter();
        other.chain([&claim.measure]).any(|measure| self.measures.contains(measure))
    }

    /// Takes all of it out of a description, and returns the claims, which are shown as not judged.
    pub(crate) fn take_out_of(&self, description: &mut Description) -> Vec<Claim> {
        description.measure.retain(|m| !self.measure(&m.kind));
        for panel in description.figure.iter_mut().flat_map(|figure| &mut figure.panel) {
            self.take_out_of_panel(panel);
        }
        description.claim.extract_if(.., |claim| self.claim(claim)).collect()
    }

    fn take_out_of_panel(&self, panel: &mut PanelSpec) {
        panel.series.retain(|series| !self.series(series));
        panel.inset.iter_mut().for_each(|inset| self.take_out_of_panel(&mut inset.panel));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, Size, Source};

    const TEXT: &str = r#"
title = "large runs wait"
model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
start = { q = [[0.5]], r = [[0.1]] }
data = { dimension = 100 }
training = { learning-rate = 0.5 }
record = { times = [0, 1] }
sweep = { "data.dimension" = [100, 200] }

[[run]]
name = "small"
engine = "ode"

[[run]]
name = "large"
engine = "reduced"
only-full = true

[[measure]]
name = "loss"
kind = "value-at"
run = "small"
observable = "loss"
time = 1

[[measure]]
name = "large loss"
kind = "value-at"
run = "large"
observable = "loss"
time = 1

[[measure]]
name = "ratio"
kind = "formula"
formula = "a/b"
with = { a = "large loss", b = "loss" }

[[claim]]
says = "positive"
measure = "loss"
check = { at-least = 0 }

[[claim]]
says = "near"
measure = "ratio"
check = { at-least = 0 }
judged-from = "full"

[[figure]]
name = "both"
[[figure.panel]]
[[figure.panel.series]]
run = "small"
[[figure.panel.series]]
run = "large"
[[figure.panel.series]]
measure = "ratio"
x = "data.dimension"
"#;

    #[test]
    fn what_depends_on_a_run_waits_with_it() {
        let source = || Source { name: "t.toml".into(), text: TEXT.into() };
        let plan = |size| Experiment::new(source(), size, None).unwrap().resolved;
        let counts = |size| {
            let d = plan(size);
            [d.run.len(), d.measure.len(), d.claim.len(), d.figure[0].panel[0].series.len()]
        };
        assert_eq!(counts(Size::Normal), [1, 1, 1, 1]);
        let waiting = Experiment::new(source(), Size::Normal, None).unwrap().waiting_claims;
        assert_eq!(waiting.len(), 1, "it is shown as not judged");
        assert_eq!(counts(Size::Full), [2, 3, 2, 3]);
    }
}
