//! The data types: what a figure *is*. Nothing here draws.
//!
//! Every type reads from and writes to JSON or TOML with kebab-case keys; unknown keys are refused. Text is plain
//! text with TeX between dollar signs, `sample ratio $\alpha = P/N$`; write `\$` for a dollar sign.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layer::{Colour, Layer};

/// A figure: panels on a grid, a legend, a fixed width. The height follows from the panels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// Heading above all panels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Panels in reading order.
    pub panels: Vec<Panel>,
    /// Panels per row; the number of rows follows. Automatic: one for one panel, two for up to four, three beyond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// Where the legend goes; a panel may choose otherwise for itself.
    #[serde(default)]
    pub legend: Legend,
    /// Total width. Automatic: one column for one panel, two columns for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// Height of a panel divided by its width (the frame alone, without labels); 0.7 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect: Option<f64>,
    /// What the reader should see. Not drawn: it becomes the description of the SVG and stands under the
    /// interactive figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}

/// Where a legend goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Legend {
    /// Below: one legend for all panels if they have entries in common and there are few; otherwise what only one panel has stands
    /// below that panel.
    #[default]
    Bottom,
    /// Inside the panel, where it hides least data.
    Inside,
    /// No legend.
    None,
}

/// Width of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Width {
    /// A width named after the page it fits.
    Named(NamedWidth),
    /// Points (1/72 inch).
    Points(#[schemars(range(max = 10_000))] f64),
}

/// The widths of a two-column journal page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedWidth {
    /// 246 pt.
    OneColumn,
    /// 504 pt.
    TwoColumn,
}

impl Width {
    /// One column of a two-column page, 246 pt.
    pub const ONE_COLUMN: Self = Self::Named(NamedWidth::OneColumn);
    /// The whole text width of a two-column page, 504 pt.
    pub const TWO_COLUMN: Self = Self::Named(NamedWidth::TwoColumn);

    /// The width in points.
    pub fn points(self) -> f64 {
        match self {
            Self::Named(NamedWidth::OneColumn) => 246.0,
            Self::Named(NamedWidth::TwoColumn) => 504.0,
            Self::Points(points) => points,
        }
    }
}

/// One pair of axes and what is drawn on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Panel {
    /// Letter of the panel. Automatic: "(a)", "(b)", … when the figure has several panels; "" for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Heading above the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Horizontal axis.
    #[serde(default)]
    pub x: Axis,
    /// Vertical axis.
    #[serde(default)]
    pub y: Axis,
    /// What is drawn. Heat maps lie below bands, bands below lines, lines below markers; otherwise in this order.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// Small panels inside this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insets: Vec<Inset>,
    /// Text, with or without an arrow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// Legend of this panel, if not that of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<Legend>,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Axis {
    /// Text along the axis.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Linear or logarithmic.
    #[serde(default)]
    pub scale: ScaleKind,
    /// Lower and upper end; automatic from the data if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Where the labelled ticks stand; automatic if not given. Ticks outside the range are not drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks: Option<Vec<f64>>,
}

impl Axis {
    /// A linear axis with automatic range.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis with automatic range.
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log, ..Self::linear(label) }
    }

    /// The same axis from `low` to `high`.
    pub fn range(self, low: f64, high: f64) -> Self {
        Self { range: Some([low, high]), ..self }
    }

    /// The same axis with labelled ticks at `ticks`.
    pub fn ticks(self, ticks: impl Into<Vec<f64>>) -> Self {
        Self { ticks: Some(ticks.into()), ..self }
    }
}

/// How values map to lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleKind {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are equal lengths. Values that are not positive are not drawn (error bars and bands that
    /// reach below zero are cut at the axis).
    Log,
}

/// A panel inside a panel. Insets of insets are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Inset {
    /// The small panel; its letter and legend are not drawn.
    pub panel: Panel,
    /// Left, bottom, width and height of the frame as fractions of the outer frame. Automatic: the emptiest place,
    /// corners first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<[f64; 4]>,
}

/// Text at a point of the panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Annotation {
    /// The text.
    pub text: String,
    /// Centre of the text, in the units of the axes. Text that would cross the frame is moved inside.
    pub at: [f64; 2],
    /// Where an arrow from the text points to, in the units of the axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrow_to: Option<[f64; 2]>,
    /// Colour of text and arrow; dark grey if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_at_every_level() {
        let panel = serde_json::from_str::<Panel>(r#"{"xs": {}}"#).unwrap_err().to_string();
        assert!(panel.contains("xs") && panel.contains("layers"), "{panel}");
        let layer = r#"{"layers": [{"kind": "line", "x": [1], "y": [1], "color": 2}]}"#;
        let layer = serde_json::from_str::<Panel>(layer).unwrap_err().to_string();
        assert!(layer.contains("color") && layer.contains("colour"), "{layer}");
    }

    #[test]
    fn widths_are_names_or_points() {
        let read = |text: &str| serde_json::from_str::<Width>(text).unwrap().points();
        assert_eq!((read("\"one-column\""), read("\"two-column\""), read("300.5")), (246.0, 504.0, 300.5));
        assert!(serde_json::from_str::<Width>("\"wide\"").is_err());
    }

    #[test]
    fn the_schema_names_every_layer_kind() {
        let schema = serde_json::to_string(&schemars::schema_for!(Figure)).unwrap();
        for kind in ["line", "band", "markers", "histogram", "density", "heat-map", "guide", "slope"] {
            assert!(schema.contains(&format!("\"{kind}\"")), "{kind} is missing");
        }
    }
}
