//! Which directions of a link show at first order, and which are hidden.
//!
//! z ~ N(0, I_k), y = h(z, ε). A subspace with projector P is *hard* if E[P z | y, (1−P) z] = 0 almost surely; the hard
//! space U_H is the largest such space, the easy space its complement. It is found from below: starting with S = {0},
//! every round adds
//!
//! ```text
//! span { E[ T(y, P_S z) (1 − P_S) z ] : T test functions }
//! ```
//!
//! to S until nothing is added. If U is hard then S never leaves U's complement (tower rule), and at the end the
//! complement of S is hard. Full-batch gradient descent finds the easy space in a few steps and has overlap 0 with the
//! hard space after any fixed number of them: A. Montanari and Z. Wang (2026),
//! docs/derivations/gd-phase-transitions.md#s3.

use super::error::LandscapeError;
use didact_math::gauss::hermite;
use didact_math::gauss::normal::density;
use didact_math::linalg::{Mat, dot, svd};
use didact_math::random::{RngAddress, Stream};

/// The easy and the hard part of the latent space.
#[derive(Clone, Debug)]
pub struct Split {
    /// Orthonormal directions that show at first order, in the order in which they were found.
    pub easy: Vec<Vec<f64>>,
    /// An orthonormal basis of the rest.
    pub hard: Vec<Vec<f64>>,
    /// What each round saw: a finite family of tests could miss a direction, so look at the gap.
    pub rounds: Vec<Round>,
}

/// One round of the search.
#[derive(Clone, Debug)]
pub struct Round {
    /// Singular values of the matrix (tests x k) of first-order signals, descending.
    pub singular_values: Vec<f64>,
    /// Those above are signal.
    pub tolerance: f64,
}

/// Frequencies of the tests cos(w u), sin(w u), u = asinh y.
const FREQUENCIES: [f64; 5] = [0.35, 0.8, 1.3, 2.1, 3.4];
/// Hermite orders 0..3 per direction that is known.
const ORDERS: usize = 4;
/// Signals of exact rules start here; zeros were seen below 1e-15.
const EXACT: f64 = 1e-7;
/// Spacings of product rules in one to four Gaussian variables, and their reach.
const SPACINGS: [f64; 4] = [0.03, 0.07, 0.25, 0.5];
const REACH: f64 = 8.5;
/// Samples for more variables.
const SAMPLES: usize = 1 << 17;

/// Nodes, probabilities and labels.
struct Nodes {
    latent: Vec<f64>,
    probabilities: Vec<f64>,
    labels: Vec<f64>,
}

/// The easy and hard directions of y = h(z, ε) with k latent variables; `noisy` when h depends on ε.
pub fn split(k: usize, noisy: bool, link: &dyn Fn(&[f64], f64) -> f64) -> Result<Split, LandscapeError> {
    let variables = k + usize::from(noisy);
    // Two rules: what they disagree on is no signal.
    let rules = match SPACINGS.get(variables.wrapping_sub(1)) {
        Some(spacing) => {
            [1.0, 1.13].iter().map(|stretch| product(k, variables, stretch * spacing, link)).collect()
        }
        None => sample(k, variables, link).map(|nodes| vec![nodes]),
    }?;
    let mut easy: Vec<Vec<f64>> = Vec::new();
    let mut rounds = Vec::new();
    while easy.len() < k {
        let signals: Vec<Mat> = rules.iter().map(|nodes| first_order(nodes, k, &easy)).collect();
        let tolerance = match signals.as_slice() {
            [one, other] => {
                let mut difference = one.clone();
                difference.add_scaled(-1.0, other);
                EXACT.max(3.0 * svd(&difference).values[0])
            }
            // The largest singular value of noise: tests x k entries of deviation at most √(E[h_a² z²]/N).
            _ => (5.0 + (signals[0].rows() as f64).sqrt()) / (SAMPLES as f64).sqrt(),
        };
        let decomposition = svd(&signals[0]);
        let found = decomposition.values.iter().take_while(|s| **s > tolerance).count();
        rounds.push(Round { singular_values: decomposition.values.clone(), tolerance });
        let before = easy.len();
        for j in 0..found {
            let direction = (0..k).map(|i| decomposition.right[(i, j)]).collect();
            add_orthonormal(&mut easy, direction);
        }
        if easy.len() == before {
            break;
        }
    }
    let mut all = easy.clone();
    for i in 0..k {
        add_orthonormal(&mut all, (0..k).map(|j| f64::from(i == j)).collect());
    }
    let hard = all.split_off(easy.len());
    Ok(Split { easy, hard, rounds })
}

impl Split {
    /// The projector on the easy space.
    pub fn easy_projector(&self) -> Mat {
        let k = self.easy.len() + self.hard.len();
        Mat::from_fn(k, k, |i, j| self.easy.iter().map(|u| u[i] * u[j]).sum())
    }
}

/// Adds what is new in a unit direction, if anything.
fn add_orthonormal(basis: &mut Vec<Vec<f64>>, mut direction: Vec<f64>) {
    for _ in 0..2 {
        for known in basis.iter() {
            let part = dot(known, &direction);
            direction.iter_mut().zip(known).for_each(|(x, u)| *x -= part * u);
        }
    }
    let norm = dot(&direction, &direction).sqrt();
    if norm > 1e-6 {
        direction.iter_mut().for_each(|x| *x /= norm);
        basis.push(direction);
    }
}

/// E[T (1 − P_S) z] for every test T.
fn first_order(nodes: &Nodes, k: usize, easy: &[Vec<f64>]) -> Mat {
    let waves = 1 + 2 * FREQUENCIES.len();
    let products = ORDERS.pow(easy.len() as u32);
    let mut out = Mat::zeros(waves * products, k);
    let (mut wave, mut orders) = (vec![1.0; waves], vec![[0.0; ORDERS]; easy.len()]);
    let mut rest = vec![0.0; k];
    for ((z, &p), &y) in nodes.latent.chunks_exact(k).zip(&nodes.probabilities).zip(&nodes.labels) {
        let u = y.asinh();
        for (pair, w) in wave[1..].chunks_exact_mut(2).zip(FREQUENCIES) {
            (pair[1], pair[0]) = (w * u).sin_cos();
        }
        rest.copy_from_slice(z);
        for (direction, hermite) in easy.iter().zip(&mut orders) {
            let along = dot(direction, z);
            hermite::polynomials(along, hermite);
            rest.iter_mut().zip(direction).for_each(|(r, d)| *r -= along * d);
        }
        for code in 0..products {
            let mut factor = p;
            let mut digits = code;
            for hermite in &orders {
                factor *= hermite[digits % ORDERS];
                digits /= ORDERS;
            }
            for (i, wave) in wave.iter().enumerate() {
                let weight = factor * wave;
                for (slot, r) in out.row_mut(code * waves + i).iter_mut().zip(&rest) {
                    *slot += weight * r;
                }
            }
        }
    }
    out
}

/// The trapezoidal product rule with nodes at odd multiples of h/2: symmetric, so that symmetric zeros are exactly 0 for indicators as well, and with no
/// node on 0, where an indicator would break the symmetry. Gauss-Hermite nodes would converge slowly: the tests have branch points at y = ±i.
fn product(
    k: usize,
    variables: usize,
    spacing: f64,
    link: &dyn Fn(&[f64], f64) -> f64,
) -> Result<Nodes, LandscapeError> {
    let half = (REACH / spacing).ceil() as i64;
    let axis: Vec<f64> = (-half..half).map(|i| (i as f64 + 0.5) * spacing).collect();
    let shares: Vec<f64> = axis.iter().map(|x| spacing * density(*x)).collect();
    let size = axis.len();
    let count = size.pow(variables as u32);
    let mut nodes = Nodes::with_room(count, k);
    let mut x = vec![0.0; variables];
    for code in 0..count {
        let (mut digits, mut p) = (code, 1.0);
        for slot in &mut x {
            *slot = axis[digits % size];
            p *= shares[digits % size];
            digits /= size;
        }
        // Corners of the cube carry nothing.
        if p > 1e-18 * spacing.powi(variables as i32) {
            nodes.push(&x, k, p, link)?;
        }
    }
    Ok(nodes)
}

fn sample(k: usize, variables: usize, link: &dyn Fn(&[f64], f64) -> f64) -> Result<Nodes, LandscapeError> {
    let mut stream = Stream::at(RngAddress { seed: 1, replica: 0, step: 0, lane: 0 });
    let mut nodes = Nodes::with_room(SAMPLES, k);
    let mut x = vec![0.0; variables];
    for _ in 0..SAMPLES {
        stream.fill_normal(&mut x);
        nodes.push(&x, k, 1.0 / SAMPLES as f64, link)?;
    }
    Ok(nodes)
}

impl Nodes {
    fn with_room(count: usize, k: usize) -> Self {
        Self {
            latent: Vec::with_capacity(count * k),
            probabilities: Vec::with_capacity(count),
            labels: Vec::with_capacity(count),
        }
    }

    fn push(
        &mut self,
        x: &[f64],
        k: usize,
        p: f64,
        link: &dyn Fn(&[f64], f64) -> f64,
    ) -> Result<(), LandscapeError> {
        let y = link(&x[..k], x.get(k).copied().unwrap_or(0.0));
        if !y.is_finite() {
            return Err(LandscapeError::LinkNotFinite { at: x[..k].to_vec(), value: y });
        }
        self.latent.extend_from_slice(&x[..k]);
        self.probabilities.push(p);
        self.labels.push(y);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn easy(k: usize, link: impl Fn(&[f64]) -> f64) -> (usize, Mat) {
        let split = split(k, false, &|z, _| link(z)).unwrap();
        assert_eq!(split.easy.len() + split.hard.len(), k);
        (split.easy.len(), split.easy_projector())
    }

    fn step(z: f64) -> f64 {
        f64::from(z > 0.0)
    }

    #[test]
    fn known_links_split_as_they_should() {
        let near =
            |got: Mat, want: &[f64]| got.as_slice().iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6);
        let half = [0.5; 4];
        assert_eq!(easy(1, |z| z[0] * z[0]).0, 0);
        assert_eq!(easy(1, |z| z[0].powi(3) - 3.0 * z[0]).0, 1);
        assert_eq!(easy(2, |z| z[0] * z[1]).0, 0);
        assert!(near(easy(2, |z| z[0] + z[1] + z[0] * z[1]).1, &half));
        assert!(near(easy(2, |z| step(z[0]) * step(z[1])).1, &half));
        assert!(near(easy(2, |z| z[0] * z[0] + z[1]).1, &[0.0, 0.0, 0.0, 1.0]));
        assert_eq!(easy(2, |z| z[0] + z[0] * z[1]).0, 2);
        assert_eq!(easy(3, |z| z[0] * z[1] * z[2]).0, 0);
        assert!(near(
            easy(3, |z| z[0] + z[1] * z[1] * z[2]).1,
            &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        ));
        assert!(near(easy(2, |z| z[0].tanh() + 0.5 * z[1] * z[1]).1, &[1.0, 0.0, 0.0, 0.0]));
    }

    #[test]
    fn errors_of_the_rule_are_not_taken_for_signal() {
        // A jump that no symmetry of the nodes respects: (2, −1) is hard, although every product rule gives it a first-order error.
        let (dimension, projector) = easy(2, |z| step(z[0] + 2.0 * z[1]));
        assert_eq!(dimension, 1);
        assert!((projector[(0, 0)] - 0.2).abs() < 0.02, "{projector:?}");
    }

    #[test]
    fn many_variables_are_sampled() {
        let split = split(4, true, &|z, e| z[0] * z[1] + z[2] + 0.5 * z[3] * z[3] + 0.1 * e).unwrap();
        assert_eq!(split.easy.len(), 1);
        assert!(split.easy[0][2].abs() > 0.999);
        let gap = &split.rounds[0];
        assert!(gap.singular_values[0] > 10.0 * gap.tolerance && gap.singular_values[1] < gap.tolerance);
    }

    #[test]
    fn a_direction_between_the_axes_is_found_to_many_digits() {
        let (dimension, projector) = easy(2, |z| z[0] + 2.0 * z[1] + 0.3 * (2.0 * z[0] - z[1]).powi(2));
        assert_eq!(dimension, 1);
        for (got, want) in projector.as_slice().iter().zip([0.2, 0.4, 0.4, 0.8]) {
            assert!((got - want).abs() < 1e-9, "{projector:?}");
        }
        let (dimension, projector) = easy(4, |z| z[0] + z[1] + z[2] * z[3]);
        assert_eq!(dimension, 1);
        assert!((projector[(0, 1)] - 0.5).abs() < 1e-9 && projector[(2, 2)].abs() < 1e-9);
    }

    #[test]
    fn a_link_that_is_not_finite_is_refused() {
        let error = split(1, false, &|z, _| z[0].ln()).unwrap_err();
        assert!(matches!(error, LandscapeError::LinkNotFinite { .. }));
    }
}
