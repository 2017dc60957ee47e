//! The training inputs: kept in memory, or drawn anew whenever they are needed.

use super::kernels::Number;
use crate::weights::fill_coordinates;
use didact_math::random::{RngAddress, Stream};
use didact_model::training::InputLaw;

/// Lanes of the random numbers of a training set; one-pass chains use lower ones.
pub(super) const INPUTS: u16 = 0x6f00;
pub(super) const NOISE: u16 = 0x6f01;

/// Where the rows of X come from.
#[derive(Debug)]
pub(super) enum Inputs<T> {
    /// n x d, row after row.
    Kept(Vec<T>),
    /// By their address: the same numbers, at the cost of drawing them at every step.
    Drawn(Source),
}

/// The address of a training set.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) seed: u64,
    pub(super) replica: u32,
    pub(super) dimension: usize,
    /// √λ per coordinate; empty when all are 1.
    pub(super) roots: Vec<f64>,
    /// The law of the coordinates.
    pub(super) law: InputLaw,
}

impl Source {
    /// Rows `first..first + count`, in double precision whatever they are kept in.
    pub(super) fn fill<T: Number>(&self, first: usize, out: &mut [T]) {
        let mut row = vec![0.0; self.dimension];
        for (i, out) in out.chunks_exact_mut(self.dimension).enumerate() {
            let address =
                RngAddress { seed: self.seed, replica: self.replica, step: (first + i) as u64, lane: INPUTS };
            let mut stream = Stream::at(address);
            match &self.law {
                InputLaw::Rows(table) => {
                    row.copy_from_slice(table.row(stream.below(table.rows() as u64) as usize));
                }
                law => fill_coordinates(law, &mut stream, &mut row),
            }
            if !self.roots.is_empty() && !matches!(self.law, InputLaw::Rows(_)) {
                row.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
            }
            out.iter_mut().zip(&row).for_each(|(out, x)| *out = T::from_double(*x));
        }
    }
}

impl<T: Number> Inputs<T> {
    /// Rows `first..first + count` of d numbers, in `room` unless they are kept.
    pub(super) fn rows<'a>(&'a self, first: usize, count: usize, d: usize, room: &'a mut Vec<T>) -> &'a [T] {
        match self {
            Self::Kept(x) => &x[first * d..(first + count) * d],
            Self::Drawn(source) => {
                room.resize(count * d, T::default());
                source.fill(first, room);
                room
            }
        }
    }
}
