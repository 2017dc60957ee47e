//! What one may start from: a card per example and per figure of a paper.

use crate::files;
use didact_experiment::{Diagnostic, Source};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A description to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Name in links: letters, digits, `-` and `/`.
    pub id: String,
    /// Which shelf it stands on: `yours`, `examples`, or the key of a paper.
    pub group: String,
    /// What the shelf is called.
    pub group_title: String,
    /// Name of the description for messages; files that it names lie beside it.
    pub name: String,
    /// The description.
    pub text: String,
}

/// Ten cards whose theory follows a knob: docs/performance.md has their times.
pub const STARTING: [&str; 10] = [
    "examples/first-figure",
    "examples/schedule",
    "committee/extra-plateau",
    "lora/fig01-linear",
    "quadratic-networks/extra-escape",
    "power-law-spectra/fig04-18-plateau",
    "training-rules/extra-clipping",
    "training-rules/extra-drift",
    "examples/sweep",
    "examples/scan",
];

/// Examples as they are in the folder `examples/`.
const EXAMPLES: [(&str, &str); 9] = [
    ("first-figure", include_str!("../../../examples/first-figure.toml")),
    ("lora-escape-map", include_str!("../../../examples/lora-escape-map.toml")),
    ("own-activation", include_str!("../../../examples/own-activation.toml")),
    ("own-model", include_str!("../../../examples/own-model.toml")),
    ("own-spectrum", include_str!("../../../examples/own-spectrum.toml")),
    ("scan", include_str!("../../../examples/scan.toml")),
    ("schedule", include_str!("../../../examples/schedule.toml")),
    ("success-phase-diagram", include_str!("../../../examples/success-phase-diagram.toml")),
    ("sweep", include_str!("../../../examples/sweep.toml")),
];

/// The eigenvalues that one of the examples reads from a file.
const SPECTRUM: &str = include_str!("../../../examples/spectrum.csv");

/// A blank sheet.
const BLANK: &str = r#"title = "A new experiment"

[model]
family = "committee"
students = 2
teachers = 2
activation = "erf(z/sqrt2)"

[training]
learning-rate = 1.0

[start]
q = [[0.25, 0.0], [0.0, 0.25]]
r = [[0.1, 0.0], [0.0, 0.1]]

[record]
times = { from = 0, to = 80, points = 81 }
observe = ["loss", "R[*,*]"]
"#;

/// Cards of the examples and of a blank sheet. The program carries no data files: eigenvalues of a file are written out.
pub fn examples() -> Vec<Card> {
    let card = |(name, text): &(&str, &str)| {
        let mut text = (*text).to_string();
        if text.contains("\"spectrum.csv\"") {
            let numbers: Vec<&str> =
                SPECTRUM.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
            let all = format!("{{ kind = \"explicit\", eigenvalues = [{}] }}", numbers.join(", "));
            text = text
                .replace("{ kind = \"file\", path = \"spectrum.csv\", groups = 16 }", &all)
                .replace("{ kind = \"file\", path = \"spectrum.csv\" }", &all)
                .replace(
                    "eigenvalues (or data) from a file",
                    "eigenvalues as a list (the example on disk reads a file)",
                );
        }
        Card {
            id: format!("examples/{name}"),
            group: "examples".into(),
            group_title: "Examples".into(),
            name: format!("{name}.toml"),
            text,
        }
    };
    let blank = Card {
        id: "examples/blank".into(),
        group: "examples".into(),
        group_title: "Examples".into(),
        name: "new.toml".into(),
        text: BLANK.into(),
    };
    EXAMPLES.iter().map(card).chain([blank]).collect()
}

/// The card of a file that the user named.
pub fn of_file(source: Source) -> Result<Card, Diagnostic> {
    let source = source.as_toml()?;
    Ok(Card {
        id: "yours".into(),
        group: "yours".into(),
        group_title: "Your file".into(),
        name: source.name,
        text: source.text,
    })
}

impl Card {
    /// The description as a source.
    pub(crate) fn source(&self, text: &str) -> Source {
        Source { name: self.name.clone(), text: text.into() }
    }

    /// The files that the description on the card names.
    pub(crate) fn files(&self) -> BTreeSet<String> {
        self.source(&self.text).plain().map(|plain| files::named(&plain)).unwrap_or_default()
    }

    /// What the gallery shows.
    pub(crate) fn shown(&self) -> Value {
        let plain = self.source(&self.text).plain().unwrap_or_default();
        let about = plain["about"].as_str().unwrap_or_default();
        json!({
            "id": self.id,
            "group": self.group,
            "groupTitle": self.group_title,
            "title": plain["title"].as_str().unwrap_or("Untitled"),
            "about": about.split_once(". ").map_or(about, |(first, _)| first),
            "family": plain["model"]["family"].as_str().unwrap_or(""),
            "thumbnail": thumbnail(&self.id).is_some(),
            "starting": STARTING.contains(&self.id.as_str()),
        })
    }
}

/// Pictures of the cards, made by the program `thumbnails` from runs of them.
const THUMBNAILS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/thumbnails.rs"));

/// The picture of a card.
pub(crate) fn thumbnail(id: &str) -> Option<&'static str> {
    let name = id.replace('/', "--");
    THUMBNAILS.iter().find(|(known, _)| *known == name).map(|(_, picture)| *picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_experiment::{Experiment, Size};

    #[test]
    fn every_example_of_the_folder_has_a_card_that_can_be_planned_without_its_files() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let cards = examples();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                let id = format!("examples/{}", path.file_stem().unwrap().to_str().unwrap());
                assert!(cards.iter().any(|card| card.id == id), "{id}");
            }
        }
        for card in &cards {
            assert!(card.files().is_empty(), "{}", card.id);
            Experiment::new(card.source(&card.text), Size::Normal, None)
                .unwrap_or_else(|e| panic!("{}: {e}", card.id));
        }
    }

    #[test]
    fn thumbnails_are_small_drawings_without_scripts() {
        for (name, picture) in THUMBNAILS {
            assert!(
                picture.starts_with("<svg ") && picture.len() < 30_000,
                "{name}: {} bytes",
                picture.len()
            );
            let links = picture.matches("href").count();
            assert!(
                !picture.contains("script") && links == picture.matches("href=\"data:image/png;").count(),
                "{name}"
            );
        }
        for card in examples() {
            assert!(card.id == "examples/blank" || thumbnail(&card.id).is_some(), "{}", card.id);
        }
    }
}
