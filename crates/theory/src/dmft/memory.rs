//! Where the numbers of the samples are kept: those of a chunk of samples at all times side by side, since every step reads all of them.

use super::LANES;
use super::lanes::{PerSample, Rows, per_sample, per_sample_mut};
use didact_math::memory::AlignedBuffer;
use rayon::prelude::*;

/// Number of chunks whose sums are added up on one thread: the order of additions does not depend on the number of threads.
const GROUP: usize = 1024 / LANES;

/// What is kept of a chunk of samples: a block per step, with its innovations (m), φ (m), and ∂φ_i/∂h_k (m x columns), one number
/// per sample in each place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// m.
    pub(super) trained: usize,
    /// f.
    pub(super) frozen: usize,
    /// Fields whose derivatives are kept: m, or m + f where responses to the frozen fields follow paths.
    pub(super) columns: usize,
    pub(super) steps: usize,
}

impl Layout {
    /// Chunks in a block.
    #[inline(always)]
    fn block(&self) -> usize {
        self.trained * (2 + self.columns)
    }

    /// Numbers in the blocks of all steps.
    fn blocks(&self) -> usize {
        self.steps * self.block() * LANES
    }

    /// The parts of a chunk.
    #[inline(always)]
    pub(super) fn view<'b>(&self, blocks: &'b [f64]) -> View<'b> {
        let m = self.trained;
        View {
            moves: self.rows(blocks, 0, 2 * m),
            kicks: self.rows(blocks, m, m),
            curvature: self.rows(blocks, 2 * m, m * self.columns),
        }
    }

    #[inline(always)]
    fn rows<'b>(&self, blocks: &'b [f64], first: usize, width: usize) -> Rows<'b> {
        Rows { values: per_sample(blocks), first, width, block: self.block() }
    }

    /// The places of φ(t) and of its derivatives.
    #[inline(always)]
    pub(super) fn now<'b>(&self, blocks: &'b mut [f64], t: usize) -> (&'b mut [f64], &'b mut [f64]) {
        let block = &mut per_sample_mut(blocks)[t * self.block()..][..self.block()];
        let (kicks, curvature) = block[self.trained..].split_at_mut(self.trained);
        (kicks.as_flattened_mut(), curvature.as_flattened_mut())
    }

    /// The innovations of a step.
    pub(super) fn innovations<'b>(&self, blocks: &'b mut [f64], t: usize) -> &'b mut [PerSample] {
        &mut per_sample_mut(blocks)[t * self.block()..][..self.trained]
    }
}

/// The parts of a chunk; see [`Layout`].
#[derive(Clone, Copy)]
pub(super) struct View<'b> {
    /// What V(t) is made of: innovations, then φ_i(s).
    pub(super) moves: Rows<'b>,
    /// φ_i(s).
    pub(super) kicks: Rows<'b>,
    /// ∂φ_i(s)/∂h_k, (i, k), k over the columns.
    pub(super) curvature: Rows<'b>,
}

/// The past of all samples, chunk after chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleHistory {
    pub(super) layout: Layout,
    blocks: AlignedBuffer,
}

impl SampleHistory {
    /// Innovations in their places, a column for each.
    pub(super) fn new(layout: Layout, columns: &[Vec<f64>]) -> Self {
        let samples = columns.first().map_or(0, Vec::len);
        let mut blocks = AlignedBuffer::zeros(samples / LANES * layout.blocks());
        for (index, chunk) in blocks.chunks_exact_mut(layout.blocks()).enumerate() {
            for (t, columns) in columns.chunks(layout.trained).enumerate() {
                for (column, to) in columns.iter().zip(layout.innovations(chunk, t)) {
                    to.copy_from_slice(&column[index * LANES..][..LANES]);
                }
            }
        }
        Self { layout, blocks }
    }

    /// Makes room for so many derivatives. Nothing is known of what is not drawn: every number is written before it is read.
    pub(super) fn fit(&mut self, columns: usize) {
        if self.layout.columns == columns {
            return;
        }
        let (old, new) = (self.layout, Layout { columns, ..self.layout });
        let mut blocks = AlignedBuffer::zeros(self.blocks.len() / old.blocks() * new.blocks());
        for (to, from) in blocks.chunks_exact_mut(new.blocks()).zip(self.iter()) {
            let drawn = old.rows(from, 0, old.trained);
            (0..new.steps).for_each(|t| new.innovations(to, t).copy_from_slice(drawn.at(t)));
        }
        *self = Self { layout: new, blocks };
    }

    /// The blocks of one chunk after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.blocks.chunks_exact(self.layout.blocks())
    }

    /// Calls `visit` with number and blocks of every chunk, on all threads. What `finish` takes out of a thread's buffers after each
    /// group of chunks, so many sums, is added up in the order of the groups.
    pub(super) fn visit<R>(
        &mut self,
        sums: usize,
        buffers: impl Fn() -> R + Sync + Send,
        visit: impl Fn(&mut R, usize, &mut [f64]) + Sync + Send,
        finish: impl Fn(&mut R, &mut [f64]) + Sync + Send,
    ) -> Vec<f64> {
        let blocks = self.layout.blocks();
        let mut parts = vec![0.0; (self.blocks.len() / blocks).div_ceil(GROUP) * sums];
        self.blocks.par_chunks_mut(GROUP * blocks).zip(parts.par_chunks_mut(sums)).enumerate().for_each_init(
            buffers,
            |buffers, (group, (many, part))| {
                for (at, blocks) in many.chunks_exact_mut(blocks).enumerate() {
                    visit(buffers, group * GROUP + at, blocks);
                }
                finish(buffers, part);
            },
        );
        let mut total = vec![0.0; sums];
        for part in parts.chunks_exact(sums) {
            total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        total
    }
}
