//! The registry of papers: one row each, `papers/<key>/paper.toml`, carried in the binary with the figures.

use crate::units::duration;
use didact_experiment::source::nearest;
use didact_experiment::{Diagnostic, Experiment, Size, Source};
use serde::Deserialize;

/// (key, row, figures with their descriptions), from the folder `papers/`.
type Folder = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const FOLDERS: &[Folder] = &include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// What the registry says of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) title: String,
    /// Authors, journal, year.
    pub(crate) citation: String,
    /// DOI or arXiv number, with its prefix.
    pub(crate) locator: String,
    /// Families of models that it is about.
    pub(crate) families: Vec<String>,
    /// Page that shows how its questions are asked here.
    pub(crate) guide: String,
    /// Reference numbers from independent code.
    pub(crate) golden: String,
    /// Page with its equations and errata in our notation.
    pub(crate) derivation: String,
    /// Names of the figures in the order in which they are run.
    figures: Vec<String>,
    /// What of the source is here; empty where the source is this repository.
    #[serde(default)]
    pub(crate) coverage: Vec<Covered>,
}

/// A figure, a table or a theorem of the source, and what of it is here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Covered {
    /// What it is called in the source.
    pub(crate) item: String,
    /// Figures of this paper that show it.
    pub(crate) figures: Vec<String>,
    pub(crate) state: Coverage,
    /// What differs or lacks; empty where nothing does.
    #[serde(default)]
    pub(crate) why: String,
}

/// How much of something is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Coverage {
    Same,
    Partly,
    Missing,
}

impl Coverage {
    pub(crate) const ALL: [Self; 3] = [Self::Same, Self::Partly, Self::Missing];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Partly => "partly",
            Self::Missing => "missing",
        }
    }
}

/// A paper.
#[derive(Debug)]
pub(crate) struct Paper {
    /// Its name on the command line: that of its folder.
    pub(crate) key: &'static str,
    pub(crate) row: Row,
    pub(crate) figures: Vec<PaperFigure>,
}

/// One figure of a paper: an experiment.
#[derive(Debug)]
pub(crate) struct PaperFigure {
    pub(crate) name: &'static str,
    text: &'static str,
}

impl PaperFigure {
    /// The description as a source that messages can point into.
    pub(crate) fn source(&self, paper: &str) -> Source {
        Source { name: format!("papers/{paper}/{}.toml", self.name), text: self.text.into() }
    }

    /// The title line of the description.
    pub(crate) fn title(&self) -> String {
        let line = self.text.lines().find_map(|l| l.strip_prefix("title"));
        line.map(|l| l.trim_start_matches([' ', '=']).trim_matches('"').to_string()).unwrap_or_default()
    }
}

/// Every paper, by key. A row that cannot be read is a fault of the build; a test reads all of them.
pub(crate) fn all() -> Vec<Paper> {
    FOLDERS.iter().map(|folder| read(folder).unwrap_or_else(|fault| panic!("{fault}"))).collect()
}

fn read((key, row, files): &Folder) -> Result<Paper, String> {
    let row: Row = toml::from_str(row).map_err(|e| format!("papers/{key}/paper.toml: {e}"))?;
    let figure = |name: &String| {
        let found = files.iter().find(|(file, _)| file == name);
        let (name, text) = found.ok_or_else(|| format!("papers/{key}: there is no figure `{name}`"))?;
        Ok(PaperFigure { name, text })
    };
    let figures = row.figures.iter().map(figure).collect::<Result<_, String>>()?;
    Ok(Paper { key, row, figures })
}

/// The figures that `paper` or `paper/figure` names. The beginning of a figure's name up to a dash is enough: `lora/fig09`.
pub(crate) fn find<'a>(
    papers: &'a [Paper],
    wanted: &str,
) -> Result<Vec<(&'a Paper, &'a PaperFigure)>, Diagnostic> {
    let (key, part) = match wanted.split_once('/') {
        Some((key, part)) => (key, Some(part)),
        None => (wanted, None),
    };
    let Some(paper) = papers.iter().find(|p| p.key == key) else {
        let keys: Vec<&str> = papers.iter().map(|p| p.key).collect();
        let hint = match nearest(key, &keys) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("papers are {}", keys.join(", ")),
        };
        return Err(Diagnostic::new(format!("no paper `{key}`")).hint(hint));
    };
    let named = |figure: &&PaperFigure| {
        part.is_none_or(|part| {
            figure.name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    let chosen: Vec<_> = paper.figures.iter().filter(named).map(|figure| (paper, figure)).collect();
    match part {
        Some(part) if chosen.is_empty() => {
            let names: Vec<&str> = paper.figures.iter().map(|f| f.name).collect();
            Err(Diagnostic::new(format!("the paper `{key}` has no figure `{part}`"))
                .hint(suggestion(key, part, &names)))
        }
        _ => Ok(chosen),
    }
}

/// What may have been meant: a slip, a piece of a name, or nothing that is known.
fn suggestion(key: &str, part: &str, names: &[&str]) -> String {
    if let Some(near) = nearest(part, names) {
        return format!("did you mean `{key}/{near}`?");
    }
    // `fig9` and `f9` mean `fig09-...`, `plateau` means `extra-plateau`.
    let digits = part.trim_start_matches(|c: char| !c.is_ascii_digit());
    let leading: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let number = leading.parse::<u32>().map(|n| format!("fig{n:02}")).ok();
    let alike = |name: &&&str| {
        number.as_ref().is_some_and(|n| name.starts_with(n.as_str()))
            || (!part.is_empty() && name.contains(part))
    };
    let alike: Vec<String> = names.iter().filter(alike).map(|name| format!("{key}/{name}")).collect();
    match alike.as_slice() {
        [] => format!("its figures are {}", names.join(", ")),
        some => format!(
            "did you mean {}?",
            some.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" or ")
        ),
    }
}

/// What the runs of a paper cost at one size, by the planner.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlannedCost {
    /// Seconds of one core, of all runs together.
    pub(crate) seconds: f64,
    /// Points of scans, which the planner cannot estimate.
    pub(crate) scan_points: usize,
}

impl PlannedCost {
    /// As a list shows it: `+` stands for the scans.
    pub(crate) fn words(self) -> String {
        match (self.seconds > 0.0, self.scan_points) {
            (true, 0) => format!("~{}", duration(self.seconds)),
            (true, _) => format!("~{} +", duration(self.seconds)),
            (false, _) => "scans only".into(),
        }
    }
}

impl Paper {
    /// How many items of the source are the same here, partly here and missing; nothing where the source is this repository.
    pub(crate) fn covered(&self) -> Option<[usize; 3]> {
        let count = |state| self.row.coverage.iter().filter(|covered| covered.state == state).count();
        (!self.row.coverage.is_empty()).then(|| Coverage::ALL.map(count))
    }

    /// The planner's estimate; nothing is run.
    pub(crate) fn estimate(&self, size: Size) -> Result<PlannedCost, Diagnostic> {
        self.figures.iter().try_fold(PlannedCost::default(), |sum, figure| {
            let experiment = Experiment::new(figure.source(self.key), size, None)?;
            let seconds: f64 = experiment.costs().iter().map(|cost| cost.seconds).sum();
            Ok(PlannedCost {
                seconds: sum.seconds + seconds,
                scan_points: sum.scan_points + experiment.scan_points(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_families::Model;
    use std::path::Path;

    fn repository() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn every_row_of_the_registry_names_what_exists() {
        let families: Vec<&str> = Model::catalogue().iter().map(|f| f.0).collect();
        for paper in all() {
            let Row { title, citation, locator, families: of, guide, golden, derivation, .. } = &paper.row;
            for text in [title, citation, locator] {
                assert!(!text.trim().is_empty(), "{}: an empty entry", paper.key);
            }
            assert!(
                !of.is_empty() && of.iter().all(|f| families.contains(&f.as_str())),
                "{}: {of:?}",
                paper.key
            );
            for page in [guide, golden, derivation] {
                assert!(repository().join(page).is_file(), "{}: there is no {page}", paper.key);
            }
        }
    }

    #[test]
    fn every_figure_of_a_paper_has_a_caption() {
        let mut faults = Vec::new();
        for paper in all() {
            for figure in &paper.figures {
                let experiment = Experiment::new(figure.source(paper.key), Size::Full, None).unwrap();
                let name = format!("{}/{}", paper.key, figure.name);
                let silent = |f: &&didact_experiment::description::FigureSpec| {
                    f.caption.as_deref().unwrap_or("").trim().is_empty()
                };
                let figures = experiment.resolved.figure.iter();
                faults.extend(figures.filter(silent).map(|f| format!("{name}: `{}` has no caption", f.name)));
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// The table of a guide.
    fn table(paper: &Paper) -> String {
        let [same, partly, missing] = paper.covered().unwrap();
        let mut table = format!(
            "{same} the same, {partly} partly, {missing} missing.\n\n| in the paper | file | | why |\n|---|---|---|---|\n"
        );
        for Covered { item, figures, state, why } in &paper.row.coverage {
            let figures: Vec<String> = figures.iter().map(|figure| format!("`{figure}`")).collect();
            table += &format!("| {item} | {} | {} | {why} |\n", figures.join(", "), state.word());
        }
        table
    }

    #[test]
    fn the_guides_say_what_of_their_papers_is_here() {
        for paper in all().iter().filter(|paper| !paper.row.coverage.is_empty()) {
            for Covered { item, figures, state, why } in &paper.row.coverage {
                let name = format!("{}: {item}", paper.key);
                let known = |figure: &String| paper.figures.iter().any(|f| f.name == figure);
                assert!(figures.iter().all(known), "{name}: no such figure among {figures:?}");
                assert_eq!(figures.is_empty(), *state == Coverage::Missing, "{name}: figures or none");
                assert_eq!(
                    why.is_empty(),
                    *state == Coverage::Same,
                    "{name}: a reason where something lacks"
                );
            }
            let table = table(paper);
            let guide = std::fs::read_to_string(repository().join(&paper.row.guide)).unwrap();
            assert!(
                guide.contains(&table),
                "{}: its table, under `What of the paper is here`, should be\n\n{table}",
                paper.row.guide
            );
        }
    }

    #[test]
    fn every_family_has_a_paper_and_every_golden_file_too() {
        let papers = all();
        // A formula is the model of a user: it has a guide and no paper.
        for (family, _) in Model::catalogue().into_iter().filter(|(family, _)| *family != "formula") {
            assert!(papers.iter().any(|p| p.row.families.iter().any(|f| f == family)), "{family}");
        }
        for file in std::fs::read_dir(repository().join("golden")).unwrap() {
            let name = format!("golden/{}", file.unwrap().file_name().to_string_lossy());
            assert!(papers.iter().any(|p| p.row.golden == name), "no paper has {name}");
        }
    }

    /// `fig01a-04b-words`: what it is, numbers of two digits with the letter of a panel, and words.
    #[test]
    fn figures_are_named_alike() {
        let numbered = |name: &str| {
            let (_, rest) = ["fig", "thm", "prop"].iter().find_map(|p| Some((p, name.strip_prefix(p)?)))?;
            let number = |piece: &str| {
                let digits = piece.trim_end_matches(|c: char| c.is_ascii_lowercase());
                digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()) && piece.len() <= 3
            };
            let mut pieces = rest.split('-');
            let first = pieces.next().is_some_and(number);
            let words = pieces.skip_while(|p| number(p)).count();
            Some(first && words > 0)
        };
        for paper in all() {
            for figure in &paper.figures {
                let well = figure.name.starts_with("extra-") || numbered(figure.name) == Some(true);
                assert!(well, "{}/{}", paper.key, figure.name);
            }
        }
    }

    #[test]
    fn a_wrong_row_is_found_and_says_what_is_wrong() {
        let row = FOLDERS[0].1;
        let missing = row.replacen("figures = [", "figures = [\"fig99-nothing\", ", 1);
        let fault = |text: &'static str| read(&("x", text, FOLDERS[0].2)).unwrap_err();
        assert!(fault(missing.leak()).contains("no figure `fig99-nothing`"));
        assert!(fault(row.replacen("guide", "giude", 1).leak()).contains("giude"));
    }

    #[test]
    fn a_wrong_name_is_answered_with_what_was_meant() {
        let papers = all();
        let hint = |wanted: &str| find(&papers, wanted).unwrap_err().hint.unwrap();
        assert_eq!(hint("lor"), "did you mean `lora`?");
        assert_eq!(hint("lora/fig9"), "did you mean `lora/fig09-third-hermite`?");
        assert_eq!(hint("lora/fig9-third-hermite"), "did you mean `lora/fig09-third-hermite`?");
        assert_eq!(hint("committee/plateau"), "did you mean `committee/extra-plateau`?");
        assert!(hint("nothing-of-the-kind").starts_with("papers are committee, "));
        assert!(hint("lora/zzz").starts_with("its figures are fig01-escape-time, "));
    }

    #[test]
    fn the_number_of_a_figure_is_enough() {
        let papers = all();
        let names = |wanted: &str| -> Vec<&str> {
            find(&papers, wanted).unwrap().iter().map(|(_, figure)| figure.name).collect()
        };
        assert_eq!(names("lora/fig09"), ["fig09-third-hermite"]);
        assert_eq!(names("lora/fig01"), ["fig01-escape-time", "fig01-linear"]);
        assert_eq!(names("lora").len(), papers.iter().find(|p| p.key == "lora").unwrap().figures.len());
    }
}
