//! The bulk of the spectrum on the real axis: its edges, and the Stieltjes transform outside of it.

use super::law::{WeightLaw, WeightLawError};
use crate::dispatch;
use crate::roots::{bracket_upward, brent, brent_between};

/// The limiting spectrum of H = (1/n) Σ Gᵢ xᵢ xᵢᵀ at n = δ d, without outliers.
///
/// On the real axis left of the bulk, the inverse function of the Stieltjes transform α(z) is
/// (docs/derivations/gd-phase-transitions.md#eq-22)
///
/// ```text
/// z(α) = −1/α + δ E[G/(δ + G α)],   0 < α < A = δ/max(−inf supp G, 0),
/// z′(α) = 1/α² − δ E[G²/(δ + G α)²].
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bulk<'a> {
    /// The law of the weights G.
    pub law: &'a WeightLaw,
    /// δ = n/d.
    pub delta: f64,
}

/// An end of the bulk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Position on the real axis.
    pub position: f64,
    /// Stieltjes transform α at the edge; infinite when the edge is an atom at 0.
    pub alpha: f64,
}

/// Largest τ in 1 − α/A = e^{−τ}. Beyond it, δ + G α at G = inf supp G would be lost in rounding.
const LARGEST_TAU: f64 = 33.0;

impl<'a> Bulk<'a> {
    /// Creates the bulk; an error if δ is not positive and finite.
    pub fn new(law: &'a WeightLaw, delta: f64) -> Result<Self, WeightLawError> {
        if !(delta.is_finite() && delta > 0.0) {
            return Err(WeightLawError::Delta { value: delta });
        }
        Ok(Self { law, delta })
    }

    /// A = δ/max(−inf supp G, 0), an upper limit of α on the branch left of the bulk; infinite for G ≥ 0.
    pub fn branch_end(&self) -> f64 {
        if self.law.infimum() < 0.0 { -self.delta / self.law.infimum() } else { f64::INFINITY }
    }

    /// The averages (E[G/(δ + G α)], E[G²/(δ + G α)²]).
    pub(super) fn moments(&self, alpha: f64) -> (f64, f64) {
        let mut out = [0.0; 2];
        resolvent_moments(&self.law.probabilities, &self.law.values, self.delta, alpha, &mut out);
        (out[0], out[1])
    }

    /// The position z(α), the inverse of the Stieltjes transform.
    pub fn position(&self, alpha: f64) -> f64 {
        -1.0 / alpha + self.delta * self.moments(alpha).0
    }

    /// The derivative z′(α), which is positive left of the bulk and 0 at an edge where the density vanishes.
    pub fn slope(&self, alpha: f64) -> f64 {
        1.0 / (alpha * alpha) - self.delta * self.moments(alpha).1
    }

    /// The left edge c = sup_{0<α<A} z(α).
    ///
    /// α² z′(α) = 1 − δ E[(Gα/(δ+Gα))²] decreases strictly from 1, so its only root is α_c. If it has no root in (0, A), the
    /// edge is the limit of z(α) for α → A; for G ≥ 0 and δ P(G > 0) ≤ 1 this is the atom at 0, with α_c = ∞
    /// (docs/derivations/gd-phase-transitions.md#eq-23).
    pub fn left_edge(&self) -> Edge {
        let falling = |alpha: f64| 1.0 - self.delta * self.moments(alpha).1 * alpha * alpha;
        let end = self.branch_end();
        let alpha = if end.is_finite() {
            // The root may be close to A, so the search is in the variable τ with 1 − α/A = e^{−τ}.
            let at = |tau: f64| -end * (-tau).exp_m1();
            let (mut low, mut high) = ((0.0, 1.0), (1.0, falling(at(1.0))));
            while high.1 >= 0.0 && high.0 < LARGEST_TAU {
                let next = (2.0 * high.0).min(LARGEST_TAU);
                (low, high) = (high, (next, falling(at(next))));
            }
            if high.1 >= 0.0 {
                end
            } else {
                at(brent_between(|tau| falling(at(tau)), low, high, 0.0).expect("bracketed"))
            }
        } else {
            let nonzero = self.law.average(|g| f64::from(g != 0.0));
            if self.delta * nonzero <= 1.0 {
                return Edge { position: 0.0, alpha: f64::INFINITY };
            }
            let scale = self.delta / self.law.supremum();
            match bracket_upward(falling, 1e-8 * scale, 4.0, 1e300) {
                Ok((low, high)) => brent(falling, low, high, 0.0).expect("bracketed"),
                // The weights are so close to 0 that α would overflow; the edge is then 0 to all digits.
                Err(_) => return Edge { position: 0.0, alpha: f64::INFINITY },
            }
        };
        Edge { position: self.position(alpha), alpha }
    }

    /// The right edge, from the left edge for the weights −G: α_G(z) = −α_{−G}(−z).
    pub fn right_edge(&self) -> Edge {
        let law = self.law.reflected();
        let edge = Bulk { law: &law, delta: self.delta }.left_edge();
        // A subtraction from 0 rather than a change of sign, so that an atom at 0 is at 0 and not at −0.
        Edge { position: 0.0 - edge.position, alpha: -edge.alpha }
    }

    /// The Stieltjes transform α(z) for z left of the bulk, whose left edge is given. It is the root of z(α) = z in (0, α_c)
    /// and increases with z.
    pub fn stieltjes_below(&self, z: f64, edge: Edge) -> f64 {
        if z >= edge.position {
            return edge.alpha;
        }
        let excess = |alpha: f64| self.position(alpha) - z;
        let (mut high, above) = if edge.alpha.is_finite() {
            (edge.alpha, edge.position - z)
        } else {
            // z(α) rises to 0, which is above z, so increasing α passes z.
            let mut alpha = -1.0 / z;
            while excess(alpha) <= 0.0 {
                alpha *= 4.0;
            }
            (alpha, excess(alpha))
        };
        let mut above = above;
        // z(α) → −∞ as α → 0.
        let mut low = 0.5 * high;
        loop {
            let below = excess(low);
            if below <= 0.0 {
                return brent_between(excess, (low, below), (high, above), 0.0).expect("bracketed");
            }
            (high, above) = (low, below);
            low *= 0.5;
        }
    }

    /// Mass of the atom at 0, the fraction of directions on which no sample with G ≠ 0 acts: max(0, 1 − δ P(G ≠ 0)).
    pub fn atom_at_zero(&self) -> f64 {
        (1.0 - self.delta * self.law.average(|g| f64::from(g != 0.0))).max(0.0)
    }

    /// Mean `E[G]` and variance `E[G²]`/δ of the spectrum, including an atom at 0.
    pub fn mean_and_variance(&self) -> (f64, f64) {
        (self.law.average(|g| g), self.law.average(|g| g * g) / self.delta)
    }
}

dispatch! {
    /// Computes Σ p q and Σ p q² with q = G/(δ + G α), in four partial sums that are vectorised.
    fn resolvent_moments(probabilities: &[f64], values: &[f64], delta: f64, alpha: f64, out: &mut [f64]) {
        let (mut first, mut second) = ([0.0; 4], [0.0; 4]);
        let (p_blocks, p_rest) = probabilities.as_chunks::<4>();
        let (g_blocks, g_rest) = values.as_chunks::<4>();
        for (p, g) in p_blocks.iter().zip(g_blocks) {
            for lane in 0..4 {
                let q = g[lane] / (delta + g[lane] * alpha);
                first[lane] += p[lane] * q;
                second[lane] += p[lane] * q * q;
            }
        }
        for (p, g) in p_rest.iter().zip(g_rest) {
            let q = g / (delta + g * alpha);
            first[0] += p * q;
            second[0] += p * q * q;
        }
        out[0] = first.iter().sum();
        out[1] = second.iter().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::super::marchenko_pastur;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_have_the_marchenko_pastur_edges() {
        let law = WeightLaw::sample(&[1.0]).unwrap();
        for delta in [1.2, 2.0, 4.0, 30.0] {
            let bulk = Bulk::new(&law, delta).unwrap();
            let (low, high) = marchenko_pastur::support(delta);
            assert!((bulk.left_edge().position - low).abs() < 1e-13);
            assert!((bulk.right_edge().position - high).abs() < 1e-13);
        }
    }

    #[test]
    fn fewer_samples_than_dimensions_leave_an_atom_at_zero() {
        let law = WeightLaw::new(&[0.25, 0.75], &[0.0, 2.0]).unwrap();
        let bulk = Bulk::new(&law, 0.8).unwrap();
        assert_eq!(bulk.left_edge(), Edge { position: 0.0, alpha: f64::INFINITY });
        assert!((bulk.atom_at_zero() - 0.4).abs() < 1e-15);
    }

    #[test]
    fn the_edge_uses_the_stated_infimum_when_it_is_below_all_atoms() {
        // The atoms approximate a continuous law with a lower infimum: α must stay below the limit A of that law.
        let law = WeightLaw::new(&[0.999, 0.001], &[1.0, -0.1]).unwrap();
        let free = Bulk::new(&law, 0.9).unwrap().left_edge();
        let bounded = law.clone().with_infimum(-1.0).unwrap();
        let bulk = Bulk::new(&bounded, 0.9).unwrap();
        assert!(free.alpha > bulk.branch_end());
        let edge = bulk.left_edge();
        assert!((edge.alpha - bulk.branch_end()).abs() < 1e-14);
        assert!(edge.position < free.position);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_transform_left_of_the_edge_inverts_the_position(
            values in prop::collection::vec(-3.0..3.0f64, 2..9), delta in 0.2..8.0f64, depth in 0.01..3.0f64,
        ) {
            let law = WeightLaw::sample(&values).unwrap();
            let bulk = Bulk::new(&law, delta).unwrap();
            let edge = bulk.left_edge();
            prop_assert!(bulk.right_edge().position > edge.position);
            let z = edge.position - depth;
            let alpha = bulk.stieltjes_below(z, edge);
            prop_assert!(alpha > 0.0 && alpha < edge.alpha);
            prop_assert!(bulk.slope(alpha) > 0.0);
            prop_assert!((bulk.position(alpha) - z).abs() < 1e-11 * (1.0 + z.abs()));
        }
    }
}
