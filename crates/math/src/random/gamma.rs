//! Gamma and chi-square variables: G. Marsaglia, W. W. Tsang, *A simple method for generating gamma variables*, ACM
//! Trans. Math. Softw. 26, 363 (2000), with an acceptance test that keeps its precision at any shape.
//!
//! With d = shape − 1/3, y = x/√(9d), x normal and u uniform, d(1+y)³ is accepted when
//!
//!   ln u < x²/2 + d − d v + d ln v,   v = (1+y)³.
//!
//! Since x² = 9 d y², all low orders in y cancel exactly and the right side is 3d L(y),
//! L(y) = ln(1+y) − y + y²/2 − y³/3 = −y⁴/4 + y⁵/5 − …, computed as such: at shape 10¹² the original form would lose
//! every digit. For y ≥ −½, L ≥ −y⁴/2, hence 3dL ≥ −x⁴/(54 d), and u < 1 − x⁴/(54 d) accepts without a logarithm.

use super::normal::{self, GROUP, GROUP_BLOCKS};
use super::stream::{Stream, fill_uniform_blocks};
use crate::dispatch;

/// Variables per pass of the batched sampler.
const PASS: usize = 64;

/// One shape ≥ 1, prepared.
struct Proposal {
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

    /// Whether the test without logarithm accepts.
    #[inline(always)]
    fn quick(&self, x: f64, u: f64) -> bool {
        let (y, square) = (self.scale * x, x * x);
        y >= -0.5 && u < 1.0 - self.squeeze * (square * square)
    }

    /// The gamma variable of a normal x and a uniform u, if they are accepted.
    #[inline]
    fn accept(&self, x: f64, u: f64) -> Option<f64> {
        let y = self.scale * x;
        let accepted = self.quick(x, u) || (y > -1.0 && libm::log(u) < 3.0 * self.d * log_remainder(y));
        let root = 1.0 + y;
        accepted.then_some(self.d * (root * root * root))
    }
}

dispatch! {
    /// Chi-squares of the proposals that the quick test accepts, −1 for the others; says whether there are any others.
    fn accept_quickly(proposal: &Proposal, x: &[f64; PASS], u: &[f64; PASS], out: &mut [f64]) -> bool {
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

/// L(y) = ln(1+y) − y + y²/2 − y³/3, y > −1.
fn log_remainder(y: f64) -> f64 {
    if y.abs() < 0.1 {
        // −Σ_{k≥4} (−y)ᵏ/k; sixteen terms leave a relative 0.1¹⁶.
        let sum = (4..20).rev().fold(0.0, |sum, k| 1.0 / f64::from(k) - y * sum);
        -(y * y) * (y * y) * sum
    } else {
        libm::log1p(y) - y * (1.0 - y * (0.5 - y / 3.0))
    }
}

impl Stream {
    /// A gamma variable of the given shape > 0 and scale 1: density ∝ g^{shape−1} e^{−g}. Panics at shape ≤ 0.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0 && shape.is_finite(), "a gamma variable needs a positive shape, not {shape}");
        if shape < 1.0 {
            // Γ_shape = Γ_{shape+1} U^{1/shape}.
            let boost = libm::exp(libm::log(self.uniform()) / shape);
            return self.propose(&Proposal::new(shape + 1.0)) * boost;
        }
        self.propose(&Proposal::new(shape))
    }

    /// A chi-square variable with `dof` ≥ 0 degrees of freedom, not necessarily whole; 0 for none.
    pub fn chi_square(&mut self, dof: f64) -> f64 {
        assert_degrees(dof);
        if dof == 0.0 { 0.0 } else { 2.0 * self.gamma(0.5 * dof) }
    }

    /// Chi-square variables with `dof` ≥ 0 degrees of freedom; a shorter call gives the beginning of a longer one.
    ///
    /// First proposals are made in batches; what a batch rejects is drawn again after it.
    pub fn fill_chi_square(&mut self, dof: f64, out: &mut [f64]) {
        assert_degrees(dof);
        if dof < 2.0 {
            out.fill_with(|| self.chi_square(dof));
            return;
        }
        let proposal = Proposal::new(0.5 * dof);
        let (mut x, mut u) = ([0.0; PASS], [0.0; PASS]);
        for chunk in out.chunks_mut(PASS) {
            // A batch owns the blocks of PASS variables even when it needs fewer, so that its length changes nothing.
            let normals = self.take_blocks(PASS / GROUP * GROUP_BLOCKS);
            let uniforms = self.take_blocks(PASS / 2);
            normal::fill_groups(&self.schedule, normals, &mut x[..chunk.len().next_multiple_of(GROUP)]);
            fill_uniform_blocks(&self.schedule, uniforms, &mut u[..chunk.len().next_multiple_of(4)]);
            let open = accept_quickly(&proposal, &x, &u, chunk);
            if open {
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
