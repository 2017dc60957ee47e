//! What a finished run says, as text or as JSON, and how the program ends after it.

use crate::exit::Ending;
use didact_experiment::claims::{Judged, Verdict, digits};
use didact_experiment::execute::all_hold;
use didact_experiment::measures::Measured;
use didact_experiment::source::printable;
use didact_experiment::summary::{RunSummary, ScanSummary};
use didact_experiment::{Finished, Summary};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// Lists of failures and measures are cut to so many lines; the report and the JSON have all of them.
const LINES: usize = 12;

/// Prints what a finished run says, or returns it as JSON, and how it ended.
pub(crate) fn finished(title: &str, run: &Finished, as_json: bool) -> (Option<Value>, Ending) {
    let summary = Summary::of(&run.folder);
    if as_json {
        return (Some(json(title, run, &summary)), ending(run, &summary));
    }
    say!("{}", printable(title));
    claims(&run.claims);
    some_lines("measure", "measures", run.measured.iter().map(measure).collect());
    let divergences = summary.runs.iter().filter(|r| r.diverged > 0).map(diverged).collect();
    some_lines("diverged", "diverged", divergences);
    some_lines("quadrature", "quadrature", summary.runs.iter().filter_map(quadrature).collect());
    some_lines("healed", "healed", run.healed.iter().map(|d| format!("{d}; made anew")).collect());
    some_lines("failed", "failed", run.failures.iter().map(|f| printable(f)).collect());
    let how = match run.taken_over {
        _ if run.reused => " (unchanged, found)".into(),
        0 => String::new(),
        1 => " (1 result taken from another folder)".into(),
        n => format!(" ({n} results taken from other folders)"),
    };
    say!("  report: {}{how}", run.folder.join("report.html").display());
    (None, ending(run, &summary))
}

/// A claim that fails weighs most, then work that was lost. A point of a scan outside of the domain of its quantity is an
/// answer; a scan without any answer is not.
fn ending(run: &Finished, summary: &Summary) -> Ending {
    match () {
        () if !all_hold(&run.claims) => Ending::ClaimFails,
        () if summary.has_lost_work() || run.failed_jobs > 0 => Ending::FailedJobs,
        () => Ending::Done,
    }
}

/// A table of claims: verdict, sentence, evidence.
fn claims(claims: &[Judged]) {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for claim in claims {
        let code = match claim.verdict {
            Verdict::Holds => "32",
            Verdict::Fails => "31;1",
            Verdict::DiffersFromPrint => "33",
            Verdict::WithinBound => "36",
            Verdict::NotJudged => "2",
        };
        let verdict = format!("{:<23}", claim.verdict.words());
        let verdict = if colour { format!("\x1b[{code}m{verdict}\x1b[0m") } else { verdict };
        say!("  {verdict} {}\n  {:<23} {}", printable(&claim.says), "", printable(&claim.evidence));
    }
}

/// One line per entry, all behind one word; a long list is cut.
fn some_lines(word: &str, words: &str, lines: Vec<String>) {
    let shown = if lines.len() > LINES { LINES - 1 } else { lines.len() };
    for line in &lines[..shown] {
        say!("  {:<18} {line}", format!("{word}:"));
    }
    if shown < lines.len() {
        say!("  {:<18} {} more in the report", format!("{words}:"), lines.len() - shown);
    }
}

/// A measure in one line: its number, or the range of its numbers over the sweep, and how many are missing.
fn measure(measure: &Measured) -> String {
    let name = printable(&measure.name);
    if let [only] = measure.values.as_slice() {
        return match only {
            Ok(number) => format!("{name} = {number}"),
            Err(why) => format!("{name}: none ({})", printable(&why.to_string())),
        };
    }
    let numbers: Vec<f64> = measure.values.iter().flatten().map(|e| e.value).collect();
    let missing = measure.values.len() - numbers.len();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = match numbers.len() {
        0 => "no number".into(),
        1 => digits(least),
        n => format!("{} to {} at {n} points", digits(least), digits(most)),
    };
    let without = if missing > 0 { format!(", none at {missing}") } else { String::new() };
    format!("{name}: {range}{without}")
}

fn diverged(run: &RunSummary) -> String {
    let RunSummary { name, points, replicas, diverged, lost_points, .. } = run;
    let lost = match (lost_points, points) {
        (0, _) => String::new(),
        (_, 1) => ": nothing is left of it".into(),
        (lost, points) => format!(", all of them at {lost} of {points} points"),
    };
    format!("{diverged} of {replicas} replicas of `{name}`{lost}")
}

fn quadrature(run: &RunSummary) -> Option<String> {
    let error = run.quadrature_error.filter(|error| *error > 0.0)?;
    Some(format!("Gaussian averages of `{}` have an estimated error of {error:.1e}", run.name))
}

/// The same for programs.
fn json(title: &str, run: &Finished, summary: &Summary) -> Value {
    let runs = summary.runs.iter().map(|r| {
        json!({"run": r.name, "points": r.points, "replicas": r.replicas, "diverged": r.diverged,
               "points-where-all-diverged": r.lost_points, "quadrature-error": r.quadrature_error})
    });
    let scan = |s: &ScanSummary| json!({"scan": s.name, "points": s.points, "failed": s.failed});
    json!({
        "title": title,
        "folder": run.folder,
        "reused": run.reused,
        "taken-over": run.taken_over,
        "claims": run.claims,
        "measures": run.measured,
        "runs": runs.collect::<Vec<_>>(),
        "scans": summary.scans.iter().map(scan).collect::<Vec<_>>(),
        "failures": run.failures,
        "failed-jobs": run.failed_jobs,
        "healed": run.healed.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
