//! PNG through resvg.

use resvg::tiny_skia::{Pixmap, Transform};

use crate::error::{Error, Result};

/// Renders an SVG of ours at `dpi` pixels per inch of its width in points.
pub(crate) fn png(svg: &str, width_points: f64, dpi: f64) -> Result<Vec<u8>> {
    if !(dpi.is_finite() && dpi > 0.0) {
        return Err(Error::NotPositive { name: "dpi", value: dpi });
    }
    let failed = |message: String| Error::Encoding { format: "PNG", message };
    let tree =
        usvg::Tree::from_str(svg, &usvg::Options::default()).map_err(|error| failed(error.to_string()))?;
    // usvg counts CSS pixels, 96 to the inch, so scale by what is wanted over what it has.
    let pixels = width_points / 72.0 * dpi;
    let scale = pixels as f32 / tree.size().width();
    let (width, height) = ((tree.size().width() * scale).round(), (tree.size().height() * scale).round());
    let mut pixmap = Pixmap::new(width.max(1.0) as u32, height.max(1.0) as u32)
        .ok_or_else(|| failed(format!("an image of {width} x {height} pixels is too large")))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| failed(error.to_string()))
}
