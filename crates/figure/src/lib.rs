//! Figures as data.
//!
//! A [`Figure`] says what is shown: panels, axes, layers, labels in TeX. It reads from JSON or TOML, and becomes SVG, PNG,
//! PDF or an interactive page, always the same bytes for the same figure:
//!
//! ```
//! use didact_figure::{Axis, Figure, Layer, Line, Panel};
//!
//! let alpha: Vec<f64> = (0..200).map(|i| 10f64.powf(f64::from(i) / 50.0 - 1.0)).collect();
//! let error: Vec<f64> = alpha.iter().map(|alpha| 1.0 / (1.0 + alpha)).collect();
//! let curve = Line { x: alpha.into(), y: error.into(), legend: Some("theory".into()), ..Line::default() };
//! let panel = Panel {
//!     x: Axis::log(r"sample ratio $\alpha = P/N$"),
//!     y: Axis::log(r"generalisation error $\epsilon_g$"),
//!     layers: vec![Layer::Line(curve)],
//!     ..Panel::default()
//! };
//! let figure = Figure { panels: vec![panel], ..Figure::default() };
//! assert!(didact_figure::to_svg(&figure)?.starts_with("<svg"));
//! # Ok::<(), didact_figure::Error>(())
//! ```
//!
//! [`to_svg`] writes outlines and needs no font; `to_pdf` embeds the KaTeX fonts, whose licence is [`font_licence`].

mod check;
mod clip;
mod colormap;
mod column;
mod draw;
mod entries;
mod error;
mod error_bars;
mod figure;
mod fonts;
pub mod interactive;
mod label;
mod layer;
mod layout;
pub mod palette;
#[cfg(feature = "pdf")]
mod pdf;
mod place;
mod plan;
#[cfg(feature = "png")]
mod raster;
mod scale;
mod scene;
mod series;
mod simplify;
mod svg;
mod tex;
mod ticks;

pub use column::Column;
pub use error::{Error, Result};
pub use error_bars::{ErrorBars, Uneven};
pub use figure::{Annotation, Axis, Figure, Inset, Legend, NamedWidth, Panel, ScaleKind, Width};
pub use fonts::font_licence;
pub use interactive::to_html;
pub use layer::{
    Band, Colour, ColourBar, ColourMap, Density, Guide, HeatMap, Histogram, HistogramStyle, Layer, Line,
    Marker, Markers, Slope, Stroke,
};

/// The figure as SVG, with glyphs as outlines: it looks the same everywhere and needs no font.
pub fn to_svg(figure: &Figure) -> Result<String> {
    Ok(svg::write(&layout::page(figure)?, svg::Glyphs::Outlines))
}

/// Curves, points, bands and guides that no entry of a legend shows, in panels that have more than one look to tell apart; a
/// figure that explains itself has none.
pub fn unexplained(figure: &Figure) -> Result<Vec<String>> {
    Ok(series::Book::new(figure)?.unexplained(figure, &layout::letters(figure)))
}

/// The figure as PNG at `dpi` pixels per inch; 300 suits print.
#[cfg(feature = "png")]
pub fn to_png(figure: &Figure, dpi: f64) -> Result<Vec<u8>> {
    let page = layout::page(figure)?;
    raster::png(&svg::write(&page, svg::Glyphs::Outlines), page.width, dpi)
}

/// The figure as a PDF page of its own size, with real text in embedded fonts.
#[cfg(feature = "pdf")]
pub fn to_pdf(figure: &Figure) -> Result<Vec<u8>> {
    let page = layout::page(figure)?;
    pdf::pdf(&svg::write(&page, svg::Glyphs::Characters), (page.width, page.height))
}
