//! What can be drawn in a panel.
//!
//! Layers that belong to one series (its theory line, its band, its simulated points) carry the same `group`: they share
//! one colour. Without a group the legend text plays that part, also across panels. Layers with one legend text are one entry of the
//! legend; a layer of a group without a text belongs to the entry of its group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::error_bars::ErrorBars;

/// One thing drawn in a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Layer {
    /// A curve.
    Line(Line),
    /// The region between two curves.
    Band(Band),
    /// Points with optional error bars.
    Markers(Markers),
    /// Bars or steps over bins.
    Histogram(Histogram),
    /// A curve filled down to zero.
    Density(Density),
    /// A matrix in colours.
    HeatMap(HeatMap),
    /// A straight line at fixed x or y.
    Guide(Guide),
    /// A power law (log-log) or a straight line (linear axes) to compare slopes with.
    Slope(Slope),
}

/// A curve through points in the given order; it breaks where a coordinate is NaN, infinite or (on a log axis) not
/// positive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Line {
    /// Abscissae.
    pub x: Column,
    /// Ordinates, as many.
    pub y: Column,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; the next of the palette if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// Dash pattern; solid for the first twelve series, and the next ones for further legend texts of one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<Stroke>,
    /// Line width in points; 1.2 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// Where the curve leaves every bound, increasing. It rises there to the top of the panel and an arrow, beyond which it comes down
    /// again if it has points there. An automatic axis does not follow it up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diverges_at: Vec<f64>,
}

/// The region between `lower` and `upper`, translucent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Band {
    /// Abscissae.
    pub x: Column,
    /// Lower edge.
    pub lower: Column,
    /// Upper edge.
    pub upper: Column,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; the next of the palette if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

/// Open markers with optional error bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Markers {
    /// Abscissae.
    pub x: Column,
    /// Ordinates, as many.
    pub y: Column,
    /// Lengths of horizontal error bars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_error: Option<ErrorBars>,
    /// Lengths of vertical error bars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_error: Option<ErrorBars>,
    /// Shape; one per series if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; the next of the palette if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

/// Heights over bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Histogram {
    /// Bin edges, increasing; one more than `heights`.
    pub edges: Column,
    /// Counts or densities.
    pub heights: Column,
    /// Divide by (total × bin width), so that counts become a density of integral 1.
    #[serde(default)]
    pub normalise: bool,
    /// Bars or an outline.
    #[serde(default)]
    pub style: HistogramStyle,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; the next of the palette if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

impl Histogram {
    /// The heights as drawn: divided by total × bin width if `normalise` is set. A missing height stays missing.
    pub fn drawn_heights(&self) -> Vec<f64> {
        if !self.normalise {
            return self.heights.to_vec();
        }
        let total: f64 = self.heights.iter().filter(|height| height.is_finite()).sum();
        let widths = self.edges.windows(2).map(|edge| edge[1] - edge[0]);
        self.heights.iter().zip(widths).map(|(height, width)| height / (total * width)).collect()
    }
}

/// How a histogram is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistogramStyle {
    /// Translucent bars with thin gaps.
    #[default]
    Bars,
    /// The outline alone.
    Steps,
}

/// A probability density: a curve, lightly filled down to zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Density {
    /// Abscissae.
    pub x: Column,
    /// Densities, as many.
    pub y: Column,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; the next of the palette if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

/// A matrix in colours. Cells are equally wide on the page: on a log axis their edges are in geometric progression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HeatMap {
    /// Rows from bottom to top, each from left to right. A missing value is left transparent.
    pub values: Vec<Column>,
    /// Left and right edge of the matrix.
    pub x: [f64; 2],
    /// Bottom and top edge of the matrix.
    pub y: [f64; 2],
    /// Colours.
    #[serde(default)]
    pub map: ColourMap,
    /// Values at the two ends of the colours; automatic if not given, and then symmetric about zero for `diverging`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The colour bar; none is drawn if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<ColourBar>,
}

/// Colour bar of a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ColourBar {
    /// Text at the bar.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// Colours of a heat map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColourMap {
    /// Dark violet to yellow, even in lightness.
    #[default]
    Viridis,
    /// Dark blue to yellow, the same to readers with colour-vision deficiency.
    Cividis,
    /// Blue through white to red, for signed values.
    Diverging,
}

/// A straight line across the whole panel, at fixed x (vertical) or fixed y (horizontal). Exactly one must be given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Guide {
    /// Position of a vertical line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// Position of a horizontal line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Name of the series whose colour it takes; it is drawn in ink unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour; dark grey if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// Dash pattern; dashed if not given, and the next ones for guides in ink with other legend texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<Stroke>,
}

/// A slope to compare with: y = y₀ (x/x₀)^exponent on two log axes, and on other axes the straight line on the page
/// between the same two end points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Slope {
    /// The exponent.
    pub exponent: f64,
    /// The point (x₀, y₀) where it starts.
    pub from: [f64; 2],
    /// The x where it ends.
    pub to_x: f64,
    /// Text beside its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Legend text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Colour; dark grey if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

impl Slope {
    /// The end point: y = y₀ (x/x₀)^exponent.
    pub fn end(&self) -> [f64; 2] {
        [self.to_x, self.from[1] * (self.to_x / self.from[0]).powf(self.exponent)]
    }
}

/// A colour: an index into the palette, or `#rrggbb`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Colour {
    /// Entry of the palette, from 0. Beyond the twelve colours dash patterns tell series apart.
    Palette(usize),
    /// `#rrggbb`.
    Hex(String),
}

/// Dash pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    /// Unbroken.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dashes and dots.
    DashDotted,
}

/// Marker shape. All are open, so that overlapping points and grey print stay readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Marker {
    /// ○
    #[default]
    Circle,
    /// □
    Square,
    /// △
    Triangle,
    /// ◇
    Diamond,
    /// ▽
    TriangleDown,
    /// ⬠
    Pentagon,
    /// ×
    Cross,
    /// +
    Plus,
}

impl Layer {
    /// The kind, as written in the description.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Line(_) => "line",
            Self::Band(_) => "band",
            Self::Markers(_) => "markers",
            Self::Histogram(_) => "histogram",
            Self::Density(_) => "density",
            Self::HeatMap(_) => "heat-map",
            Self::Guide(_) => "guide",
            Self::Slope(_) => "slope",
        }
    }

    /// Legend text.
    pub fn legend(&self) -> Option<&str> {
        match self {
            Self::Line(layer) => layer.legend.as_deref(),
            Self::Band(layer) => layer.legend.as_deref(),
            Self::Markers(layer) => layer.legend.as_deref(),
            Self::Histogram(layer) => layer.legend.as_deref(),
            Self::Density(layer) => layer.legend.as_deref(),
            Self::Guide(layer) => layer.legend.as_deref(),
            Self::Slope(layer) => layer.legend.as_deref(),
            Self::HeatMap(_) => None,
        }
    }

    /// Name of the series: the group, or else the legend text.
    pub fn series(&self) -> Option<&str> {
        let group = match self {
            Self::Line(layer) => layer.group.as_deref(),
            Self::Band(layer) => layer.group.as_deref(),
            Self::Markers(layer) => layer.group.as_deref(),
            Self::Histogram(layer) => layer.group.as_deref(),
            Self::Density(layer) => layer.group.as_deref(),
            Self::Guide(layer) => layer.group.as_deref(),
            Self::Slope(_) | Self::HeatMap(_) => None,
        };
        group.or(self.legend())
    }

    /// The colour asked for.
    pub fn colour(&self) -> Option<&Colour> {
        match self {
            Self::Line(layer) => layer.colour.as_ref(),
            Self::Band(layer) => layer.colour.as_ref(),
            Self::Markers(layer) => layer.colour.as_ref(),
            Self::Histogram(layer) => layer.colour.as_ref(),
            Self::Density(layer) => layer.colour.as_ref(),
            Self::Guide(layer) => layer.colour.as_ref(),
            Self::Slope(layer) => layer.colour.as_ref(),
            Self::HeatMap(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normalised_histogram_integrates_to_one_with_unequal_bins() {
        let histogram = Histogram {
            edges: vec![0.0, 0.5, 2.0, 2.25].into(),
            heights: vec![3.0, 8.0, 1.0].into(),
            normalise: true,
            ..Histogram::default()
        };
        let widths = [0.5, 1.5, 0.25];
        let integral: f64 =
            histogram.drawn_heights().iter().zip(widths).map(|(height, width)| height * width).sum();
        assert!((integral - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_slope_guide_follows_its_power_law() {
        let slope = Slope { exponent: -0.5, from: [10.0, 3.0], to_x: 1000.0, ..Slope::default() };
        let [x, y] = slope.end();
        assert!(x == 1000.0 && (y - 0.3).abs() < 1e-15);
    }
}
