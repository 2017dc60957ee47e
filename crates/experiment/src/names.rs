//! Names in a description: unique where they are given, known where they are used.
//!
//! A slip is found before anything runs, and pointed at in the entry that makes it.

use crate::Size;
use crate::checks;
use crate::description::{Description, Measure, OptimiseSpec, PanelSpec, Series};
use crate::experiment::Run;
use crate::figure_checks::FigureChecks;
use crate::left_out::LeftOut;
use crate::measures::Dependency;
use crate::measures::Planned;
use crate::measures::dependency::NamedAt;
use crate::points::Point;
use crate::quantities;
use crate::schedule::Schedule;
use crate::source::{Diagnostic, Source, nearest};

/// Names that are given: unique, fit for files, and keys that runs have.
pub(crate) fn check_names(d: &Description, source: &Source) -> Result<(), Diagnostic> {
    let unique = |names: Vec<&str>, what: &str, key: &str| {
        let twice = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n));
        match twice {
            Some((index, name)) => Err(Diagnostic::new(format!("two {what} are called `{name}`"))
                .at_key(source, &format!("{key}.{index}.name"))),
            None => Ok(()),
        }
    };
    unique(d.run.iter().map(|r| r.name.as_str()).collect(), "runs", "run")?;
    unique(d.measure.iter().map(|m| m.name.as_str()).collect(), "measures", "measure")?;
    unique(d.figure.iter().map(|f| f.name.as_str()).collect(), "figures", "figure")?;
    unique(d.scan.iter().map(|f| f.name.as_str()).collect(), "scans", "scan")?;
    check_optimisations(d, source)?;
    for (index, run) in d.run.iter().enumerate() {
        if let Some(key) = run.within.keys().find(|key| !d.sweep.contains_key(*key)) {
            let message = format!("the run `{}` is limited in `{key}`, which is not swept", run.name);
            return Err(Diagnostic::new(message)
                .hint("`where` takes keys of [sweep] and the two ends of a range")
                .at_key(source, &format!("run.{index}.where")));
        }
    }
    let swept = d.sweep.keys().map(|key| (key, "sweep".to_string()));
    let set = d.run.iter().enumerate();
    let set = set.flat_map(|(index, r)| r.set.keys().map(move |key| (key, format!("run.{index}.set"))));
    for (key, owner) in swept.chain(set) {
        let section = key.split('.').next().unwrap_or_default();
        if !Description::SECTIONS_OF_RUNS.contains(&section) {
            let hint = match nearest(section, &Description::SECTIONS_OF_RUNS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the sections of a run are {}", Description::SECTIONS_OF_RUNS.join(", ")),
            };
            return Err(Diagnostic::new(format!("`{key}` is no key of a run"))
                .hint(hint)
                .at_key(source, &owner));
        }
    }
    for (index, claim) in d.claim.iter().enumerate() {
        if !d.measure.iter().any(|m| m.name == claim.measure) {
            let message = format!("a claim is about the measure `{}`, which does not exist", claim.measure);
            return Err(Diagnostic::new(message).at_key(source, &format!("claim.{index}.measure")));
        }
    }
    checks::claims(d, source)?;
    for (index, claim) in d.claim.iter().enumerate() {
        if let Some(name) = claim.check.equals_measure.as_ref()
            && !d.measure.iter().any(|m| m.name == *name)
        {
            let message = format!("a claim compares with the measure `{name}`, which does not exist");
            return Err(Diagnostic::new(message).at_key(source, &format!("claim.{index}.check")));
        }
        if claim.bound.as_ref().is_some_and(|b| b.at_most.is_none() && b.at_least.is_none()) {
            return Err(Diagnostic::new("the bound of a claim has no number")
                .hint("write `at-most` or `at-least` in it")
                .at_key(source, &format!("claim.{index}.bound")));
        }
        let along = claim.check.increases_with.iter().chain(&claim.check.decreases_with);
        let along = along.map(|key| (key, "check"));
        for (key, part) in claim.at.keys().map(|key| (key, "at")).chain(along) {
            if !d.sweep.contains_key(key) {
                let message = format!("a claim speaks of `{key}`, which is not swept");
                return Err(Diagnostic::new(message)
                    .hint("`at`, `increases-with` and `decreases-with` take keys of [sweep]")
                    .at_key(source, &format!("claim.{index}.{part}")));
            }
        }
    }
    checks::names_on_disk(d, source)
}

/// Names of optimisations, and runs that are trained by what they find.
fn check_optimisations(d: &Description, source: &Source) -> Result<(), Diagnostic> {
    let names: Vec<&str> = d.optimise.iter().map(|o| o.name.as_str()).collect();
    for (index, spec) in d.optimise.iter().enumerate() {
        let refuse = |message: String, hint: &str| {
            Err(Diagnostic::new(message).hint(hint).at_key(source, &format!("optimise.{index}.name")))
        };
        let table = OptimiseSpec::table_name(&spec.name);
        let twice = d.optimise[..index].iter().any(|o| OptimiseSpec::table_name(&o.name) == table);
        if twice {
            return refuse(format!("two optimisations are called `{}`", spec.name), "choose another name");
        }
        if spec.name.is_empty() || !table.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            let message = format!("the name `{}` becomes a file name", spec.name);
            return refuse(message, "use letters, digits, spaces, `-`, `_` and `.`");
        }
        if d.run.iter().any(|run| run.name == table) {
            let message =
                format!("the files of the run `{table}` would be those of the optimisation `{}`", spec.name);
            return refuse(message, "choose another name");
        }
        if let Some(key) = spec.within.keys().find(|key| !d.sweep.contains_key(*key)) {
            let message =
                format!("the optimisation `{}` is limited in `{key}`, which is not swept", spec.name);
            return Err(Diagnostic::new(message)
                .hint("`where` takes keys of [sweep] and the two ends of a range")
                .at_key(source, &format!("optimise.{index}.where")));
        }
    }
    for (index, run) in d.run.iter().enumerate() {
        let Some(protocol) = &run.protocol else { continue };
        let key = format!("run.{index}.protocol");
        if !names.contains(&protocol.as_str()) {
            let hint = match nearest(protocol, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "add an [[optimise]] of this name".into(),
                None => format!("there are {}", names.join(", ")),
            };
            let message = format!("the protocol `{protocol}` names no [[optimise]]");
            return Err(Diagnostic::new(message).hint(hint).at_key(source, &key));
        }
        if run.set.contains_key("record.clock") {
            let message = format!("the run `{}` has another clock than the protocol `{protocol}`", run.name);
            let hint = "a protocol is a function of the clock: set `clock` in [record] for both";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, &key));
        }
    }
    Ok(())
}

/// Names that are used: runs, columns, events, measures and scans that measures and figures speak of.
pub(crate) struct References<'a> {
    pub(crate) description: &'a Description,
    pub(crate) runs: &'a [Run],
    pub(crate) points: &'a [Point],
    /// What waits for `--full`.
    pub(crate) left_out: &'a LeftOut,
    pub(crate) source: &'a Source,
}

impl<'a> References<'a> {
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        checks::records(self.runs, self.source)?;
        for (index, measure) in self.description.measure.iter().enumerate() {
            if self.left_out.measure(&measure.kind) {
                continue;
            }
            self.measure(measure, index)?;
        }
        for (f, figure) in self.description.figure.iter().enumerate() {
            for (p, panel) in figure.panel.iter().enumerate() {
                self.panel(panel, &format!("figure.{f}.panel.{p}"))?;
            }
        }
        let always =
            self.description.claim.iter().position(|c| c.judged_from != Size::Full && self.left_out.claim(c));
        always.map_or(Ok(()), |index| {
            let message =
                "the claim is judged without `--full`, but stands on a run that is there only under it";
            Err(Diagnostic::new(message)
                .hint("say `judged-from = \"full\"` in the claim")
                .at_key(self.source, &format!("claim.{index}.measure")))
        })
    }

    /// Checks everything that a measure depends on.
    fn measure(&self, measure: &Measure, index: usize) -> Result<(), Diagnostic> {
        let d = self.description;
        let key = |named: &NamedAt| format!("measure.{index}.{}", named.key);
        for dependency in measure.kind.depends_on() {
            match dependency {
                Dependency::Column { run, column } => {
                    self.column((run.name, &key(&run)), (column.name, &key(&column)))?;
                }
                Dependency::Event { run, event } => {
                    let events = self.run(run.name, &key(&run))?.events();
                    let events: Vec<&str> = events.iter().map(String::as_str).collect();
                    self.known("event", event.name, &events, &key(&event))?;
                }
                Dependency::Measure(other) => self.earlier_measure(other.name, index, &key(&other))?,
                Dependency::Scan(scan) => self.scan(scan.name, &key(&scan))?,
                Dependency::Optimise(named) => {
                    let names: Vec<&str> = d.optimise.iter().map(|o| o.name.as_str()).collect();
                    self.known("optimisation", named.name, &names, &key(&named))?;
                }
                Dependency::SweptKey(swept) => {
                    let keys: Vec<&str> = d.sweep.keys().map(String::as_str).collect();
                    self.known("swept key", swept.name, &keys, &key(&swept))?;
                }
                Dependency::Quantity { path, inputs } => quantities::check(path.name, inputs)
                    .map_err(|e| Diagnostic::new(e).at_key(self.source, &key(&path)))?,
            }
        }
        let planned = Planned { points: self.points, runs: self.runs };
        measure.kind.check(&planned).map_err(|(part, message)| {
            Diagnostic::new(message).at_key(self.source, &format!("measure.{index}.{part}"))
        })
    }

    /// Measures are evaluated in order, so the measures that one depends on come before it.
    fn earlier_measure(&self, name: &str, index: usize, key: &str) -> Result<(), Diagnostic> {
        let names: Vec<&str> = self.description.measure.iter().map(|m| m.name.as_str()).collect();
        if names[index..].contains(&name) && !names[..index].contains(&name) {
            return Err(Diagnostic::new(format!("no measure `{name}` before this one"))
                .hint(format!("measures are computed in order: move `{name}` up"))
                .at_key(self.source, key));
        }
        self.known("measure", name, &names[..index], key)
    }

    fn panel(&self, panel: &PanelSpec, key: &str) -> Result<(), Diagnostic> {
        for (s, series) in panel.series.iter().enumerate() {
            self.series(series, &|part| format!("{key}.series.{s}.{part}"))?;
        }
        for (i, inset) in panel.inset.iter().enumerate() {
            self.panel(&inset.panel, &format!("{key}.inset.{i}.panel"))?;
        }
        Ok(())
    }

    fn series(&self, series: &Series, key: &dyn Fn(&str) -> String) -> Result<(), Diagnostic> {
        if self.left_out.series(series) {
            return Ok(());
        }
        if series.optimise.is_some() {
            return Err(Diagnostic::new("a series has an `optimise` and another source")
                .hint("give one of `run`, `measure`, `scan` and `optimise`")
                .at_key(self.source, &key("optimise")));
        }
        if let Some(of) = &series.run {
            self.column((of, &key("run")), (series.y.as_deref().unwrap_or("loss"), &key("y")))?;
        }
        if let Some(name) = &series.measure {
            let measures: Vec<&str> = self.description.measure.iter().map(|m| m.name.as_str()).collect();
            self.known("measure", name, &measures, &key("measure"))?;
        }
        if let Some(name) = &series.scan {
            self.scan(name, &key("scan"))?;
        }
        let checks = FigureChecks { description: self.description, points: self.points, runs: self.runs };
        checks.series(series).map_err(|(part, diagnostic)| diagnostic.at_key(self.source, &key(part)))
    }

    fn scan(&self, name: &str, key: &str) -> Result<(), Diagnostic> {
        let scans: Vec<&str> = self.description.scan.iter().map(|s| s.name.as_str()).collect();
        self.known("scan", name, &scans, key)
    }

    fn column(&self, (of, run): (&str, &str), (name, key): (&str, &str)) -> Result<(), Diagnostic> {
        let columns = self.run(of, run)?.columns();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.known("column", name, &columns, key)
    }

    /// What a run of this name writes down.
    fn run(&self, name: &str, key: &str) -> Result<&'a Schedule, Diagnostic> {
        if let Some(run) = self.runs.iter().find(|run| run.name == name) {
            return Ok(&run.schedule);
        }
        if self.description.run.iter().any(|r| r.name == name) {
            let message = format!("the run `{name}` has no point of the sweep within its `where`");
            return Err(Diagnostic::new(message)
                .hint("widen `where`, or add points to [sweep]")
                .at_key(self.source, "run.where")
                .of_run(self.source, name));
        }
        let runs: Vec<&str> = self.description.run.iter().map(|r| r.name.as_str()).collect();
        self.known("run", name, &runs, key)?;
        unreachable!("a run that is known runs somewhere, or has no point")
    }

    fn known(&self, what: &str, name: &str, known: &[&str], key: &str) -> Result<(), Diagnostic> {
        if known.contains(&name) {
            return Ok(());
        }
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        Err(Diagnostic::new(format!("no {what} `{name}`")).hint(hint).at_key(self.source, key))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Diagnostic, Experiment, Size, Source};

    const HEAD: &str = r#"
title = "names"
model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
start = { q = [[0.5]], r = [[0.1]] }
data = { dimension = 100 }
training = { learning-rate = 0.5 }
record = { times = [0, 1] }

[sweep]
"data.dimension" = [100, 200]

[[run]]
name = "large"
engine = "reduced"
only-full = true

[[run]]
name = "small"
engine = "ode"
"#;

    /// The error of the head with more text after it.
    fn error(more: &str) -> Diagnostic {
        let source = Source { name: "t.toml".into(), text: format!("{HEAD}{more}") };
        Experiment::new(source, Size::Normal, None).err().expect("an error")
    }

    /// The line that the error marks.
    fn marked(more: &str) -> String {
        error(more).place.expect("a place").text
    }

    #[test]
    fn errors_about_a_run_point_at_that_run_and_not_at_another() {
        let unswept = r#"
[[run]]
name = "third"
engine = "ode"
where = { "training.batch" = [1, 2] }
"#;
        assert_eq!(marked(unswept), r#"where = { "training.batch" = [1, 2] }"#);
        let nowhere = r#"
[[run]]
name = "third"
engine = "ode"
where = { "data.dimension" = [1, 2] }

[[measure]]
name = "loss"
kind = "value-at"
run = "third"
observable = "loss"
time = 1
"#;
        assert_eq!(marked(nowhere), r#"where = { "data.dimension" = [1, 2] }"#);
        assert_eq!(marked("[[run]]\nname = \"small\"\nengine = \"direct\"\n"), "name = \"small\"");
        assert_eq!(error("[[run]]\nname = \"small\"\nengine = \"direct\"\n").place.unwrap().line, 21);
        assert_eq!(marked("[[run]]\nname = \"third\"\nengine = \"od\"\n"), "engine = \"od\"");
        assert_eq!(marked("[[run]]\nname = \"third\"\nengine = \"ode\"\ntolerance = -1\n"), "tolerance = -1");
        let set =
            "[[run]]\nname = \"third\"\nengine = \"ode\"\nset = { \"training.learning-rate\" = \"x\" }\n";
        assert_eq!(marked(set), "name = \"third\"");
    }

    #[test]
    fn a_measure_names_measures_before_it_and_keys_that_are_swept() {
        let loss = r#"
[[measure]]
name = "loss"
kind = "value-at"
run = "small"
observable = "loss"
time = 1
"#;
        let ratio = r#"
[[measure]]
name = "ratio"
kind = "formula"
formula = "a/2"
with = { a = "loss" }
"#;
        let source = |text: String| Source { name: "t.toml".into(), text };
        let text = format!("{HEAD}{loss}{ratio}");
        assert!(Experiment::new(source(text), Size::Normal, None).is_ok());
        let later = error(&format!("{ratio}{loss}"));
        assert_eq!(later.message, "no measure `loss` before this one");
        assert_eq!(later.place.unwrap().text, r#"with = { a = "loss" }"#);
        let slip = error(&format!("{loss}{}", ratio.replace("\"loss\"", "\"los\"")));
        assert_eq!(
            (slip.message.as_str(), slip.hint.as_deref()),
            ("no measure `los`", Some("did you mean `loss`?"))
        );
        let at = "[[measure]]\nname = \"there\"\nkind = \"elsewhere\"\nof = \"loss\"\nat = { \"training.batch\" = 2 }\n";
        let unswept = error(&format!("{loss}{at}"));
        assert_eq!(unswept.message, "no swept key `training.batch`");
        assert_eq!(unswept.place.unwrap().text, r#"at = { "training.batch" = 2 }"#);
    }
}
