//! The observables of this family: m, ω (`omega`) and, for students from scratch, how well the teachers are matched.

use super::{LowRank, StudentKind};
use didact_math::linalg::dot;
use didact_model::observable::{Observable, Snapshot};
use std::sync::Arc;

/// The observables of a student.
pub(super) fn of(spec: &LowRank) -> Vec<Arc<dyn Observable>> {
    let (teacher, frozen) = spec.loadings();
    let matched = |all: bool| -> Arc<dyn Observable> {
        Arc::new(Matched { strength: spec.xi(), loading: teacher.clone(), all })
    };
    match spec.student {
        StudentKind::RankOne | StudentKind::LazyRankOne => {
            vec![Arc::new(Overlap), Arc::new(LoadingOverlap { teacher, frozen })]
        }
        StudentKind::SingleIndex | StudentKind::FirstMoment => vec![Arc::new(Overlap)],
        StudentKind::FromScratch => vec![matched(true), matched(false)],
        StudentKind::LazyFullRank | StudentKind::SecondLayer => Vec::new(),
    }
}

/// m: the cosine between û, the first trained row, and u, the last frozen one; 0 while û = 0.
#[derive(Debug, Clone, Copy)]
struct Overlap;

impl Observable for Overlap {
    fn name(&self) -> String {
        "m".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let g = snapshot.moment(0);
        let u = snapshot.overlaps.shape().rows() - 1;
        let length = (g[(0, 0)] * g[(u, u)]).sqrt();
        if length > 0.0 { g[(0, u)] / length } else { 0.0 }
    }
}

/// ω = c·ĉ/|ĉ|.
#[derive(Debug, Clone)]
struct LoadingOverlap {
    teacher: Vec<f64>,
    /// ĉ when it is not among the scalars.
    frozen: Vec<f64>,
}

impl Observable for LoadingOverlap {
    fn name(&self) -> String {
        "omega".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let trained = &snapshot.overlaps.scalars;
        let own = if trained.is_empty() { &self.frozen } else { trained };
        let length = dot(own, own).sqrt();
        if length > 0.0 { dot(&self.teacher, own) / length } else { 0.0 }
    }
}

/// Cosines |v̂_i·v_j| with the teachers v_j = κ(w_j + ξ c_j u): `matched` is their maximum over students, averaged over
/// teachers; `best` the largest of all.
#[derive(Debug, Clone)]
struct Matched {
    /// ξ.
    strength: f64,
    loading: Vec<f64>,
    all: bool,
}

impl Observable for Matched {
    fn name(&self) -> String {
        if self.all { "matched" } else { "best" }.into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let g = snapshot.moment(0);
        let k = self.loading.len();
        let shift = |j: usize| self.strength * self.loading[j];
        let u = 2 * k;
        let largest = |j: usize| {
            let length = g[(k + j, k + j)] + 2.0 * shift(j) * g[(k + j, u)] + shift(j).powi(2) * g[(u, u)];
            let cosine =
                |i: usize| (g[(i, k + j)] + shift(j) * g[(i, u)]).abs() / (g[(i, i)] * length).sqrt();
            (0..k).map(cosine).fold(0.0, f64::max)
        };
        let each = (0..k).map(largest);
        if self.all { each.sum::<f64>() / k as f64 } else { each.fold(0.0, f64::max) }
    }
}
