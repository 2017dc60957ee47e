//! What this family is watched by: m, ω and, from scratch, how well the teachers are matched.

use super::network::Network;
use didact_math::linalg::dot;
use didact_model::observable::{Observable, Snapshot};
use std::sync::Arc;

/// Which student is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One trained row û, frozen rows W and u.
    RankOne,
    /// k trained rows, frozen rows W and u.
    FromScratch,
    /// One trained row û, frozen row u.
    SingleIndex,
    /// Nothing of its own.
    Other,
}

/// The observables of a rule.
pub(super) fn of(kind: Kind, network: &Network, loading: &[f64], own: &[f64]) -> Vec<Arc<dyn Observable>> {
    let matched = |all: bool| -> Arc<dyn Observable> {
        Arc::new(Matched { network: network.clone(), loading: loading.to_vec(), all })
    };
    match kind {
        Kind::RankOne => {
            vec![
                Arc::new(Overlap),
                Arc::new(LoadingOverlap { teacher: loading.to_vec(), frozen: own.to_vec() }),
            ]
        }
        Kind::SingleIndex => vec![Arc::new(Overlap)],
        Kind::FromScratch => vec![matched(true), matched(false)],
        Kind::Other => Vec::new(),
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
    network: Network,
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
        let shift = |j: usize| self.network.strength * self.loading[j];
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
