//! Heat maps and the gradient of their colour bars, each one embedded PNG: rectangles would show seams.

use super::Canvas;
use crate::error::{Error, Result};
use crate::layer::{ColourMap, HeatMap};
use crate::scale;
use crate::scene::{Item, Rect};

pub(super) fn draw(canvas: &mut Canvas, map: &HeatMap) -> Result<()> {
    let values = map.values.iter().flat_map(|row| row.iter().copied());
    let scale = scale::colour_scale(values, map.range, map.map == ColourMap::Diverging, canvas.name)?;
    let columns = map.values.first().map_or(0, |row| row.len());
    let mut pixels = Vec::with_capacity(4 * columns * map.values.len());
    for row in map.values.iter().rev() {
        for &value in row.iter() {
            if value.is_finite() {
                pixels.extend(map.map.rgb(scale.fraction(value)));
                pixels.push(255);
            } else {
                pixels.extend([0; 4]);
            }
        }
    }
    let (left, bottom) = canvas.view.point(map.x[0], map.y[0]);
    let (right, top) = canvas.view.point(map.x[1], map.y[1]);
    let png = encode(columns, map.values.len(), &pixels)?;
    canvas.inside.push(Item::Image { place: Rect { left, top, right, bottom }, png });
    canvas.occupancy.add_box(&Rect { left, top, right, bottom }, 0.3);
    Ok(())
}

/// The colours from the low end (bottom) to the high end (top).
pub(super) fn gradient(map: ColourMap, place: Rect) -> Item {
    const STEPS: usize = 256;
    let colour = |step: usize| map.rgb(1.0 - (step as f64 + 0.5) / STEPS as f64);
    let pixels: Vec<u8> = (0..STEPS).flat_map(|step| colour(step).into_iter().chain([255])).collect();
    // An image of this fixed size always encodes.
    Item::Image { place, png: encode(1, STEPS, &pixels).unwrap_or_default() }
}

fn encode(width: usize, height: usize, pixels: &[u8]) -> Result<Vec<u8>> {
    let failed = |message: String| Error::Encoding { format: "the heat map", message };
    let size = |pixels: usize| u32::try_from(pixels).map_err(|error| failed(error.to_string()));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size(width)?, size(height)?);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| failed(error.to_string()))?;
    writer.write_image_data(pixels).map_err(|error| failed(error.to_string()))?;
    writer.finish().map_err(|error| failed(error.to_string()))?;
    Ok(bytes)
}
