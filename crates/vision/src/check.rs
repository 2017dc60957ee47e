//! Every operation of a device, and a short training, compared with the processor in double precision.

use crate::data::made;
use crate::device::{AdamW, Cpu, Device, DeviceError, Heads, Operand, PADDING, Patches, Product, RowBlock};
use crate::network::{
    Architecture, Backbone, Lora, ParameterValues, Pass, VisionNetwork, adapters, draw, head,
};
use crate::train::{Loaded, lanes};
use didact_math::random::{RngAddress, Stream};

/// Tolerances: the largest relative distance (of norms) of operations without products, and of those with products.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// Sums and elementary functions in single precision.
    pub plain: f64,
    /// Products; TF32 keeps 10 bits after the first of every factor, so each has an error of up to 2⁻¹¹.
    pub product: f64,
    /// A network after some steps.
    pub training: f64,
}

/// Single precision, products from TF32.
pub const SINGLE: Tolerance = Tolerance { plain: 1e-5, product: 1e-3, training: 2e-2 };

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct DeviceReport {
    lines: Vec<(String, f64, f64)>,
}

impl DeviceReport {
    fn add(&mut self, what: &str, expected: &[f64], found: &[f64], tolerance: f64) {
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let difference: Vec<f64> = expected.iter().zip(found).map(|(a, b)| a - b).collect();
        let error = norm(&difference) / norm(expected).max(1e-300);
        let error = if expected.len() == found.len() { error } else { f64::INFINITY };
        self.lines.push((what.into(), error, tolerance));
    }

    /// Whether all distances are within their tolerances.
    pub fn passed(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(|(_, error, tolerance)| error <= tolerance)
    }

    /// A line per comparison.
    pub fn text(&self) -> String {
        let line = |(what, error, tolerance): &(String, f64, f64)| {
            let word = if error <= tolerance { "ok    " } else { "WRONG " };
            format!("{word} {what:<40} {error:.2e} (at most {tolerance:.0e})\n")
        };
        self.lines.iter().map(line).collect()
    }
}

fn numbers(count: usize, lane: u16) -> Vec<f64> {
    let stream = &mut Stream::at(RngAddress { seed: 11, replica: 0, step: 0, lane });
    (0..count).map(|_| f64::from(stream.normal() as f32)).collect()
}

/// What an operation leaves in its outputs.
type Outputs = Vec<(&'static str, bool, Vec<f64>)>;

/// All operations on the same random numbers; the flag says that there are products in it.
fn operations<D: Device>(d: &D) -> Result<Outputs, DeviceError> {
    let mut all = Outputs::new();
    let rows = RowBlock { models: 3, rows: 37, columns: 48 };
    let n = rows.len();
    let up = |count: usize, lane: u16| d.upload(&numbers(count, lane));
    let (m, k, c) = (37, 50, 48);
    for (name, ta, tb) in
        [("A B", false, false), ("Aᵀ B", true, false), ("A Bᵀ", false, true), ("Aᵀ Bᵀ", true, true)]
    {
        let operand = |rows: usize, columns: usize, transposed: bool| {
            if transposed {
                Operand::dense(columns, rows).transposed()
            } else {
                Operand::dense(rows, columns)
            }
        };
        // C is a part of wider rows, as queries are.
        let part = Operand { offset: 5, row_stride: c + 16, batch_stride: m * (c + 16), transposed: false };
        let product = Product {
            batches: 3,
            m,
            n: c,
            k,
            a: operand(m, k, ta),
            b: operand(k, c, tb),
            c: part,
            scale: 0.7,
            accumulate: true,
        };
        let mut out = up(3 * m * (c + 16) + 5, 3)?;
        d.product(&product, &up(3 * m * k, 1)?, &up(3 * k * c, 2)?, &mut out)?;
        all.push((name, true, d.download(&out)?));
    }
    // Long sums, as those of the derivatives of weights.
    let (m, k, c) = (20, 4160, 24);
    let operand = |columns: usize| Operand::dense(k, columns);
    let product = Product {
        batches: 3,
        m,
        n: c,
        k,
        a: operand(m).transposed(),
        b: operand(c),
        c: Operand::dense(m, c).at(3),
        scale: 0.7,
        accumulate: true,
    };
    let mut out = up(3 * m * c + 3, 3)?;
    d.product(&product, &up(3 * m * k, 1)?, &up(3 * k * c, 2)?, &mut out)?;
    all.push(("Aᵀ B, long sums", true, d.download(&out)?));
    let mut y = up(n, 2)?;
    d.add(n, &up(n, 1)?, &mut y)?;
    all.push(("sum", false, d.download(&y)?));
    d.copy(n / 2, &up(n, 3)?, &mut y)?;
    all.push(("copy", false, d.download(&y)?));
    d.add_row(rows, (&up(2 * n, 4)?, 7), &mut y)?;
    all.push(("a row added", false, d.download(&y)?));
    d.add_row(rows, (&up(2 * n, 4)?, 8), &mut y)?;
    all.push(("a row added, by fours", false, d.download(&y)?));
    let mut sums = up(7 + 3 * 48, 5)?;
    d.sum_rows(rows, &y, (&mut sums, 7))?;
    all.push(("sums over rows", false, d.download(&sums)?));
    let (x, affine) = (up(n, 6)?, up(9 + 6 * 48, 7)?);
    let (mut moments, mut normed) = (d.zeros(2 * 3 * 37)?, d.zeros(n)?);
    d.normalise(rows, &x, (&affine, 9), &mut normed, &mut moments)?;
    all.push(("norm", false, d.download(&normed)?));
    let (dy, mut dx, mut daffine) = (up(n, 8)?, up(n, 9)?, up(9 + 6 * 48, 10)?);
    d.normalise_backward(rows, (&x, &moments), (&affine, 9), &dy, &mut dx)?;
    all.push(("norm, derivative", false, d.download(&dx)?));
    d.normalise_affine(rows, (&x, &moments), &dy, (&mut daffine, 9))?;
    all.push(("norm, derivative of scale and shift", false, d.download(&daffine)?));
    d.gelu(n, &x, &mut y)?;
    all.push(("gelu", false, d.download(&y)?));
    let mut g = up(n, 8)?;
    d.gelu_backward(n, &x, &mut g)?;
    all.push(("gelu, derivative", false, d.download(&g)?));
    let mut p = up(n, 11)?;
    d.softmax(111, 48, 1.7, &mut p)?;
    all.push(("softmax", false, d.download(&p)?));
    let mut dp = up(n, 12)?;
    d.softmax_backward(111, 48, 1.7, &p, &mut dp)?;
    all.push(("softmax, derivative", false, d.download(&dp)?));
    for (width, names) in
        [(5, ["heads split", "heads merged"]), (8, ["heads split, by fours", "heads merged, by fours"])]
    {
        let heads = Heads { sequences: 6, tokens: 7, parts: 3, heads: 4, width };
        let (mut split, mut merged) = (d.zeros(heads.len())?, d.zeros(heads.len())?);
        d.split_heads(heads, &up(heads.len(), 13)?, &mut split)?;
        all.push((names[0], false, d.download(&split)?));
        d.merge_heads(heads, &up(heads.len(), 14)?, &mut merged)?;
        all.push((names[1], false, d.download(&merged)?));
    }
    let mut mean = d.zeros(3 * 48)?;
    d.mean_rows(rows, &x, &mut mean)?;
    all.push(("mean over tokens", false, d.download(&mean)?));
    d.mean_rows_backward(rows, &mean, &mut y)?;
    all.push(("mean over tokens, derivative", false, d.download(&y)?));
    let pixels: Vec<u8> = (0..5 * 3 * 64).map(|i| (i * 7919 % 256) as u8).collect();
    let indices = d.upload_words(&[9, 4, PADDING, 0, 3])?;
    let patches = Patches {
        count: 4,
        channels: 3,
        side: 8,
        patch: 4,
        mean: [0.4, 0.5, 0.6],
        deviation: [0.2, 0.3, 0.25],
    };
    let mut cut = d.zeros(4 * 3 * 64)?;
    d.patches(&patches, &d.upload_bytes(&pixels)?, (&indices, 1), &mut cut)?;
    all.push(("patches", false, d.download(&cut)?));
    let labels = d.upload_words(&[3, 1, 0, 6, 2])?;
    let (mut dlogits, mut scores) = (d.zeros(4 * 7)?, d.zeros(8)?);
    d.cross_entropy((4, 7, 0.25), &up(28, 15)?, (&labels, (&indices, 1)), &mut dlogits, &mut scores)?;
    all.push(("cross entropy", false, d.download(&scores)?));
    all.push(("cross entropy, derivative", false, d.download(&dlogits)?));
    let step = AdamW { rate: 0.01, decay: 0.1, first: 0.9, second: 0.999, epsilon: 1e-8, step: 3 };
    let squares: Vec<f64> = numbers(n, 17).iter().map(|v| f64::from((v * v) as f32)).collect();
    let (mut first, mut second, mut parameters) = (up(n, 16)?, d.upload(&squares)?, up(n, 18)?);
    d.adamw(&step, n, &up(n, 19)?, (&mut first, &mut second), &mut parameters)?;
    all.push(("AdamW", false, d.download(&parameters)?));
    all.push(("AdamW, first moments", false, d.download(&first)?));
    all.push(("AdamW, second moments", false, d.download(&second)?));
    Ok(all)
}

/// Gradients of the first of some steps, the losses of all and the parameters after them.
fn training<D: Device>(d: &D, lora: Option<Lora>) -> Result<Outputs, DeviceError> {
    let a = Architecture { channels: 1, side: 12, patch: 4, width: 32, depth: 2, heads: 2, expansion: 2 };
    let models = [0, 1, 2];
    let values = ParameterValues {
        backbone: draw(&Backbone::new(&a).layout, 2, &models, lanes::BACKBONE),
        head: draw(&head(&a, 4), 2, &models, lanes::HEAD),
        adapters: lora
            .map(|lora| draw(&adapters(&a, &lora), 2, &models, lanes::ADAPTERS))
            .unwrap_or_default(),
    };
    let mut network = VisionNetwork::new(d, a, (3, 4), lora, &values)?;
    let mut pass = Pass::new(d, &network, 32)?;
    let loaded = Loaded::new(d, &made::stripes(96, (4, 12), (0.0, 45.0), 5))?;
    let order: Vec<u32> = (0..96 * 3).map(|i| i % 96).collect();
    let indices = d.upload_words(&order)?;
    let (mut all, mut losses) = (Outputs::new(), Vec::new());
    for step in 0..8 {
        d.clear(&mut pass.totals)?;
        pass.forward(d, &network, &loaded.batch((&indices, 96 * (step % 3)), 32))?;
        losses.extend(d.download(&pass.totals)?.iter().step_by(2));
        network.clear_gradients(d)?;
        pass.backward(d, &mut network)?;
        if step == 0 {
            for (name, group) in network.groups() {
                let Some(trained) = &group.training else { continue };
                let name = match (name, lora.is_some()) {
                    ("backbone", _) => "gradients of the backbone",
                    ("head", false) => "gradients of the head",
                    ("head", true) => "gradients of the head beside LoRA",
                    _ => "gradients of LoRA",
                };
                all.push((name, true, d.download(&trained.gradient)?));
            }
        }
        let adamw = AdamW {
            rate: 1e-3,
            decay: 1e-4,
            first: 0.9,
            second: 0.999,
            epsilon: 1e-8,
            step: step as u64 + 1,
        };
        network.step(d, &adamw)?;
    }
    all.push((if lora.is_some() { "losses of 8 steps of LoRA" } else { "losses of 8 steps" }, true, losses));
    Ok(all)
}

/// Compares a device with the processor in double precision.
pub fn compare<D: Device>(device: &D, tolerance: Tolerance) -> Result<DeviceReport, DeviceError> {
    let slow = Cpu::<f64>::new();
    let mut report = DeviceReport::default();
    for ((name, product, a), (_, _, b)) in operations(&slow)?.into_iter().zip(operations(device)?) {
        report.add(name, &a, &b, if product { tolerance.product } else { tolerance.plain });
    }
    for lora in [None, Some(Lora { rank: 2, alpha: 4.0 })] {
        for ((name, _, a), (_, _, b)) in training(&slow, lora)?.into_iter().zip(training(device, lora)?) {
            report.add(name, &a, &b, tolerance.training);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In single precision without TF32 products are as good as the rest.
    #[test]
    fn the_processor_in_single_precision_passes_and_a_wrong_result_does_not() {
        let report =
            compare(&Cpu::<f32>::new(), Tolerance { plain: 1e-5, product: 1e-5, training: 1e-4 }).unwrap();
        assert!(report.passed(), "{}", report.text());
        let mut wrong = report;
        wrong.add("made", &[1.0, 2.0], &[1.0, 2.1], 1e-2);
        assert!(!wrong.passed() && wrong.text().contains("WRONG  made"));
    }
}
