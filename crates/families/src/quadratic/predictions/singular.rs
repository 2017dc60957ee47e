//! Learning from Q(0) = c 1, in singular values: p + min(p, p*) numbers in place of matrices
//! (docs/derivations/quadratic-networks.md#s2-1).
//!
//! Every matrix of the equations of motion is then diagonal in the singular vectors of ρ(0), at any learning rate:
//! ρ(t) = U diag(s_i(t)) Vᵀ, Q(t) = U diag(q_i(t)) Uᵀ. The general equations are the test of this.

use super::plateau::{Widths, staircase};
use didact_math::linalg::{Mat, svd};
use didact_math::ode::{Direction, FieldFn, OdeError, OdeEvent, Options, Saving, Solution, Stop, solve};

/// Steps of an integration. These flows need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 200_000;

/// Learning from orthogonal students of equal norm.
#[derive(Debug, Clone)]
pub struct SingularFlow {
    widths: Widths,
    /// U and V of ρ(0).
    left: Mat,
    right: Mat,
    /// s_i(0), i < min(p, p*).
    singular: Vec<f64>,
    /// q_i(0), the same for every i.
    norm: f64,
    /// η with its second-order term and time α, or none: the gradient flow with time t = η α.
    learning_rate: Option<f64>,
}

/// Why a half-loss time does not exist.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HalfLoss {
    /// R = R(0)/2 at this time.
    Reached(f64),
    /// The norms ran away.
    Diverged(f64),
    /// Not before the cap.
    Later,
    /// The risk never falls below this, which is more than half of R(0).
    Never(f64),
}

/// A squared norm beyond this has run away: the learning rate is too large.
const RUNAWAY: f64 = 1e3;

impl SingularFlow {
    /// From ρ(0) and Q(0) = `norm` 1.
    pub fn new(rho: &Mat, norm: f64, learning_rate: Option<f64>) -> Self {
        let mut svd = svd(rho);
        // A direction at the level of rounding is one that is missing: it must not grow into one that is learned.
        let largest = svd.values.first().copied().unwrap_or(0.0);
        svd.values.iter_mut().filter(|s| **s < 1e-14 * largest).for_each(|s| *s = 0.0);
        let widths = Widths::new(rho.rows(), rho.cols());
        Self { widths, left: svd.left, right: svd.right, singular: svd.values, norm, learning_rate }
    }

    /// docs/derivations/quadratic-networks.md#eq-9, per unit α at a learning rate, per unit t in the flow:
    ///
    ///   s' = η (4/p) [τ + 2/p* − 2q/p] s
    ///   q' = η (8/p) [τ q + 2s²/p* − 2q²/p]
    ///      + (16η²/p²) {R q + 4τ (s²/p* − q²/p) + 8 (s²/p*² − 2 q s²/(p p*) + q³/p²)}
    fn field(&self) -> FieldFn<impl FnMut(f64, &[f64], &mut [f64]) + use<>> {
        let Widths { student: p, teacher } = self.widths;
        let (count, rate, widths) = (self.singular.len(), self.learning_rate, self.widths);
        let (first, second) = (rate.unwrap_or(1.0), 16.0 * rate.unwrap_or(0.0).powi(2) / (p * p));
        FieldFn::new(count + p as usize, move |_, state: &[f64], out: &mut [f64]| {
            let (s, q) = state.split_at(count);
            let tau = 1.0 - q.iter().sum::<f64>() / p;
            let risk = risk(widths, s, q);
            for (i, &q) in q.iter().enumerate() {
                let s2 = s.get(i).map_or(0.0, |s| s * s);
                if i < count {
                    out[i] = first * 4.0 / p * (tau + 2.0 / teacher - 2.0 * q / p) * s[i];
                }
                let drift = tau * q + 2.0 * s2 / teacher - 2.0 * q * q / p;
                let noise = risk * q
                    + 4.0 * tau * (s2 / teacher - q * q / p)
                    + 8.0 * (s2 / (teacher * teacher) - 2.0 * q * s2 / (p * teacher) + q * q * q / (p * p));
                out[count + i] = first * 8.0 / p * drift + second * noise;
            }
        })
    }

    fn solve(&self, end: f64, times: &[f64], events: &[OdeEvent]) -> Result<Solution, OdeError> {
        let mut state = self.singular.clone();
        state.resize(self.singular.len() + self.widths.student as usize, self.norm);
        // The smallest overlap that grows is amplified by the inverse of its size: it must be known to all digits.
        let small = self.singular.iter().copied().filter(|s| *s > 0.0).fold(1e-3, f64::min);
        let options = Options {
            relative: 1e-11,
            absolute: (1e-11 * small).max(f64::MIN_POSITIVE),
            saving: Saving::Landing,
            state_limit: RUNAWAY,
            step_limit: Some(MOST_STEPS),
            ..Options::default()
        };
        solve(&mut self.field(), 0.0, &state, end, times, events, &options)
    }

    /// ρ(t) and the risk at the given times, as far as the norms stay bounded.
    pub fn run(&self, times: &[f64]) -> Result<Vec<(Mat, f64)>, OdeError> {
        let end = times.last().copied().unwrap_or(0.0);
        let solution = self.solve(end, times, &[])?;
        let count = self.singular.len();
        let state = |state: &Vec<f64>| {
            let (s, q) = state.split_at(count);
            let rho = self.left.times(&Mat::diagonal(s)).times(&self.right.transpose());
            (rho, risk(self.widths, s, q))
        };
        Ok(solution.states.iter().map(state).collect())
    }

    /// The risk at the start.
    pub fn initial_risk(&self) -> f64 {
        risk(self.widths, &self.singular, &vec![self.norm; self.widths.student as usize])
    }

    /// First time at which R = R(0)/2, R(0) with its overlaps; at most `cap`.
    pub fn half_loss(&self, cap: f64) -> Result<HalfLoss, OdeError> {
        let half = 0.5 * self.initial_risk();
        let grows = self.singular.iter().filter(|s| **s > 0.0).count();
        let floor = staircase(self.widths, grows as f64);
        // The risk falls to the saddle with as many directions as can grow, and no further.
        if floor >= half {
            return Ok(HalfLoss::Never(floor));
        }
        let (count, widths) = (self.singular.len(), self.widths);
        let crossing = OdeEvent::new("half", move |_, state: &[f64]| {
            let (s, q) = state.split_at(count);
            risk(widths, s, q) - half
        });
        let crossing = crossing.direction(Direction::Falling).terminal();
        let solution = self.solve(cap, &[], &[crossing])?;
        Ok(match solution.report.stop {
            Stop::Event { time, .. } => HalfLoss::Reached(time),
            Stop::Diverged { time } => HalfLoss::Diverged(time),
            _ => HalfLoss::Later,
        })
    }
}

/// The risk of docs/derivations/quadratic-networks.md#eq-2p for diagonal matrices: N⊥_i = q_i − s_i²,
/// m_i = s_i²/p − 1/p*, and −1/p* for every teacher direction beyond p.
fn risk(widths: Widths, s: &[f64], q: &[f64]) -> f64 {
    let Widths { student: p, teacher } = widths;
    let unseen = teacher - s.len() as f64;
    let (mut trace, mut squares) = (-unseen / teacher, unseen / (teacher * teacher));
    for (i, &q) in q.iter().enumerate() {
        let s2 = s.get(i).map_or(0.0, |s| s * s);
        let outside = q - s2;
        let mismatch = if i < s.len() { s2 / p - 1.0 / teacher } else { 0.0 };
        trace += mismatch + outside / p;
        squares += mismatch * mismatch + (2.0 * s2 * outside + outside * outside) / (p * p);
    }
    trace * trace + 2.0 * squares
}

#[cfg(test)]
mod tests {
    use super::super::state::{State, tests::random_state};
    use super::*;

    #[test]
    fn the_reduced_equations_are_the_full_ones() {
        // The derivative of (ρ, Q) at Q = c 1, through U and V, at a finite learning rate and in the flow.
        for (p, teachers) in [(4, 2), (3, 3), (2, 4)] {
            let rho = random_state(p, teachers, 0.3, 9).rho;
            for rate in [None, Some(0.13)] {
                let flow = SingularFlow::new(&rho, 1.3, rate);
                let state = State { rho: rho.clone(), q: Mat::identity(p).scaled(1.3) };
                let count = flow.singular.len();
                let mut start = flow.singular.clone();
                start.resize(count + p, 1.3);
                let mut out = vec![0.0; count + p];
                didact_math::ode::VectorField::derivative(&mut flow.field(), 0.0, &start, &mut out);
                let (left, right) = (&flow.left, &flow.right);
                let full = left.transpose().times(&state.flow_rho().scaled(rate.unwrap_or(1.0))).times(right);
                let q = match rate {
                    None => state.flow_q(),
                    Some(rate) => state.rate_q(rate, 0.0, None),
                };
                let q = left.transpose().times(&q).times(left);
                for i in 0..count {
                    assert!((full[(i, i)] - out[i]).abs() < 1e-12, "{p} {teachers} {rate:?}");
                    assert!((q[(i, i)] - out[count + i]).abs() < 1e-12, "{p} {teachers} {rate:?}");
                }
                assert!((flow.initial_risk() - state.risk()).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn what_cannot_be_reached_is_said_and_not_waited_for() {
        let rho = Mat::from_fn(4, 3, |i, j| if j == 0 { 0.01 * (i + 1) as f64 } else { 0.0 });
        // One direction of three: the risk ends at R_1 = 2·2·8/(9·6) > R(0)/2.
        let stuck = SingularFlow::new(&rho, 1.0, None).half_loss(1e6).unwrap();
        assert!(matches!(stuck, HalfLoss::Never(floor) if (floor - 16.0 / 27.0).abs() < 1e-12), "{stuck:?}");
        let start = random_state(3, 3, 0.01, 1).rho;
        let runaway = SingularFlow::new(&start, 1.0, Some(0.6)).half_loss(1e6).unwrap();
        assert!(matches!(runaway, HalfLoss::Diverged(_)), "{runaway:?}");
    }
}
