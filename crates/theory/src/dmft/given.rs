//! What every sample has from the beginning.

use super::LANES;
use super::factor::Factor;
use super::kernels::Equations;
use super::lanes::{PerSample, per_sample, per_sample_mut};
use didact_math::memory::{AlignedBuffer, with_scratch};
use didact_math::simd::add_scaled;
use didact_model::rule::Batch;
use rayon::prelude::*;

/// Samples whose labels are computed together.
const MANY: usize = 1024;

/// What every sample has from the beginning: the normals that are drawn for it, and what follows from them.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Normals of the frozen fields, then of the noise; columns of N.
    drawn: Vec<AlignedBuffer>,
    /// v; columns of N.
    frozen: Vec<AlignedBuffer>,
    /// The label noise, where there is any.
    noise: Option<AlignedBuffer>,
    /// y, where the rule has labels that the frozen fields and the noise decide.
    labels: Option<AlignedBuffer>,
    /// ∂y/∂v, where it is needed and known; f chunks for each chunk of samples.
    label_slopes: Option<AlignedBuffer>,
}

impl Given {
    /// Columns of normals: frozen fields, then the noise.
    pub(super) fn new(drawn: &[Vec<f64>]) -> Self {
        let table = |column: &Vec<f64>| {
            let mut table = AlignedBuffer::zeros(column.len());
            table.copy_from_slice(column);
            table
        };
        Self { drawn: drawn.iter().map(table).collect(), ..Self::default() }
    }

    /// Computes what follows for a rule, with v = L z: the frozen fields, the noise, the labels and their slopes.
    pub(super) fn prepare(&mut self, equations: &Equations, factor: &Factor, slopes: bool) {
        let (rule, shape) = (&equations.rule, equations.shape());
        let n = self.samples();
        self.frozen.resize_with(shape.frozen, || AlignedBuffer::zeros(n));
        for (coefficients, v) in factor.rows().iter().zip(&mut self.frozen) {
            v.fill(0.0);
            coefficients.iter().zip(&self.drawn).for_each(|(c, z)| add_scaled(v, *c, z));
        }
        self.noise = (equations.label_noise != 0.0).then(|| {
            let mut noise = AlignedBuffer::zeros(n);
            add_scaled(&mut noise, equations.label_noise, &self.drawn[shape.frozen]);
            noise
        });
        let mut labels = self.labels.take().unwrap_or_else(|| AlignedBuffer::zeros(n));
        let all = |known: Vec<bool>| known.into_iter().all(|known| known);
        let found = labels.par_chunks_mut(MANY).enumerate().map(|(at, labels)| {
            self.batch(equations, at * MANY, labels.len(), |batch| rule.labels(batch, labels))
        });
        self.labels = all(found.collect()).then_some(labels);
        let mut table = AlignedBuffer::zeros(if slopes { n * shape.frozen } else { 0 });
        let found = table.par_chunks_mut(LANES * shape.frozen.max(1)).enumerate().map(|(chunk, slopes)| {
            self.batch(equations, chunk * LANES, LANES, |batch| rule.label_slopes(batch, slopes))
        });
        self.label_slopes = (all(found.collect()) && slopes).then_some(table);
    }

    /// Calls `work` with what a rule sees of some samples before the first step: the frozen fields and the noise. The trained fields
    /// may be left uninitialised; labels do not read them.
    fn batch<R>(&self, equations: &Equations, from: usize, n: usize, work: impl FnOnce(&Batch) -> R) -> R {
        let shape = equations.shape();
        with_scratch((shape.rows() + 1) * n, |room| {
            let (fields, noise) = room.split_at_mut(shape.rows() * n);
            for (v, to) in self.frozen.iter().zip(fields[shape.trained * n..].chunks_exact_mut(n)) {
                to.copy_from_slice(&v[from..][..n]);
            }
            match &self.noise {
                Some(drawn) => noise.copy_from_slice(&drawn[from..][..n]),
                None => noise.fill(0.0),
            }
            work(&Batch::new(fields, n, &equations.scalars, noise))
        })
    }

    /// Whether a rule has to be shown v at every step. It need not be where it has been given all that it makes of v.
    pub(super) fn reads_frozen(&self, equations: &Equations, slopes: bool) -> bool {
        let known = self.labels.is_some() && (self.label_slopes.is_some() || !slopes);
        !(known && equations.rule.labels_suffice())
    }

    /// N.
    pub(super) fn samples(&self) -> usize {
        self.drawn.first().map_or(0, |column| column.len())
    }

    /// Normals of the frozen fields and of the noise.
    #[inline(always)]
    pub(super) fn drawn(&self, chunk: usize) -> impl Iterator<Item = &PerSample> {
        self.drawn.iter().map(move |column| &per_sample(column)[chunk])
    }

    /// v.
    pub(super) fn frozen(&self, chunk: usize) -> impl Iterator<Item = &PerSample> {
        self.frozen.iter().map(move |column| &per_sample(column)[chunk])
    }

    /// What a rule is shown of a chunk: the fields as they stand, v behind them if asked for, and all else that is given.
    #[inline(always)]
    pub(super) fn show<'b>(
        &'b self,
        chunk: usize,
        fields: &'b mut [f64],
        scalars: &'b [f64],
        frozen: bool,
    ) -> Batch<'b> {
        const NO_NOISE: PerSample = [0.0; LANES];
        let column = |numbers: &'b AlignedBuffer| -> &'b [f64] { &numbers[chunk * LANES..][..LANES] };
        if frozen {
            let behind = fields.len() / LANES - self.frozen.len();
            for (to, v) in per_sample_mut(fields)[behind..].iter_mut().zip(&self.frozen) {
                to.copy_from_slice(column(v));
            }
        }
        Batch {
            labels: self.labels.as_ref().map_or(&[], column),
            label_slopes: self.label_slopes.as_ref().map_or(&[], |slopes| {
                let wide = LANES * self.frozen.len();
                &slopes[chunk * wide..][..wide]
            }),
            ..Batch::new(fields, LANES, scalars, self.noise.as_ref().map_or(&NO_NOISE, column))
        }
    }
}
