//! `didact list`: what there is, one line each.

use super::reproduce::PAPERS;
use didact_experiment::Diagnostic;
use didact_experiment::engines::EngineSpec;
use didact_experiment::source::nearest;
use didact_families::Model;
use serde_json::json;
use std::process::ExitCode;

const OBSERVABLES: [(&str, &str); 8] = [
    ("loss", "generalisation error, label noise excluded"),
    (
        "Q[i,j]",
        "overlap of trained rows i, j: covariance of their fields; Q0, Q2, ... for other orders of the spectrum",
    ),
    ("R[i,n]", "overlap of trained row i with frozen row n"),
    ("T[n,m]", "overlap of frozen rows n, m"),
    ("norm[i]", "length of trained row i"),
    ("alignment[i,n]", "cosine between trained row i and frozen row n"),
    ("scalar[j]", "trained scalar j"),
    ("expression", "any formula of these, such as abs(R[0,0] - R[0,1]); * as an index stands for all"),
];

pub(crate) fn list(what: Option<&str>, as_json: bool) -> Result<ExitCode, Diagnostic> {
    let owned =
        |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).to_string(), (*b).to_string())).collect();
    let quantities = didact_experiment::quantities::all()
        .into_iter()
        .map(|(path, q)| (path, q.summary.to_string()))
        .collect();
    let engines = EngineSpec::catalogue().into_iter().map(|e| (e.name, e.about.to_string()));
    let papers = PAPERS.iter().map(|(family, figure, text)| (format!("{family}/{figure}"), title(text)));
    let groups: [(&str, Vec<(String, String)>); 6] = [
        ("families", owned(&Model::catalogue())),
        ("engines", engines.collect()),
        ("activations", owned(&didact_math::activation::catalogue())),
        ("observables", owned(&OBSERVABLES)),
        ("quantities", quantities),
        ("papers", papers.collect()),
    ];
    let names = groups.each_ref().map(|g| g.0);
    if let Some(wanted) = what.filter(|w| !names.contains(w)) {
        let hint = nearest(wanted, &names)
            .map_or_else(|| format!("lists are {}", names.join(", ")), |n| format!("did you mean `{n}`?"));
        return Err(Diagnostic::new(format!("nothing to list under `{wanted}`")).hint(hint));
    }
    let chosen = groups.iter().filter(|g| what.is_none_or(|w| w == g.0));
    if as_json {
        let object: serde_json::Map<_, _> =
            chosen.map(|(name, rows)| ((*name).to_string(), json!(rows))).collect();
        say!("{:#}", serde_json::Value::Object(object));
        return Ok(ExitCode::SUCCESS);
    }
    for (name, rows) in chosen {
        say!("{name}");
        for (key, about) in rows {
            say!("  {key:<26} {about}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The title line of a description.
fn title(text: &str) -> String {
    let line = text.lines().find_map(|l| l.strip_prefix("title"));
    line.map(|l| l.trim_start_matches([' ', '=']).trim_matches('"').to_string()).unwrap_or_default()
}
