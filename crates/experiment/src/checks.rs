//! What makes no sense together, although every key is right: names that collide on disk, columns that come twice, tables
//! that no machine holds, claims that check nothing.

use crate::description::{Check, Description};
use crate::experiment::Run;
use crate::schedule::Schedule;
use crate::source::{Diagnostic, Source};

/// Files of every folder whose names a run must not take.
const TAKEN: [&str; 2] = ["results", "provenance"];

/// Characters of a name; file systems allow 255 bytes with all that is put before and behind it.
const LONGEST_NAME: usize = 100;

/// Numbers of one table, 8 GB of them.
const LARGEST_TABLE: f64 = 1e9;

/// Names of runs, figures and scans as parts of file names.
pub(crate) fn names_on_disk(d: &Description, source: &Source) -> Result<(), Diagnostic> {
    let runs = d.run.iter().enumerate().map(|(i, r)| (&r.name, format!("run.{i}.name")));
    let figures = d.figure.iter().enumerate().map(|(i, f)| (&f.name, format!("figure.{i}.name")));
    let scans = d.scan.iter().enumerate().map(|(i, s)| (&s.name, format!("scan.{i}.name")));
    for (name, key) in runs.clone().chain(figures).chain(scans) {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            let message = format!("the name `{name}` becomes a file name");
            return Err(Diagnostic::new(message)
                .hint("use letters, digits, `-`, `_` and `.`")
                .at_key(source, &key));
        }
        if name.len() > LONGEST_NAME {
            let message = format!("a name of {} characters becomes a file name", name.len());
            return Err(Diagnostic::new(message)
                .hint(format!("use at most {LONGEST_NAME}"))
                .at_key(source, &key));
        }
    }
    for (name, key) in runs {
        let of_a_scan = name.strip_prefix("scan-").filter(|rest| d.scan.iter().any(|s| s.name == *rest));
        let message = match of_a_scan {
            Some(scan) => format!("the files of the run `{name}` would be those of the scan `{scan}`"),
            None if TAKEN.contains(&name.as_str()) => {
                format!("`{name}.json` is a file of every folder, so no run can be called `{name}`")
            }
            None => continue,
        };
        return Err(Diagnostic::new(message).hint("choose another name").at_key(source, &key));
    }
    Ok(())
}

/// What the runs write down: every column and every event once, and no more than a machine can hold.
pub(crate) fn records(runs: &[Run], source: &Source) -> Result<(), Diagnostic> {
    runs.iter().try_for_each(|run| record(&run.name, &run.schedule, source))
}

fn record(run: &str, schedule: &Schedule, source: &Source) -> Result<(), Diagnostic> {
    let record = &schedule.record;
    let columns = schedule.columns();
    if let Some(name) = first_repeated(columns.iter().map(String::as_str)) {
        let message = format!("the column `{name}` is written down twice");
        return Err(Diagnostic::new(message)
            .hint("name every observable once; `*` stands for every index")
            .at_key(source, "record.observe"));
    }
    if let Some(name) = first_repeated(record.events.iter().map(|e| e.name.as_str())) {
        let index = record.events.iter().rposition(|e| e.name == name).unwrap_or(0);
        return Err(Diagnostic::new(format!("two events are called `{name}`"))
            .at_key(source, &format!("record.event.{index}.name")));
    }
    let numbers = f64::from(record.replicas) * record.times.len() as f64 * columns.len() as f64;
    if numbers > LARGEST_TABLE {
        let message = format!(
            "the table of run `{run}` would have {} replicas x {} times x {} columns, {:.0} GB",
            record.replicas,
            record.times.len(),
            columns.len(),
            numbers * 8e-9
        );
        return Err(Diagnostic::new(message)
            .hint("save at fewer times, observe less, or run fewer replicas at once")
            .at_key(source, "record"));
    }
    Ok(())
}

/// The first name that has been there before.
fn first_repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// A claim checks something, and a tolerance has something to be a tolerance of.
pub(crate) fn claims(d: &Description, source: &Source) -> Result<(), Diagnostic> {
    for (index, claim) in d.claim.iter().enumerate() {
        let Check { equals, equals_measure, absolute, relative, sigmas, at_least, at_most, .. } =
            &claim.check;
        let equal = equals.is_some() || equals_measure.is_some();
        let ordered = claim.check.increases_with.is_some() || claim.check.decreases_with.is_some();
        let refused = |message: &str, hint: &str| {
            Err(Diagnostic::new(message).hint(hint).at_key(source, &format!("claim.{index}.check")))
        };
        let one_sided = at_least.is_some() || at_most.is_some();
        if !equal && (absolute.is_some() || relative.is_some() || sigmas.is_some() && !one_sided) {
            return refused(
                "the claim has a tolerance, but nothing to be equal to",
                "add `equals = …` or `equals-measure = …`, or use `at-least` and `at-most`",
            );
        }
        if equals.is_some() && equals_measure.is_some() {
            return refused("the claim has two values to be equal to", "give `equals` or `equals-measure`");
        }
        let bounded = equal || one_sided;
        let both_ways = claim.check.increases_with.is_some() && claim.check.decreases_with.is_some();
        if both_ways || (ordered && bounded) {
            return refused(
                "the claim has an order along a key and another condition, of which only one would be checked",
                "write a claim for each",
            );
        }
        if !(bounded || ordered) {
            return refused(
                "the claim checks nothing",
                "give `equals`, `equals-measure`, `at-least`, `at-most`, `increases-with` or `decreases-with`",
            );
        }
    }
    Ok(())
}
