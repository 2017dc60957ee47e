//! What only this family can show: the polar factor of ρ, the alignment of the two spaces, the distance to a solution.

use super::alignment::{alignment, closest_solution, polar_factor};
use super::state::State;
use crate::observable::{Observable, Snapshot};
use didact_math::linalg::{Mat, symmetric_eigen};
use std::sync::Arc;

/// A number that depends on ρ and Q alone.
#[derive(Clone)]
struct OfState {
    name: String,
    value: Arc<dyn Fn(&State) -> f64 + Send + Sync>,
}

impl std::fmt::Debug for OfState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Observable for OfState {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let overlaps = snapshot.moment(0);
        if !overlaps.is_finite() {
            return f64::NAN;
        }
        let (p, rows) = (snapshot.overlaps.shape().trained, overlaps.rows());
        let state = State { rho: overlaps.block(0..p, p..rows), q: overlaps.block(0..p, 0..p) };
        (self.value)(&state)
    }
}

fn observable(name: String, value: impl Fn(&State) -> f64 + Send + Sync + 'static) -> Arc<dyn Observable> {
    Arc::new(OfState { name, value: Arc::new(value) })
}

/// `S[k,l]`, entries of the polar factor; `K[i]`, squared cosines between the two spaces, ascending; `s[i]`, singular
/// values of ρ, descending; `solution-distance`, ‖ρ − √(p/p*) S‖. With a reference start ρ₀ also `distance`,
/// ‖ρ − ρ̄(ρ₀)‖, and `polar-drift`, ‖S − S(ρ₀)‖ (Frobenius norms).
pub(super) fn all(students: usize, teachers: usize, reference: Option<&Mat>) -> Vec<Arc<dyn Observable>> {
    let mut list = Vec::new();
    for k in 0..students {
        for l in 0..teachers {
            list.push(observable(format!("S[{k},{l}]"), move |state| {
                polar_factor(&state.rho).factor[(k, l)]
            }));
        }
    }
    for i in 0..teachers {
        list.push(observable(format!("K[{i}]"), move |state| symmetric_eigen(&alignment(state)).values[i]));
    }
    for i in 0..students.min(teachers) {
        list.push(observable(format!("s[{i}]"), move |state| polar_factor(&state.rho).singular_values[i]));
    }
    list.push(observable("solution-distance".into(), |state| {
        distance(&state.rho, &closest_solution(&state.rho).rho)
    }));
    if let Some(start) = reference {
        let (solution, polar) = (closest_solution(start).rho, polar_factor(start).factor);
        list.push(observable("distance".into(), move |state| distance(&state.rho, &solution)));
        list.push(observable("polar-drift".into(), move |state| {
            distance(&polar_factor(&state.rho).factor, &polar)
        }));
    }
    list
}

/// ‖a − b‖, the Frobenius norm.
fn distance(a: &Mat, b: &Mat) -> f64 {
    a.as_slice().iter().zip(b.as_slice()).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}
