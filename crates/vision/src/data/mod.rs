//! Images: what they are, readers of the files in which they come, and images that are made by a seeded program.
//!
//! Nothing is downloaded. Readers refuse files that are cut off or of another kind, and say what they found.

pub mod cifar;
pub mod found;
pub mod idx;
pub mod made;
pub mod mat;
pub mod strips;

use std::io::Read;

/// Images of eight bits per colour with their labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Images {
    /// What they are, for people: `MNIST, training`.
    pub name: String,
    /// Colours.
    pub channels: usize,
    /// Pixels along each side.
    pub side: usize,
    /// Classes.
    pub classes: usize,
    /// Image by image, colour by colour, row by row.
    pub pixels: Vec<u8>,
    /// One per image, below `classes`.
    pub labels: Vec<u32>,
}

impl Images {
    /// How many.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Bytes of one image.
    pub fn size(&self) -> usize {
        self.channels * self.side * self.side
    }

    /// The pixels of an image.
    pub fn image(&self, index: usize) -> &[u8] {
        &self.pixels[index * self.size()..][..self.size()]
    }

    /// Mean and deviation of every colour, of pixels from 0 to 1.
    pub fn normalisation(&self) -> ([f32; 3], [f32; 3]) {
        let (mut mean, mut deviation) = ([0.0; 3], [1.0; 3]);
        let area = self.side * self.side;
        for channel in 0..self.channels.min(3) {
            let of = self.pixels.chunks_exact(area).skip(channel).step_by(self.channels).flatten();
            let (mut sum, mut squares, mut count) = (0_u64, 0_u64, 0_u64);
            for &pixel in of {
                let pixel = u64::from(pixel);
                (sum, squares, count) = (sum + pixel, squares + pixel * pixel, count + 1);
            }
            let first = sum as f64 / count as f64;
            let variance = squares as f64 / count as f64 - first * first;
            mean[channel] = (first / 255.0) as f32;
            deviation[channel] = (variance.sqrt() / 255.0).max(1e-3) as f32;
        }
        (mean, deviation)
    }

    /// Some of the images.
    pub fn some(&self, indices: &[u32]) -> Self {
        let pixels = indices.iter().flat_map(|i| self.image(*i as usize)).copied().collect();
        let labels = indices.iter().map(|i| self.labels[*i as usize]).collect();
        Self { pixels, labels, ..self.empty() }
    }

    /// Images like these, none of them.
    pub fn empty(&self) -> Self {
        let Self { name, channels, side, classes, .. } = self;
        Self { name: name.clone(), channels: *channels, side: *side, classes: *classes, ..Self::default() }
    }

    /// Whether pixels and labels fit each other.
    pub fn check(self) -> Result<Self, String> {
        if self.pixels.len() != self.len() * self.size() {
            return Err(format!(
                "{} labels for {} bytes of images of {} bytes",
                self.len(),
                self.pixels.len(),
                self.size()
            ));
        }
        if self.is_empty() {
            return Err("there is no image".into());
        }
        match self.labels.iter().position(|label| *label as usize >= self.classes) {
            Some(at) => Err(format!(
                "image {at} has the label {}, but there are {} classes",
                self.labels[at], self.classes
            )),
            None => Ok(self),
        }
    }
}

/// The bytes of a file, unpacked if it is compressed by gzip, at most so many.
pub(crate) fn unpacked(bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut all = Vec::new();
    let read =
        flate2::read::MultiGzDecoder::new(bytes.as_slice()).take(most as u64 + 1).read_to_end(&mut all);
    read.map_err(|e| format!("its compression is damaged or cut off: {e}"))?;
    if all.len() > most { Err(format!("it unpacks to more than {most} bytes")) } else { Ok(all) }
}
