//! How replicas scatter before the first step.

use super::variables::{Variable, Variables};
use didact_math::linalg::Mat;
use didact_model::constraint::pseudo_inverse;
use didact_model::start::{RowLaw, StartSpread};
use didact_model::{Overlaps, Spectrum};

/// Sigma_0 = lim d Cov of a start, around its centre (docs/derivations/fluctuations.md#s4).
pub(super) fn covariance(
    spread: &StartSpread,
    variables: &Variables,
    centre: &Overlaps,
    spectrum: &Spectrum,
) -> Mat {
    let (n, k) = (variables.len(), variables.shape.trained);
    let mut sigma = match &spread.earlier {
        Some(earlier) if earlier.covariance.rows() == n => earlier.covariance.clone(),
        _ => Mat::zeros(n, n),
    };
    if let Some(law) = spread.rows {
        // New rows are independent of everything that was there before.
        for (a, variable) in variables.iter() {
            if matches!(variable, Variable::Entry { i, j, .. } if i.min(j) < k) {
                for b in 0..n {
                    sigma[(a, b)] = 0.0;
                    sigma[(b, a)] = 0.0;
                }
            }
        }
        add_rows(law, spread, variables, centre, spectrum, &mut sigma);
    }
    if spread.sampled_teachers {
        add_pairs(variables, spectrum, &mut sigma, 1.0, |i, j| i.min(j) >= k, |_, _| false);
    }
    if spread.scalar_deviation > 0.0 {
        for s in 0..variables.shape.scalars {
            let own = variables.scalar(s);
            for b in 0..n {
                sigma[(own, b)] = 0.0;
                sigma[(b, own)] = 0.0;
            }
            sigma[(own, own)] = spread.scalar_deviation * spread.scalar_deviation;
        }
    }
    sigma
}

fn add_rows(
    law: RowLaw,
    spread: &StartSpread,
    variables: &Variables,
    centre: &Overlaps,
    spectrum: &Spectrum,
    sigma: &mut Mat,
) {
    let (k, p) = (variables.shape.trained, variables.shape.rows());
    let square = law.length() * law.length();
    let given = |i: usize, j: usize| match law {
        RowLaw::Gaussian { .. } => false,
        RowLaw::Sphere { .. } => i == j,
        RowLaw::Orthogonal { .. } => true,
    };
    add_pairs(variables, spectrum, sigma, square * square, |i, j| i.max(j) < k, given);
    for (block, g) in centre.blocks.iter().enumerate() {
        let mut frozen = g.block(k..p, k..p);
        let barred = spread.orthogonal_to;
        if barred > 0 {
            let across = frozen.block(0..p - k, 0..barred);
            let inside = across.times(&pseudo_inverse(&frozen.block(0..barred, 0..barred)));
            frozen.add_product_transposed(-1.0, &inside, &across);
        }
        for i in 0..k {
            for n in k..p {
                for m in k..p {
                    let at = |j: usize| variables.position(block, i, j).expect("trained rows are variables");
                    sigma[(at(n), at(m))] += square * frozen[(n - k, m - k)];
                }
            }
        }
    }
}

/// Adds factor (δ_ik δ_jl + δ_il δ_jk)(δ_bb′ w_b − [fixed sum] w_b w_b′): overlaps among rows of independent components, and of those
/// whose sum over eigenspaces is the same in every replica.
fn add_pairs(
    variables: &Variables,
    spectrum: &Spectrum,
    sigma: &mut Mat,
    factor: f64,
    wanted: impl Fn(usize, usize) -> bool,
    fixed_sum: impl Fn(usize, usize) -> bool,
) {
    let weights = spectrum.weights();
    for (a, variable) in variables.iter() {
        let Variable::Entry { block, i, j } = variable else { continue };
        if !wanted(i, j) {
            continue;
        }
        let pairs = if i == j { 2.0 } else { 1.0 };
        for other in 0..variables.blocks {
            let b = variables.position(other, i, j).expect("the same entry of another eigenspace");
            let own = if block == other { weights[block] } else { 0.0 };
            let together = if fixed_sum(i, j) { weights[block] * weights[other] } else { 0.0 };
            sigma[(a, b)] += factor * pairs * (own - together);
        }
    }
}
