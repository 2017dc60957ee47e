//! What the samples of the effective process remember from step to step.

use super::{Dimensions, LANES};
use didact_math::memory::Table;
use rayon::prelude::*;

/// Strips whose sums are added up before they meet the others: the order of additions does not depend on threads.
const GROUP: usize = 1024 / LANES;

/// What the samples remember, strip after strip of samples.
///
/// A process may take over the memory of another one: tens of megabytes need not be asked of the system again.
#[derive(Debug, Default)]
pub struct Memory {
    given: Table,
    kicks: Table,
    curvature: Table,
    /// Numbers per strip in each of them.
    strides: [usize; 3],
}

/// What the samples of one strip remember.
pub(super) struct Past<'b> {
    /// v, the label noise, the labels if the rule has any, and ∂y/∂v if it is needed and known; 2 f + 2 strips.
    pub(super) given: &'b mut [f64],
    /// φ(s), (s, i).
    pub(super) kicks: &'b mut [f64],
    /// ∂φ_i(s)/∂h_k, (s, i, k), k over the trained fields or over all.
    pub(super) curvature: &'b mut [f64],
}

impl Memory {
    /// Makes room for so many samples of so many steps. Nothing is known of what it holds: every number is written before it is
    /// read.
    pub(super) fn fit(&mut self, size: &Dimensions, samples: usize, steps: usize) {
        let per_step = size.trained * LANES;
        self.strides = [(2 * size.frozen + 2) * LANES, steps * per_step, steps * per_step * size.columns];
        let tables = [&mut self.given, &mut self.kicks, &mut self.curvature];
        for (table, stride) in tables.into_iter().zip(self.strides) {
            let len = samples / LANES * stride;
            if table.len() != len {
                *table = Table::zeros(len);
            }
        }
    }

    /// Calls `visit` with every strip and its number, on all threads. What `finish` takes out of a thread's room after each group
    /// of strips is returned in the order of the groups.
    pub(super) fn visit<R, S: Send>(
        &mut self,
        room: impl Fn() -> R + Sync + Send,
        visit: impl Fn(&mut R, usize, Past) + Sync + Send,
        finish: impl Fn(&mut R) -> S + Sync + Send,
    ) -> Vec<S> {
        let [a, b, c] = self.strides;
        self.given
            .par_chunks_mut(GROUP * a)
            .zip(self.kicks.par_chunks_mut(GROUP * b))
            .zip(self.curvature.par_chunks_mut(GROUP * c))
            .enumerate()
            .map_init(room, |room, (group, ((given, kicks), curvature))| {
                given
                    .chunks_exact_mut(a)
                    .zip(kicks.chunks_exact_mut(b))
                    .zip(curvature.chunks_exact_mut(c))
                    .map(|((given, kicks), curvature)| Past { given, kicks, curvature })
                    .enumerate()
                    .for_each(|(at, past)| visit(room, group * GROUP + at, past));
                finish(room)
            })
            .collect()
    }

    /// What is given and the kicks of the strips, in their order.
    pub(super) fn strips(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        let [given, kicks, _] = self.strides;
        self.given.chunks_exact(given).zip(self.kicks.chunks_exact(kicks))
    }

    /// The same in parallel, in groups that begin at the strip of that number.
    pub(super) fn groups(
        &self,
    ) -> impl IndexedParallelIterator<Item = (usize, impl Iterator<Item = (&[f64], &[f64])>)> {
        let [given, kicks, _] = self.strides;
        let groups = self.given.par_chunks(GROUP * given).zip(self.kicks.par_chunks(GROUP * kicks));
        groups
            .enumerate()
            .map(move |(group, (a, b))| (group * GROUP, a.chunks_exact(given).zip(b.chunks_exact(kicks))))
    }
}
