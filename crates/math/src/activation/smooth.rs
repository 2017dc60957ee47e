//! Smooth activations: linear, erf, sigmoid, tanh, gelu.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};

use super::{Activation, Form, jets_by_lists, lists};
use crate::dispatch;
use crate::expression::sigmoid;
use crate::gauss::normal::{cdf, density};
use crate::simd;
use crate::simd::scalar::{mills_ratio, normal_cdf, normal_density};

/// σ(z) = z.
#[derive(Clone, Copy, Debug)]
pub struct Linear;

impl Activation for Linear {
    fn name(&self) -> String {
        "linear".into()
    }
    fn value(&self, z: f64) -> f64 {
        z
    }
    fn slope(&self, _z: f64) -> f64 {
        1.0
    }
    fn curvature(&self, _z: f64) -> f64 {
        0.0
    }
    fn form(&self) -> Form {
        Form::Linear
    }
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        if k == 1 { variance.sqrt() } else { 0.0 }
    }
}

/// σ(z) = erf(scale·z).
#[derive(Clone, Copy, Debug)]
pub struct Erf {
    /// 1 for erf(z), 1/√2 for erf(z/√2).
    pub scale: f64,
}

impl Activation for Erf {
    fn name(&self) -> String {
        match self.scale {
            1.0 => "erf(z)".into(),
            FRAC_1_SQRT_2 => "erf(z/sqrt2)".into(),
            scale => format!("erf({scale:?}*z)"),
        }
    }
    fn value(&self, z: f64) -> f64 {
        libm::erf(self.scale * z)
    }
    fn slope(&self, z: f64) -> f64 {
        let u = self.scale * z;
        FRAC_2_SQRT_PI * self.scale * (-u * u).exp()
    }
    fn curvature(&self, z: f64) -> f64 {
        -2.0 * self.scale * self.scale * z * self.slope(z)
    }
    fn values(&self, z: &mut [f64]) {
        z.iter_mut().for_each(|z| *z *= self.scale);
        simd::erf_in_place(z);
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        z.iter_mut().for_each(|z| *z *= self.scale);
        let slopes = &mut slopes[..z.len()];
        slopes.copy_from_slice(z);
        simd::exp_minus_square_in_place(slopes);
        let height = FRAC_2_SQRT_PI * self.scale;
        slopes.iter_mut().for_each(|s| *s *= height);
        simd::erf_in_place(z);
    }
    /// σ″ = −2 scale² z σ′.
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        let factor = -2.0 * self.scale * self.scale;
        jets_by_lists(self, z, [value, slope, curvature], |z, _, slope| factor * z * slope);
    }
    fn form(&self) -> Form {
        Form::Erf { scale: self.scale }
    }
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let slope = self.slope(z);
        (self.value(z), slope, -2.0 * self.scale * self.scale * z * slope)
    }
    fn resolution(&self) -> f64 {
        // e^{−s²z²} is a Gaussian of width 1/(√2 s): a grid of 0.4 widths resolves it and its square.
        0.4 * FRAC_1_SQRT_2 / self.scale.abs()
    }
    /// c_{2n+1} = (−1)ⁿ √( (2/π) (2n)!/(4ⁿ n!² (2n+1)) ) (q/(1+q))^{n+1/2}, q = 2 scale² r; even ones vanish.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        if k.is_multiple_of(2) {
            return 0.0;
        }
        let q = 2.0 * self.scale * self.scale * variance;
        let ratio = q / (1.0 + q);
        let n = k / 2;
        // (2n)!/(4ⁿ n!²) = ∏ (2j − 1)/(2j); the sign of each factor is carried outside the root.
        let central: f64 = (1..=n).map(|j| (2 * j - 1) as f64 / (2 * j) as f64).product();
        let sign = if n.is_multiple_of(2) { self.scale.signum() } else { -self.scale.signum() };
        sign * (FRAC_2_PI * central / k as f64).sqrt() * ratio.powf(n as f64 + 0.5)
    }
}

/// σ(z) = 1/(1 + e^{−z}).
#[derive(Clone, Copy, Debug)]
pub struct Sigmoid;

impl Activation for Sigmoid {
    fn name(&self) -> String {
        "sigmoid".into()
    }
    fn value(&self, z: f64) -> f64 {
        sigmoid(z)
    }
    fn slope(&self, z: f64) -> f64 {
        self.jet(z).1
    }
    fn curvature(&self, z: f64) -> f64 {
        self.jet(z).2
    }
    fn values(&self, z: &mut [f64]) {
        lists::sigmoid(z);
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        lists::sigmoid_and_slope(z, slopes);
    }
    /// σ″ = σ′ (1 − 2σ).
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        jets_by_lists(self, z, [value, slope, curvature], |_, value, slope| slope * (1.0 - 2.0 * value));
    }
    fn value_and_slope(&self, z: f64) -> (f64, f64) {
        let up = sigmoid(z);
        (up, up * sigmoid(-z))
    }
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let (up, down) = (sigmoid(z), sigmoid(-z));
        (up, up * down, up * down * (down - up))
    }
    fn resolution(&self) -> f64 {
        0.4 // poles at ±iπ, twice as far as those of tanh
    }
}

/// σ(z) = tanh z.
#[derive(Clone, Copy, Debug)]
pub struct Tanh;

impl Activation for Tanh {
    fn name(&self) -> String {
        "tanh".into()
    }
    fn value(&self, z: f64) -> f64 {
        self.jet(z).0
    }
    fn slope(&self, z: f64) -> f64 {
        self.jet(z).1
    }
    fn curvature(&self, z: f64) -> f64 {
        self.jet(z).2
    }
    fn values(&self, z: &mut [f64]) {
        lists::tanh(z);
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        lists::tanh_and_slope(z, slopes);
    }
    /// σ″ = −2 σ σ′.
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        jets_by_lists(self, z, [value, slope, curvature], |_, value, slope| -2.0 * value * slope);
    }
    fn value_and_slope(&self, z: f64) -> (f64, f64) {
        let (value, slope, _) = self.jet(z);
        (value, slope)
    }
    /// One exponential for all three: with t = e^{−2|z|},  tanh|z| = (1 − t)/(1 + t),  1 − tanh² = 4t/(1 + t)².
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let u = -2.0 * z.abs();
        // 1 − t would lose digits near z = 0, and t = 1 − (1 − t) would lose them in the tails.
        let (t, rest) = if u > -1.0 {
            let rest = -u.exp_m1();
            (1.0 - rest, rest)
        } else {
            let t = u.exp();
            (t, 1.0 - t)
        };
        let value = (rest / (1.0 + t)).copysign(z);
        let slope = 4.0 * t / ((1.0 + t) * (1.0 + t));
        (value, slope, -2.0 * value * slope)
    }
}

/// σ(z) = z Φ(z), the exact (erf) form.
#[derive(Clone, Copy, Debug)]
pub struct Gelu;

impl Activation for Gelu {
    fn name(&self) -> String {
        "gelu".into()
    }
    fn value(&self, z: f64) -> f64 {
        z * cdf(z)
    }
    fn slope(&self, z: f64) -> f64 {
        cdf(z) + z * density(z)
    }
    fn curvature(&self, z: f64) -> f64 {
        (2.0 - z * z) * density(z)
    }
    fn value_and_slope(&self, z: f64) -> (f64, f64) {
        let cdf = cdf(z);
        (z * cdf, cdf + z * density(z))
    }
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let (cdf, density) = (cdf(z), density(z));
        (z * cdf, cdf + z * density, (2.0 - z * z) * density)
    }
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        gelu_jets(z, value, slope, curvature);
    }
    fn resolution(&self) -> f64 {
        0.3 // entire: only the width of φ counts
    }
}

dispatch! {
    /// The jets of z Φ(z): absolute errors of a few 1e-16 |z|, also in the lower tail.
    ///
    /// Three loops: a processor sees several turns of a short loop ahead, and less than two of one long enough for all of it.
    fn gelu_jets(z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        let n = z.len();
        let (value, slope, curvature) = (&mut value[..n], &mut slope[..n], &mut curvature[..n]);
        for i in 0..n {
            value[i] = mills_ratio(z[i]);
        }
        for i in 0..n {
            slope[i] = normal_density(z[i]);
        }
        for i in 0..n {
            let (z, density) = (z[i], slope[i]);
            let cdf = normal_cdf(z, density, value[i]);
            value[i] = z * cdf;
            slope[i] = z.mul_add(density, cdf);
            curvature[i] = (2.0 - z * z) * density;
        }
    }
}
