//! Which layers belong together, and how they look.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::figure::{Figure, Legend, Panel};
use crate::layer::{Colour, HistogramStyle, Layer, Marker, Stroke};
use crate::palette;

/// How a layer looks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Style {
    pub(crate) colour: String,
    pub(crate) stroke: Stroke,
    pub(crate) marker: Marker,
}

/// A line of a legend: the text and the parts of its series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    /// Number of the series in the figure.
    pub(crate) series: usize,
    pub(crate) text: String,
    pub(crate) line: Option<(String, Stroke)>,
    pub(crate) band: Option<String>,
    pub(crate) marker: Option<(String, Marker)>,
    pub(crate) bar: Option<String>,
}

/// Number and colour of every named series of a figure.
#[derive(Debug)]
pub(crate) struct Book {
    series: BTreeMap<String, Look>,
    /// Names of all series in reading order, those of guides and slopes too.
    names: Vec<String>,
}

/// Number of a series in the palette, and its own colour if it asked for one.
#[derive(Clone, Debug)]
struct Look {
    index: usize,
    colour: Option<String>,
}

/// Guides and slopes are drawn in ink and take no palette entry.
fn takes_a_number(layer: &Layer) -> bool {
    !matches!(layer, Layer::Guide(_) | Layer::Slope(_) | Layer::HeatMap(_))
}

/// The layers of all panels and insets in reading order.
fn every_layer(figure: &Figure) -> impl Iterator<Item = &Layer> {
    figure.panels.iter().flat_map(|panel| {
        panel.layers.iter().chain(panel.insets.iter().flat_map(|inset| &inset.panel.layers))
    })
}

impl Book {
    /// Numbers the named series in reading order; the first colour given in a series is the colour of all its layers.
    pub(crate) fn new(figure: &Figure) -> Result<Self> {
        let mut series: BTreeMap<String, Look> = BTreeMap::new();
        let mut next = 0;
        for layer in every_layer(figure).filter(|layer| takes_a_number(layer)) {
            let Some(name) = layer.series() else { continue };
            let given = layer.colour().map(|colour| Ok((colour, palette::hex(colour)?))).transpose()?;
            let look = series.entry(name.to_owned()).or_insert_with(|| {
                next += 1;
                Look { index: next - 1, colour: None }
            });
            if let (Some((colour, hex)), None) = (given, &look.colour) {
                look.colour = Some(hex);
                if let Colour::Palette(index) = colour {
                    look.index = *index;
                }
            }
        }
        let mut names: Vec<String> = Vec::new();
        for name in every_layer(figure).filter_map(Layer::series) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(Self { series, names })
    }

    /// Number of a series in the figure.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Styles of the layers of a panel. Layers without a name take the numbers after those already used in the panel.
    pub(crate) fn styles(&self, panel: &Panel) -> Result<Vec<Style>> {
        let mut next = 0;
        panel.layers.iter().map(|layer| self.style(layer, &mut next)).collect()
    }

    fn style(&self, layer: &Layer, next: &mut usize) -> Result<Style> {
        let own = layer.colour().map(palette::hex).transpose()?;
        let (colour, stroke) = match layer {
            Layer::Guide(guide) => (own.unwrap_or_else(ink), guide.stroke.unwrap_or(Stroke::Dashed)),
            Layer::Slope(_) | Layer::HeatMap(_) => (own.unwrap_or_else(ink), Stroke::Dashed),
            _ => {
                let look =
                    layer.series().and_then(|name| self.series.get(name)).cloned().unwrap_or_else(|| {
                        let index =
                            if let Some(Colour::Palette(index)) = layer.colour() { *index } else { *next };
                        Look { index, colour: None }
                    });
                *next = (*next).max(look.index + 1);
                let colour = own.or(look.colour).unwrap_or_else(|| palette::colour(look.index).to_owned());
                let stroke = match layer {
                    Layer::Line(line) => line.stroke.unwrap_or_else(|| palette::stroke(look.index)),
                    _ => palette::stroke(look.index),
                };
                let marker = match layer {
                    Layer::Markers(markers) => markers.marker,
                    _ => None,
                };
                return Ok(Style {
                    colour,
                    stroke,
                    marker: marker.unwrap_or_else(|| palette::marker(look.index)),
                });
            }
        };
        Ok(Style { colour, stroke, marker: Marker::Circle })
    }

    /// Entries of the legend shared by several panels, in order of appearance.
    pub(crate) fn entries<'a>(&self, panels: impl IntoIterator<Item = &'a Panel>) -> Result<Vec<Entry>> {
        let mut names: Vec<String> = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for panel in panels {
            for (layer, style) in panel.layers.iter().zip(self.styles(panel)?) {
                let Some(name) = layer.series() else { continue };
                let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
                    names.push(name.to_owned());
                    entries.push(Entry { series: self.number(name).unwrap_or_default(), ..Entry::default() });
                    names.len() - 1
                });
                let entry = &mut entries[place];
                if let (true, Some(text)) = (entry.text.is_empty(), layer.legend()) {
                    text.clone_into(&mut entry.text);
                }
                entry.add(layer, style);
            }
        }
        entries.retain(|entry| !entry.text.is_empty());
        Ok(entries)
    }
}

impl Entry {
    fn add(&mut self, layer: &Layer, style: Style) {
        let Style { colour, stroke, marker } = style;
        match layer {
            Layer::Line(_) | Layer::Guide(_) | Layer::Slope(_) | Layer::Density(_) => {
                self.line.get_or_insert((colour, stroke));
            }
            Layer::Histogram(histogram) if histogram.style == HistogramStyle::Steps => {
                self.line.get_or_insert((colour, stroke));
            }
            Layer::Histogram(_) => {
                self.bar.get_or_insert(colour);
            }
            Layer::Band(_) => {
                self.band.get_or_insert(colour);
            }
            Layer::Markers(_) => {
                self.marker.get_or_insert((colour, marker));
            }
            Layer::HeatMap(_) => {}
        }
    }
}

fn ink() -> String {
    palette::INK.to_owned()
}

/// Where the legend of `panel` goes.
pub(crate) fn legend_of(figure: &Figure, panel: &Panel) -> Legend {
    panel.legend.unwrap_or(figure.legend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Band, Line, Markers};

    fn line(group: Option<&str>, legend: Option<&str>) -> Layer {
        Layer::Line(Line { group: group.map(Into::into), legend: legend.map(Into::into), ..Line::default() })
    }

    #[test]
    fn one_group_has_one_colour_and_one_entry_with_all_its_parts() {
        let band = Layer::Band(Band { group: Some("b".into()), ..Band::default() });
        let points = Layer::Markers(Markers { group: Some("b".into()), ..Markers::default() });
        let layers = vec![line(Some("a"), Some("A")), line(Some("b"), Some("B")), band, points];
        let figure = Figure { panels: vec![Panel { layers, ..Panel::default() }], ..Figure::default() };
        let book = Book::new(&figure).unwrap();
        let styles = book.styles(&figure.panels[0]).unwrap();
        assert!(styles[1..].iter().all(|style| style.colour == palette::colour(1)));
        let entries = book.entries(&figure.panels).unwrap();
        assert_eq!(entries.len(), 2);
        assert!(entries[1].line.is_some() && entries[1].band.is_some() && entries[1].marker.is_some());
    }

    #[test]
    fn the_same_legend_text_in_two_panels_is_one_series() {
        let panel = |legend: &str| Panel { layers: vec![line(None, Some(legend))], ..Panel::default() };
        let figure = Figure { panels: vec![panel("p"), panel("q"), panel("p")], ..Figure::default() };
        let book = Book::new(&figure).unwrap();
        assert_eq!(book.entries(&figure.panels).unwrap().len(), 2);
        assert_eq!(book.styles(&figure.panels[2]).unwrap()[0].colour, palette::colour(0));
    }

    #[test]
    fn unnamed_layers_take_the_next_free_colours_of_their_panel() {
        let panel = Panel { layers: vec![line(None, None), line(None, None)], ..Panel::default() };
        let figure = Figure { panels: vec![panel.clone(), panel], ..Figure::default() };
        let book = Book::new(&figure).unwrap();
        for panel in &figure.panels {
            let colours: Vec<String> =
                book.styles(panel).unwrap().into_iter().map(|style| style.colour).collect();
            assert_eq!(colours, [palette::colour(0), palette::colour(1)]);
        }
    }
}
