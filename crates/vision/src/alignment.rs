//! What pre-training and fine-tuning have in common: for the projections q and v of every block, the directions that pre-training has
//! learned beside those that LoRA finds. They play the part of the alignment mu of the theory (`docs/derivations/lora.md`),
//! where W0 = mu w* is the share of the target that pre-training has found.

use crate::network::{Architecture, Backbone, Lora, ParameterValues, adapters};
use didact_math::linalg::{Mat, dot, svd};

/// One projection of one network, or means over all projections of it.
///
/// W is the frozen matrix, W⁰ its start, Δ = (alpha / rank) B A what LoRA has added, r its rank.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdapterAlignment {
    /// |Vᵀ V'|² / r, with V the first r right singular vectors of W − W⁰ and V' those of Δ: 1 when both read the same inputs, r / width by chance.
    pub inputs: f64,
    /// The same of left singular vectors: both write to the same outputs.
    pub outputs: f64,
    /// ⟨W − W⁰, Δ⟩ / (|W − W⁰| |Δ|): positive when fine-tuning goes on where pre-training went.
    pub cosine: f64,
    /// c / (c + |Δ|) with c = ⟨W, Δ⟩ / |Δ|: the part of the final weight along Δ that was there before, which is mu of the rank-one theory.
    pub share: f64,
    /// |W − W⁰| / |W⁰|.
    pub moved: f64,
    /// |Δ| / |W|.
    pub added: f64,
}

impl AdapterAlignment {
    /// Of one projection.
    ///
    /// # Panics
    /// When the matrices have different sizes, or `rank` is larger than they are.
    pub fn of(start: &Mat, trained: &Mat, added: &Mat, rank: usize) -> Self {
        let mut moved = trained.clone();
        moved.add_scaled(-1.0, start);
        let (learned, found) = (svd(&moved), svd(added));
        let overlap = |a: &Mat, b: &Mat| {
            let first = |m: &Mat| m.block(0..m.rows(), 0..rank).transpose();
            let product = first(a).times(&first(b).transpose());
            dot(product.as_slice(), product.as_slice()) / rank as f64
        };
        let inner = |a: &Mat, b: &Mat| dot(a.as_slice(), b.as_slice());
        let norm = |a: &Mat| inner(a, a).sqrt();
        let along = inner(trained, added) / norm(added);
        Self {
            inputs: overlap(&learned.right, &found.right),
            outputs: overlap(&learned.left, &found.left),
            cosine: inner(&moved, added) / (norm(&moved) * norm(added)),
            share: along / (along + norm(added)),
            moved: norm(&moved) / norm(start),
            added: norm(added) / norm(trained),
        }
    }

    /// Names of the numbers, as columns of a table.
    pub const NAMES: [&'static str; 6] =
        ["input_overlap", "output_overlap", "cosine", "share", "moved", "added"];

    /// The numbers in the order of the names.
    pub fn values(&self) -> [f64; 6] {
        [self.inputs, self.outputs, self.cosine, self.share, self.moved, self.added]
    }

    fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            inputs: mean(|a| a.inputs),
            outputs: mean(|a| a.outputs),
            cosine: mean(|a| a.cosine),
            share: mean(|a| a.share),
            moved: mean(|a| a.moved),
            added: mean(|a| a.added),
        }
    }
}

/// Means over the q and v projections of all blocks, of every network; `start` and `fine_tuned` have the same networks side by side.
pub fn alignments(
    a: &Architecture,
    lora: &Lora,
    models: usize,
    start: &ParameterValues,
    fine_tuned: &ParameterValues,
) -> Vec<AdapterAlignment> {
    let (backbone, factors) = (Backbone::new(a).layout, adapters(a, lora));
    let matrix = |layout: &crate::network::Layout, values: &[f64], name: &str, model: usize| {
        let tensor = layout.tensors.iter().position(|t| t.name == name).expect("an array of the network");
        let shape = &layout.tensors[tensor].shape;
        let (rows, cols) = (shape[0], shape[1]);
        let first = layout.offset(tensor, models) + model * rows * cols;
        Mat::from_fn(rows, cols, |i, j| values[first + i * cols + j])
    };
    let one = |model: usize| {
        let mut all = Vec::new();
        for block in 0..a.depth {
            // q, k and v lie one below the other.
            for (part, row) in [("q", 0), ("v", 2 * a.width)] {
                let projection = |values: &ParameterValues| {
                    let whole =
                        matrix(&backbone, &values.backbone, &format!("blocks.{block}.qkv.weight"), model);
                    whole.block(row..row + a.width, 0..a.width)
                };
                let factor = |which: &str| {
                    let name = format!("blocks.{block}.lora.{part}.{which}");
                    matrix(&factors, &fine_tuned.adapters, &name, model)
                };
                let added = factor("b").times(&factor("a")).scaled(lora.factor());
                all.push(AdapterAlignment::of(
                    &projection(start),
                    &projection(fine_tuned),
                    &added,
                    lora.rank,
                ));
            }
        }
        AdapterAlignment::mean(&all)
    };
    (0..models).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(i: usize, j: usize, size: f64) -> Mat {
        Mat::from_fn(6, 6, |a, b| if (a, b) == (i, j) { size } else { 0.0 })
    }

    #[test]
    fn the_same_direction_is_aligned_and_others_are_not() {
        let start = Mat::identity(6);
        let mut trained = start.clone();
        trained.add_scaled(1.0, &unit(1, 2, 3.0));
        let same = AdapterAlignment::of(&start, &trained, &unit(1, 2, 1.0), 1);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(same.inputs, 1.0);
        near(same.outputs, 1.0);
        near(same.cosine, 1.0);
        // 3 of the final 4 were there.
        near(same.share, 0.75);
        near(same.moved, 3.0 / 6.0_f64.sqrt());
        near(same.added, 1.0 / 15.0_f64.sqrt());
        // The same input goes to another output.
        let other = AdapterAlignment::of(&start, &trained, &unit(4, 2, 1.0), 1);
        near(other.inputs, 1.0);
        near(other.outputs, 0.0);
        near(other.cosine, 0.0);
        near(other.share, 0.0);
    }

    #[test]
    fn every_network_is_read_from_its_own_place() {
        let a = Architecture { channels: 1, side: 4, patch: 2, width: 6, depth: 2, heads: 2, expansion: 2 };
        let lora = Lora { rank: 1, alpha: 2.0 };
        let (backbone, factors) = (Backbone::new(&a).layout, adapters(&a, &lora));
        let start = ParameterValues { backbone: vec![0.5; 2 * backbone.total()], ..Default::default() };
        let mut end = ParameterValues { adapters: vec![0.0; 2 * factors.total()], ..start.clone() };
        // Of both networks: pre-training has moved one weight of each q and v; LoRA moves the same in the second network, another in the first.
        for (tensor, of) in
            backbone.tensors.iter().enumerate().filter(|(_, t)| t.name.ends_with("qkv.weight"))
        {
            for model in 0..2 {
                let first = backbone.offset(tensor, 2) + model * of.len();
                end.backbone[first + 6 + 2] += 1.0;
                end.backbone[first + (2 * 6 + 1) * 6 + 2] += 1.0;
            }
        }
        for (tensor, of) in factors.tensors.iter().enumerate() {
            for model in 0..2 {
                let first = factors.offset(tensor, 2) + model * of.len();
                // The input 3 in the first network, 2 in the second; always the output 1.
                let place = if of.name.rsplit('.').next() == Some("a") { 3 - model } else { 1 };
                end.adapters[first + place] = 1.0;
            }
        }
        let found = alignments(&a, &lora, 2, &start, &end);
        assert!(found[0].inputs.abs() < 1e-12 && (found[0].outputs - 1.0).abs() < 1e-12, "{found:?}");
        assert!((found[1].inputs - 1.0).abs() < 1e-12 && (found[1].cosine - 1.0).abs() < 1e-12, "{found:?}");
        // |Δ| = 2 along a weight of 1.5.
        assert!((found[1].share - 1.5 / 3.5).abs() < 1e-12, "{found:?}");
    }
}
