//! A network of a few hundred numbers, and a few images.

use didact_vision::device::{Device, PADDING};
use didact_vision::network::{
    Architecture, Backbone, ImageBatch, Lora, ParameterValues, VisionNetwork, adapters, draw, head,
};

pub(crate) const SIZES: Architecture =
    Architecture { channels: 2, side: 6, patch: 3, width: 6, depth: 2, heads: 2, expansion: 2 };
pub(crate) const CLASSES: usize = 3;
pub(crate) const IMAGES: usize = 3;
pub(crate) const LORA: Lora = Lora { rank: 2, alpha: 3.0 };
pub(crate) const MODELS: [u32; 2] = [4, 9];

/// Parameters, with biases, norms and the second factors of LoRA away from their starts.
pub(crate) fn values(lora: Option<Lora>) -> ParameterValues {
    let backbone = Backbone::new(&SIZES).layout;
    let head = head(&SIZES, CLASSES);
    let adapters = lora.map(|lora| adapters(&SIZES, &lora)).unwrap_or_default();
    let shifted = |layout: &didact_vision::network::Layout, lane| -> Vec<f64> {
        let values = draw(layout, 5, &MODELS, lane);
        values.iter().enumerate().map(|(i, v)| v + 0.1 * ((i * 7919 % 101) as f64 / 50.0 - 1.0)).collect()
    };
    ParameterValues {
        backbone: shifted(&backbone, 1),
        head: shifted(&head, 2),
        adapters: shifted(&adapters, 3),
    }
}

pub(crate) fn network<D: Device>(
    device: &D,
    lora: Option<Lora>,
    values: &ParameterValues,
) -> VisionNetwork<D> {
    VisionNetwork::new(device, SIZES, (MODELS.len(), CLASSES), lora, values).unwrap()
}

/// Five images, of which each model sees three; the last place of the second model is empty.
pub(crate) struct Data<D: Device> {
    images: D::Bytes,
    labels: D::Words,
    indices: D::Words,
}

impl<D: Device> Data<D> {
    pub(crate) fn new(device: &D) -> Self {
        let pixels: Vec<u8> = (0..5 * 2 * 36).map(|i| (i * 7919 % 251) as u8).collect();
        Self {
            images: device.upload_bytes(&pixels).unwrap(),
            labels: device.upload_words(&[0, 2, 1, 1, 0]).unwrap(),
            indices: device.upload_words(&[7, 0, 3, 1, 4, 2, PADDING]).unwrap(),
        }
    }

    pub(crate) fn batch(&self) -> ImageBatch<'_, D> {
        let (mean, deviation) = ([0.4, 0.5, 0.0], [0.3, 0.25, 1.0]);
        ImageBatch {
            images: &self.images,
            labels: &self.labels,
            indices: (&self.indices, 1),
            count: IMAGES,
            mean,
            deviation,
        }
    }
}
