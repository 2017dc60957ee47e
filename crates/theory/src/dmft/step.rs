//! One step of the data side: every sample moves, and adds its share to the kernels.

use super::LANES;
use super::backward::{Backward, backward};
use super::given::Given;
use super::kernels::Equations;
use super::lanes::{Four, PerSample, Rows, add_combination, add_products, fold, per_sample_mut};
use super::memory::Layout;
use super::one_unit::OneUnit;
use super::ways::Visit;
use didact_math::dispatch;
use didact_math::linalg::dot;
use didact_math::memory::AlignedBuffer;
use didact_math::simd::add_scaled;
use didact_model::Kick;
use didact_model::rule::{Batch, Expansion};

/// Sums over samples, one list after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    /// (t + 1) m².
    square: usize,
    /// m f.
    frozen: usize,
    scalars: usize,
}

impl Sums {
    pub(super) fn len(&self) -> usize {
        2 * self.square + self.frozen + self.scalars + 2
    }

    /// C_ℓ(t,s), (s, i, j); R_ℓ(t,s), (s, i, j); R_ℓ(t,*) by paths, or E[φ v] for Stein's lemma, (i, n); slopes of the scalars; train
    /// and test loss where they are measured.
    pub(super) fn split<'a>(&self, numbers: &'a mut [f64]) -> [&'a mut [f64]; 5] {
        let (kicks, rest) = numbers.split_at_mut(self.square);
        let (response, rest) = rest.split_at_mut(self.square);
        let (frozen, rest) = rest.split_at_mut(self.frozen);
        let (scalars, losses) = rest.split_at_mut(self.scalars);
        [kicks, response, frozen, scalars, losses]
    }
}

/// A field of the samples at step t as a linear combination.
pub(super) struct Field {
    /// Coefficients of the normals of the frozen fields, f; none if all are 0.
    pub(super) latent: Vec<f64>,
    /// Those of innovations, (s, k).
    pub(super) innovations: Vec<f64>,
    /// Those of kicks, (s, j).
    pub(super) memory: Vec<f64>,
    /// Both, in the order of memory: (s, m innovations, m kicks).
    pub(super) moves: Vec<f64>,
}

impl Field {
    /// From coefficients of the normals of the frozen fields, of innovations and of kicks.
    pub(super) fn new(layout: Layout, (latent, innovations, memory): (Vec<f64>, Vec<f64>, Vec<f64>)) -> Self {
        let m = layout.trained;
        let latent = if latent.iter().all(|c| *c == 0.0) { Vec::new() } else { latent };
        let mut moves = Vec::with_capacity(innovations.len() + memory.len());
        for (innovations, memory) in innovations.chunks(m).zip(memory.chunks(m)) {
            moves.extend([innovations, memory].concat());
        }
        moves.extend_from_slice(&innovations[memory.len()..]);
        Self { latent, innovations, memory, moves }
    }

    /// Its part that the frozen fields decide.
    #[inline(always)]
    fn begin(&self, given: &Given, chunk: usize, out: &mut PerSample) {
        *out = [0.0; LANES];
        for (c, z) in self.latent.iter().zip(given.drawn(chunk)) {
            add_scaled(out, *c, z);
        }
    }
}

/// The part of the fields that is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// W(t).
    Gaussian,
    /// V(t) − W(t), added to what is there.
    Memory,
    /// V(t).
    Whole,
}

/// Everything about step t that all samples share.
pub(super) struct Step<'a> {
    pub(super) t: usize,
    pub(super) layout: Layout,
    pub(super) equations: &'a Equations,
    pub(super) scalars: &'a [f64],
    pub(super) given: &'a Given,
    /// Whether the rule needs to be shown v, too.
    pub(super) reads_frozen: bool,
    /// Whether responses to the frozen fields come from Stein's lemma.
    pub(super) stein: bool,
    /// Whether both losses are found on the way.
    pub(super) measures: bool,
    /// What is drawn for the samples beyond their fields; `None` for plain descent.
    pub(super) visit: Option<&'a Visit>,
    /// V_i(t), W_i(t) of every unit.
    pub(super) fields: Vec<Field>,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k); zero for r ≤ s.
    pub(super) back: Vec<f64>,
}

/// Buffers of one thread, and the sums over the samples that it has moved.
pub(super) struct Buffers {
    /// V(t), then v where the rule reads it; m + f.
    pub(super) fields: AlignedBuffer,
    /// X_r, (r, k): dφ_i(t)/dV_k(r), times the weight.
    chain: AlignedBuffer,
    /// g_s, m.
    through: AlignedBuffer,
    /// C_ℓ(t,s), (i, s, j).
    products: Vec<Four>,
    /// X_s, (i, s, k).
    pub(super) response: Vec<Four>,
    /// dφ_i(t)/dv_n, or φ v; (i, n).
    frozen: Vec<Four>,
    kick: Kick,
    pub(super) scalars: Vec<f64>,
    /// ℓ of the samples of a chunk.
    loss: PerSample,
    /// Train and test.
    losses: [f64; 2],
}

impl Buffers {
    pub(super) fn new(step: &Step) -> Self {
        let Layout { trained: m, frozen: f, .. } = step.layout;
        let kick = Kick::new(step.equations.shape());
        Self {
            fields: AlignedBuffer::zeros((m + f) * LANES),
            chain: AlignedBuffer::zeros((step.t + 1) * m * LANES),
            through: AlignedBuffer::zeros(m * LANES),
            products: vec![[0.0; 4]; m * (step.t + 1) * m],
            response: vec![[0.0; 4]; m * (step.t + 1) * m],
            frozen: vec![[0.0; 4]; m * f],
            scalars: vec![0.0; kick.scalars.len()],
            loss: [0.0; LANES],
            losses: [0.0; 2],
            kick,
        }
    }
}

impl Step<'_> {
    pub(super) fn sums(&self) -> Sums {
        let Layout { trained: m, frozen: f, .. } = self.layout;
        Sums { square: (self.t + 1) * m * m, frozen: m * f, scalars: self.scalars.len() }
    }

    /// What the rule is shown of a chunk: V(t) or W(t) as they stand in `fields`, and what is given, as far as the rule reads it.
    /// Other numbers are left where they are, often far from the processor.
    #[inline(always)]
    pub(super) fn batch<'b>(&'b self, chunk: usize, fields: &'b mut [f64]) -> Batch<'b> {
        self.given.show(chunk, fields, self.scalars, self.reads_frozen)
    }

    /// Whether there is one unit, and its own derivative is all that is kept: the case with loops of its own.
    #[inline(always)]
    fn of_one_unit(&self) -> bool {
        self.layout.columns == 1 && !self.stein
    }

    /// The fields of a chunk, or a part of them, in the first m chunks of `out`.
    #[inline(always)]
    fn find(&self, chunk: usize, blocks: &[f64], part: Part, out: &mut [f64]) {
        let out = per_sample_mut(out);
        if self.of_one_unit() {
            field_of_one_unit(self, chunk, blocks, part, &mut out[0]);
        } else {
            fields(self, chunk, blocks, part, out);
        }
    }

    /// V(t) of a chunk, in the first m chunks of `out`.
    pub(super) fn moved(&self, chunk: usize, blocks: &[f64], out: &mut [f64]) {
        self.find(chunk, blocks, Part::Whole, out);
    }

    /// V(t) of a chunk in the first m chunks of `out`, by way of W(t): Σ weight ℓ there, its share of the test loss.
    ///
    /// Out of line: the loops of steps that are not measured are shorter without it.
    #[inline(never)]
    fn moved_and_tested(&self, chunk: usize, blocks: &[f64], weights: &PerSample, out: &mut [f64]) -> f64 {
        let mut losses = [0.0; LANES];
        self.find(chunk, blocks, Part::Gaussian, out);
        self.equations.rule.loss_batch(&self.batch(chunk, out), &mut losses);
        self.find(chunk, blocks, Part::Memory, out);
        dot(&losses, weights)
    }

    /// The shares of a chunk of train and test loss. V(t) is left in `out`.
    pub(super) fn losses(
        &self,
        chunk: usize,
        blocks: &[f64],
        weights: &PerSample,
        out: &mut [f64],
    ) -> [f64; 2] {
        let test = self.moved_and_tested(chunk, blocks, weights, out);
        let mut losses = [0.0; LANES];
        self.equations.rule.loss_batch(&self.batch(chunk, out), &mut losses);
        [dot(&losses, weights), test]
    }

    /// Moves a chunk to step t and adds its share of the kernels to the sums in the buffers.
    pub(super) fn sample(
        &self,
        chunk: usize,
        blocks: &mut [f64],
        weights: &PerSample,
        buffers: &mut Buffers,
    ) {
        let rule = &self.equations.rule;
        if self.measures {
            buffers.losses[1] += self.moved_and_tested(chunk, blocks, weights, &mut buffers.fields);
        } else {
            self.moved(chunk, blocks, &mut buffers.fields);
        }
        if let Some(visit) = self.visit {
            visit.sample(self, chunk, blocks, weights, buffers);
            return self.share(chunk, blocks, weights, buffers);
        }
        let columns = self.layout.columns;
        let (kicks, curvature) = self.layout.now(blocks, self.t);
        let batch = self.batch(chunk, &mut buffers.fields);
        if !self.scalars.is_empty() {
            rule.kick_batch(&batch, kicks, &mut buffers.kick.scalars);
            buffers.scalars.iter_mut().zip(&buffers.kick.scalars).for_each(|(sum, g)| *sum += g);
        }
        let losses = if self.measures { &mut buffers.loss[..] } else { &mut [] };
        rule.expand_batch(&batch, Expansion { losses, kicks, columns, curvature });
        if self.measures {
            buffers.losses[0] += dot(&buffers.loss, weights);
        }
        self.share(chunk, blocks, weights, buffers);
    }

    /// Adds the share of a chunk that has arrived at step t to the sums.
    #[inline(always)]
    fn share(&self, chunk: usize, blocks: &[f64], weights: &PerSample, buffers: &mut Buffers) {
        if self.of_one_unit() {
            add_shares_of_one_unit(self, blocks, weights, buffers);
        } else {
            add_shares(self, chunk, blocks, weights, buffers);
        }
    }

    /// Takes the sums over the chunks of a group out of the buffers, which are then empty again.
    pub(super) fn collect(&self, buffers: &mut Buffers, out: &mut [f64]) {
        let m = self.layout.trained;
        let [kicks, response, frozen, scalars, losses] = self.sums().split(out);
        let times = self.t + 1;
        for (i, s) in (0..m).flat_map(|i| (0..times).map(move |s| (i, s))) {
            let (from, to) = ((i * times + s) * m, (s * m + i) * m);
            for k in 0..m {
                kicks[to + k] = fold(&buffers.products[from + k]);
                response[to + k] = fold(&buffers.response[from + k]);
            }
        }
        for (sum, lanes) in frozen.iter_mut().zip(&buffers.frozen) {
            *sum = fold(lanes);
        }
        scalars.copy_from_slice(&buffers.scalars);
        losses.copy_from_slice(&buffers.losses);
        for lanes in [&mut buffers.products, &mut buffers.response, &mut buffers.frozen] {
            lanes.fill([0.0; 4]);
        }
        buffers.scalars.fill(0.0);
        buffers.losses.fill(0.0);
    }
}

dispatch! {
    /// The fields of a chunk, or a part of them.
    fn fields(step: &Step, chunk: usize, blocks: &[f64], part: Part, out: &mut [PerSample]) {
        let view = step.layout.view(blocks);
        for (field, out) in step.fields.iter().zip(out) {
            if part != Part::Memory {
                field.begin(step.given, chunk, out);
            }
            let (coefficients, values) = match part {
                Part::Whole => (&field.moves, view.moves),
                Part::Gaussian => (&field.innovations, Rows { width: step.layout.trained, ..view.moves }),
                Part::Memory => (&field.memory, view.kicks),
            };
            // Kicks are read once more, and asked for then: the requests of a chunk are spread over its time.
            let asked = if part == Part::Memory { 0 } else { step.layout.trained };
            add_combination(coefficients, values, asked, blocks.len(), out);
        }
    }
}

dispatch! {
    /// [`fields`] of one unit.
    fn field_of_one_unit(step: &Step, chunk: usize, blocks: &[f64], part: Part, out: &mut PerSample) {
        let (field, unit) = (&step.fields[0], OneUnit::new(blocks, step.t));
        if part != Part::Memory {
            field.begin(step.given, chunk, out);
        }
        match part {
            Part::Whole => unit.add_both(&field.innovations, &field.memory, out),
            Part::Gaussian => unit.add_innovations(&field.innovations, out),
            Part::Memory => unit.add_kicks(&field.memory, out),
        }
    }
}

dispatch! {
    /// Adds what a chunk that has arrived at step t contributes to C_ℓ(t,s), R_ℓ(t,s) and R_ℓ(t,*).
    fn add_shares(step: &Step, chunk: usize, blocks: &[f64], weights: &PerSample, buffers: &mut Buffers) {
        let (view, ahead) = (step.layout.view(blocks), blocks.len());
        let Layout { trained: m, frozen: f, columns, .. } = step.layout;
        let times = step.t + 1;
        for i in 0..m {
            let own = &view.kicks.at(step.t)[i];
            let sums = i * times * m..(i + 1) * times * m;
            add_products(own, weights, view.kicks, ahead, &mut buffers.products[sums.clone()]);
            if step.stein {
                for (v, sum) in step.given.frozen(chunk).zip(&mut buffers.frozen[i * f..]) {
                    let v = Rows { values: std::slice::from_ref(v), first: 0, width: 1, block: 1 };
                    add_products(own, weights, v, 0, std::slice::from_mut(sum));
                }
            }
            backward(&mut Backward {
                trained: m,
                columns,
                row: i,
                curvature: view.curvature,
                ahead,
                weights,
                back: &step.back,
                chain: per_sample_mut(&mut buffers.chain),
                through: per_sample_mut(&mut buffers.through),
                response: &mut buffers.response[sums],
                frozen: &mut buffers.frozen[i * f..(i + 1) * f],
            });
        }
    }
}

dispatch! {
    /// [`add_shares`] of one unit.
    fn add_shares_of_one_unit(step: &Step, blocks: &[f64], weights: &PerSample, buffers: &mut Buffers) {
        let unit = OneUnit::new(blocks, step.t);
        unit.add_products(weights, &mut buffers.products);
        unit.add_derivatives(weights, &step.back, per_sample_mut(&mut buffers.chain), &mut buffers.response);
    }
}
