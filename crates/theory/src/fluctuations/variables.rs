//! The numbers that fluctuate, in the order of the equations of the overlaps.

use super::products::triangle;
use didact_math::linalg::Mat;
use didact_model::{Overlaps, Shape};

/// One number of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    /// Entry (i, j) and its mirror of the Gram of an eigenspace.
    Entry { block: usize, i: usize, j: usize },
    /// A trained scalar.
    Scalar(usize),
}

/// The packed state: per eigenspace and trained row i the overlaps R_b[i, ·] and Q_b[i, 0..=i], then the scalars; behind them, where the
/// frozen rows are drawn for every replica, the lower triangles of T_b, which do not move.
#[derive(Debug, Clone)]
pub(super) struct Variables {
    pub(super) shape: Shape,
    pub(super) blocks: usize,
    pub(super) with_teachers: bool,
    list: Vec<Variable>,
    /// Numbers that move.
    pub(super) moving: usize,
}

impl Variables {
    pub(super) fn new(shape: Shape, blocks: usize, with_teachers: bool) -> Self {
        let Shape { trained: k, frozen: f, scalars, .. } = shape;
        let mut list = Vec::new();
        for block in 0..blocks {
            for i in 0..k {
                list.extend((k..k + f).map(|j| Variable::Entry { block, i, j }));
                list.extend((0..=i).map(|j| Variable::Entry { block, i, j }));
            }
        }
        list.extend((0..scalars).map(Variable::Scalar));
        let moving = list.len();
        if with_teachers {
            for block in 0..blocks {
                for n in k..k + f {
                    list.extend((k..=n).map(|m| Variable::Entry { block, i: n, j: m }));
                }
            }
        }
        Self { shape, blocks, with_teachers, list, moving }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Variable)> + '_ {
        self.list.iter().copied().enumerate()
    }

    pub(super) fn get(&self, index: usize) -> Variable {
        self.list[index]
    }

    /// Where entry (i, j) of an eigenspace stands; `None` for overlaps of frozen rows that do not fluctuate.
    pub(super) fn position(&self, block: usize, i: usize, j: usize) -> Option<usize> {
        let Shape { trained: k, frozen: f, scalars, .. } = self.shape;
        let (i, j) = if i < j { (i, j) } else { (j, i) };
        let per_block = k * f + k * (k + 1) / 2;
        // Row r begins after r rows of f overlaps with frozen rows and 0 + 1 + ... + (r − 1) + r numbers of Q.
        let begin = |row: usize| block * per_block + row * f + row * (row + 1) / 2;
        match (i < k, j < k) {
            (true, true) => Some(begin(j) + f + i),
            (true, false) => Some(begin(i) + j - k),
            _ if self.with_teachers => {
                let per_teachers = f * (f + 1) / 2;
                Some(self.blocks * per_block + scalars + block * per_teachers + triangle(i - k, j - k))
            }
            _ => None,
        }
    }

    pub(super) fn scalar(&self, s: usize) -> usize {
        self.moving - self.shape.scalars + s
    }

    /// A state with a direction added to it.
    pub(super) fn moved(&self, overlaps: &Overlaps, direction: &[f64], by: f64) -> Overlaps {
        let mut moved = overlaps.clone();
        for (index, x) in direction.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            self.add(&mut moved, index, by * x);
        }
        moved
    }

    pub(super) fn add(&self, overlaps: &mut Overlaps, index: usize, by: f64) {
        match self.list[index] {
            Variable::Entry { block, i, j } => {
                let g: &mut Mat = &mut overlaps.blocks[block];
                g[(i, j)] += by;
                if i != j {
                    g[(j, i)] += by;
                }
            }
            Variable::Scalar(s) => overlaps.scalars[s] += by,
        }
    }

    /// The size of a number, for steps of differences: √(G_ii G_jj), 1 for scalars and for rows without length.
    pub(super) fn scale(&self, overlaps: &Overlaps, index: usize) -> f64 {
        match self.list[index] {
            Variable::Entry { block, i, j } => {
                let g = &overlaps.blocks[block];
                let size = (g[(i, i)] * g[(j, j)]).abs().sqrt();
                if size > 1e-3 { size } else { 1e-3_f64.max(size) }
            }
            Variable::Scalar(_) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_where_it_stands() {
        let shape = Shape { trained: 3, frozen: 2, scalars: 2, own_frozen: 0 };
        for with_teachers in [false, true] {
            let variables = Variables::new(shape, 2, with_teachers);
            for (index, variable) in variables.iter() {
                match variable {
                    Variable::Entry { block, i, j } => {
                        assert_eq!(variables.position(block, i, j), Some(index));
                        assert_eq!(variables.position(block, j, i), Some(index));
                    }
                    Variable::Scalar(s) => assert_eq!(variables.scalar(s), index),
                }
            }
            assert_eq!(variables.position(0, 3, 4).is_some(), with_teachers);
        }
    }
}
