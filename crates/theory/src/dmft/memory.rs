//! Where the numbers of the samples lie: those of a strip of samples at all times side by side, since every step reads all of them.

use super::LANES;
use super::lanes::{Rows, Strip, strips, strips_mut};
use didact_math::memory::Table;
use rayon::prelude::*;

/// Strips whose sums are added up before they meet the others: the order of additions does not depend on threads.
const GROUP: usize = 1024 / LANES;

/// What is kept of a strip of samples, one number per sample in each place.
///
/// A head: the normals of the frozen fields and of the noise (f + 1), then what is given: v (f), the label noise if there is any (1), the
/// labels if the rule has any (1), and ∂y/∂v if it is needed and known (f). And a block per step: its innovations (m), φ (m), and ∂φ_i/∂h_k
/// (m x columns).
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
    /// Numbers in a head.
    fn head(&self) -> usize {
        (3 * self.frozen + 3) * LANES
    }

    /// Strips in a block.
    #[inline(always)]
    fn block(&self) -> usize {
        self.trained * (2 + self.columns)
    }

    /// Numbers in the blocks of all steps.
    fn blocks(&self) -> usize {
        self.steps * self.block() * LANES
    }

    /// The parts of a strip.
    #[inline(always)]
    pub(super) fn view<'b>(&self, head: &'b [f64], blocks: &'b [f64]) -> View<'b> {
        let (drawn, given) = strips(head).split_at(self.frozen + 1);
        let m = self.trained;
        View {
            drawn,
            given,
            moves: self.rows(blocks, 0, 2 * m),
            kicks: self.rows(blocks, m, m),
            curvature: self.rows(blocks, 2 * m, m * self.columns),
        }
    }

    #[inline(always)]
    fn rows<'b>(&self, blocks: &'b [f64], first: usize, width: usize) -> Rows<'b> {
        Rows { strips: strips(blocks), first, width, block: self.block() }
    }

    /// What is drawn, and what is given.
    pub(super) fn begin<'b>(&self, head: &'b mut [f64]) -> (&'b [Strip], &'b mut [Strip]) {
        let (drawn, given) = strips_mut(head).split_at_mut(self.frozen + 1);
        (drawn, given)
    }

    /// The places of φ(t) and of its derivatives.
    #[inline(always)]
    pub(super) fn now<'b>(&self, blocks: &'b mut [f64], t: usize) -> (&'b mut [f64], &'b mut [f64]) {
        let block = &mut strips_mut(blocks)[t * self.block()..][..self.block()];
        let (kicks, curvature) = block[self.trained..].split_at_mut(self.trained);
        (kicks.as_flattened_mut(), curvature.as_flattened_mut())
    }

    /// The innovations of a step.
    pub(super) fn innovations<'b>(&self, blocks: &'b mut [f64], t: usize) -> &'b mut [Strip] {
        &mut strips_mut(blocks)[t * self.block()..][..self.trained]
    }
}

/// The parts of a strip; see [`Layout`].
#[derive(Clone, Copy)]
pub(super) struct View<'b> {
    pub(super) drawn: &'b [Strip],
    pub(super) given: &'b [Strip],
    /// What V(t) is made of: innovations, then φ_i(s).
    pub(super) moves: Rows<'b>,
    /// φ_i(s).
    pub(super) kicks: Rows<'b>,
    /// ∂φ_i(s)/∂h_k, (i, k), k over the columns.
    pub(super) curvature: Rows<'b>,
}

/// All samples, strip after strip.
#[derive(Debug, Clone, Default)]
pub(super) struct Strips {
    pub(super) layout: Layout,
    heads: Table,
    blocks: Table,
}

impl Strips {
    /// Columns of points in their places.
    pub(super) fn new(layout: Layout, columns: &[Vec<f64>]) -> Self {
        let strips = columns[0].len() / LANES;
        let (heads, blocks) = (Table::zeros(strips * layout.head()), Table::zeros(strips * layout.blocks()));
        let mut all = Self { layout, heads, blocks };
        let (first, later) = columns.split_at(layout.frozen + 1);
        for (index, (head, blocks)) in all.iter_mut().enumerate() {
            let copy =
                |column: &Vec<f64>, to: &mut Strip| to.copy_from_slice(&column[index * LANES..][..LANES]);
            first.iter().zip(strips_mut(head)).for_each(|(column, to)| copy(column, to));
            for (t, columns) in later.chunks(layout.trained).enumerate() {
                columns.iter().zip(layout.innovations(blocks, t)).for_each(|(column, to)| copy(column, to));
            }
        }
        all
    }

    /// Makes room for so many derivatives. Nothing is known of what is not drawn: every number is written before it is read.
    pub(super) fn fit(&mut self, columns: usize) {
        if self.layout.columns == columns {
            return;
        }
        let layout = Layout { columns, ..self.layout };
        let blocks = Table::zeros(self.heads.len() / layout.head() * layout.blocks());
        let old = std::mem::replace(&mut self.blocks, blocks);
        let before = std::mem::replace(&mut self.layout, layout);
        for ((_, to), from) in self.iter_mut().zip(old.chunks_exact(before.blocks())) {
            let drawn = before.rows(from, 0, before.trained);
            (0..layout.steps).for_each(|t| layout.innovations(to, t).copy_from_slice(drawn.at(t)));
        }
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (&mut [f64], &mut [f64])> {
        let (head, blocks) = (self.layout.head(), self.layout.blocks());
        self.heads.chunks_exact_mut(head).zip(self.blocks.chunks_exact_mut(blocks))
    }

    /// Head and blocks of the strips in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        let (head, blocks) = (self.layout.head(), self.layout.blocks());
        self.heads.chunks_exact(head).zip(self.blocks.chunks_exact(blocks))
    }

    /// Calls `visit` with number, head and blocks of every strip, on all threads. What `finish` takes out of a thread's room after each
    /// group of strips, so many sums, is added up in the order of the groups.
    pub(super) fn visit<R>(
        &mut self,
        sums: usize,
        room: impl Fn() -> R + Sync + Send,
        visit: impl Fn(&mut R, usize, &[f64], &mut [f64]) + Sync + Send,
        finish: impl Fn(&mut R, &mut [f64]) + Sync + Send,
    ) -> Vec<f64> {
        let (head, blocks) = (self.layout.head(), self.layout.blocks());
        let mut parts = vec![0.0; (self.heads.len() / head).div_ceil(GROUP) * sums];
        self.heads
            .par_chunks(GROUP * head)
            .zip(self.blocks.par_chunks_mut(GROUP * blocks))
            .zip(parts.par_chunks_mut(sums))
            .enumerate()
            .for_each_init(room, |room, (group, ((heads, many), part))| {
                let strips = heads.chunks_exact(head).zip(many.chunks_exact_mut(blocks));
                for (at, (head, blocks)) in strips.enumerate() {
                    visit(room, group * GROUP + at, head, blocks);
                }
                finish(room, part);
            });
        let mut total = vec![0.0; sums];
        for part in parts.chunks_exact(sums) {
            total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        total
    }

    /// Calls `each` with the head of every strip, on all threads; true if it always returns true.
    pub(super) fn all(&mut self, each: impl Fn(&mut [f64]) -> bool + Sync + Send) -> bool {
        let head = self.layout.head();
        self.heads
            .par_chunks_mut(GROUP * head)
            .map(|group| group.chunks_exact_mut(head).fold(true, |all, head| each(head) & all))
            .reduce(|| true, |a, b| a & b)
    }
}
