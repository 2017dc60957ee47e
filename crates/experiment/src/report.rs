//! One static page per run: claims, interactive figures, the description, where it came from, what to cite.

use crate::claims::{Judged, Verdict};
use crate::quantities::Scan;
use crate::scan_tables;
use didact_figure::Figure;
use didact_figure::interactive;
use didact_model::Reference;

/// What a report shows.
pub struct Report<'a> {
    /// Title of the experiment.
    pub title: &'a str,
    /// Its paragraph.
    pub about: &'a str,
    /// Claims with their verdicts.
    pub claims: &'a [Judged],
    /// Figures with their names.
    pub figures: &'a [(String, Figure)],
    /// Measures: name and text.
    pub measures: &'a [(String, String)],
    /// Scans; the short ones are shown as tables.
    pub scans: &'a [Scan],
    /// The resolved description.
    pub description: &'a str,
    /// Where it came from: name and value.
    pub provenance: &'a [(String, String)],
    /// What to cite.
    pub references: &'a [Reference],
    /// Points and runs that failed.
    pub failures: &'a [String],
}

const STYLE: &str = "body{font:16px/1.5 Georgia,serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem;border-bottom:1px solid #ccc}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}\
pre{background:#f6f6f4;padding:1rem;overflow:auto;font-size:.85rem}figure{margin:1.5rem 0}\
.holds{color:#00664b}.fails{color:#b00020;font-weight:bold}.differs-from-print{color:#8a5a00}.small{color:#666;font-size:.9rem}";

/// Text that is safe inside HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Report<'_> {
    /// The page. Needs no network and nothing beside it.
    pub fn html(&self) -> Result<String, String> {
        let mut body = format!("<h1>{}</h1>\n", escape(self.title));
        if !self.about.is_empty() {
            body += &format!("<p>{}</p>\n", escape(self.about));
        }
        body += &self.claims_table();
        for (index, (name, figure)) in self.figures.iter().enumerate() {
            let div = interactive::div(figure, &format!("figure-{index}"))
                .map_err(|e| format!("figure `{name}`: {e}"))?;
            body += &format!("<figure>\n{div}\n</figure>\n");
        }
        body += &table("Measures", self.measures);
        let scans: String = self.scans.iter().filter_map(scan_tables::html).collect();
        if !scans.is_empty() {
            body += &format!("<h2>Scans</h2>\n{scans}");
        }
        if !self.failures.is_empty() {
            let items: String = self.failures.iter().map(|f| format!("<li>{}</li>", escape(f))).collect();
            body += &format!("<h2>What failed</h2><ul>{items}</ul>\n");
        }
        body += &format!("<h2>Description</h2><pre>{}</pre>\n", escape(self.description));
        body += &table("Provenance", self.provenance);
        let items: String = self
            .references
            .iter()
            .map(|r| {
                format!("<li>{} <span class=small>{}</span></li>", escape(r.citation), escape(r.locator))
            })
            .collect();
        body += &format!("<h2>References</h2><ul>{items}</ul>\n");
        Ok(format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>{}</title>\
             <style>{STYLE}</style>\n</head>\n<body>\n{body}</body></html>\n",
            escape(self.title)
        ))
    }

    fn claims_table(&self) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let row = |c: &Judged| {
            let class = match c.verdict {
                Verdict::Holds => "holds",
                Verdict::Fails => "fails",
                Verdict::DiffersFromPrint => "differs-from-print",
            };
            let source = if c.source.is_empty() { String::new() } else { format!(" ({})", c.source) };
            format!(
                "<tr><td>{}<span class=small>{}</span></td><td class={class}>{}</td><td class=small>{}</td></tr>\n",
                escape(&c.says),
                escape(&source),
                c.verdict.words(),
                escape(&c.evidence)
            )
        };
        let rows: String = self.claims.iter().map(row).collect();
        format!(
            "<h2>Claims</h2><table><tr><th>claim</th><th>verdict</th><th>evidence</th></tr>\n{rows}</table>\n"
        )
    }
}

fn table(title: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: String = rows
        .iter()
        .map(|(k, v)| format!("<tr><td>{}</td><td>{}</td></tr>\n", escape(k), escape(v)))
        .collect();
    format!("<h2>{title}</h2><table>{rows}</table>\n")
}
