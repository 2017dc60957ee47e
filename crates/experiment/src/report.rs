//! One static page per run: claims, interactive figures, the description, where it came from, what to cite.

use crate::claims::{Judged, Verdict};
use crate::page;
use crate::quantities::Scan;
use crate::scan_tables;
use crate::words::Words;
use didact_figure::Figure;
use didact_figure::interactive::{Framed, Prose, escape};
use didact_model::Reference;

/// What a report shows.
pub struct Report<'a> {
    /// Title of the experiment.
    pub title: &'a str,
    /// Its paragraph.
    pub about: &'a str,
    /// What is not as described, such as `--quick`; stands at the top.
    pub notice: Option<&'a str>,
    /// Claims with their verdicts.
    pub claims: &'a [Judged],
    /// Figures with their names.
    pub figures: &'a [(String, Figure)],
    /// Measures: name and text.
    pub measures: &'a [(String, String)],
    /// Scans; the short ones are shown as tables.
    pub scans: &'a [Scan],
    /// How keys of the description are called.
    pub words: &'a Words,
    /// The resolved description.
    pub description: &'a str,
    /// Where it came from: name and value.
    pub provenance: &'a [(String, String)],
    /// What to cite.
    pub references: &'a [Reference],
    /// Points and runs that failed.
    pub failures: &'a [String],
}

/// Bytes of a whole page. The numbers of its figures get what everything else leaves.
const PAGE: usize = 290_000;
/// Bytes that the numbers of a figure get at least.
const NUMBERS: usize = 12_000;

impl Report<'_> {
    /// The page. Needs no network; only the links to other formats of a figure need the files beside it.
    pub fn html(&self) -> Result<String, String> {
        let mut prose = Prose::default();
        let above = self.above(&mut prose);
        let below = self.below(&mut prose);
        let figures = |prose: &mut Prose, room: usize| -> Result<String, String> {
            let one = |(name, figure): &(String, Figure)| {
                let framed = Framed { figure, name, files: true, room };
                framed.html(prose).map_err(|e| format!("figure `{name}`: {e}"))
            };
            self.figures.iter().map(one).collect()
        };
        // Without their numbers the figures have their least length; what is left is shared.
        let bare = figures(&mut prose, 0)?;
        let others = above.len() + below.len() + bare.len() + page::html(self.title, "", &prose).len();
        let room = PAGE.saturating_sub(others) / self.figures.len().max(1);
        let figures = figures(&mut prose, room.max(NUMBERS))?;
        Ok(page::html(self.title, &format!("{above}{figures}{below}"), &prose))
    }

    fn above(&self, prose: &mut Prose) -> String {
        let mut body = format!("<h1>{}</h1>\n", prose.html(self.title));
        if let Some(notice) = self.notice {
            body += &format!("<p class=notice role=note>{}</p>\n", escape(notice));
        }
        if !self.about.is_empty() {
            body += &format!("<p>{}</p>\n", prose.html(self.about));
        }
        body + &self.claims_table(prose)
    }

    fn below(&self, prose: &mut Prose) -> String {
        let mut body = self.table("Measures", self.measures, prose);
        let scans: String =
            self.scans.iter().filter_map(|scan| scan_tables::html(scan, self.words, prose)).collect();
        if !scans.is_empty() {
            body += &format!("<h2>Scans</h2>\n{scans}");
        }
        if !self.failures.is_empty() {
            let items: String =
                self.failures.iter().map(|f| format!("<li>{}</li>", self.words.html(f, prose))).collect();
            body += &format!("<h2>What failed</h2><ul>{items}</ul>\n");
        }
        body += &format!(
            "<h2>Description</h2><details><summary>as it was run, every default written out</summary><pre>{}</pre></details>\n",
            escape(self.description)
        );
        body += &self.table("Provenance", self.provenance, prose);
        let items: String = self
            .references
            .iter()
            .map(|r| format!("<li>{} <span class=small>{}</span></li>", escape(r.citation), link(r.locator)))
            .collect();
        body + &format!("<h2>References</h2><ul>{items}</ul>\n")
    }

    fn claims_table(&self, prose: &mut Prose) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let mut rows = String::new();
        for claim in self.claims {
            let source = if claim.source.is_empty() { String::new() } else { format!(" ({})", claim.source) };
            rows += &format!(
                "<tr><td>{} <span class=small>{}</span></td><td class=\"{}\">{}</td><td class=small>{}</td></tr>\n",
                prose.html(&claim.says),
                prose.html(&source),
                class(claim.verdict),
                claim.verdict.words(),
                self.words.html(&claim.evidence, prose)
            );
        }
        format!(
            "<h2>Claims</h2><div class=scroll><table class=claims><thead><tr><th>claim</th><th>verdict</th><th>evidence</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
        )
    }

    fn table(&self, title: &str, rows: &[(String, String)], prose: &mut Prose) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut cells = String::new();
        for (name, text) in rows {
            let (name, text) = (self.words.html(name, prose), self.words.html(text, prose));
            cells += &format!("<tr><td>{name}</td><td>{text}</td></tr>\n");
        }
        format!("<h2>{title}</h2><div class=scroll><table>{cells}</table></div>\n")
    }
}

/// A DOI or arXiv number as a link that only a click follows; anything else as it is.
fn link(locator: &str) -> String {
    let known = [("doi:", "https://doi.org/"), ("arXiv:", "https://arxiv.org/abs/")];
    let address =
        known.iter().find_map(|(prefix, site)| Some(format!("{site}{}", locator.strip_prefix(prefix)?)));
    let text = escape(locator);
    address
        .map_or(text.clone(), |address| format!("<a href=\"{}\" rel=noreferrer>{text}</a>", escape(&address)))
}

/// The class of a verdict: its words with hyphens.
pub(crate) fn class(verdict: Verdict) -> String {
    verdict.words().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
