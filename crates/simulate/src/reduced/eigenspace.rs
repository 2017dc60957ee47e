//! The rows in one eigenspace, in factor form.

use crate::frozen_factor::FrozenFactor;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::simd::add_scaled;
use didact_model::overlaps::OverlapsError;
use didact_model::{EngineError, Shape};

/// Factor of the Gram of the rows in one eigenspace.
#[derive(Debug, Clone)]
pub(super) struct Eigenspace {
    /// √λ_b.
    pub(super) root: f64,
    /// Coordinates shared with the frozen rows.
    pub(super) shared: usize,
    /// Frozen rows, frozen x shared.
    pub(super) frozen: Vec<f64>,
    /// Trained rows along those coordinates, trained x shared.
    pub(super) along: Vec<f64>,
    /// Trained rows beyond them, trained x trained lower triangle; empty when `rest` is.
    pub(super) own: Vec<f64>,
    /// Dimensions outside the span of all rows; `None` when the eigenspace is kept coordinate by coordinate.
    pub(super) rest: Option<u64>,
    /// Where the frozen factor ends and where motion is forbidden; see `frozen_factor.rs`.
    pub(super) frozen_factor: FrozenFactor,
}

impl Eigenspace {
    pub(super) fn new(
        gram: &Mat,
        shape: Shape,
        lambda: f64,
        size: u64,
        block: usize,
    ) -> Result<Self, EngineError> {
        let Shape { trained: k, frozen: f, .. } = shape;
        let p = k + f;
        // Frozen rows first: row r of the factor is row `order(r)` of the Gram.
        let order = |r: usize| if r < f { k + r } else { r - f };
        let sorted = Mat::from_fn(p, p, |i, j| gram[(order(i), order(j))]);
        let lower =
            cholesky_psd(&sorted).map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
        let (columns, rest) = if size > p as u64 {
            ((0..f).collect::<Vec<_>>(), Some(size - p as u64))
        } else {
            let mut used: Vec<usize> = (0..p).filter(|&j| lower[(j, j)] > 0.0).collect();
            if used.len() as u64 > size {
                return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
            }
            // Zero columns complete the coordinates: the input moves rows there too.
            used.extend((0..p).filter(|&j| lower[(j, j)] == 0.0).take(size as usize - used.len()));
            (used, None)
        };
        let shared = columns.len();
        let pick = |rows: std::ops::Range<usize>| {
            rows.flat_map(|i| columns.iter().map(|&j| lower[(i, j)]).collect::<Vec<_>>())
                .collect::<Vec<f64>>()
        };
        let own = if rest.is_some() {
            (0..k * k).map(|at| lower[(f + at / k, f + at % k)]).collect()
        } else {
            Vec::new()
        };
        let (frozen, along) = (pick(0..f), pick(f..p));
        let frozen_factor = FrozenFactor::of(&frozen, shared);
        Ok(Self { root: lambda.sqrt(), shared, frozen, along, own, rest, frozen_factor })
    }

    /// Normals per sample.
    pub(super) fn coordinates(&self, trained: usize) -> usize {
        self.shared + if self.rest.is_some() { trained } else { 0 }
    }

    pub(super) fn gram(&self, shape: Shape) -> Mat {
        let Shape { trained: k, frozen: f, .. } = shape;
        let along = |i: usize| &self.along[i * self.shared..(i + 1) * self.shared];
        let frozen = |n: usize| &self.frozen[n * self.shared..(n + 1) * self.shared];
        let own = |i: usize| if self.own.is_empty() { &[][..] } else { &self.own[i * k..(i + 1) * k] };
        let entry = |i: usize, j: usize| match (i < k, j < k) {
            (true, true) => dot(along(i), along(j)) + dot(own(i), own(j)),
            (true, false) => dot(along(i), frozen(j - k)),
            (false, true) => dot(along(j), frozen(i - k)),
            (false, false) => dot(frozen(i - k), frozen(j - k)),
        };
        Mat::from_fn(k + f, k + f, entry)
    }

    /// Adds √λ (rows · z) to the fields of one sample.
    #[inline]
    pub(super) fn project(&self, z: &[f64], k: usize, fields: &mut [f64]) {
        let (shared, own) = z.split_at(self.shared);
        let (trained, frozen) = fields.split_at_mut(k);
        for (i, h) in trained.iter_mut().enumerate() {
            let mut sum = dot(&self.along[i * self.shared..(i + 1) * self.shared], shared);
            if !self.own.is_empty() {
                sum += dot(&self.own[i * k..=i * k + i], &own[..=i]);
            }
            *h += self.root * sum;
        }
        self.frozen_factor.project(&self.frozen, self.root, shared, frozen);
    }

    /// w_i ← scale_i w_i for all trained rows.
    pub(super) fn scale(&mut self, scale: &[f64]) {
        let k = scale.len();
        for (i, s) in scale.iter().enumerate() {
            self.along[i * self.shared..(i + 1) * self.shared].iter_mut().for_each(|v| *v *= s);
            if !self.own.is_empty() {
                self.own[i * k..(i + 1) * k].iter_mut().for_each(|v| *v *= s);
            }
        }
    }

    /// |w_i|² in this eigenspace.
    pub(super) fn squared_length(&self, i: usize, k: usize) -> f64 {
        let along = &self.along[i * self.shared..(i + 1) * self.shared];
        let own = if self.own.is_empty() { &[][..] } else { &self.own[i * k..(i + 1) * k] };
        dot(along, along) + dot(own, own)
    }
}

/// Adds √λ rows · Z to the fields of a batch; Z is coordinates x B.
pub(super) fn project_batch(space: &Eigenspace, z: &[f64], k: usize, b: usize, fields: &mut [f64]) {
    let mut add = |row: usize, weight: f64, column: usize| {
        if weight != 0.0 {
            let (out, z) = (&mut fields[row * b..(row + 1) * b], &z[column * b..(column + 1) * b]);
            add_scaled(out, weight, z);
        }
    };
    for column in 0..space.shared {
        for i in 0..k {
            add(i, space.root * space.along[i * space.shared + column], column);
        }
        for n in 0..space.frozen.len() / space.shared.max(1) {
            add(k + n, space.root * space.frozen[n * space.shared + column], column);
        }
    }
    if !space.own.is_empty() {
        for i in 0..k {
            for j in 0..=i {
                add(i, space.root * space.own[i * k + j], space.shared + j);
            }
        }
    }
}
