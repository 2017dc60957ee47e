//! The kicks of many samples at once: activations over lists, sums over units.

use super::CommitteeRule;
use didact_model::rule::Batch;
use std::ops::Range;
use std::sync::Arc;

/// Activations that the vector kernels compute in the time of one.
const CHUNK: usize = 8;

/// Activations of a few samples, for which there is room on the stack.
const FEW: usize = 32;
const SOME: usize = 128;

/// Samples whose activations are computed together when there are many.
const MANY: usize = 128;

/// kick_i = −w (y − f) a_i σ′(h_i) per sample; for trained output weights Σ_samples −w (y − f) σ(h_i).
///
/// Sums over units are taken in their order, whatever the size of the batch: a sample has bitwise the same kick alone and in a
/// batch.
pub(super) fn fill(rule: &CommitteeRule, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
    scalars.fill(0.0);
    let units = rule.student.weights.len() + rule.teacher.weights.len();
    if batch.size == 1 && units <= CHUNK {
        // A size that the compiler knows leaves no loops over samples.
        let one = Batch { size: 1, ..*batch };
        return block(rule, &one, 0..1, &mut [0.0; 4 * CHUNK], rows, scalars);
    }
    // A buffer is zeroed as a whole, also what is not used of it; for a few samples a large buffer would cost more than the work.
    let activations = units * batch.size;
    if activations <= FEW {
        block(rule, batch, 0..batch.size, &mut [0.0; 4 * FEW], rows, scalars);
    } else if activations <= SOME {
        block(rule, batch, 0..batch.size, &mut [0.0; 4 * SOME], rows, scalars);
    } else {
        let mut room = vec![0.0; (2 * units + 2) * MANY.min(batch.size)];
        for first in (0..batch.size).step_by(MANY) {
            let samples = first..(first + MANY).min(batch.size);
            block(rule, batch, samples, &mut room, rows, scalars);
        }
    }
}

/// The same for some of the samples, inlined for those sizes. `room` holds two numbers per unit and sample, and two per sample.
#[inline(always)]
fn block(
    rule: &CommitteeRule,
    batch: &Batch,
    samples: Range<usize>,
    room: &mut [f64],
    rows: &mut [f64],
    scalars: &mut [f64],
) {
    let (student, teacher) = (&rule.student, &rule.teacher);
    let (k, m) = (student.weights.len(), teacher.weights.len());
    let (size, width) = (batch.size, samples.len());
    let of = |unit: usize| unit * size + samples.start..unit * size + samples.end;
    let (values, room) = room.split_at_mut((k + m) * width);
    let (slopes, room) = room.split_at_mut((k + m) * width);
    let (outputs, room) = room.split_at_mut(width);
    let labels = &mut room[..width];
    if width == size {
        values.copy_from_slice(&batch.fields[..(k + m) * size]);
    } else {
        for (unit, values) in values.chunks_exact_mut(width).enumerate() {
            values.copy_from_slice(&batch.fields[of(unit)]);
        }
    }
    let known = !batch.labels.is_empty();
    if known {
        student.activation.values_and_slopes(&mut values[..k * width], &mut slopes[..k * width]);
        labels.copy_from_slice(&batch.labels[samples.clone()]);
    } else if (k + m) * width <= CHUNK && Arc::ptr_eq(&student.activation, &teacher.activation) {
        // The slopes of the teacher cost nothing here, a second call would.
        student.activation.values_and_slopes(values, slopes);
    } else {
        let (own, others) = values.split_at_mut(k * width);
        student.activation.values_and_slopes(own, &mut slopes[..k * width]);
        teacher.activation.values(others);
    }
    let weights = student.output_weights(batch.scalars);
    let weight = rule.forms.weight;
    let (own, others) = values.split_at(k * width);
    weighted_sums(outputs, weights, own);
    if !known {
        weighted_sums(labels, &teacher.weights, others);
        labels.iter_mut().zip(&batch.noise[samples.clone()]).for_each(|(y, noise)| *y += noise);
    }
    labels.iter_mut().zip(&*outputs).for_each(|(y, f)| *y = -weight * (*y - f));
    let errors = &*labels;
    for (i, (a, slopes)) in weights.iter().zip(slopes.chunks_exact(width)).enumerate() {
        for ((kick, slope), error) in rows[of(i)].iter_mut().zip(slopes).zip(errors) {
            *kick = a * slope * error;
        }
    }
    if student.trained {
        for (sum, values) in scalars.iter_mut().zip(own.chunks_exact(width)) {
            values.iter().zip(errors).for_each(|(value, error)| *sum += value * error);
        }
    }
}

/// sums_j = Σ_i weight_i value_ij.
#[inline(always)]
fn weighted_sums(sums: &mut [f64], weights: &[f64], values: &[f64]) {
    sums.fill(0.0);
    for (a, values) in weights.iter().zip(values.chunks_exact(sums.len())) {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += a * value);
    }
}
