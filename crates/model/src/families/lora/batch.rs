//! Activations over slices, vectorised where their formula is known: the inner loop of a mini-batch step.
//!
//! One virtual call per slice in place of one per sample. The numbers are those of [`Activation`] up to rounding.

use didact_math::activation::{Activation, Form};
use didact_math::dispatch;
use didact_math::simd::scalar;
use std::f64::consts::FRAC_2_SQRT_PI;
use std::sync::Arc;

/// Samples that are worked on together: their buffers stay in the first-level cache.
pub(super) const TOGETHER: usize = 512;

/// An activation and how it is computed over a slice.
#[derive(Debug, Clone)]
pub(super) struct Sliced {
    activation: Arc<dyn Activation>,
    kernel: Kernel,
    squared: bool,
}

/// Formulas that the compiler can vectorise.
#[derive(Debug, Clone, PartialEq)]
enum Kernel {
    Linear,
    Erf {
        scale: f64,
    },
    Relu,
    Sigmoid,
    /// He_k times a factor, by its recurrence.
    Hermite {
        order: usize,
        factor: f64,
    },
    /// Monomial coefficients, high to low.
    Polynomial(Vec<f64>),
    /// Sample by sample.
    General,
}

impl Kernel {
    fn of(activation: &dyn Activation) -> Self {
        let name = activation.name();
        if let Some(order) = name.strip_prefix("He").and_then(|digits| digits.parse().ok()) {
            return Self::Hermite { order, factor: 1.0 };
        }
        if let Some(order) = name.strip_prefix('h').and_then(|digits| digits.parse::<usize>().ok()) {
            let factor = didact_math::gauss::hermite::factorial_ratio_root(order, 0).recip();
            return Self::Hermite { order, factor };
        }
        match activation.form() {
            Form::Linear => Self::Linear,
            Form::Erf { scale } => Self::Erf { scale },
            Form::Relu => Self::Relu,
            Form::Polynomial(mut coefficients) => {
                coefficients.reverse();
                Self::Polynomial(coefficients)
            }
            Form::General if name == "sigmoid" => Self::Sigmoid,
            Form::Abs | Form::General => Self::General,
        }
    }
}

impl Sliced {
    pub(super) fn new(activation: Arc<dyn Activation>) -> Self {
        let kernel = Kernel::of(&*activation);
        Self { activation, kernel, squared: false }
    }

    /// σ², of which only the values are asked for.
    pub(super) fn squared(activation: Arc<dyn Activation>) -> Self {
        Self { squared: true, ..Self::new(activation) }
    }

    /// σ(z), or its square, elementwise.
    pub(super) fn values(&self, z: &[f64], values: &mut [f64]) {
        self.plain_values(z, values);
        if self.squared {
            values.iter_mut().for_each(|v| *v *= *v);
        }
    }

    fn plain_values(&self, z: &[f64], values: &mut [f64]) {
        match &self.kernel {
            Kernel::Linear => values.copy_from_slice(z),
            Kernel::Erf { scale } => erf_values(z, *scale, values),
            Kernel::Relu => relu_values(z, values),
            Kernel::Hermite { order, factor } => hermite_values(z, *order, *factor, values),
            Kernel::Polynomial(coefficients) => polynomial_values(z, coefficients, values),
            Kernel::Sigmoid => sigmoid_values(z, values),
            Kernel::General => {
                values.iter_mut().zip(z).for_each(|(v, &z)| *v = self.activation.value(z));
            }
        }
    }

    /// σ(z) and σ′(z), elementwise.
    pub(super) fn values_and_slopes(&self, z: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        match &self.kernel {
            Kernel::Linear => {
                values.copy_from_slice(z);
                slopes.fill(1.0);
            }
            Kernel::Erf { scale } => erf_both(z, *scale, values, slopes),
            Kernel::Relu => relu_both(z, values, slopes),
            Kernel::Hermite { order, factor } => hermite_both(z, *order, *factor, values, slopes),
            Kernel::Polynomial(coefficients) => polynomial_both(z, coefficients, values, slopes),
            Kernel::Sigmoid => sigmoid_both(z, values, slopes),
            Kernel::General => {
                for ((v, s), &z) in values.iter_mut().zip(slopes).zip(z) {
                    (*v, *s) = self.activation.value_and_slope(z);
                }
            }
        }
    }
}

dispatch! {
    /// out ← a x + b y.
    pub(super) fn combine(a: f64, x: &[f64], b: f64, y: &[f64], out: &mut [f64]) {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = a * x + b * y;
        }
    }
}

dispatch! {
    /// out ← out + a x.
    pub(super) fn add_scaled(out: &mut [f64], a: f64, x: &[f64]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out += a * x;
        }
    }
}

dispatch! {
    /// The scalar product, in lanes.
    pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let (a_whole, a_rest) = a.split_at(a.len() / LANES * LANES);
        let (b_whole, b_rest) = b.split_at(a_whole.len());
        for (a, b) in a_whole.chunks_exact(LANES).zip(b_whole.chunks_exact(LANES)) {
            for l in 0..LANES {
                sums[l] += a[l] * b[l];
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        sums.iter().sum::<f64>() + rest
    }
}

dispatch! {
    /// out ← weight (label + noise − residual value) slope.
    pub(super) fn pulls(weight: f64, label: &[f64], noise: &[f64], residual: f64, value: &[f64], slope: &[f64], out: &mut [f64]) {
        let all = out.iter_mut().zip(label).zip(noise).zip(value).zip(slope);
        for ((((out, label), noise), value), slope) in all {
            *out = weight * (label + noise - residual * value) * slope;
        }
    }
}

dispatch! {
    fn erf_values(z: &[f64], scale: f64, values: &mut [f64]) {
        for (v, &z) in values.iter_mut().zip(z) {
            *v = scalar::erf(scale * z);
        }
    }
}

dispatch! {
    fn erf_both(z: &[f64], scale: f64, values: &mut [f64], slopes: &mut [f64]) {
        let factor = FRAC_2_SQRT_PI * scale;
        for ((v, s), &z) in values.iter_mut().zip(slopes).zip(z) {
            *v = scalar::erf(scale * z);
            *s = factor * scalar::exp_minus_square(scale * z);
        }
    }
}

dispatch! {
    fn relu_values(z: &[f64], values: &mut [f64]) {
        for (v, &z) in values.iter_mut().zip(z) {
            *v = z.max(0.0);
        }
    }
}

dispatch! {
    fn relu_both(z: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        for ((v, s), &z) in values.iter_mut().zip(slopes).zip(z) {
            *v = z.max(0.0);
            // Half-way at the kink.
            *s = 0.5 * (f64::from(z > 0.0) + f64::from(z >= 0.0));
        }
    }
}

dispatch! {
    fn sigmoid_values(z: &[f64], values: &mut [f64]) {
        for (v, &z) in values.iter_mut().zip(z) {
            *v = 1.0 / (1.0 + scalar::exp(-z));
        }
    }
}

dispatch! {
    fn sigmoid_both(z: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        for ((v, s), &z) in values.iter_mut().zip(slopes).zip(z) {
            // e^{−|z|} never overflows, and 1 − σ is not a difference.
            let t = scalar::exp(-z.abs());
            let small = t / (1.0 + t);
            let large = 1.0 / (1.0 + t);
            *v = if z >= 0.0 { large } else { small };
            *s = small * large;
        }
    }
}

/// Lanes of the loops below: a loop over orders inside a loop over elements would defeat the vectoriser.
const LANES: usize = 8;

/// Calls `body` on chunks of `LANES`, the last one padded with zeros; stores its one or two results.
macro_rules! in_lanes {
    ($z:ident, [$($out:ident),+], $body:expr) => {{
        let whole = $z.len() / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            let lanes: &Lanes = $z[at..at + LANES].try_into().expect("a whole chunk");
            let results = $body(lanes);
            in_lanes!(@store results, at, LANES, $($out),+);
        }
        let rest = $z.len() - whole;
        if rest > 0 {
            let mut lanes = [0.0; LANES];
            lanes[..rest].copy_from_slice(&$z[whole..]);
            let results = $body(&lanes);
            in_lanes!(@store results, whole, rest, $($out),+);
        }
    }};
    (@store $results:ident, $at:expr, $count:expr, $a:ident) => {
        $a[$at..$at + $count].copy_from_slice(&$results.0[..$count]);
    };
    (@store $results:ident, $at:expr, $count:expr, $a:ident, $b:ident) => {
        $a[$at..$at + $count].copy_from_slice(&$results.0[..$count]);
        $b[$at..$at + $count].copy_from_slice(&$results.1[..$count]);
    };
}

type Lanes = [f64; LANES];

/// (He_k, He_{k−1}) by He_{k+1} = z He_k − k He_{k−1}.
#[inline(always)]
fn hermite_lanes(z: &Lanes, order: usize) -> (Lanes, Lanes) {
    let (mut now, mut before) = ([1.0; LANES], [0.0; LANES]);
    for k in 0..order {
        let k = k as f64;
        for l in 0..LANES {
            let next = z[l] * now[l] - k * before[l];
            before[l] = now[l];
            now[l] = next;
        }
    }
    (now, before)
}

dispatch! {
    fn hermite_values(z: &[f64], order: usize, factor: f64, values: &mut [f64]) {
        in_lanes!(z, [values], |z: &Lanes| {
            let (now, before) = hermite_lanes(z, order);
            (now.map(|v| factor * v), before)
        });
    }
}

dispatch! {
    fn hermite_both(z: &[f64], order: usize, factor: f64, values: &mut [f64], slopes: &mut [f64]) {
        let slope = factor * order as f64;
        in_lanes!(z, [values, slopes], |z: &Lanes| {
            let (now, before) = hermite_lanes(z, order);
            (now.map(|v| factor * v), before.map(|v| slope * v))
        });
    }
}

dispatch! {
    fn polynomial_values(z: &[f64], coefficients: &[f64], values: &mut [f64]) {
        in_lanes!(z, [values], |z: &Lanes| {
            let mut value = [0.0; LANES];
            for &c in coefficients {
                for l in 0..LANES {
                    value[l] = value[l] * z[l] + c;
                }
            }
            (value, ())
        });
    }
}

dispatch! {
    fn polynomial_both(z: &[f64], coefficients: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        in_lanes!(z, [values, slopes], |z: &Lanes| {
            let (mut value, mut slope) = ([0.0; LANES], [0.0; LANES]);
            for &c in coefficients {
                for l in 0..LANES {
                    slope[l] = slope[l] * z[l] + value[l];
                    value[l] = value[l] * z[l] + c;
                }
            }
            (value, slope)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::activation::parse;

    #[test]
    fn slices_are_the_numbers_of_the_activation() {
        let z: Vec<f64> = (0..517).map(|i| -6.0 + 0.0233 * f64::from(i)).chain([0.0, 40.0, -40.0]).collect();
        for name in [
            "linear",
            "erf(z)",
            "erf(0.3*x)",
            "relu",
            "sigmoid",
            "He1",
            "He3",
            "He7",
            "h4",
            "poly(1, 0, 2, -1)",
            "gelu",
        ] {
            let sliced = Sliced::new(parse(name).unwrap());
            let mut buffers = [vec![0.0; z.len()], vec![0.0; z.len()], vec![0.0; z.len()]];
            let [values, slopes, alone] = &mut buffers;
            sliced.values_and_slopes(&z, values, slopes);
            sliced.values(&z, alone);
            for (i, &z) in z.iter().enumerate() {
                let (value, slope) = sliced.activation.value_and_slope(z);
                // 3 ulp of the vector erf and exp; exp(−z²) of a rounded z² is off by z² ulp, 36 of them at the end. Near a
                // root of a polynomial the terms count, which are no larger than its value a little further out.
                let (far, far_slope) = sliced.activation.value_and_slope(z.abs() + 1.0);
                let close =
                    |got: f64, exact: f64, far: f64| (got - exact).abs() <= 1e-14 * (exact.abs() + far.abs());
                assert!(close(values[i], value, far) && close(alone[i], value, far), "{name} at {z}");
                assert!(close(slopes[i], slope, far_slope), "{name} at {z}");
            }
        }
        assert_ne!(Kernel::of(&*parse("He3").unwrap()), Kernel::General);
        assert_ne!(Kernel::of(&*parse("sigmoid").unwrap()), Kernel::General);
    }
}
