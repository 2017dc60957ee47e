//! Polynomial activations: given by coefficients, or a Hermite polynomial of any order up to 60.

use super::{Activation, Form, lists};
use crate::gauss::hermite;

/// σ(z) = Σ_m c_m z^m.
#[derive(Clone, Debug)]
pub struct Polynomial {
    coefficients: Vec<f64>,
    name: Option<&'static str>,
}

impl Polynomial {
    /// From monomial coefficients, low to high; trailing zeros are dropped.
    pub fn new(coefficients: &[f64]) -> Self {
        let len = coefficients.iter().rposition(|&c| c != 0.0).map_or(1, |last| last + 1);
        let mut kept = coefficients.to_vec();
        kept.resize(len, 0.0);
        Self { coefficients: kept, name: None }
    }

    /// σ(z) = z².
    pub fn quadratic() -> Self {
        Self { name: Some("quadratic"), ..Self::new(&[0.0, 0.0, 1.0]) }
    }

    /// Monomial coefficients, low to high.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }
}

impl Activation for Polynomial {
    fn name(&self) -> String {
        self.name.map_or_else(
            || {
                format!(
                    "poly({})",
                    self.coefficients.iter().map(|c| format!("{c:?}")).collect::<Vec<_>>().join(", ")
                )
            },
            str::to_owned,
        )
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
    fn form(&self) -> Form {
        Form::Polynomial(self.coefficients.clone())
    }
    fn degree(&self) -> Option<usize> {
        Some(self.coefficients.len() - 1)
    }
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        // Horner for the value and both derivatives at once.
        let (value, slope, half) = self
            .coefficients
            .iter()
            .rev()
            .fold((0.0, 0.0, 0.0), |(p, d, c), a| (p * z + a, d * z + p, c * z + d));
        (value, slope, 2.0 * half)
    }
    fn values(&self, z: &mut [f64]) {
        lists::polynomial(z, &self.coefficients);
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        lists::polynomial_and_slope(z, slopes, &self.coefficients);
    }
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        let n = z.len();
        let (value, slope, curvature) = (&mut value[..n], &mut slope[..n], &mut curvature[..n]);
        value.fill(0.0);
        slope.fill(0.0);
        curvature.fill(0.0);
        for a in self.coefficients.iter().rev() {
            for i in 0..n {
                // Twice the running coefficient of the half curvature: σ″ = 2 c.
                curvature[i] = curvature[i] * z[i] + 2.0 * slope[i];
                slope[i] = slope[i] * z[i] + value[i];
                value[i] = value[i] * z[i] + a;
            }
        }
    }
    /// E[z^m h_k] = m!/(2^j j! √k!) with j = (m − k)/2, from √k! at m = k by its ratio in m.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        let mut moment = hermite::factorial_ratio_root(k, 0) * variance.powf(0.5 * k as f64);
        let mut sum = 0.0;
        for m in (k..self.coefficients.len()).step_by(2) {
            sum += self.coefficients[m] * moment;
            moment *= variance * ((m + 1) * (m + 2)) as f64 / (m - k + 2) as f64;
        }
        sum
    }
}

/// σ = He_k, or h_k = He_k/√k! if normalised, evaluated by the stable recurrence.
#[derive(Clone, Copy, Debug)]
pub struct HermitePolynomial {
    order: usize,
    normalised: bool,
}

impl HermitePolynomial {
    /// Largest order on offer; √60! = 9e40 is still harmless.
    pub const LARGEST: usize = 60;
    /// Up to here monomial coefficients are exact in f64 and useful.
    const EXPANDED: usize = 20;

    /// He_k (or h_k), for k ≤ 60.
    pub fn new(order: usize, normalised: bool) -> Option<Self> {
        (order <= Self::LARGEST).then_some(Self { order, normalised })
    }

    /// σ of order k − j, zero if j > k. He_k has its own recurrence, exact in integers, He_{k+1} = z He_k − k He_{k−1}.
    fn lower(self, j: usize, z: f64) -> f64 {
        let Some(order) = self.order.checked_sub(j) else { return 0.0 };
        if self.normalised {
            return hermite::polynomial(order, z);
        }
        (0..order).fold((1.0, 0.0), |(he, before), k| (z * he - k as f64 * before, he)).0
    }

    /// σ/He_k: 1, or 1/√k!.
    fn factor(self) -> f64 {
        if self.normalised { hermite::factorial_ratio_root(self.order, 0).recip() } else { 1.0 }
    }

    /// σ_k′ = c_k σ_{k−1}: c_k = k for He_k, √k for h_k.
    fn step(self, k: usize) -> f64 {
        if self.normalised { (k as f64).sqrt() } else { k as f64 }
    }

    /// Monomial coefficients by He_{k+1} = z He_k − k He_{k−1} in exact integers (|c| < 1e13 for k ≤ 20).
    fn coefficients(self) -> Vec<f64> {
        let (mut now, mut before) = (vec![1i128], vec![]);
        for k in 0..self.order {
            let mut next = vec![0];
            next.extend(&now);
            for (c, b) in next.iter_mut().zip(&before) {
                *c -= k as i128 * b;
            }
            (now, before) = (next, now);
        }
        let norm = if self.normalised { hermite::factorial_ratio_root(self.order, 0) } else { 1.0 };
        now.iter().map(|&c| c as f64 / norm).collect()
    }
}

impl Activation for HermitePolynomial {
    fn name(&self) -> String {
        format!("{}{}", if self.normalised { "h" } else { "He" }, self.order)
    }
    fn value(&self, z: f64) -> f64 {
        self.lower(0, z)
    }
    fn slope(&self, z: f64) -> f64 {
        self.step(self.order) * self.lower(1, z)
    }
    fn curvature(&self, z: f64) -> f64 {
        self.step(self.order) * self.step(self.order.saturating_sub(1)) * self.lower(2, z)
    }
    fn values(&self, z: &mut [f64]) {
        lists::hermite(z, self.order, self.factor());
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        lists::hermite_and_slope(z, slopes, self.order, self.factor());
    }
    fn form(&self) -> Form {
        if self.order <= Self::EXPANDED { Form::Polynomial(self.coefficients()) } else { Form::General }
    }
    fn degree(&self) -> Option<usize> {
        Some(self.order)
    }
    /// E[h_n(√r z) h_k(z)] = √(n!/k!) r^{k/2} ((r − 1)/2)^j/j!, j = (n − k)/2 whole; zero otherwise.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        let n = self.order;
        if k > n || (n - k) % 2 == 1 {
            return 0.0;
        }
        let steps: f64 = (1..=(n - k) / 2).map(|j| 0.5 * (variance - 1.0) / j as f64).product();
        let norm = if self.normalised { 1.0 } else { hermite::factorial_ratio_root(n, 0) };
        norm * hermite::factorial_ratio_root(n, k) * variance.powf(0.5 * k as f64) * steps
    }
}
