//! What a run of this family cannot or should not do, said before it starts
//! (docs/derivations/quadratic-networks.md#s12).

use super::alignment::polar_factor;
use super::plateau::Widths;
use crate::Refusal;
use didact_model::overlaps::Overlaps;
use didact_model::problem::Problem;

/// Squared norms of rows on the sphere may differ from 1 by rounding only.
const UNIT: f64 = 1e-9;

/// Refuses rows of other norm than 1 on the sphere: the closed forms and the rescaling of the paper are for |w|² = N.
pub(super) fn admits(problem: &Problem) -> Result<(), Refusal> {
    if problem.training.constraint.sphere.is_none() || problem.start.is_random() {
        return Ok(());
    }
    let shape = problem.rule.shape();
    // A start that cannot be drawn is refused elsewhere, in its own words.
    let Ok(start) = problem.start.draw(&problem.setting(0, 0)) else { return Ok(()) };
    let plain = start.moment(&problem.spectrum, 0);
    match (0..shape.trained).find(|&k| (plain[(k, k)] - 1.0).abs() > UNIT) {
        None => Ok(()),
        Some(k) => Err(Refusal {
            key: "start.q",
            message: format!(
                "students on the sphere start with Q[{k},{k}] = {}, not 1: the spherical model has rows of norm 1",
                plain[(k, k)]
            ),
            hint: "give `q` a unit diagonal, or drop the sphere".into(),
        }),
    }
}

/// Sets that the equations of motion never leave: they are explained, since waiting for an escape would be in vain.
pub(super) fn invariant_set(start: &Overlaps) -> Option<String> {
    let shape = start.shape();
    let (p, rows) = (shape.trained, shape.rows());
    let sum = start.blocks.iter().fold(didact_math::linalg::Mat::zeros(rows, rows), |mut sum, g| {
        sum.add_scaled(1.0, g);
        sum
    });
    if !sum.is_finite() {
        return None;
    }
    let (q, rho) = (sum.block(0..p, 0..p), sum.block(0..p, p..rows));
    if q.max_abs() == 0.0 {
        return Some("all students are zero: w = 0 is a stationary point that the equations never leave; start from finite norms".into());
    }
    if rho.max_abs() == 0.0 {
        return Some(
            "no student overlaps with a teacher: the equations stay on the plateau for ever, while SGD at finite N escapes by its noise; \
             see quantity `noise-seeded-escape`, use engine `reduced`, or start from small overlaps"
                .into(),
        );
    }
    let polar = polar_factor(&rho);
    let (rank, full) = (polar.rank(), polar.singular_values.len());
    let risk = super::plateau::staircase(Widths::new(p, rows - p), rank as f64);
    polar.is_rank_deficient().then(|| {
        format!(
            "the overlaps with the teachers have rank {rank} of {full}: the equations learn {rank} directions and stay at risk {risk:.5}; \
             start from independent overlaps to learn all"
        )
    })
}

/// Warns of learning rates at which norms run away or perfect students are unstable.
pub(super) fn learning_rate(problem: &Problem) -> Option<String> {
    let shape = problem.rule.shape();
    let widths = Widths::new(shape.trained, shape.frozen);
    let rate = problem.training.learning_rate / problem.training.batch as f64;
    let spherical = problem.training.constraint.sphere.is_some();
    if spherical || shape.trained < shape.frozen || !rate.is_finite() {
        return None;
    }
    let (solution, plateau) = (widths.solution_rate(), widths.plateau_rate());
    (rate >= solution.min(plateau)).then(|| {
        format!(
            "the learning rate {rate} is not below {:.5}: perfect students are unstable from {solution:.5} on, norms run away on the plateau from {plateau:.5} on; \
             divergence is expected",
            solution.min(plateau)
        )
    })
}
