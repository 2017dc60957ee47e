//! One step of the data side: every sample moves, and adds its share to the kernels.

use super::kernels::Equations;
use super::lanes::{
    Backward, Four, Strip, WIDE, add_products, backward, combine, fold, strips, strips_mut, weighed,
};
use super::{Dimensions, LANES};
use didact_model::Kick;
use didact_model::rule::Batch;

/// What LANES samples remember, in memory that all blocks share.
pub(super) struct Block<'b> {
    /// v, then the label noise, then the labels if the rule has any; f + 2 rows of LANES.
    pub(super) given: &'b [f64],
    /// W(t), then V(t), m x LANES each.
    pub(super) now: &'b mut [f64],
    /// φ(s), strip by strip, (s, i) x WIDE.
    pub(super) kicks: &'b mut [f64],
    /// ∂φ_i(s)/∂h_k, strip by strip, (s, i, k) x WIDE, k over the trained fields or over all.
    pub(super) curvature: &'b mut [f64],
}

/// Sums over the samples of a group of blocks.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    /// C_ℓ(t,s), (s, i, j).
    pub(super) kicks: Vec<f64>,
    /// R_ℓ(t,s), (s, i, j).
    pub(super) response: Vec<f64>,
    /// R_ℓ(t,*) by paths, or E[φ v] for Stein's lemma; (i, n).
    pub(super) frozen: Vec<f64>,
    pub(super) scalars: Vec<f64>,
}

impl Sums {
    pub(super) fn new(size: &Dimensions, t: usize, scalars: usize) -> Self {
        let square = (t + 1) * size.trained * size.trained;
        Self {
            kicks: vec![0.0; square],
            response: vec![0.0; square],
            frozen: vec![0.0; size.trained * size.frozen],
            scalars: vec![0.0; scalars],
        }
    }

    pub(super) fn add(mut self, other: &Self) -> Self {
        for (a, b) in [
            (&mut self.kicks, &other.kicks),
            (&mut self.response, &other.response),
            (&mut self.frozen, &other.frozen),
            (&mut self.scalars, &other.scalars),
        ] {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self
    }
}

/// Everything about step t that all blocks share.
pub(super) struct Step<'a> {
    pub(super) t: usize,
    pub(super) size: Dimensions,
    pub(super) equations: &'a Equations,
    pub(super) scalars: &'a [f64],
    /// Whether the samples know their labels.
    pub(super) labelled: bool,
    /// W_i(t) = Σ_c row_i[c] z_c over frozen columns, then innovations.
    pub(super) rows: &'a [Vec<f64>],
    /// −(η/δ) R_θ(t,s)_ij, as coefficients of φ_j(s), per i.
    pub(super) memory: Vec<Vec<f64>>,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k); zero for r ≤ s.
    pub(super) back: Vec<f64>,
}

/// Buffers of one thread, and the sums of the blocks that it has moved.
pub(super) struct Room {
    /// V then v, rows x LANES.
    fields: Vec<f64>,
    /// φ(t), m x LANES.
    kicks: Vec<f64>,
    /// D(t), m x columns x LANES.
    curvature: Vec<f64>,
    /// X_r, (r, k): dφ_i(t)/dV_k(r), times the weight.
    chain: Vec<Strip>,
    /// g_s, m.
    through: Vec<Strip>,
    /// C_ℓ(t,s), (i, s, j).
    products: Vec<Four>,
    /// X_s, (i, s, k).
    response: Vec<Four>,
    /// dφ_i(t)/dv_n, or φ v; (i, n).
    frozen: Vec<Four>,
    kick: Kick,
    scalars: Vec<f64>,
}

impl Room {
    pub(super) fn new(step: &Step) -> Self {
        let Dimensions { trained: m, frozen: f, columns, .. } = step.size;
        let kick = Kick::new(step.equations.shape());
        Self {
            fields: vec![0.0; (m + f) * LANES],
            kicks: vec![0.0; m * LANES],
            curvature: vec![0.0; m * columns * LANES],
            chain: vec![[0.0; WIDE]; (step.t + 1) * m],
            through: vec![[0.0; WIDE]; m],
            products: vec![[0.0; 4]; m * (step.t + 1) * m],
            response: vec![[0.0; 4]; m * (step.t + 1) * m],
            frozen: vec![[0.0; 4]; m * f],
            scalars: vec![0.0; kick.scalars.len()],
            kick,
        }
    }
}

impl Step<'_> {
    /// Moves one block to step t and adds its share of the kernels to the sums in the room.
    pub(super) fn sample(&self, block: &mut Block, columns: &[f64], weights: &[f64], room: &mut Room) {
        let Dimensions { trained: m, frozen: f, columns: wide, .. } = self.size;
        let (given, now) = (strips(block.given), strips_mut(block.now));
        let (columns, weights) = (strips(columns), strips(weights));
        let (kicks, curvature) = (strips_mut(block.kicks), strips_mut(block.curvature));
        let per = LANES / WIDE;
        let (drawn, horizon, derivatives) = (columns.len() / per, kicks.len() / per, curvature.len() / per);
        for strip in 0..per {
            // Column f is the noise: W takes the columns before it and those after it.
            let (latent, rest) = columns[strip * drawn..][..drawn].split_at(f);
            let before = &kicks[strip * horizon..][..self.t * m];
            for i in 0..m {
                let (first, others) = self.rows[i].split_at(f);
                let mut fresh = combine(others, &rest[1..], drawn * LANES);
                if first.iter().any(|c| *c != 0.0) {
                    let along = combine(first, latent, drawn * LANES);
                    fresh.iter_mut().zip(along).for_each(|(w, a)| *w += a);
                }
                let mut field = combine(&self.memory[i], before, horizon * LANES);
                field.iter_mut().zip(fresh).for_each(|(v, w)| *v += w);
                now[i * per + strip] = fresh;
                now[(m + i) * per + strip] = field;
            }
        }
        let (frozen, rest) = block.given.split_at(f * LANES);
        let (noise, labels) = rest.split_at(LANES);
        let labels = if self.labelled { labels } else { &[] };
        room.fields[..m * LANES].copy_from_slice(now[m * per..].as_flattened());
        room.fields[m * LANES..].copy_from_slice(frozen);
        let batch = Batch { labels, ..Batch::new(&room.fields, LANES, self.scalars, noise) };
        let rule = &self.equations.rule;
        if !self.scalars.is_empty() {
            rule.kick_batch(&batch, &mut room.kicks, &mut room.kick.scalars);
            room.scalars.iter_mut().zip(&room.kick.scalars).for_each(|(sum, g)| *sum += g);
        }
        rule.curvature_batch(&batch, wide, &mut room.kicks, &mut room.curvature);
        for strip in 0..per {
            let kicks = &mut kicks[strip * horizon..][..(self.t + 1) * m];
            let curvature = &mut curvature[strip * derivatives..][..(self.t + 1) * m * wide];
            spread(&room.kicks, strip, &mut kicks[self.t * m..]);
            spread(&room.curvature, strip, &mut curvature[self.t * m * wide..]);
            for i in 0..m {
                let own = weighed(&kicks[self.t * m + i], &weights[strip]);
                add_products(&own, kicks, &mut room.products[i * (self.t + 1) * m..]);
                if self.size.stein {
                    for n in 0..f {
                        add_products(
                            &own,
                            &given[n * per + strip..=n * per + strip],
                            &mut room.frozen[i * f + n..],
                        );
                    }
                }
                backward(Backward {
                    trained: m,
                    columns: wide,
                    row: i,
                    curvature,
                    ahead: derivatives * LANES,
                    weights: &weights[strip],
                    back: &self.back,
                    chain: &mut room.chain,
                    through: &mut room.through,
                    response: &mut room.response[i * (self.t + 1) * m..],
                    frozen: &mut room.frozen[i * f..],
                });
            }
        }
    }

    /// The sums that the blocks of a group have left in the room.
    pub(super) fn collect(&self, room: Room) -> Sums {
        let Dimensions { trained: m, frozen: f, .. } = self.size;
        let mut sums = Sums::new(&self.size, self.t, 0);
        for (at, (products, response)) in room.products.iter().zip(&room.response).enumerate() {
            let (i, s, k) = (at / (m * (self.t + 1)), at / m % (self.t + 1), at % m);
            sums.kicks[(s * m + i) * m + k] = fold(products);
            sums.response[(s * m + i) * m + k] = fold(response);
        }
        for (sum, lanes) in sums.frozen[..m * f].iter_mut().zip(&room.frozen) {
            *sum = fold(lanes);
        }
        Sums { scalars: room.scalars, ..sums }
    }
}

/// The strip's share of rows of LANES numbers.
fn spread(rows: &[f64], strip: usize, out: &mut [Strip]) {
    for (out, row) in out.iter_mut().zip(strips(rows).chunks_exact(LANES / WIDE)) {
        *out = row[strip];
    }
}
