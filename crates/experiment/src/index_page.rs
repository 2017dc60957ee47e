//! One page for all experiments of a paper: figures, counts of verdicts, errata, times.

use crate::claims::{Judged, Verdict};
use crate::execute::finished;
use crate::page;
use crate::report::class;
use crate::store::write_atomically;
use didact_figure::interactive::{Prose, encoded, escape, plain_text};
use std::io;
use std::path::{Path, PathBuf};

/// An experiment of the page, as its folder has it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What the user calls it, `lora/fig09`.
    pub name: String,
    /// Title of the experiment.
    pub title: String,
    /// Its folder, below that of the page.
    pub folder: String,
    /// Names of its figures.
    pub figures: Vec<String>,
    /// Claims with verdicts.
    pub claims: Vec<Judged>,
    /// What failed.
    pub failures: Vec<String>,
    /// Seconds that it took; `None` if its folder does not say.
    pub seconds: Option<f64>,
    /// Whether it was run with `--quick`.
    pub quick: bool,
}

impl Entry {
    /// Reads the folder of a finished experiment; `None` if it is not whole.
    pub fn read(name: &str, folder: &Path) -> Option<Self> {
        let done = finished(folder).ok()?;
        let text = std::fs::read_to_string(folder.join("provenance.json")).ok()?;
        let provenance: serde_json::Value = serde_json::from_str(&text).ok()?;
        let description: toml::Table =
            std::fs::read_to_string(folder.join("description.toml")).ok()?.parse().ok()?;
        let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let is_figure = |path: &PathBuf| path.extension().is_some_and(|e| e == "svg");
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let mut figures: Vec<String> = entries.filter(is_figure).filter_map(stem).collect();
        figures.sort();
        Some(Self {
            name: name.to_owned(),
            title: description.get("title")?.as_str()?.to_owned(),
            folder: folder.file_name()?.to_str()?.to_owned(),
            figures,
            claims: done.claims,
            failures: done.failures,
            seconds: provenance["wall-seconds"].as_f64(),
            quick: provenance["size"] == "quick",
        })
    }
}

/// Writes `<key>.html` into `root`, beside the folders of the experiments: pages of several papers do not meet.
pub fn write(root: &Path, key: &str, title: &str, citation: &str, entries: &[Entry]) -> io::Result<PathBuf> {
    let path = root.join(format!("{key}.html"));
    write_atomically(&path, html(title, citation, entries).as_bytes())?;
    Ok(path)
}

/// The page. Figures are shown from their files, which lie in the folders beside it.
pub fn html(title: &str, citation: &str, entries: &[Entry]) -> String {
    let mut prose = Prose::default();
    let mut body = format!("<h1>{}</h1>\n", prose.html(title));
    if !citation.is_empty() {
        body += &format!("<p class=small>{}</p>\n", escape(citation));
    }
    if entries.iter().any(|entry| entry.quick) {
        body += "<p class=notice role=note>Quick runs (--quick) are among these: smaller than described, so that they take seconds.</p>\n";
    }
    let seconds: f64 = entries.iter().filter_map(|entry| entry.seconds).sum();
    body += &format!(
        "<p class=counts>{} experiments, {}; {}</p>\n",
        entries.len(),
        duration(seconds),
        counts(entries)
    );
    body += "<ul class=gallery>\n";
    for entry in entries {
        body += &card(entry, &mut prose);
    }
    body += "</ul>\n";
    body += &errata(entries, &mut prose);
    page::html(title, &body, &prose)
}

/// How many claims there are of each verdict, those that hold first.
fn counts(entries: &[Entry]) -> String {
    let mut counts: Vec<(Verdict, usize)> = vec![(Verdict::Holds, 0)];
    for claim in entries.iter().flat_map(|entry| &entry.claims) {
        match counts.iter_mut().find(|(verdict, _)| *verdict == claim.verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((claim.verdict, 1)),
        }
    }
    let one = |(verdict, count): &(Verdict, usize)| {
        let words = verdict.words().to_lowercase();
        format!("<span class=\"{}\">{count} {words}</span>", class(*verdict))
    };
    let counts: Vec<String> = counts.iter().filter(|(_, count)| *count > 0).map(one).collect();
    if counts.is_empty() { "no claims".into() } else { counts.join(", ") }
}

fn card(entry: &Entry, prose: &mut Prose) -> String {
    let report = format!("./{}/report.html", encoded(&entry.folder));
    let title = prose.html(&entry.title);
    let pictures: String = entry
        .figures
        .iter()
        .map(|name| {
            format!(
                "<a href=\"{report}\"><img class=drawing loading=lazy src=\"./{}/{}.svg\" alt=\"{}\"></a>\n",
                encoded(&entry.folder),
                encoded(name),
                escape(&format!("Figure {name}: {}", plain_text(&entry.title)))
            )
        })
        .collect();
    let time = entry.seconds.map_or(String::new(), |seconds| format!(", {}", duration(seconds)));
    let quick = if entry.quick { ", quick" } else { "" };
    let failed = match entry.failures.len() {
        0 => String::new(),
        count => format!(", <span class=fails>{count} failed</span>"),
    };
    format!(
        "<li>{pictures}<a href=\"{report}\">{title}</a><br><span class=small>{}</span><br>\
         <span class=counts>{}{time}{quick}{failed}</span></li>\n",
        escape(&entry.name),
        counts(std::slice::from_ref(entry))
    )
}

/// What differs from print, in one table.
fn errata(entries: &[Entry], prose: &mut Prose) -> String {
    let mut rows = String::new();
    for entry in entries {
        for claim in entry.claims.iter().filter(|claim| claim.verdict == Verdict::DiffersFromPrint) {
            let (says, source) = (prose.html(&claim.says), prose.html(&claim.source));
            rows += &format!(
                "<tr><td>{says} <span class=small>{source}</span></td><td class=small>{}</td><td><a href=\"./{}/report.html\">{}</a></td></tr>\n",
                prose.html(&claim.evidence),
                encoded(&entry.folder),
                escape(&entry.name)
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h2>Differs from print</h2><div class=scroll><table class=claims><thead><tr><th>claim</th><th>evidence</th><th>experiment</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    )
}

/// Seconds as a reader says them.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Provenance;
    use crate::store::folder::{Assembly, sample_provenance};

    fn claim(verdict: Verdict) -> Judged {
        Judged {
            says: "slope is <two> $\\beta$".into(),
            source: "Fig. 1".into(),
            verdict,
            evidence: "2.1".into(),
        }
    }

    fn entry() -> Entry {
        Entry {
            name: "lora/fig1".into(),
            title: "Escape \"time\"".into(),
            folder: "escape time-00ff".into(),
            figures: vec!["fig1".into()],
            claims: vec![claim(Verdict::Holds), claim(Verdict::DiffersFromPrint)],
            failures: Vec::new(),
            seconds: Some(75.0),
            quick: true,
        }
    }

    #[test]
    fn the_page_counts_verdicts_and_lists_errata_and_times() {
        let page = html(
            "LoRA",
            "A. Author, 2025",
            &[entry(), Entry { seconds: Some(200.0), quick: false, ..entry() }],
        );
        for part in [
            "2 experiments, 5 min; <span class=\"holds\">2 holds</span>, <span class=\"differs-from-print\">2 differs from print</span>",
            "Quick runs",
            "src=\"./escape%20time-00ff/fig1.svg\" alt=\"Figure fig1: Escape &quot;time&quot;\"",
            "href=\"./escape%20time-00ff/report.html\"",
            "75 s, quick",
            "<h2>Differs from print</h2>",
            "slope is &lt;two&gt; <svg",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!html("t", "", &[]).contains("Differs from print"));
    }

    #[test]
    fn an_entry_is_what_its_folder_says() {
        let root = std::env::temp_dir().join(format!("didact-index-{}", std::process::id()));
        let folder = root.join("an-experiment-0123");
        let assembly = Assembly::new(&root).unwrap();
        for (name, text) in [
            ("description.toml", "title = \"An experiment\"\n"),
            ("fig-b.svg", "<svg/>"),
            ("fig-a.svg", "<svg/>"),
            ("results.json", r#"{"measures": [], "claims": []}"#),
        ] {
            assembly.add(name, text.as_bytes()).unwrap();
        }
        assert!(Entry::read("x", &folder).is_none(), "not whole yet");
        let provenance = Provenance { size: "quick".into(), wall_seconds: 1.5, ..sample_provenance() };
        assembly.install(&folder, provenance, false).unwrap();
        let entry = Entry::read("paper/x", &folder).unwrap();
        assert_eq!((entry.title.as_str(), entry.folder.as_str()), ("An experiment", "an-experiment-0123"));
        assert_eq!(
            (entry.figures, entry.seconds, entry.quick),
            (vec!["fig-a".to_string(), "fig-b".into()], Some(1.5), true)
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
