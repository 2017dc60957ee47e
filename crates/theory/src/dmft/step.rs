//! One step of the data side: every sample moves, and adds its share to the kernels.

use super::kernels::Equations;
use super::lanes::{
    Backward, Four, List, Strip, add_products, ask_for_next, backward, combine, fold, strips, strips_mut,
};
use super::memory::Past;
use super::{Dimensions, LANES};
use didact_math::dispatch;
use didact_math::memory::Table;
use didact_model::Kick;
use didact_model::rule::Batch;

/// Sums over the samples of a group of strips.
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

/// What the samples have been told at the beginning, besides v and the noise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) labels: bool,
    /// ∂y/∂v.
    pub(super) label_slopes: bool,
}

/// Everything about step t that all samples share.
pub(super) struct Step<'a> {
    pub(super) t: usize,
    pub(super) size: Dimensions,
    pub(super) equations: &'a Equations,
    pub(super) scalars: &'a [f64],
    pub(super) known: Known,
    /// Whether the rule needs to be shown v, too.
    pub(super) reads_frozen: bool,
    /// W_i(t) = Σ_c row_i[c] z_c over frozen columns, then innovations.
    pub(super) rows: &'a [Vec<f64>],
    /// −(η/δ) R_θ(t,s)_ij, as coefficients of φ_j(s), per i.
    pub(super) memory: Vec<Vec<f64>>,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k); zero for r ≤ s.
    pub(super) back: Vec<f64>,
}

/// Buffers of one thread, and the sums over the samples that it has moved.
pub(super) struct Room {
    /// V(t), then v where the rule reads it; m + f.
    fields: Table,
    /// X_r, (r, k): dφ_i(t)/dV_k(r), times the weight.
    chain: Table,
    /// g_s, m.
    through: Table,
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
        let Dimensions { trained: m, frozen: f, .. } = step.size;
        let kick = Kick::new(step.equations.shape());
        Self {
            fields: Table::zeros((m + f) * LANES),
            chain: Table::zeros((step.t + 1) * m * LANES),
            through: Table::zeros(m * LANES),
            products: vec![[0.0; 4]; m * (step.t + 1) * m],
            response: vec![[0.0; 4]; m * (step.t + 1) * m],
            frozen: vec![[0.0; 4]; m * f],
            scalars: vec![0.0; kick.scalars.len()],
            kick,
        }
    }
}

/// The noise of samples without any.
const SILENCE: [f64; LANES] = [0.0; LANES];

impl Step<'_> {
    /// What the rule is shown of a strip: V(t) or W(t) as they stand in `fields`, and what is given, as far as the rule reads it.
    /// Other numbers are left where they are, often far from the processor.
    pub(super) fn batch<'b>(&'b self, fields: &'b mut [f64], given: &'b [f64]) -> Batch<'b> {
        let Dimensions { trained: m, frozen: f, .. } = self.size;
        let (frozen, rest) = given.split_at(f * LANES);
        let (noise, rest) = rest.split_at(LANES);
        let (labels, slopes) = rest.split_at(LANES);
        if self.reads_frozen {
            fields[m * LANES..].copy_from_slice(frozen);
        }
        let only_if = |known, numbers| if known { numbers } else { &[][..] };
        Batch {
            labels: only_if(self.known.labels, labels),
            label_slopes: only_if(self.known.label_slopes, slopes),
            ..Batch::new(
                fields,
                LANES,
                self.scalars,
                if self.equations.label_noise == 0.0 { &SILENCE } else { noise },
            )
        }
    }

    /// W(t) of a strip; m strips.
    pub(super) fn gaussian(&self, columns: &[Strip], out: &mut [f64]) {
        fields(self, columns, &[], strips_mut(out));
    }

    /// V(t) of a strip from its W(t), in place, and from all of its kicks; m strips.
    pub(super) fn remember(&self, kicks: &[f64], out: &mut [f64]) {
        remember(self, kicks, strips_mut(out));
    }

    /// Moves a strip to step t and adds its share of the kernels to the sums in the room.
    pub(super) fn sample(&self, past: Past, columns: &[Strip], weights: &Strip, room: &mut Room) {
        let Dimensions { trained: m, frozen: f, columns: wide, .. } = self.size;
        let (before, now) = past.kicks.split_at_mut(self.t * m * LANES);
        fields(self, columns, strips(before), &mut strips_mut(&mut room.fields)[..m]);
        ask_for_next(&strips(past.given)[f + 1], past.given.len());
        let batch = self.batch(&mut room.fields, past.given);
        let rule = &self.equations.rule;
        let kicks = &mut now[..m * LANES];
        if !self.scalars.is_empty() {
            rule.kick_batch(&batch, kicks, &mut room.kick.scalars);
            room.scalars.iter_mut().zip(&room.kick.scalars).for_each(|(sum, g)| *sum += g);
        }
        let curvature = &mut past.curvature[self.t * m * wide * LANES..][..m * wide * LANES];
        rule.curvature_batch(&batch, wide, kicks, curvature);
        add_shares(self, &past, weights, room);
    }

    /// The sums that the strips of a group have left in the room, which is empty again.
    pub(super) fn collect(&self, room: &mut Room) -> Sums {
        let Dimensions { trained: m, frozen: f, .. } = self.size;
        let mut sums = Sums::new(&self.size, self.t, self.scalars.len());
        let times = self.t + 1;
        for (i, s) in (0..m).flat_map(|i| (0..times).map(move |s| (i, s))) {
            let (from, to) = ((i * times + s) * m, (s * m + i) * m);
            for k in 0..m {
                sums.kicks[to + k] = fold(&room.products[from + k]);
                sums.response[to + k] = fold(&room.response[from + k]);
            }
        }
        for (sum, lanes) in sums.frozen[..m * f].iter_mut().zip(&room.frozen) {
            *sum = fold(lanes);
        }
        sums.scalars.copy_from_slice(&room.scalars);
        for lanes in [&mut room.products, &mut room.response, &mut room.frozen] {
            lanes.fill([0.0; 4]);
        }
        room.scalars.fill(0.0);
        sums
    }
}

dispatch! {
    /// W(t) of a strip, or V(t) if given the kicks before.
    fn fields(step: &Step, columns: &[Strip], kicks: &[Strip], out: &mut [Strip]) {
        let f = step.size.frozen;
        // Column f is the noise: W takes the columns before it and those after it.
        let (latent, rest) = columns.split_at(f);
        let ahead = Some(columns.len() * LANES);
        for ((row, memory), out) in step.rows.iter().zip(&step.memory).zip(out) {
            let (first, others) = row.split_at(f);
            let first = if first.iter().all(|c| *c == 0.0) { &[] } else { first };
            // The kicks of the next samples are asked for when products with them are formed.
            combine([List::new(first, latent, ahead), List::new(others, &rest[1..], ahead), List::new(memory, kicks, None)], out);
        }
    }
}

dispatch! {
    /// [`Step::remember`].
    fn remember(step: &Step, kicks: &[f64], out: &mut [Strip]) {
        let ahead = Some(kicks.len());
        for (memory, out) in step.memory.iter().zip(out) {
            let gaussian = [*out];
            combine([List::new(&[1.0], &gaussian, None), List::new(memory, strips(kicks), ahead)], out);
        }
    }
}

dispatch! {
    /// Adds what a strip that has arrived at step t contributes to C_ℓ(t,s), R_ℓ(t,s) and R_ℓ(t,*).
    fn add_shares(step: &Step, past: &Past, weights: &Strip, room: &mut Room) {
        let Dimensions { trained: m, frozen: f, columns, stein } = step.size;
        let times = step.t + 1;
        let kicks = &strips(past.kicks)[..times * m];
        for i in 0..m {
            let own = &kicks[step.t * m + i];
            add_products(own, weights, kicks, past.kicks.len(), &mut room.products[i * times * m..]);
            if stein {
                add_products(own, weights, &strips(past.given)[..f], 0, &mut room.frozen[i * f..]);
            }
            backward(&mut Backward {
                trained: m,
                columns,
                row: i,
                curvature: &strips(past.curvature)[..times * m * columns],
                ahead: past.curvature.len(),
                weights,
                back: &step.back,
                chain: strips_mut(&mut room.chain),
                through: strips_mut(&mut room.through),
                response: &mut room.response[i * times * m..],
                frozen: &mut room.frozen[i * f..],
            });
        }
    }
}
