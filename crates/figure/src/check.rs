//! What must hold before a figure is drawn.

use crate::error::{Error, Result};
use crate::error_bars::ErrorBars;
use crate::figure::{Figure, Panel};
use crate::layer::Layer;
use crate::layout;

/// Refuses a figure whose columns disagree or whose sizes make no sense.
pub(crate) fn figure(figure: &Figure) -> Result<()> {
    if figure.panels.is_empty() {
        return Err(Error::NoPanels);
    }
    if figure.columns == Some(0) {
        return Err(Error::NoColumns);
    }
    let width = figure.width.map(crate::Width::points);
    for (name, value) in [("width", width), ("aspect", figure.aspect)] {
        if let Some(value) = value
            && !(value.is_finite() && value > 0.0)
        {
            return Err(Error::NotPositive { name, value });
        }
    }
    for (name, each) in layout::letters(figure).iter().zip(&figure.panels) {
        panel(name, each)?;
        for inset in &each.insets {
            panel(name, &inset.panel)?;
        }
    }
    Ok(())
}

fn panel(name: &str, panel: &Panel) -> Result<()> {
    for (index, layer) in panel.layers.iter().enumerate() {
        let check = Check { panel: name, layer: index + 1, kind: layer.kind() };
        check.layer(layer)?;
    }
    Ok(())
}

struct Check<'a> {
    panel: &'a str,
    layer: usize,
    kind: &'static str,
}

impl Check<'_> {
    fn layer(&self, layer: &Layer) -> Result<()> {
        match layer {
            Layer::Line(layer) => self.length("y", layer.y.len(), layer.x.len()),
            Layer::Density(layer) => self.length("y", layer.y.len(), layer.x.len()),
            Layer::Band(layer) => {
                self.length("lower", layer.lower.len(), layer.x.len())?;
                self.length("upper", layer.upper.len(), layer.x.len())
            }
            Layer::Markers(layer) => {
                self.length("y", layer.y.len(), layer.x.len())?;
                for (name, bars) in [("x-error", &layer.x_error), ("y-error", &layer.y_error)] {
                    for side in bars.iter().flat_map(ErrorBars::sides) {
                        self.length(name, side.len(), layer.x.len())?;
                    }
                }
                Ok(())
            }
            Layer::Histogram(layer) => {
                self.length("edges", layer.edges.len(), layer.heights.len() + 1)?;
                let increasing = layer.edges.windows(2).all(|edge| edge[0] < edge[1]);
                self.require(increasing, "`edges` must be finite and increasing")
            }
            Layer::HeatMap(layer) => {
                let columns = layer.values.first().map_or(0, |row| row.len());
                self.require(columns > 0, "`values` is empty; give at least one row with one value")?;
                for row in &layer.values {
                    self.length("values", row.len(), columns)?;
                }
                let increasing =
                    |edges: [f64; 2]| edges[0] < edges[1] && edges.iter().all(|edge| edge.is_finite());
                self.require(
                    increasing(layer.x) && increasing(layer.y),
                    "`x` and `y` must be finite and increasing",
                )
            }
            Layer::Guide(layer) => {
                self.require(layer.x.is_some() != layer.y.is_some(), "give exactly one of `x` and `y`")
            }
            Layer::Slope(layer) => {
                let [x, y] = layer.from;
                let usable =
                    x * layer.to_x > 0.0 && y != 0.0 && layer.end().iter().all(|end| end.is_finite());
                self.require(
                    usable,
                    "a power law needs `from` and `to-x` on one side of zero, and finite ends",
                )
            }
        }
    }

    fn length(&self, name: &'static str, found: usize, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let Self { panel, layer, kind } = *self;
        Err(Error::Length { panel: panel.to_owned(), layer, kind, name, found, expected })
    }

    fn require(&self, holds: bool, problem: &'static str) -> Result<()> {
        if holds {
            return Ok(());
        }
        let Self { panel, layer, kind } = *self;
        Err(Error::Layer { panel: panel.to_owned(), layer, kind, problem })
    }
}
