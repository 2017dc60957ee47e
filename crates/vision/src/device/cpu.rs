//! The processor: plain loops over rows, shared out to threads. Sums within a row are in `f64`.

use super::product::{self, Float};
use super::{AdamW, Device, DeviceError, Done, Heads, NORM_EPSILON, PADDING, Patches, Product, RowBlock};
use rayon::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::marker::PhantomData;

/// The processor, in `f32`, or in `f64` for checks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu<T = f32>(PhantomData<T>);

impl<T> Cpu<T> {
    /// The processor.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

/// Numbers that one thread takes at a time, so that small arrays are not cut up.
const GRAIN: usize = 1 << 14;

/// Rows that one thread takes at a time.
fn grain(columns: usize) -> usize {
    (GRAIN / columns.max(1)).max(1)
}

/// Φ(x) and the normal density.
fn normal(x: f64) -> (f64, f64) {
    (0.5 * libm::erfc(-x * FRAC_1_SQRT_2), (-0.5 * x * x).exp() / (2.0 * PI).sqrt())
}

impl<T: Float> Device for Cpu<T> {
    type Buffer = Vec<T>;
    type Bytes = Vec<u8>;
    type Words = Vec<u32>;

    fn name(&self) -> String {
        format!("processor, {} threads, {} bits", rayon::current_num_threads(), 8 * size_of::<T>())
    }

    fn zeros(&self, length: usize) -> Result<Vec<T>, DeviceError> {
        Ok(vec![T::default(); length])
    }

    fn upload(&self, values: &[f64]) -> Result<Vec<T>, DeviceError> {
        Ok(values.iter().map(|v| T::of(*v)).collect())
    }

    fn download(&self, buffer: &Vec<T>) -> Result<Vec<f64>, DeviceError> {
        Ok(buffer.iter().map(|v| v.wide()).collect())
    }

    fn upload_bytes(&self, values: &[u8]) -> Result<Vec<u8>, DeviceError> {
        Ok(values.to_vec())
    }

    fn upload_words(&self, values: &[u32]) -> Result<Vec<u32>, DeviceError> {
        Ok(values.to_vec())
    }

    fn wait(&self) -> Done {
        Ok(())
    }

    fn clear(&self, buffer: &mut Vec<T>) -> Done {
        buffer.fill(T::default());
        Ok(())
    }

    fn product(&self, product: &Product, a: &Vec<T>, b: &Vec<T>, c: &mut Vec<T>) -> Done {
        product::product(product, a, b, c);
        Ok(())
    }

    fn add(&self, length: usize, x: &Vec<T>, y: &mut Vec<T>) -> Done {
        y[..length].par_chunks_mut(GRAIN).zip(x[..length].par_chunks(GRAIN)).for_each(|(y, x)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = y.plus(*x));
        });
        Ok(())
    }

    fn copy(&self, length: usize, x: &Vec<T>, y: &mut Vec<T>) -> Done {
        y[..length].copy_from_slice(&x[..length]);
        Ok(())
    }

    fn add_row(&self, rows: RowBlock, (bias, offset): (&Vec<T>, usize), y: &mut Vec<T>) -> Done {
        let RowBlock { rows: per_model, columns, .. } = rows;
        y[..rows.len()].par_chunks_mut(columns).with_min_len(grain(columns)).enumerate().for_each(
            |(row, y)| {
                let bias = &bias[offset + row / per_model * columns..][..columns];
                y.iter_mut().zip(bias).for_each(|(y, b)| *y = y.plus(*b));
            },
        );
        Ok(())
    }

    fn sum_rows(&self, rows: RowBlock, x: &Vec<T>, (out, offset): (&mut Vec<T>, usize)) -> Done {
        let RowBlock { models, rows: per_model, columns } = rows;
        let out = &mut out[offset..offset + models * columns];
        out.par_chunks_mut(columns).zip(x.par_chunks(per_model * columns)).for_each(|(out, x)| {
            let mut sums = vec![0.0; columns];
            for row in x.chunks_exact(columns) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.wide());
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::of(out.wide() + sum));
        });
        Ok(())
    }

    fn normalise(
        &self,
        rows: RowBlock,
        x: &Vec<T>,
        (affine, offset): (&Vec<T>, usize),
        y: &mut Vec<T>,
        moments: &mut Vec<T>,
    ) -> Done {
        let RowBlock { models, rows: per_model, columns } = rows;
        let (scales, shifts) = affine[offset..].split_at(models * columns);
        let work =
            y[..rows.len()].par_chunks_mut(columns).zip(x.par_chunks(columns)).zip(moments.par_chunks_mut(2));
        work.with_min_len(grain(columns)).enumerate().for_each(|(row, ((y, x), moments))| {
            let place = row / per_model * columns;
            let mean = x.iter().map(|x| x.wide()).sum::<f64>() / columns as f64;
            let variance = x.iter().map(|x| (x.wide() - mean).powi(2)).sum::<f64>() / columns as f64;
            let inverse = 1.0 / (variance + NORM_EPSILON).sqrt();
            for (c, y) in y.iter_mut().enumerate() {
                let scaled = (x[c].wide() - mean) * inverse * scales[place + c].wide();
                *y = T::of(scaled + shifts[place + c].wide());
            }
            (moments[0], moments[1]) = (T::of(mean), T::of(inverse));
        });
        Ok(())
    }

    fn normalise_backward(
        &self,
        rows: RowBlock,
        (x, moments): (&Vec<T>, &Vec<T>),
        (affine, offset): (&Vec<T>, usize),
        dy: &Vec<T>,
        dx: &mut Vec<T>,
    ) -> Done {
        let RowBlock { rows: per_model, columns, .. } = rows;
        let scales = &affine[offset..];
        let work = dx[..rows.len()].par_chunks_mut(columns).zip(dy.par_chunks(columns));
        work.with_min_len(grain(columns)).enumerate().for_each(|(row, (dx, dy))| {
            let (mean, inverse) = (moments[2 * row].wide(), moments[2 * row + 1].wide());
            let scales = &scales[row / per_model * columns..];
            let x = &x[row * columns..][..columns];
            let (mut sum, mut along) = (0.0, 0.0);
            for c in 0..columns {
                let g = dy[c].wide() * scales[c].wide();
                sum += g;
                along += g * (x[c].wide() - mean) * inverse;
            }
            let n = columns as f64;
            for c in 0..columns {
                let g = dy[c].wide() * scales[c].wide();
                let hat = (x[c].wide() - mean) * inverse;
                dx[c] = T::of(dx[c].wide() + inverse * (g - sum / n - hat * along / n));
            }
        });
        Ok(())
    }

    fn normalise_affine(
        &self,
        rows: RowBlock,
        (x, moments): (&Vec<T>, &Vec<T>),
        dy: &Vec<T>,
        (daffine, offset): (&mut Vec<T>, usize),
    ) -> Done {
        let RowBlock { models, rows: per_model, columns } = rows;
        let (dscales, dshifts) =
            daffine[offset..offset + 2 * models * columns].split_at_mut(models * columns);
        let work = dscales.par_chunks_mut(columns).zip(dshifts.par_chunks_mut(columns));
        work.enumerate().for_each(|(model, (dscales, dshifts))| {
            let mut sums = vec![(0.0, 0.0); columns];
            for row in model * per_model..(model + 1) * per_model {
                let (mean, inverse) = (moments[2 * row].wide(), moments[2 * row + 1].wide());
                for (c, sums) in sums.iter_mut().enumerate() {
                    let dy = dy[row * columns + c].wide();
                    sums.0 += dy * (x[row * columns + c].wide() - mean) * inverse;
                    sums.1 += dy;
                }
            }
            for (c, (scale, shift)) in sums.into_iter().enumerate() {
                dscales[c] = T::of(dscales[c].wide() + scale);
                dshifts[c] = T::of(dshifts[c].wide() + shift);
            }
        });
        Ok(())
    }

    fn gelu(&self, length: usize, x: &Vec<T>, y: &mut Vec<T>) -> Done {
        y[..length].par_iter_mut().with_min_len(GRAIN / 16).zip(&x[..length]).for_each(|(y, x)| {
            *y = T::of(x.wide() * normal(x.wide()).0);
        });
        Ok(())
    }

    fn gelu_backward(&self, length: usize, x: &Vec<T>, dy: &mut Vec<T>) -> Done {
        dy[..length].par_iter_mut().with_min_len(GRAIN / 16).zip(&x[..length]).for_each(|(dy, x)| {
            let (cdf, density) = normal(x.wide());
            *dy = T::of(dy.wide() * (cdf + x.wide() * density));
        });
        Ok(())
    }

    fn softmax(&self, rows: usize, columns: usize, scale: f64, x: &mut Vec<T>) -> Done {
        x[..rows * columns].par_chunks_mut(columns).with_min_len(grain(columns)).for_each(|x| {
            let largest = x.iter().map(|x| x.wide()).fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for x in x.iter_mut() {
                let e = (scale * (x.wide() - largest)).exp();
                sum += e;
                *x = T::of(e);
            }
            x.iter_mut().for_each(|x| *x = T::of(x.wide() / sum));
        });
        Ok(())
    }

    fn softmax_backward(&self, rows: usize, columns: usize, scale: f64, p: &Vec<T>, dp: &mut Vec<T>) -> Done {
        let work = dp[..rows * columns].par_chunks_mut(columns).zip(p.par_chunks(columns));
        work.with_min_len(grain(columns)).for_each(|(dp, p)| {
            let sum: f64 = p.iter().zip(dp.iter()).map(|(p, dp)| p.wide() * dp.wide()).sum();
            dp.iter_mut().zip(p).for_each(|(dp, p)| *dp = T::of(scale * p.wide() * (dp.wide() - sum)));
        });
        Ok(())
    }

    fn split_heads(&self, heads: Heads, x: &Vec<T>, out: &mut Vec<T>) -> Done {
        let Heads { sequences, tokens, parts, heads, width } = heads;
        let block = tokens * width;
        out[..sequences * parts * heads * block].par_chunks_mut(block).enumerate().for_each(
            |(index, out)| {
                let (part, rest) = (index / (sequences * heads), index % (sequences * heads));
                let (sequence, head) = (rest / heads, rest % heads);
                for (token, out) in out.chunks_exact_mut(width).enumerate() {
                    let place = (((sequence * tokens + token) * parts + part) * heads + head) * width;
                    out.copy_from_slice(&x[place..place + width]);
                }
            },
        );
        Ok(())
    }

    fn merge_heads(&self, heads: Heads, x: &Vec<T>, out: &mut Vec<T>) -> Done {
        let Heads { sequences, tokens, parts, heads, width } = heads;
        let row = parts * heads * width;
        out[..sequences * tokens * row].par_chunks_mut(row).with_min_len(grain(row)).enumerate().for_each(
            |(index, out)| {
                let (sequence, token) = (index / tokens, index % tokens);
                for (slot, out) in out.chunks_exact_mut(width).enumerate() {
                    let (part, head) = (slot / heads, slot % heads);
                    let place = (((part * sequences + sequence) * heads + head) * tokens + token) * width;
                    out.copy_from_slice(&x[place..place + width]);
                }
            },
        );
        Ok(())
    }

    fn mean_rows(&self, rows: RowBlock, x: &Vec<T>, out: &mut Vec<T>) -> Done {
        let RowBlock { models: sequences, rows: tokens, columns } = rows;
        out[..sequences * columns].par_chunks_mut(columns).zip(x.par_chunks(tokens * columns)).for_each(
            |(out, x)| {
                for (c, out) in out.iter_mut().enumerate() {
                    let sum: f64 = x.iter().skip(c).step_by(columns).map(|x| x.wide()).sum();
                    *out = T::of(sum / tokens as f64);
                }
            },
        );
        Ok(())
    }

    fn mean_rows_backward(&self, rows: RowBlock, dout: &Vec<T>, dx: &mut Vec<T>) -> Done {
        let RowBlock { rows: tokens, columns, .. } = rows;
        let share = T::of(1.0 / tokens as f64);
        dx[..rows.len()].par_chunks_mut(tokens * columns).zip(dout.par_chunks(columns)).for_each(
            |(dx, dout)| {
                for dx in dx.chunks_exact_mut(columns) {
                    dx.iter_mut().zip(dout).for_each(|(dx, d)| *dx = d.times(share));
                }
            },
        );
        Ok(())
    }

    fn patches(
        &self,
        p: &Patches,
        images: &Vec<u8>,
        (indices, first): (&Vec<u32>, usize),
        out: &mut Vec<T>,
    ) -> Done {
        let (width, area, across) = (p.width(), p.side * p.side, p.side / p.patch);
        let image = p.tokens() * width;
        out[..p.count * image].par_chunks_mut(image).enumerate().for_each(|(number, out)| {
            let index = indices[first + number];
            if index == PADDING {
                out.fill(T::default());
                return;
            }
            let pixels = &images[index as usize * p.channels * area..][..p.channels * area];
            for (token, out) in out.chunks_exact_mut(width).enumerate() {
                let (top, left) = (token / across * p.patch, token % across * p.patch);
                for (i, out) in out.iter_mut().enumerate() {
                    let (channel, within) = (i / (p.patch * p.patch), i % (p.patch * p.patch));
                    let (y, x) = (top + within / p.patch, left + within % p.patch);
                    let value = f32::from(pixels[channel * area + y * p.side + x]) / 255.0;
                    *out = T::of(f64::from((value - p.mean[channel]) / p.deviation[channel]));
                }
            }
        });
        Ok(())
    }

    fn cross_entropy(
        &self,
        (rows, classes, scale): (usize, usize, f64),
        logits: &Vec<T>,
        (labels, (indices, first)): (&Vec<u32>, (&Vec<u32>, usize)),
        dlogits: &mut Vec<T>,
        scores: &mut Vec<T>,
    ) -> Done {
        for row in 0..rows {
            let logits = &logits[row * classes..][..classes];
            let (d, score) = (&mut dlogits[row * classes..][..classes], &mut scores[2 * row..][..2]);
            let index = indices[first + row];
            if index == PADDING {
                d.fill(T::default());
                score.fill(T::default());
                continue;
            }
            let label = labels[index as usize] as usize;
            // The first of equal logits counts as the answer.
            let best =
                (0..classes).fold(0, |best, c| if logits[c].wide() > logits[best].wide() { c } else { best });
            let largest = logits[best].wide();
            let sum: f64 = logits.iter().map(|l| (l.wide() - largest).exp()).sum();
            for (c, (d, l)) in d.iter_mut().zip(logits).enumerate() {
                let p = (l.wide() - largest).exp() / sum;
                *d = T::of(scale * (p - f64::from(u8::from(c == label))));
            }
            score[0] = T::of(sum.ln() + largest - logits[label].wide());
            score[1] = T::of(f64::from(u8::from(best == label)));
        }
        Ok(())
    }

    fn adamw(
        &self,
        step: &AdamW,
        length: usize,
        gradient: &Vec<T>,
        (first, second): (&mut Vec<T>, &mut Vec<T>),
        parameters: &mut Vec<T>,
    ) -> Done {
        let t = step.step as f64;
        let (c1, c2) = (1.0 - step.first.powf(t), 1.0 - step.second.powf(t));
        let work = parameters[..length].par_iter_mut().with_min_len(GRAIN / 4).zip(&gradient[..length]);
        work.zip(&mut first[..length]).zip(&mut second[..length]).for_each(|(((p, g), m), v)| {
            let g = g.wide();
            let new_m = step.first * m.wide() + (1.0 - step.first) * g;
            let new_v = step.second * v.wide() + (1.0 - step.second) * g * g;
            let kept = p.wide() * (1.0 - step.rate * step.decay);
            *p = T::of(kept - step.rate * (new_m / c1) / ((new_v / c2).sqrt() + step.epsilon));
            (*m, *v) = (T::of(new_m), T::of(new_v));
        });
        Ok(())
    }
}
