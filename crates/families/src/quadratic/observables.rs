//! What only this family can show: the polar factor of ρ, the alignment of the two spaces, the distance to a solution.

use super::alignment::{alignment, closest_solution, polar_factor};
use super::state::State;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_model::observable::{Observable, Snapshot};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use crate::quadratic::QuadraticNetworks;
    use didact_model::overlaps::Overlaps;
    use didact_model::start::Given;
    use didact_model::{Clock, Problem, Spectrum, Training, observable};

    #[test]
    fn observables_of_the_family_are_found_by_name_and_by_star() {
        let reference = vec![vec![0.3, 0.0], vec![0.0, 0.2], vec![0.1, 0.1]];
        let spec = QuadraticNetworks { reference: Some(reference), ..QuadraticNetworks::new(3, 2) };
        let rule = spec.rule().unwrap();
        let rho = Mat::from_rows(&[vec![0.3, 0.0], vec![0.0, 0.2], vec![0.0, 0.0]]).unwrap();
        let start = Overlaps::spread(
            rule.shape(),
            &Spectrum::isotropic(),
            (&Mat::identity(3), &rho, &Mat::identity(2)),
            vec![],
        )
        .unwrap();
        let problem = Problem {
            rule,
            about: spec.about(),
            spectrum: Spectrum::isotropic(),
            dimension: None,
            training: Training::online(0.1),
            start: Arc::new(Given(start.clone())),
            clock: Clock::Alpha,
        };
        let measure = |text: &str| -> Vec<f64> {
            let found = observable::parse(text, &problem).unwrap();
            found.iter().map(|o| o.measure(&Snapshot::new(&start, &problem))).collect()
        };
        let close = |got: Vec<f64>, want: &[f64]| {
            assert!(
                got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12),
                "{got:?}"
            );
        };
        close(measure("S[*,0]"), &[1.0, 0.0, 0.0]);
        close(measure("S[*,*]"), &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        close(measure("K[*]"), &[0.04, 0.09]);
        close(measure("s[*]"), &[0.3, 0.2]);
        close(measure("S[0,0] + K[1]"), &[1.09]);
        // ρ̄ = √(3/2) S: both directions are short of it.
        close(measure("solution-distance"), &[(1.5_f64.sqrt() - 0.3).hypot(1.5_f64.sqrt() - 0.2)]);
        assert!(measure("polar-drift")[0] > 0.1 && measure("distance")[0] > 1.0);
        let (drift, distance) = (measure("polar-drift")[0], measure("solution-distance")[0]);
        close(measure("polar-drift^2 - solution-distance"), &[drift * drift - distance]);
        assert!(observable::parse("S[3,0]", &problem).is_err());
    }
}
