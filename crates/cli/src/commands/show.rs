//! Claims and outcomes as text.

use didact_experiment::Finished;
use didact_experiment::claims::{Judged, Verdict};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// A table of claims: verdict, sentence, evidence.
pub(crate) fn claims(claims: &[Judged]) {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for claim in claims {
        let code = match claim.verdict {
            Verdict::Holds => "32",
            Verdict::Fails => "31;1",
            Verdict::DiffersFromPrint => "33",
        };
        let verdict = format!("{:<18}", claim.verdict.words());
        let verdict = if colour { format!("\x1b[{code}m{verdict}\x1b[0m") } else { verdict };
        say!("  {verdict} {}\n  {:<18} {}", claim.says, "", claim.evidence);
    }
}

/// What a finished run says.
pub(crate) fn finished(title: &str, run: &Finished) {
    say!("{title}");
    claims(&run.claims);
    for failure in &run.failures {
        say!("  failed: {failure}");
    }
    let how = match run.taken_over {
        _ if run.reused => " (unchanged, found)".into(),
        0 => String::new(),
        1 => " (1 result taken from an earlier version)".into(),
        n => format!(" ({n} results taken from an earlier version)"),
    };
    say!("  report: {}{how}", run.folder.join("report.html").display());
}

/// The same for programs.
pub(crate) fn as_json(title: &str, run: &Finished) -> Value {
    json!({
        "title": title,
        "folder": run.folder,
        "reused": run.reused,
        "taken-over": run.taken_over,
        "claims": run.claims,
        "measures": run.measured,
        "failures": run.failures,
    })
}
