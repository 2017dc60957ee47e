//! Which layers belong together, and how they look.
//!
//! Layers of one *group* share a colour; without a group the legend text plays that part, also across panels. A line of a legend, an
//! *entry*, is a text with all layers that carry it, and with the layers of its group that carry none. So a group may have several
//! entries (theory and simulation of one curve, which then differ by stroke or marker), and an entry several groups ("theory", of every
//! curve), which is then shown in ink.

use std::collections::{BTreeMap, BTreeSet};

use crate::entries;
use crate::error::{Error, Result};
use crate::figure::{Figure, Legend, Panel};
use crate::layer::{Colour, Layer, Marker, Stroke};
use crate::{layout, palette};

/// How a layer looks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Style {
    pub(crate) colour: String,
    pub(crate) stroke: Stroke,
    pub(crate) marker: Marker,
}

/// Looks and entries of all layers of a figure.
#[derive(Debug)]
pub(crate) struct Book {
    /// Texts of the entries in reading order; empty for a group without a text.
    pub(crate) texts: Vec<String>,
    /// Whether an entry stands in the legend below the figure, or else below the one panel that has it.
    pub(crate) shared: Vec<bool>,
    /// Panels, each followed by its insets, as they are numbered on the page.
    pub(crate) pages: Vec<Page>,
}

/// A panel or an inset.
#[derive(Debug)]
pub(crate) struct Page {
    /// Place of the panel, or of the panel around the inset, in the figure.
    pub(crate) panel: usize,
    pub(crate) inset: bool,
    /// Of each layer.
    pub(crate) styles: Vec<Style>,
    /// Number of the entry of each layer.
    pub(crate) entries: Vec<Option<usize>>,
}

/// Panels and insets in the order of the page: place of the outer panel, whether it is an inset, itself.
fn pages(figure: &Figure) -> impl Iterator<Item = (usize, bool, &Panel)> {
    figure.panels.iter().enumerate().flat_map(|(place, panel)| {
        let insets = panel.insets.iter().map(move |inset| (place, true, &inset.panel));
        std::iter::once((place, false, panel)).chain(insets)
    })
}

/// Where the legend of `panel` goes.
pub(crate) fn legend_of(figure: &Figure, panel: &Panel) -> Legend {
    panel.legend.unwrap_or(figure.legend)
}

/// Guides without a group and slopes are drawn in ink and take no palette entry.
fn is_ink(layer: &Layer) -> bool {
    match layer {
        Layer::Guide(guide) => guide.group.is_none(),
        Layer::Slope(_) | Layer::HeatMap(_) => true,
        _ => false,
    }
}

impl Book {
    pub(crate) fn new(figure: &Figure) -> Result<Self> {
        let (texts, entries) = entries::number(figure, &pages(figure).collect::<Vec<_>>());
        let shared = entries::shared(figure, &texts, &entries, &pages(figure).collect::<Vec<_>>());
        // In one legend for all, colours differ in the whole figure; otherwise within a panel.
        let together = shared.iter().all(|shared| *shared)
            && figure.panels.iter().all(|panel| legend_of(figure, panel) == Legend::Bottom);
        let looks = Looks::new(figure, together)?;
        let pages = pages(figure).zip(entries).map(|((panel, inset, own), entries)| {
            let styles = looks.styles(own)?;
            Ok(Page { panel, inset, styles, entries })
        });
        let book = Self { texts, shared, pages: pages.collect::<Result<_>>()? };
        book.refuse_twins(figure)?;
        Ok(book)
    }

    /// Refuses two entries of a panel that look the same because somebody chose it so.
    fn refuse_twins(&self, figure: &Figure) -> Result<()> {
        let letters = layout::letters(figure);
        for ((_, _, panel), page) in pages(figure).zip(&self.pages) {
            let layers: Vec<_> = panel.layers.iter().zip(&page.styles).zip(&page.entries).collect();
            for (index, ((layer, style), entry)) in layers.iter().enumerate() {
                for ((other, its_style), its_entry) in &layers[..index] {
                    let (Some(entry), Some(its_entry)) = (entry, its_entry) else { continue };
                    let named = !self.texts[*entry].is_empty() && !self.texts[*its_entry].is_empty();
                    if entry != its_entry
                        && named
                        && (chosen(layer) || chosen(other))
                        && alike((layer, style), (other, its_style))
                    {
                        return Err(Error::Alike {
                            panel: if letters[page.panel].is_empty() {
                                "1".into()
                            } else {
                                letters[page.panel].clone()
                            },
                            first: self.texts[*its_entry].clone(),
                            second: self.texts[*entry].clone(),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a colour, a stroke or a marker was asked for.
fn chosen(layer: &Layer) -> bool {
    shape_chosen(layer) || layer.colour().is_some()
}

/// Whether a stroke or a marker was asked for.
fn shape_chosen(layer: &Layer) -> bool {
    match layer {
        Layer::Line(line) => line.stroke.is_some(),
        Layer::Markers(markers) => markers.marker.is_some(),
        Layer::Guide(guide) => guide.stroke.is_some(),
        _ => false,
    }
}

/// Whether two layers of one kind cannot be told apart.
fn alike((layer, style): (&Layer, &Style), (other, its): (&Layer, &Style)) -> bool {
    match (layer, other) {
        (Layer::Line(line), Layer::Line(other)) => {
            style.colour == its.colour && style.stroke == its.stroke && line.width == other.width
        }
        (Layer::Markers(_), Layer::Markers(_)) => style.colour == its.colour && style.marker == its.marker,
        (Layer::Guide(_), Layer::Guide(_)) => style.colour == its.colour && style.stroke == its.stroke,
        _ => false,
    }
}

/// Number in the palette of every group, and its own colour if it asked for one.
struct Looks {
    groups: BTreeMap<String, Look>,
    /// Legend texts of guides and slopes in reading order: each has a dash pattern of its own.
    ruled: Vec<String>,
}

#[derive(Clone, Debug)]
struct Look {
    index: usize,
    colour: Option<String>,
}

impl Looks {
    /// A group takes the first number that no other group of its panels has; those of several panels choose first. Colours that
    /// are asked for are kept free.
    fn new(figure: &Figure, together: bool) -> Result<Self> {
        // Names in reading order, with the panels that have them and the colour that was asked for first.
        let mut names: Vec<&str> = Vec::new();
        let mut found: BTreeMap<&str, (BTreeSet<usize>, Option<Colour>)> = BTreeMap::new();
        let mut ruled: Vec<String> = Vec::new();
        for (place, _, panel) in pages(figure) {
            for layer in &panel.layers {
                if let Some(colour) = layer.colour() {
                    palette::hex(colour)?;
                }
                let Some(name) = layer.series() else { continue };
                if is_ink(layer) {
                    if !ruled.iter().any(|known| known == name) {
                        ruled.push(name.to_owned());
                    }
                    continue;
                }
                if !found.contains_key(name) {
                    names.push(name);
                }
                let entry = found.entry(name).or_default();
                entry.0.insert(if together { 0 } else { place });
                if entry.1.is_none() {
                    entry.1 = layer.colour().cloned();
                }
            }
        }
        // Groups of several panels meet in one legend, whichever panels these are.
        for (panels, _) in found.values_mut().filter(|(panels, _)| panels.len() > 1) {
            panels.insert(usize::MAX);
        }
        // First what was asked for, then groups of several panels, then those of one.
        let rank = |name: &str| match &found[name] {
            (_, Some(Colour::Palette(_))) => 0,
            (panels, _) if panels.len() > 1 => 1,
            _ => 2,
        };
        names.sort_by_key(|name| rank(name));
        let mut groups: BTreeMap<String, Look> = BTreeMap::new();
        let mut taken: BTreeSet<(usize, usize)> = BTreeSet::new();
        for name in names {
            let (panels, colour) = &found[name];
            let index = if let Some(Colour::Palette(index)) = colour {
                *index
            } else {
                let free = |index: &usize| panels.iter().all(|panel| !taken.contains(&(*panel, *index)));
                // Every number taken is that of one group in one panel.
                (0..=taken.len()).find(free).unwrap_or_default()
            };
            taken.extend(panels.iter().map(|panel| (*panel, index)));
            let colour = colour.as_ref().map(palette::hex).transpose()?;
            groups.insert(name.to_owned(), Look { index, colour });
        }
        Ok(Self { groups, ruled })
    }

    /// Styles of the layers of a panel. Layers without a name take the numbers after those already used in the panel. Lines of one
    /// group with texts of their own take one dash pattern each, and markers one shape each.
    fn styles(&self, panel: &Panel) -> Result<Vec<Style>> {
        let mut next = 0;
        let mut styles = Vec::new();
        for (place, layer) in panel.layers.iter().enumerate() {
            styles.push(self.style(layer, &panel.layers[..place], &mut next)?);
        }
        Ok(styles)
    }

    fn style(&self, layer: &Layer, before: &[Layer], next: &mut usize) -> Result<Style> {
        let own = layer.colour().map(palette::hex).transpose()?;
        if is_ink(layer) {
            let rank = layer.legend().and_then(|text| self.ruled.iter().position(|known| known == text));
            let automatic = palette::ruled(rank.unwrap_or_default());
            let stroke = match layer {
                Layer::Guide(guide) => guide.stroke.unwrap_or(automatic),
                _ => automatic,
            };
            let colour = own.unwrap_or_else(|| palette::INK.to_owned());
            return Ok(Style { colour, stroke, marker: Marker::Circle });
        }
        let look = layer.series().and_then(|name| self.groups.get(name)).cloned().unwrap_or_else(|| {
            let index = if let Some(Colour::Palette(index)) = layer.colour() { *index } else { *next };
            Look { index, colour: None }
        });
        *next = (*next).max(look.index + 1);
        let colour = own.or(look.colour).unwrap_or_else(|| palette::colour(look.index).to_owned());
        let rank = rank_in_group(layer, before);
        let stroke = match layer {
            Layer::Line(line) => line.stroke.unwrap_or_else(|| palette::stroke(look.index, rank)),
            Layer::Guide(guide) => guide.stroke.unwrap_or(Stroke::Dashed),
            _ => palette::stroke(look.index, 0),
        };
        let marker = match layer {
            Layer::Markers(markers) => markers.marker,
            _ => None,
        };
        Ok(Style { colour, stroke, marker: marker.unwrap_or_else(|| palette::marker(look.index + rank)) })
    }
}

/// How many other texts layers of the same kind and group have had in this panel. Layers of one colour that was asked for, as the points
/// of a sweep in a series with a colour, are told apart like those of a group, unless a stroke or a marker was asked for too.
fn rank_in_group(layer: &Layer, before: &[Layer]) -> usize {
    let Some(text) = layer.legend() else { return 0 };
    let one_colour =
        |other: &Layer| layer.colour().is_some() && other.colour() == layer.colour() && !shape_chosen(other);
    let family = before.iter().filter(|other| {
        other.kind() == layer.kind()
            && (other.series() == layer.series() || one_colour(other))
            && other.legend().is_some()
    });
    let texts: Vec<&str> = family.filter_map(Layer::legend).collect();
    let mut distinct: Vec<&str> = Vec::new();
    for known in texts {
        if !distinct.contains(&known) {
            distinct.push(known);
        }
    }
    distinct.iter().position(|known| *known == text).unwrap_or(distinct.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Band, Guide, Line, Markers};

    fn line(group: Option<&str>, legend: Option<&str>) -> Layer {
        Layer::Line(Line { group: group.map(Into::into), legend: legend.map(Into::into), ..Line::default() })
    }

    fn figure(panels: Vec<Vec<Layer>>) -> Figure {
        let panels = panels.into_iter().map(|layers| Panel { layers, ..Panel::default() }).collect();
        Figure { panels, ..Figure::default() }
    }

    #[test]
    fn one_group_has_one_colour_and_one_entry_with_all_its_parts() {
        let band = Layer::Band(Band { group: Some("b".into()), ..Band::default() });
        let points = Layer::Markers(Markers { group: Some("b".into()), ..Markers::default() });
        let figure = figure(vec![vec![line(Some("a"), Some("A")), line(Some("b"), Some("B")), band, points]]);
        let book = Book::new(&figure).unwrap();
        assert!(book.pages[0].styles[1..].iter().all(|style| style.colour == palette::colour(1)));
        let entries = book.below_all(&figure);
        assert_eq!(entries.len(), 2);
        assert!(entries[1].line.is_some() && entries[1].band.is_some() && entries[1].marker.is_some());
    }

    #[test]
    fn a_guide_of_a_group_has_its_colour_and_an_entry_of_its_own_text() {
        let guide = |group: Option<&str>| {
            let (group, legend) = (group.map(Into::into), Some("height".into()));
            Layer::Guide(Guide { y: Some(1.0), group, legend, ..Guide::default() })
        };
        let lines = [line(Some("a"), Some("A")), line(Some("b"), Some("B"))];
        let grouped = figure(vec![[&lines[..], &[guide(Some("a")), guide(Some("b"))]].concat()]);
        let book = Book::new(&grouped).unwrap();
        let styles = &book.pages[0].styles;
        assert_eq!((&styles[2].colour, &styles[3].colour), (&styles[0].colour, &styles[1].colour));
        assert!(styles[2..].iter().all(|style| style.stroke == Stroke::Dashed));
        let entries = book.below_all(&grouped);
        assert_eq!(
            entries[2].line,
            Some((palette::INK.to_owned(), Stroke::Dashed)),
            "of several groups: ink"
        );
        let alone = figure(vec![[&lines[..], &[guide(None)]].concat()]);
        assert_eq!(Book::new(&alone).unwrap().pages[0].styles[2].colour, palette::INK);
    }

    #[test]
    fn the_same_legend_text_in_two_panels_is_one_series() {
        let panel = |legend: &str| vec![line(None, Some(legend))];
        let figure = figure(vec![panel("p"), panel("q"), panel("p")]);
        let book = Book::new(&figure).unwrap();
        assert_eq!(book.below_all(&figure).len(), 2);
        assert_eq!(book.pages[2].styles[0].colour, palette::colour(0));
    }

    #[test]
    fn unnamed_layers_take_the_next_free_colours_of_their_panel() {
        let panel = || vec![line(None, None), line(None, None)];
        let book = Book::new(&figure(vec![panel(), panel()])).unwrap();
        for page in &book.pages {
            let colours: Vec<&str> = page.styles.iter().map(|style| style.colour.as_str()).collect();
            assert_eq!(colours, [palette::colour(0), palette::colour(1)]);
        }
    }

    fn coloured(legend: &str, colour: usize, stroke: Option<Stroke>) -> Layer {
        let (legend, colour) = (Some(legend.into()), Some(Colour::Palette(colour)));
        Layer::Line(Line { legend, colour, stroke, ..Line::default() })
    }

    #[test]
    fn a_colour_that_was_asked_for_is_given_to_nobody_else() {
        let figure = figure(vec![vec![line(None, Some("a")), coloured("b", 0, None), line(None, Some("c"))]]);
        let book = Book::new(&figure).unwrap();
        let colours: Vec<&str> = book.pages[0].styles.iter().map(|style| style.colour.as_str()).collect();
        assert_eq!(colours, [1, 0, 2].map(palette::colour));
    }

    #[test]
    fn what_meets_in_the_legend_below_the_figure_differs_there() {
        let [a, b] =
            ["a", "b"].map(|name| vec![line(None, Some(name)), line(None, Some(&format!("{name}'")))]);
        let [c, d] = ["c", "d"].map(|name| vec![line(None, Some(name))]);
        let figure = figure(vec![a.clone(), [a, c].concat(), b.clone(), [b, d].concat()]);
        let book = Book::new(&figure).unwrap();
        let shared: Vec<_> = book.below_all(&figure).into_iter().map(|entry| entry.line).collect();
        assert_eq!(shared.len(), 4);
        assert!((0..4).all(|i| (0..i).all(|j| shared[i] != shared[j])));
    }

    #[test]
    fn two_entries_that_look_the_same_are_refused_by_name() {
        let dotted = |legend: &str| coloured(legend, 2, Some(Stroke::Dotted));
        let message =
            Book::new(&figure(vec![vec![dotted("first"), dotted("second")]])).unwrap_err().to_string();
        assert!(message.contains("`first` and `second`") && message.contains("hint"), "{message}");
        assert!(Book::new(&figure(vec![vec![coloured("first", 2, None), dotted("second")]])).is_ok());
    }

    #[test]
    fn lines_of_one_colour_that_was_asked_for_have_strokes_of_their_own() {
        let points = ["first", "second", "third"].map(|legend| coloured(legend, 2, None));
        let book = Book::new(&figure(vec![points.to_vec()])).unwrap();
        let styles = &book.pages[0].styles;
        assert!(styles.iter().all(|style| style.colour == palette::colour(2)));
        assert!((0..3).all(|i| (0..i).all(|j| styles[i].stroke != styles[j].stroke)));
    }
}
