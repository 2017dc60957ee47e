//! Activations with a kink at the origin: relu and abs.

use super::{Activation, Form, Kink, jets_by_lists, lists};
use crate::gauss::normal::density;

/// σ(z) = max(z, 0).
#[derive(Clone, Copy, Debug)]
pub struct Relu;

impl Activation for Relu {
    fn name(&self) -> String {
        "relu".into()
    }
    fn value(&self, z: f64) -> f64 {
        z.max(0.0)
    }
    fn slope(&self, z: f64) -> f64 {
        if z > 0.0 {
            1.0
        } else if z < 0.0 {
            0.0
        } else {
            0.5
        }
    }
    fn curvature(&self, _z: f64) -> f64 {
        0.0
    }
    fn values(&self, z: &mut [f64]) {
        lists::relu(z);
    }
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        lists::relu_and_slope(z, slopes);
    }
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        jets_by_lists(self, z, [value, slope, curvature], |_, _, _| 0.0);
    }
    fn kinks(&self) -> &[Kink] {
        &[Kink { at: 0.0, jump: 1.0 }]
    }
    fn form(&self) -> Form {
        Form::Relu
    }
    fn resolution(&self) -> f64 {
        0.3
    }
    /// c_k(r) = √r a_k: a_0 = 1/√(2π), a_1 = 1/2, a_2 = a_0/√2, a_{k+2} = −a_k (k − 1)/√((k+1)(k+2)) for even k ≥ 2.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        let unit = match k {
            1 => 0.5,
            k if k % 2 == 1 => 0.0,
            _ => (0..k)
                .step_by(2)
                .fold(density(0.0), |a, j| -a * (j as f64 - 1.0) / ((j + 1) as f64 * (j + 2) as f64).sqrt()),
        };
        variance.sqrt() * unit
    }
}

/// σ(z) = |z| = 2 max(z, 0) − z.
#[derive(Clone, Copy, Debug)]
pub struct Abs;

impl Activation for Abs {
    fn name(&self) -> String {
        "abs".into()
    }
    fn value(&self, z: f64) -> f64 {
        z.abs()
    }
    fn slope(&self, z: f64) -> f64 {
        if z == 0.0 { 0.0 } else { z.signum() }
    }
    fn curvature(&self, _z: f64) -> f64 {
        0.0
    }
    fn kinks(&self) -> &[Kink] {
        &[Kink { at: 0.0, jump: 2.0 }]
    }
    fn form(&self) -> Form {
        Form::Abs
    }
    fn resolution(&self) -> f64 {
        0.3
    }
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        if k.is_multiple_of(2) { 2.0 * Relu.hermite(k, variance) } else { 0.0 }
    }
}

/// σ(z) = above·z for z > 0 and below·z for z < 0: leaky ReLU and its kin. Three ReLU averages give each of its own, since
/// σ(z) = above z₊ − below (−z)₊.
#[derive(Clone, Debug)]
pub struct PiecewiseLinear {
    /// Slope on the negative side.
    below: f64,
    /// Slope on the positive side.
    above: f64,
    kink: [Kink; 1],
}

impl PiecewiseLinear {
    /// The two slopes.
    pub fn new(below: f64, above: f64) -> Self {
        Self { below, above, kink: [Kink { at: 0.0, jump: above - below }] }
    }
}

impl Activation for PiecewiseLinear {
    fn name(&self) -> String {
        format!("({:?})*relu(x) + ({:?})*relu(-x)", self.above, -self.below)
    }
    fn value(&self, z: f64) -> f64 {
        z * if z > 0.0 { self.above } else { self.below }
    }
    fn slope(&self, z: f64) -> f64 {
        if z > 0.0 {
            self.above
        } else if z < 0.0 {
            self.below
        } else {
            f64::midpoint(self.below, self.above)
        }
    }
    fn curvature(&self, _z: f64) -> f64 {
        0.0
    }
    fn kinks(&self) -> &[Kink] {
        &self.kink
    }
    fn form(&self) -> Form {
        Form::PiecewiseLinear { below: self.below, above: self.above }
    }
    fn resolution(&self) -> f64 {
        0.3
    }
    /// (above − below) z₊ + below z.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        let linear = if k == 1 { self.below * variance.sqrt() } else { 0.0 };
        (self.above - self.below) * Relu.hermite(k, variance) + linear
    }
}
