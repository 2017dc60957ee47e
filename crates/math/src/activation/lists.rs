//! Activations over lists, in place: loops that the compiler vectorises, compiled for AVX2 and for the baseline.
//!
//! Each is the scalar formula of its [`Activation`](super::Activation) up to rounding.

use crate::dispatch;
use crate::simd::scalar;

/// Elements at a time. A loop over orders inside a loop over elements would defeat the vectoriser; over a fixed number
/// of lanes it does not.
const LANES: usize = 8;
type Lanes = [f64; LANES];

/// Applies `body` to chunks of lanes, the last one filled up with zeros.
#[inline(always)]
fn in_lanes(z: &mut [f64], body: impl Fn(&mut Lanes)) {
    let (whole, rest) = z.as_chunks_mut::<LANES>();
    whole.iter_mut().for_each(&body);
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        body(&mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// As [`in_lanes`] with a second result, the slopes.
#[inline(always)]
fn in_lanes_with_slopes(z: &mut [f64], slopes: &mut [f64], body: impl Fn(&mut Lanes, &mut Lanes)) {
    let (whole, rest) = z.as_chunks_mut::<LANES>();
    let (whole_slopes, rest_slopes) = slopes.as_chunks_mut::<LANES>();
    for (z, slopes) in whole.iter_mut().zip(whole_slopes) {
        body(z, slopes);
    }
    if !rest.is_empty() {
        let (mut last, mut last_slopes) = ([0.0; LANES], [0.0; LANES]);
        last[..rest.len()].copy_from_slice(rest);
        body(&mut last, &mut last_slopes);
        rest.copy_from_slice(&last[..rest.len()]);
        rest_slopes[..rest.len()].copy_from_slice(&last_slopes[..rest.len()]);
    }
}

dispatch! {
    /// max(z, 0).
    pub(super) fn relu(z: &mut [f64]) {
        for z in z {
            *z = z.max(0.0);
        }
    }
}

dispatch! {
    /// max(z, 0) and its slope, half-way at the kink.
    pub(super) fn relu_and_slope(z: &mut [f64], slopes: &mut [f64]) {
        for (z, slope) in z.iter_mut().zip(slopes) {
            *slope = 0.5 * (f64::from(*z > 0.0) + f64::from(*z >= 0.0));
            *z = z.max(0.0);
        }
    }
}

dispatch! {
    /// 1/(1 + e^{−z}).
    pub(super) fn sigmoid(z: &mut [f64]) {
        in_lanes(z, |z| {
            for z in z {
                *z = 1.0 / (1.0 + scalar::exp(-*z));
            }
        });
    }
}

dispatch! {
    /// 1/(1 + e^{−z}) and its slope.
    pub(super) fn sigmoid_and_slope(z: &mut [f64], slopes: &mut [f64]) {
        in_lanes_with_slopes(z, slopes, |z, slopes| {
            for l in 0..LANES {
                // e^{−|z|} never overflows, and 1 − σ is not a difference.
                let t = scalar::exp(-z[l].abs());
                let (small, large) = (t / (1.0 + t), 1.0 / (1.0 + t));
                z[l] = if z[l] >= 0.0 { large } else { small };
                slopes[l] = small * large;
            }
        });
    }
}

dispatch! {
    /// tanh z.
    pub(super) fn tanh(z: &mut [f64]) {
        in_lanes(z, |z| {
            for z in z {
                *z = scalar::tanh_and_slope(*z).0;
            }
        });
    }
}

dispatch! {
    /// tanh z and its slope.
    pub(super) fn tanh_and_slope(z: &mut [f64], slopes: &mut [f64]) {
        in_lanes_with_slopes(z, slopes, |z, slopes| {
            for l in 0..LANES {
                (z[l], slopes[l]) = scalar::tanh_and_slope(z[l]);
            }
        });
    }
}

/// (He_k, He_{k−1}) by He_{k+1} = z He_k − k He_{k−1}.
#[inline(always)]
fn recurrence(z: &Lanes, order: usize) -> (Lanes, Lanes) {
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
    /// factor He_k.
    pub(super) fn hermite(z: &mut [f64], order: usize, factor: f64) {
        in_lanes(z, |z| *z = recurrence(z, order).0.map(|v| factor * v));
    }
}

dispatch! {
    /// factor He_k and its slope, factor k He_{k−1}.
    pub(super) fn hermite_and_slope(z: &mut [f64], slopes: &mut [f64], order: usize, factor: f64) {
        let steep = factor * order as f64;
        in_lanes_with_slopes(z, slopes, |z, slopes| {
            let (now, before) = recurrence(z, order);
            *z = now.map(|v| factor * v);
            *slopes = before.map(|v| steep * v);
        });
    }
}

dispatch! {
    /// Σ_m c_m z^m, coefficients low to high.
    pub(super) fn polynomial(z: &mut [f64], coefficients: &[f64]) {
        in_lanes(z, |z| {
            let mut value = [0.0; LANES];
            for &c in coefficients.iter().rev() {
                for l in 0..LANES {
                    value[l] = value[l] * z[l] + c;
                }
            }
            *z = value;
        });
    }
}

dispatch! {
    /// Σ_m c_m z^m and its slope.
    pub(super) fn polynomial_and_slope(z: &mut [f64], slopes: &mut [f64], coefficients: &[f64]) {
        in_lanes_with_slopes(z, slopes, |z, slopes| {
            let (mut value, mut slope) = ([0.0; LANES], [0.0; LANES]);
            for &c in coefficients.iter().rev() {
                for l in 0..LANES {
                    slope[l] = slope[l] * z[l] + value[l];
                    value[l] = value[l] * z[l] + c;
                }
            }
            (*z, *slopes) = (value, slope);
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::activation::{catalogue, parse};

    #[test]
    fn lists_are_the_numbers_one_by_one() {
        let z: Vec<f64> = (0..517).map(|i| -6.0 + 0.0233 * f64::from(i)).chain([0.0, 40.0, -40.0]).collect();
        let names = ["erf(0.3*x)", "He1", "He3", "He7", "h4", "poly(1, 0, 2, -1)", "x*sigmoid(x)"];
        let known = catalogue();
        let all = known.iter().map(|(name, _)| *name).filter(|name| parse(name).is_ok()).chain(names);
        for name in all {
            let activation = parse(name).unwrap();
            let (mut values, mut alone, mut slopes) = (z.clone(), z.clone(), vec![0.0; z.len()]);
            activation.values_and_slopes(&mut values, &mut slopes);
            activation.values(&mut alone);
            for (i, &z) in z.iter().enumerate() {
                let (value, slope) = activation.value_and_slope(z);
                // A relative rounding of z changes σ by |z σ′|; 3 ulp of the vector erf and exp; exp(−z²) of a rounded z²
                // is off by z² ulp, 36 of them at the end.
                let size = value.abs() + (z * slope).abs() + 1e-300;
                assert!((values[i] - value).abs() <= 2e-15 * size, "{name} at {z}");
                assert!((alone[i] - value).abs() <= 2e-15 * size, "{name} at {z}");
                let size = slope.abs() + (z * activation.curvature(z)).abs() + 1e-300;
                assert!((slopes[i] - slope).abs() <= 1e-14 * size, "{name} at {z}");
            }
        }
    }
}
