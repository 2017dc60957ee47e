//! Gamma and chi-square variables by rejection: G. Marsaglia, W. W. Tsang, *A simple method for generating gamma
//! variables*, ACM Trans. Math. Softw. 26, 363 (2000), with an acceptance test that is accurate at every shape.
//!
//! With d = shape − 1/3, y = x/√(9d), x normal and u uniform, d(1+y)³ is accepted when
//!
//!   ln u < x²/2 + d − d v + d ln v,   v = (1+y)³.
//!
//! Since x² = 9 d y², all orders up to y³ cancel exactly and the right side is 3d L(y),
//! L(y) = ln(1+y) − y + y²/2 − y³/3 = −y⁴/4 + y⁵/5 − …. The code evaluates this form, because at shape 10¹² the
//! original form would lose every digit. For y ≥ −½, L ≥ −y⁴/2, hence 3dL ≥ −x⁴/(54 d), and u < 1 − x⁴/(54 d) accepts without a logarithm.

use super::normal::{self, BLOCKS_PER_GROUP, NORMALS_PER_GROUP};
use super::stream::{Stream, fill_uniform_blocks};
use crate::dispatch;

/// Number of variables that the batched sampler draws in one pass.
const VARIABLES_PER_PASS: usize = 64;

/// Constants of the rejection sampler for one shape ≥ 1.
struct Proposal {
    /// shape − 1/3.
    d: f64,
    /// 1/√(9d).
    scale: f64,
    /// 1/(54 d).
    squeeze: f64,
}

impl Proposal {
    fn new(shape: f64) -> Self {
        let d = shape - 1.0 / 3.0;
        Self { d, scale: 1.0 / (9.0 * d).sqrt(), squeeze: 1.0 / (54.0 * d) }
    }

    /// Whether the sufficient test without a logarithm accepts.
    #[inline(always)]
    fn quick(&self, x: f64, u: f64) -> bool {
        let (y, square) = (self.scale * x, x * x);
        y >= -0.5 && u < 1.0 - self.squeeze * (square * square)
    }

    /// Returns the gamma variable made of a normal x and a uniform u, or `None` if they are rejected.
    #[inline]
    fn accept(&self, x: f64, u: f64) -> Option<f64> {
        let y = self.scale * x;
        let accepted = self.quick(x, u) || (y > -1.0 && libm::log(u) < 3.0 * self.d * log_remainder(y));
        let root = 1.0 + y;
        accepted.then_some(self.d * (root * root * root))
    }
}

dispatch! {
    /// Writes the chi-square variables of the proposals that the quick test accepts, and −1 for the others. Returns whether
    /// there are any others.
    fn accept_quickly(proposal: &Proposal, x: &[f64; VARIABLES_PER_PASS], u: &[f64; VARIABLES_PER_PASS], out: &mut [f64]) -> bool {
        let twice = 2.0 * proposal.d;
        let mut least = 0.0;
        for (value, (&x, &u)) in out.iter_mut().zip(x.iter().zip(u)) {
            let root = 1.0 + proposal.scale * x;
            *value = if proposal.quick(x, u) { twice * (root * root * root) } else { -1.0 };
            least = if *value < least { *value } else { least };
        }
        least < 0.0
    }
}

/// L(y) = ln(1+y) − y + y²/2 − y³/3 for y > −1, without cancellation at small y.
fn log_remainder(y: f64) -> f64 {
    if y.abs() < 0.1 {
        // −Σ_{k≥4} (−y)ᵏ/k; after sixteen terms the relative error is 0.1¹⁶.
        let sum = (4..20).rev().fold(0.0, |sum, k| 1.0 / f64::from(k) - y * sum);
        -(y * y) * (y * y) * sum
    } else {
        libm::log1p(y) - y * (1.0 - y * (0.5 - y / 3.0))
    }
}

impl Stream {
    /// Draws a gamma variable of the given shape > 0 and scale 1, of density ∝ g^{shape−1} e^{−g}. Panics at shape ≤ 0.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0 && shape.is_finite(), "a gamma variable needs a positive shape, not {shape}");
        if shape < 1.0 {
            // G_{shape+1} U^{1/shape} has the law of G_shape, for an independent uniform U.
            let boost = libm::exp(libm::log(self.uniform()) / shape);
            return self.propose(&Proposal::new(shape + 1.0)) * boost;
        }
        self.propose(&Proposal::new(shape))
    }

    /// Draws a chi-square variable with `dof` ≥ 0 degrees of freedom, which need not be an integer. It is 0 for `dof` = 0.
    pub fn chi_square(&mut self, dof: f64) -> f64 {
        assert_degrees(dof);
        if dof == 0.0 { 0.0 } else { 2.0 * self.gamma(0.5 * dof) }
    }

    /// Fills `out` with chi-square variables of `dof` ≥ 0 degrees of freedom. A shorter call gives the first variables of a
    /// longer one.
    ///
    /// Proposals are made in batches; variables whose proposal was rejected are drawn again after their batch.
    pub fn fill_chi_square(&mut self, dof: f64, out: &mut [f64]) {
        assert_degrees(dof);
        if dof < 2.0 {
            out.fill_with(|| self.chi_square(dof));
            return;
        }
        let proposal = Proposal::new(0.5 * dof);
        let (mut x, mut u) = ([0.0; VARIABLES_PER_PASS], [0.0; VARIABLES_PER_PASS]);
        for chunk in out.chunks_mut(VARIABLES_PER_PASS) {
            // A batch takes the random blocks of a whole pass even when it needs fewer, so that the variables do not
            // depend on its length.
            let normals = self.take_blocks(VARIABLES_PER_PASS / NORMALS_PER_GROUP * BLOCKS_PER_GROUP);
            let uniforms = self.take_blocks(VARIABLES_PER_PASS / 2);
            normal::fill_groups(
                &self.schedule,
                normals,
                &mut x[..chunk.len().next_multiple_of(NORMALS_PER_GROUP)],
            );
            fill_uniform_blocks(&self.schedule, uniforms, &mut u[..chunk.len().next_multiple_of(4)]);
            let some_rejected = accept_quickly(&proposal, &x, &u, chunk);
            if some_rejected {
                for (i, value) in chunk.iter_mut().enumerate().filter(|(_, value)| **value < 0.0) {
                    *value = 2.0 * proposal.accept(x[i], u[i]).unwrap_or_else(|| self.propose(&proposal));
                }
            }
        }
    }

    fn propose(&mut self, proposal: &Proposal) -> f64 {
        loop {
            let (x, u) = (self.normal(), self.uniform());
            if let Some(value) = proposal.accept(x, u) {
                return value;
            }
        }
    }
}

fn assert_degrees(dof: f64) {
    assert!(dof >= 0.0 && dof.is_finite(), "a chi-square variable needs degrees of freedom ≥ 0, not {dof}");
}

#[cfg(test)]
mod tests;
