//! Parameters at the start, drawn by Philox: the same on every device, whatever the number of models.

use super::ParameterValues;
use super::layout::{Architecture, Backbone, Draw, Layout, Lora, adapters};
use didact_math::random::{RngAddress, Stream};

/// Draws the arrays of a group for the models of these numbers. The address of an array is the seed, the number of the model (as
/// replica), the place of the array (as step) and the lane.
pub fn draw(layout: &Layout, seed: u64, models: &[u32], lane: u16) -> Vec<f64> {
    let mut all = Vec::with_capacity(layout.total() * models.len());
    for (index, tensor) in layout.tensors.iter().enumerate() {
        for &model in models {
            let stream = &mut Stream::at(RngAddress { seed, replica: model, step: index as u64, lane });
            // Rounded to single precision, so that every device begins at the same numbers.
            let single = |v: f64| f64::from(v as f32);
            all.extend((0..tensor.len()).map(|_| match tensor.draw {
                Draw::Zeros => 0.0,
                Draw::Ones => 1.0,
                Draw::Normal(deviation) => single(deviation * stream.normal()),
                Draw::Uniform(bound) => single(bound * (2.0 * stream.uniform() - 1.0)),
            }));
        }
    }
    all
}

/// The backbones whose projections have taken in their adapters, W + (alpha / rank) B A: networks without LoRA that compute the same.
pub fn merged(a: &Architecture, models: usize, lora: &Lora, values: &ParameterValues) -> Vec<f64> {
    let (backbone, factors) = (Backbone::new(a), adapters(a, lora));
    let mut all = values.backbone.clone();
    let size = a.width * a.width;
    for (block, parts) in backbone.blocks.iter().enumerate() {
        for (slot, part) in [0, 2].into_iter().enumerate() {
            for model in 0..models {
                let factor = |tensor: usize| {
                    let at = factors.offset(tensor, models) + model * factors.tensors[tensor].len();
                    &values.adapters[at..][..factors.tensors[tensor].len()]
                };
                let (down, up) = (factor(4 * block + 2 * slot), factor(4 * block + 2 * slot + 1));
                let at = backbone.layout.offset(parts.qkv, models) + model * 3 * size + part * size;
                for (i, weight) in all[at..at + size].iter_mut().enumerate() {
                    let (row, column) = (i / a.width, i % a.width);
                    let sum: f64 =
                        (0..lora.rank).map(|r| up[row * lora.rank + r] * down[r * a.width + column]).sum();
                    *weight += lora.factor() * sum;
                }
            }
        }
    }
    all
}
