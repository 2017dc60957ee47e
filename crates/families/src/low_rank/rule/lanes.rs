//! Kicks of eight samples at once, one in each lane of the vector registers.
//!
//! The operations of every sample, and their order, are those of [`Student::gradient`](didact_model::teacher_student::Student) and
//! [`Teacher::label`](didact_model::teacher_student::Teacher): the kicks are bitwise the same.

use super::network::{self, UNITS_PER_CALL};
use didact_math::dispatch;
use didact_model::rule::Batch;

/// Samples that are worked on at once: the lanes of two registers of four numbers, or of one of eight.
const LANES: usize = 8;

/// One number of every sample.
type Lane = [f64; LANES];

/// Numbers of some units, for every sample.
type Units = [Lane; UNITS_PER_CALL];

/// A network as a function of fields; `network` holds σ and the scales.
pub(in crate::low_rank) enum Network<'a> {
    /// A Σ_i λ_i σ(κ(y_i + ξ c_i z)): z is field `along`, y_i are the fields from `base` on; z is trained, or nothing.
    Perturbed { network: &'a network::Network, loading: &'a [f64], along: usize, base: usize },
    /// A Σ_i a_i σ(h_i), all h_i trained, or none.
    Free { network: &'a network::Network, weights: &'a [f64] },
}

/// kick_i = −2 (f* + noise − f̂) ∂f̂/∂h_i of every sample; the teacher reads the fields after those of the trained rows.
pub(in crate::low_rank) fn kicks(
    student: &Network,
    teacher: &Network,
    trained: usize,
    batch: &Batch,
    rows: &mut [f64],
) {
    let size = batch.size;
    for first in (0..size).step_by(LANES) {
        let width = LANES.min(size - first);
        let field = |row: usize| -> Lane {
            let values = &batch.fields[row * size + first..][..width];
            // Samples that are not there repeat the first.
            let padded = || std::array::from_fn(|j| values.get(j).copied().unwrap_or(values[0]));
            values.first_chunk().copied().unwrap_or_else(padded)
        };
        let mut put = |i: usize, slope: &Lane| {
            rows[i * size + first..][..width].copy_from_slice(&slope[..width]);
        };
        let output = student.output(field, Some(&mut put));
        let label = teacher.output(|row| field(trained + row), None);
        let mut error = [0.0; LANES];
        for j in 0..width {
            error[j] = -2.0 * (label[j] + batch.noise[first + j] - output[j]);
        }
        for i in 0..trained {
            rows[i * size + first..][..width].iter_mut().zip(&error).for_each(|(g, e)| *g *= e);
        }
    }
}

/// Takes ∂f/∂h_i of trained row i.
type Put<'a> = &'a mut dyn FnMut(usize, &Lane);

impl Network<'_> {
    /// The output; the slopes go to `put` if they are wanted.
    fn output(&self, field: impl Fn(usize) -> Lane, mut put: Option<Put>) -> Lane {
        let (network, weights) = match self {
            Self::Perturbed { network, .. } => (network, &network.second_layer[..]),
            Self::Free { network, weights } => (network, *weights),
        };
        let (mut value, mut slope) = ([0.0; LANES], [0.0; LANES]);
        let (mut values, mut slopes): (Units, Units) =
            ([[0.0; LANES]; UNITS_PER_CALL], [[0.0; LANES]; UNITS_PER_CALL]);
        for (at, weights) in weights.chunks(UNITS_PER_CALL).enumerate() {
            let units = at * UNITS_PER_CALL..at * UNITS_PER_CALL + weights.len();
            let (values, slopes) = (&mut values[..weights.len()], &mut slopes[..weights.len()]);
            let base = if let Self::Perturbed { base, .. } = self { *base } else { 0 };
            for (i, y) in units.clone().zip(values.iter_mut()) {
                *y = field(base + i);
            }
            if let Self::Perturbed { loading, along, .. } = self {
                let c = &loading[units.clone()];
                preactivations(network.scale, network.strength, c, &field(*along), values);
            }
            let Some(put) = &mut put else {
                network.activation.values(values.as_flattened_mut());
                add_products(&mut value, weights, values);
                continue;
            };
            network.activation.values_and_slopes(values.as_flattened_mut(), slopes.as_flattened_mut());
            add_products(&mut value, weights, values);
            match self {
                Self::Perturbed { loading, .. } => add_slopes(&mut slope, &loading[units], weights, slopes),
                Self::Free { .. } => {
                    for ((i, slope), weight) in units.zip(&*slopes).zip(weights) {
                        put(i, &times(network.output_scale * weight, slope));
                    }
                }
            }
        }
        if let (Some(put), Self::Perturbed { .. }) = (&mut put, self) {
            put(0, &times(network.output_scale * network.scale * network.strength, &slope));
        }
        times(network.output_scale, &value)
    }
}

fn times(factor: f64, values: &Lane) -> Lane {
    values.map(|x| factor * x)
}

dispatch! {
    /// y ← κ(y + (ξ z) c).
    fn preactivations(scale: f64, strength: f64, c: &[f64], along: &Lane, y: &mut [Lane]) {
        let mut shift = [0.0; LANES];
        for j in 0..LANES {
            shift[j] = strength * along[j];
        }
        for (y, c) in y.iter_mut().zip(c) {
            for j in 0..LANES {
                y[j] = scale * (y[j] + shift[j] * c);
            }
        }
    }
}

dispatch! {
    /// sum ← sum + Σ_i a_i x_i, the terms of a chunk among themselves first.
    fn add_products(sum: &mut Lane, a: &[f64], x: &[Lane]) {
        let mut chunk = [-0.0; LANES];
        for (a, x) in a.iter().zip(x) {
            for j in 0..LANES {
                chunk[j] += a * x[j];
            }
        }
        for j in 0..LANES {
            sum[j] += chunk[j];
        }
    }
}

dispatch! {
    /// sum ← sum + Σ_i c_i (λ_i σ′_i), the terms of a chunk among themselves first.
    fn add_slopes(sum: &mut Lane, c: &[f64], lambda: &[f64], slopes: &[Lane]) {
        let mut chunk = [-0.0; LANES];
        for ((c, lambda), slope) in c.iter().zip(lambda).zip(slopes) {
            for j in 0..LANES {
                chunk[j] += c * (slope[j] * lambda);
            }
        }
        for j in 0..LANES {
            sum[j] += chunk[j];
        }
    }
}
