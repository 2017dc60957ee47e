//! The lines of legends: which text stands for which layers, and which legend it stands in.

use std::collections::{BTreeMap, BTreeSet};

use crate::figure::{Figure, Legend, Panel};
use crate::layer::{HistogramStyle, Layer, Marker, Stroke};
use crate::palette;
use crate::series::{Book, Style, legend_of};

/// A line of a legend: the text and the parts of its layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    /// Number of the entry in the figure.
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) line: Option<(String, Stroke)>,
    pub(crate) band: Option<String>,
    pub(crate) marker: Option<(String, Marker)>,
    /// Whether the markers have error bars.
    pub(crate) errors: bool,
    pub(crate) bar: Option<String>,
}

/// So many entries still make one legend that is read at a glance.
const FEW: usize = 5;

/// Texts of all entries in reading order, and the entry of every layer of every panel and inset.
pub(crate) fn number(
    figure: &Figure,
    pages: &[(usize, bool, &Panel)],
) -> (Vec<String>, Vec<Vec<Option<usize>>>) {
    // A text of several groups ("theory") says what a layer is, not how its group is called.
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for layer in pages.iter().flat_map(|(_, _, panel)| &panel.layers) {
        if let (Some(text), Some(group)) = (layer.legend(), layer.series()) {
            groups.entry(text).or_default().insert(group);
        }
    }
    let first_text = |panel: &Panel, group: &str| {
        let own = panel.layers.iter().filter(|layer| layer.series() == Some(group));
        let mut names = own.filter_map(Layer::legend).filter(|text| groups[text].len() == 1);
        names.next().map(str::to_owned)
    };
    // A layer without a text is called as its group is called in its panel, or around it, or everywhere else.
    let text = |place: usize, panel: &Panel, layer: &Layer| {
        if let Some(text) = layer.legend() {
            return Some(text.to_owned());
        }
        let group = layer.series()?;
        let near = first_text(panel, group).or_else(|| first_text(&figure.panels[place], group));
        near.or_else(|| {
            let all: BTreeSet<String> =
                figure.panels.iter().filter_map(|panel| first_text(panel, group)).collect();
            (all.len() == 1).then(|| all.into_iter().next()).flatten()
        })
    };
    // Entries are known by their text, and those without by their group.
    let mut known: Vec<(String, Option<String>)> = Vec::new();
    let mut entries = Vec::new();
    for (place, _, panel) in pages {
        let mut own = Vec::new();
        for layer in &panel.layers {
            let name = match (text(*place, panel, layer), layer.series()) {
                (Some(text), _) => (text, None),
                (None, Some(group)) => (String::new(), Some(group.to_owned())),
                (None, None) => {
                    own.push(None);
                    continue;
                }
            };
            let at = known.iter().position(|other| *other == name);
            own.push(Some(at.unwrap_or_else(|| {
                known.push(name);
                known.len() - 1
            })));
        }
        entries.push(own);
    }
    (known.into_iter().map(|(text, _)| text).collect(), entries)
}

/// Which entries stand in one legend below the figure. A few that panels have in common stand together; otherwise an entry that
/// only one panel has stands below that panel.
pub(crate) fn shared(
    figure: &Figure,
    texts: &[String],
    entries: &[Vec<Option<usize>>],
    pages: &[(usize, bool, &Panel)],
) -> Vec<bool> {
    let mut panels: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for ((place, inset, _), own) in pages.iter().zip(entries) {
        if !inset && legend_of(figure, &figure.panels[*place]) == Legend::Bottom {
            for entry in own.iter().flatten().filter(|entry| !texts[**entry].is_empty()) {
                panels.entry(*entry).or_default().insert(*place);
            }
        }
    }
    let common = |entry: usize| panels.get(&entry).is_some_and(|panels| panels.len() > 1);
    let together = figure.panels.len() == 1
        || (panels.len() <= FEW && (0..texts.len()).any(common))
        || panels.is_empty();
    (0..texts.len()).map(|entry| together || common(entry)).collect()
}

impl Book {
    /// The legend below all panels.
    pub(crate) fn below_all(&self, figure: &Figure) -> Vec<Entry> {
        let below = |page: usize| {
            let page = &self.pages[page];
            !page.inset && legend_of(figure, &figure.panels[page.panel]) == Legend::Bottom
        };
        let pages: Vec<usize> = (0..self.pages.len()).filter(|page| below(*page)).collect();
        self.collect(figure, &pages, |entry| self.shared[entry])
    }

    /// The legend below the panel of this number on the page: what no other panel has.
    pub(crate) fn below_panel(&self, figure: &Figure, page: usize) -> Vec<Entry> {
        let below = legend_of(figure, &figure.panels[self.pages[page].panel]) == Legend::Bottom;
        self.collect(figure, &[page], |entry| below && !self.shared[entry])
    }

    /// The legend inside a panel.
    pub(crate) fn inside(&self, figure: &Figure, page: usize) -> Vec<Entry> {
        self.collect(figure, &[page], |_| true)
    }

    fn collect(&self, figure: &Figure, pages: &[usize], wanted: impl Fn(usize) -> bool) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for page in pages.iter().map(|page| &self.pages[*page]) {
            let layers = figure.panels[page.panel].layers.iter().zip(&page.styles).zip(&page.entries);
            for ((layer, style), number) in layers {
                let Some(number) = *number else { continue };
                let text = &self.texts[number];
                if text.is_empty() || !wanted(number) {
                    continue;
                }
                let at = entries.iter().position(|known| known.number == number).unwrap_or_else(|| {
                    entries.push(Entry { number, text: text.clone(), ..Entry::default() });
                    entries.len() - 1
                });
                entries[at].add(layer, style);
            }
        }
        entries
    }

    /// What a reader cannot find in a legend: the strokes and markers of panels with several of them that no entry shows. Panel by
    /// panel, in words.
    pub(crate) fn unexplained(&self, figure: &Figure, letters: &[String]) -> Vec<String> {
        let below = self.below_all(figure);
        let mut found = Vec::new();
        for (number, page) in self.pages.iter().enumerate().filter(|(_, page)| !page.inset) {
            let panel = &figure.panels[page.panel];
            let legend = match legend_of(figure, panel) {
                Legend::Bottom => [below.clone(), self.below_panel(figure, number)].concat(),
                Legend::Inside => self.inside(figure, number),
                Legend::None => Vec::new(),
            };
            let layers: Vec<(&Layer, &Style, Option<usize>)> = panel
                .layers
                .iter()
                .zip(&page.styles)
                .zip(&page.entries)
                .map(|((layer, style), entry)| (layer, style, *entry))
                .collect();
            let speaks = |layer: &Layer| match layer {
                Layer::HeatMap(_) => false,
                Layer::Slope(slope) => slope.label.is_none(),
                _ => true,
            };
            let mut looks: Vec<Entry> = Vec::new();
            for (layer, style, _) in layers.iter().filter(|(layer, ..)| speaks(layer)) {
                let mut look = Entry::default();
                look.add(layer, style);
                if !looks.contains(&look) {
                    looks.push(look);
                }
            }
            if looks.len() < 2 {
                continue;
            }
            for (place, (layer, style, entry)) in layers.iter().enumerate() {
                let shown = legend.iter().find(|known| Some(known.number) == *entry);
                if speaks(layer) && !shown.is_some_and(|shown| shown.shows(layer, style)) {
                    let name = &letters[page.panel];
                    let colour = &style.colour;
                    found.push(format!(
                        "panel {name}, layer {} ({}, {colour}, {:?})",
                        place + 1,
                        layer.kind(),
                        style.stroke
                    ));
                }
            }
        }
        found
    }
}

impl Entry {
    /// Adds a part; parts of several colours are shown in ink.
    fn add(&mut self, layer: &Layer, Style { colour, stroke, marker }: &Style) {
        let blend = |known: &mut String| {
            if known != colour {
                palette::INK.clone_into(known);
            }
        };
        match layer {
            Layer::Line(_) | Layer::Guide(_) | Layer::Slope(_) | Layer::Density(_) => {
                blend(&mut self.line.get_or_insert((colour.clone(), *stroke)).0);
            }
            Layer::Histogram(histogram) if histogram.style == HistogramStyle::Steps => {
                blend(&mut self.line.get_or_insert((colour.clone(), *stroke)).0);
            }
            Layer::Histogram(_) => blend(self.bar.get_or_insert(colour.clone())),
            Layer::Band(_) => blend(self.band.get_or_insert(colour.clone())),
            Layer::Markers(points) => {
                self.errors |= points.y_error.is_some();
                let known = self.marker.get_or_insert((colour.clone(), *marker));
                blend(&mut known.0);
                if known.1 != *marker {
                    known.1 = Marker::Circle;
                }
            }
            Layer::HeatMap(_) => {}
        }
    }

    /// Whether a reader recognises a layer in this entry: by its dash pattern, and its colour unless it stands in ink.
    fn shows(&self, layer: &Layer, style: &Style) -> bool {
        let known = |colour: &str| colour == style.colour || colour == palette::INK;
        match layer {
            Layer::Line(_) | Layer::Guide(_) | Layer::Slope(_) | Layer::Density(_) => {
                self.line.as_ref().is_some_and(|(colour, stroke)| known(colour) && *stroke == style.stroke)
            }
            Layer::Histogram(_) | Layer::HeatMap(_) => true,
            Layer::Band(_) => self.band.as_deref().is_some_and(known),
            Layer::Markers(_) => self.marker.as_ref().is_some_and(|(colour, _)| known(colour)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Guide, Line, Markers};

    fn line(group: Option<&str>, legend: Option<&str>) -> Layer {
        Layer::Line(Line { group: group.map(Into::into), legend: legend.map(Into::into), ..Line::default() })
    }

    fn figure(panels: Vec<Vec<Layer>>) -> Figure {
        let panels = panels.into_iter().map(|layers| Panel { layers, ..Panel::default() }).collect();
        Figure { panels, ..Figure::default() }
    }

    fn texts(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn two_texts_of_one_group_are_two_entries_that_differ() {
        let points = Layer::Markers(Markers {
            group: Some("a".into()),
            legend: Some("SGD".into()),
            ..Markers::default()
        });
        let figure =
            figure(vec![vec![line(Some("a"), Some("theory")), line(Some("a"), Some("small rate")), points]]);
        let book = Book::new(&figure).unwrap();
        let entries = book.below_all(&figure);
        assert_eq!(texts(&entries), ["theory", "small rate", "SGD"]);
        let blue = palette::colour(0).to_owned();
        assert_eq!(entries[0].line, Some((blue.clone(), Stroke::Solid)));
        assert_eq!(entries[1].line, Some((blue.clone(), Stroke::Dashed)));
        assert!(entries[2].line.is_none() && entries[2].marker.as_ref().unwrap().0 == blue);
    }

    #[test]
    fn one_text_of_two_groups_is_one_entry_in_ink() {
        let pair = |group: &str| [line(Some(group), Some("flow")), line(Some(group), Some("formula"))];
        let figure = figure(vec![[pair("a"), pair("b")].concat()]);
        let entries = Book::new(&figure).unwrap().below_all(&figure);
        assert_eq!(texts(&entries), ["flow", "formula"]);
        assert_eq!(entries[1].line, Some((palette::INK.to_owned(), Stroke::Dashed)));
    }

    #[test]
    fn a_layer_without_a_text_is_called_as_its_group_and_not_as_what_others_are() {
        let flow = |group: &str| line(Some(group), Some("flow"));
        let points = |group: &str, legend: Option<&str>| {
            let legend = legend.map(Into::into);
            Layer::Markers(Markers { group: Some(group.into()), legend, ..Markers::default() })
        };
        let figure = figure(vec![
            vec![points("a", Some("A")), points("b", Some("B")), flow("a"), flow("b")],
            vec![flow("a"), points("a", None), flow("b"), points("b", None)],
        ]);
        let book = Book::new(&figure).unwrap();
        assert_eq!(texts(&book.below_all(&figure)), ["A", "B", "flow"]);
        assert_eq!(book.pages[1].entries, [Some(2), Some(0), Some(2), Some(1)]);
    }

    #[test]
    fn what_one_panel_alone_has_stands_below_it_when_there_is_much() {
        let lines = |names: &[&str]| names.iter().map(|name| line(None, Some(name))).collect::<Vec<_>>();
        let few = figure(vec![lines(&["a", "b"]), lines(&["a", "c"])]);
        let book = Book::new(&few).unwrap();
        assert_eq!(texts(&book.below_all(&few)), ["a", "b", "c"]);
        let many = figure(vec![lines(&["a", "b", "c"]), lines(&["a", "d", "e", "f"])]);
        let book = Book::new(&many).unwrap();
        assert_eq!(texts(&book.below_all(&many)), ["a"]);
        assert_eq!(texts(&book.below_panel(&many, 1)), ["d", "e", "f"]);
        // Colours differ within a panel, and begin anew in the next.
        assert_eq!(book.pages[0].styles[1], book.pages[1].styles[1]);
        let apart = figure(vec![lines(&["a"]), lines(&["b"])]);
        let book = Book::new(&apart).unwrap();
        assert!(book.below_all(&apart).is_empty() && book.below_panel(&apart, 1).len() == 1);
    }

    #[test]
    fn a_stroke_that_no_legend_shows_is_found() {
        let dashed = |legend: Option<&str>| {
            Layer::Line(Line {
                group: Some("a".into()),
                legend: legend.map(Into::into),
                stroke: Some(Stroke::Dashed),
                ..Line::default()
            })
        };
        let letters = ["(a)".to_owned()];
        let faults = |figure: &Figure| Book::new(figure).unwrap().unexplained(figure, &letters);
        let silent = figure(vec![vec![line(Some("a"), Some("A")), dashed(None)]]);
        assert_eq!(faults(&silent).len(), 1);
        assert_eq!(faults(&figure(vec![vec![line(Some("a"), Some("A")), dashed(Some("B"))]])).len(), 0);
        assert_eq!(faults(&figure(vec![vec![line(None, None)]])).len(), 0, "one curve needs no legend");
        let guide = Layer::Guide(Guide { x: Some(1.0), ..Guide::default() });
        assert_eq!(faults(&figure(vec![vec![line(None, None), guide]])).len(), 2);
    }
}
