//! Loops over the samples of a mini-batch, and activations over slices that do not replace their arguments.

use didact_math::activation::Activation;
use didact_math::dispatch;
use std::sync::Arc;

/// Samples that are worked on together: their buffers stay in the first-level cache.
pub(in crate::lora) const SAMPLES_PER_BLOCK: usize = 512;

/// Independent partial sums of a scalar product: an addition then need not wait for the result of the one before.
const LANES: usize = 8;

/// An activation, or its square.
#[derive(Debug, Clone)]
pub(in crate::lora) struct Sliced {
    activation: Arc<dyn Activation>,
    squared: bool,
}

impl Sliced {
    pub(in crate::lora) fn new(activation: Arc<dyn Activation>) -> Self {
        Self { activation, squared: false }
    }

    /// σ², of which only the values are asked for.
    pub(in crate::lora) fn squared(activation: Arc<dyn Activation>) -> Self {
        Self { activation, squared: true }
    }

    /// σ(z), or its square, elementwise.
    pub(in crate::lora) fn values(&self, z: &[f64], values: &mut [f64]) {
        values.copy_from_slice(z);
        self.activation.values(values);
        if self.squared {
            values.iter_mut().for_each(|v| *v *= *v);
        }
    }

    /// σ(z) and σ′(z), elementwise.
    pub(in crate::lora) fn values_and_slopes(&self, z: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        values.copy_from_slice(z);
        self.activation.values_and_slopes(values, slopes);
    }
}

dispatch! {
    /// out ← a x + b y.
    pub(in crate::lora) fn combine(a: f64, x: &[f64], b: f64, y: &[f64], out: &mut [f64]) {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = a * x + b * y;
        }
    }
}

dispatch! {
    /// The scalar product, in lanes.
    pub(in crate::lora) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let (a_whole, a_rest) = a.split_at(a.len() / LANES * LANES);
        let (b_whole, b_rest) = b.split_at(a_whole.len());
        for (a, b) in a_whole.chunks_exact(LANES).zip(b_whole.chunks_exact(LANES)) {
            for l in 0..LANES {
                sums[l] += a[l] * b[l];
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        sums.iter().sum::<f64>() + rest
    }
}

dispatch! {
    /// out ← weight (label + noise − residual value) slope, the kick divided by u.
    pub(in crate::lora) fn kicks_per_amplitude(weight: f64, label: &[f64], noise: &[f64], residual: f64, value: &[f64], slope: &[f64], out: &mut [f64]) {
        let all = out.iter_mut().zip(label).zip(noise).zip(value).zip(slope);
        for ((((out, label), noise), value), slope) in all {
            *out = weight * (label + noise - residual * value) * slope;
        }
    }
}
