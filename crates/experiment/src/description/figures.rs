//! Figures as text: which columns of which runs, drawn how.

use super::Overrides;
use didact_figure::{Annotation, Axis, Legend, Width};
use didact_figure::{Colour, Layer, Marker, Stroke};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureSpec {
    /// Name of its files.
    pub name: String,
    /// Above the panels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Below it in reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Panels per row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// Where the legend stands.
    #[serde(default)]
    pub legend: Legend,
    /// `one-column`, `two-column` or points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// Panels.
    pub panel: Vec<PanelSpec>,
}

/// A panel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PanelSpec {
    /// Above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Horizontal axis.
    #[serde(default)]
    pub x: Axis,
    /// Vertical axis.
    #[serde(default)]
    pub y: Axis,
    /// Data.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Guides, slopes and anything else that is not data of this experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Small panels inside this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inset: Vec<InsetSpec>,
    /// Words in the panel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
}

/// A panel inside a panel. Insets of insets are refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InsetSpec {
    /// The small panel; its letter and legend are not drawn.
    pub panel: PanelSpec,
    /// Left, bottom, width and height of the frame as fractions of the outer frame; the emptiest place unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<[f64; 4]>,
}

/// A curve, points or a band from the results.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    /// From the trajectory of this run …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// … or from this measure, over the sweep …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// … or from this optimisation: its controls, `p.f1`, `p.f2`, `H`, observables, and those of baselines, `constant/loss` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimise: Option<String>,
    /// … or from this scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    /// Column, or entry of the scanned quantity; of a map, the scanned input on the vertical axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// Entry of the scanned quantity that a map shows in colours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z: Option<String>,
    /// Column (time unless given), swept key, scanned input, or an entry that is a list as long as that of `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// Which points of the sweep; all unless given, one series each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: Overrides,
    /// How it is drawn.
    #[serde(default)]
    pub style: SeriesStyle,
    /// The predicted spread around a line of a run with `fluctuations = true`: `"theory"` for one run, `{ of-mean = 16 }` for the mean of
    /// 16 of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<BandSpec>,
    /// Legend; `{key}` stands for the value of a swept key. A measure is drawn as one curve for every value of the keys that its legend or
    /// its group names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    /// Series of one group share a colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// Solid, dashed, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<Stroke>,
    /// Shape of the markers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// Values of x at which the line leaves every bound, increasing: it rises to the top of the panel there and an arrow marks it. Where a run
    /// diverges this is done unasked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diverges_at: Vec<f64>,
    /// Skip this many points first, so that the markers of several series do not cover each other.
    #[serde(default)]
    pub skip: usize,
    /// Draw only every n-th point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
}

/// Which predicted spread a band shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`band` is \"theory\" or `{ of-mean = 16 }`")]
pub enum BandSpec {
    /// By name.
    Named(NamedBand),
    /// Of the mean of several runs.
    OfMean(BandOfMean),
}

/// Bands by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBand {
    /// One standard deviation of one run.
    Theory,
}

/// The band of a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BandOfMean {
    /// How many runs it is the mean of.
    #[schemars(range(max = 1_000_000))]
    pub of_mean: u32,
}

impl BandSpec {
    /// How many runs the line is compared with the mean of.
    pub fn runs(self) -> f64 {
        match self {
            Self::Named(NamedBand::Theory) => 1.0,
            Self::OfMean(BandOfMean { of_mean }) => f64::from(of_mean),
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesStyle {
    /// The mean over replicas as a line.
    #[default]
    Line,
    /// The mean with its standard error.
    Markers,
    /// A line, and the spread of single runs (one standard deviation) around it.
    Band,
    /// Every replica as a line of its own.
    Runs,
    /// The numbers of a list in bins, as a density.
    Histogram,
    /// A scan over two inputs, in colours.
    Map,
    /// A line across the panel at `x` (vertical) or `y` (horizontal) of every row of a scan, one for each number of a list; or at a measure,
    /// with `x = "value"` or `y = "value"`. Without `group` the legend names the first.
    Guides,
}
