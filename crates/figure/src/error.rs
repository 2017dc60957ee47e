//! What can be wrong with a figure.

/// A figure that cannot be drawn. Panels are named by their letter, layers by their place in the panel, from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure without panels.
    #[error("the figure has no panels; give at least one")]
    NoPanels,
    /// A column count of zero.
    #[error("`columns` is 0; give at least 1, or leave it out")]
    NoColumns,
    /// A number that must be positive and finite is not.
    #[error("`{name}` is {value}; it must be positive and finite")]
    NotPositive {
        /// Name of the field.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// The page leaves no room for the panels.
    #[error(
        "no room for the panels: {columns} per row in {width} pt leave {left:.0} pt for each frame\n\nhint: use fewer columns, a wider figure or shorter labels"
    )]
    NoRoom {
        /// Panels per row.
        columns: usize,
        /// Width of the figure.
        width: f64,
        /// What is left for a frame.
        left: f64,
    },
    /// A label that is not valid TeX.
    #[error("label `{label}`, character {position}: {message}")]
    Tex {
        /// The whole label.
        label: String,
        /// Position in the label, in characters from 1.
        position: usize,
        /// What is wrong there.
        message: String,
    },
    /// A character that the fonts do not have.
    #[error(
        "label `{label}` has the character `{character}`, which the KaTeX fonts do not have\n\nhint: write it as a TeX command between dollar signs"
    )]
    NoGlyph {
        /// The whole label.
        label: String,
        /// The character.
        character: char,
    },
    /// Columns of one layer that should be equally long.
    #[error("panel {panel}, layer {layer} ({kind}): `{name}` has {found} values, expected {expected}")]
    Length {
        /// Letter of the panel.
        panel: String,
        /// Place of the layer.
        layer: usize,
        /// Kind of the layer.
        kind: &'static str,
        /// The column.
        name: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
    /// A layer whose values make no sense.
    #[error("panel {panel}, layer {layer} ({kind}): {problem}")]
    Layer {
        /// Letter of the panel.
        panel: String,
        /// Place of the layer.
        layer: usize,
        /// Kind of the layer.
        kind: &'static str,
        /// What is wrong and what to do.
        problem: &'static str,
    },
    /// Nothing finite to choose a range from.
    #[error(
        "panel {panel}, {axis} axis: no finite value to choose a range from\n\nhint: give `range`, or look for nan in the data"
    )]
    NoData {
        /// Letter of the panel.
        panel: String,
        /// `x`, `y` or `colour`.
        axis: &'static str,
    },
    /// A log axis with nothing positive on it.
    #[error(
        "panel {panel}, {axis} axis: a log axis needs positive values, but the largest is {largest}\n\nhint: use a linear scale, or give `range`"
    )]
    NoPositiveData {
        /// Letter of the panel.
        panel: String,
        /// `x` or `y`.
        axis: &'static str,
        /// The largest finite value.
        largest: f64,
    },
    /// A range that is not one.
    #[error("panel {panel}, {axis} axis: range [{low}, {high}] must be increasing and within 1e100 of zero{}", if *log { ", and positive on a log axis (1e-100 at least)" } else { "" })]
    Range {
        /// Letter of the panel.
        panel: String,
        /// `x`, `y` or `colour`.
        axis: &'static str,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Whether the axis is logarithmic.
        log: bool,
    },
    /// Not a colour.
    #[error("`{0}` is not a colour; write `#rrggbb` or an index into the palette")]
    Colour(String),
    /// Two entries of a legend that look the same.
    #[error(
        "panel {panel}: `{first}` and `{second}` have the same colour and stroke or marker\n\nhint: leave `colour`, `stroke` and `marker` out of one of them, or give it others"
    )]
    Alike {
        /// Letter of the panel.
        panel: String,
        /// A legend text.
        first: String,
        /// Another one.
        second: String,
    },
    /// An inset in an inset.
    #[error("panel {panel}: an inset cannot have insets of its own")]
    NestedInset {
        /// Letter of the panel.
        panel: String,
    },
    /// A PNG, PDF or image encoder refused the drawing.
    #[error("cannot write {format}: {message}")]
    Encoding {
        /// The format.
        format: &'static str,
        /// What the encoder said.
        message: String,
    },
}

/// Result of drawing a figure.
pub type Result<T> = std::result::Result<T, Error>;
