use proptest::prelude::*;

use super::*;
use crate::activation::parse;

const NAMES: [&str; 12] = [
    "linear",
    "erf(z)",
    "erf(z/sqrt2)",
    "relu",
    "tanh",
    "sigmoid",
    "gelu",
    "quadratic",
    "He3",
    "abs",
    "relu(x) - 0.2*relu(-x) + 0.1*sin(x)",
    "abs(x - 0.5) - 0.3*abs(x + 1)",
];

const COVARIANCES: [[[f64; 2]; 2]; 5] = [
    [[1.3, 0.4], [0.4, 0.8]],
    [[0.5, -0.45], [-0.45, 0.6]],
    [[2.0, 0.0], [0.0, 0.1]],
    [[1.0, 0.999], [0.999, 1.0]],
    [[4.0, 1.5], [1.5, 0.7]],
];

fn close(a: PairAverages, b: PairAverages, tolerance: f64, what: &str) {
    let pairs = [
        (a.value_value, b.value_value),
        (a.slope_slope, b.slope_slope),
        (a.curvature_value, b.curvature_value),
        (a.value_curvature, b.value_curvature),
    ];
    for (x, y) in pairs {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{what}\n{a:?}\n{b:?}");
    }
}

#[test]
fn closed_forms_match_quadrature() {
    for first in NAMES {
        for second in NAMES {
            let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
            for c in &COVARIANCES {
                let what = format!("{first}, {second}, {c:?}");
                close(pair_averages(&*a, &*b, c), quadrature(&*a, &*b, c), 1e-12, &what);
            }
        }
    }
}

/// The slow reference: no knowledge of kinks, a grid of 1500² midpoints, Dirac terms by smoothing (differences of a).
fn brute(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2]) -> [f64; 2] {
    let fields = Fields::new(c);
    let n = 1500;
    let point = |i: usize| 16.0 * ((i as f64 + 0.5) / n as f64 - 0.5);
    let weight = |x: f64| 16.0 / n as f64 * density(x);
    let mut sums = [0.0; 2];
    for i in 0..n {
        let x = point(i);
        let mut inner = [0.0; 2];
        for j in 0..n {
            let y = point(j);
            let v = fields.slope * x + fields.spread * y;
            inner[0] += weight(y) * b.value(v);
            inner[1] += weight(y) * b.slope(v);
        }
        sums[0] += weight(x) * a.value(fields.deviation * x) * inner[0];
        sums[1] += weight(x) * a.slope(fields.deviation * x) * inner[1];
    }
    sums
}

#[test]
fn quadrature_matches_brute_force() {
    for (first, second) in [("relu", "tanh"), ("abs", "abs"), ("abs(x - 0.5) - 0.3*abs(x + 1)", "gelu")] {
        let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
        let c = [[1.3, 0.4], [0.4, 0.8]];
        let (got, exact) = (pair_averages(&*a, &*b, &c), brute(&*a, &*b, &c));
        // Midpoints miss a kink by h² × jump/8 = 1e-5, a jump of the slope by up to h/2 × density = 2e-3.
        assert!((got.value_value - exact[0]).abs() < 2e-5, "{first} {second}: {got:?} {exact:?}");
        assert!((got.slope_slope - exact[1]).abs() < 4e-3, "{first} {second}: {got:?} {exact:?}");
    }
}

/// Price's theorem ties the four averages together: it checks Dirac terms without knowing of them.
#[test]
fn averages_are_the_derivatives_of_the_value() {
    for first in NAMES {
        for second in ["tanh", "erf(z)", "He3", "relu", "abs(x - 0.5) - 0.3*abs(x + 1)"] {
            let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
            let c = COVARIANCES[1];
            let value = |d11: f64, d12: f64, d22: f64| {
                let moved = [[c[0][0] + d11, c[0][1] + d12], [c[0][1] + d12, c[1][1] + d22]];
                pair_averages(&*a, &*b, &moved).value_value
            };
            let h = 1e-3;
            let slope = |d: [f64; 3]| {
                let at = |k: f64| value(k * h * d[0], k * h * d[1], k * h * d[2]);
                // Sixth order: h⁶ f⁽⁷⁾/140 and round-off 1e-15/h.
                (45.0 * (at(1.0) - at(-1.0)) - 9.0 * (at(2.0) - at(-2.0)) + at(3.0) - at(-3.0)) / (60.0 * h)
            };
            let expected = PairAverages {
                value_value: value(0.0, 0.0, 0.0),
                slope_slope: slope([0.0, 1.0, 0.0]),
                curvature_value: 2.0 * slope([1.0, 0.0, 0.0]),
                value_curvature: 2.0 * slope([0.0, 0.0, 1.0]),
            };
            close(pair_averages(&*a, &*b, &c), expected, 1e-9, &format!("{first}, {second}, {c:?}"));
        }
    }
}

#[test]
fn degenerate_covariances_are_limits() {
    for first in NAMES {
        for second in NAMES {
            let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
            let what = |case: &str| format!("{case}: {first}, {second}");
            for sign in [1.0, -1.0] {
                // v = ±0.5 u. Approached from |ρ| < 1: slopes of kinks change like √(1 − ρ²) = 5e-5.
                let exact = pair_averages(&*a, &*b, &[[1.6, sign * 0.8], [sign * 0.8, 0.4]]);
                let near = pair_averages(&*a, &*b, &[[1.6, sign * (0.8 - 1e-9)], [sign * (0.8 - 1e-9), 0.4]]);
                close(exact, near, 1e-4, &what("parallel"));
            }
            let still = pair_averages(&*a, &*b, &[[0.0, 0.0], [0.0, 0.7]]);
            assert!(still.value_value.is_finite() && still.slope_slope.is_finite(), "{}", what("still"));
            if a.kinks().is_empty() {
                let near = pair_averages(&*a, &*b, &[[1e-12, 0.0], [0.0, 0.7]]);
                close(still, near, 1e-5, &what("zero variance"));
            }
        }
    }
}

#[test]
fn squares_of_one_field_match_one_dimensional_quadrature() {
    for name in ["tanh", "gelu", "sigmoid", "He3", "abs", "relu"] {
        let a = parse(name).unwrap();
        let got = pair_averages(&*a, &*a, &[[0.9, 0.9], [0.9, 0.9]]);
        let rule = GaussianRule::panels(&[0.0], 0.5, REACH);
        let exact = rule.average(|z| a.value(0.9f64.sqrt() * z).powi(2));
        assert!((got.value_value - exact).abs() < 1e-13, "{name}");
    }
}

#[test]
fn high_hermite_polynomials_stay_orthogonal() {
    let (a, b) = (parse("h40").unwrap(), parse("h38").unwrap());
    let c = [[1.0, 0.6], [0.6, 1.0]];
    assert!((pair_averages(&*a, &*a, &c).value_value - 0.6f64.powi(40)).abs() < 1e-15);
    assert_eq!(pair_averages(&*a, &*b, &c).value_value, 0.0);
    // E[h_n′ h_n′] = n ρ^{n−1}
    assert!((pair_averages(&*a, &*a, &c).slope_slope / (40.0 * 0.6f64.powi(39)) - 1.0).abs() < 1e-12);
}

/// Kernel values of golden/low-rank-perturbation.json (independent code).
#[test]
fn golden_kernels_are_reproduced() {
    let c = [[1.3, 0.4], [0.4, 0.8]];
    for (name, value, slope) in
        [("relu", 0.27495998096618146, 0.31414852574944), ("He3", 0.16799999999999962, 2.3399999999999976)]
    {
        let a = parse(name).unwrap();
        let got = pair_averages(&*a, &*a, &c);
        assert!(
            (got.value_value - value).abs() < 1e-14 && (got.slope_slope - slope).abs() < 1e-14,
            "{name}: {got:?}"
        );
    }
    let sigmoid = parse("sigmoid").unwrap();
    let got = pair_averages(&*sigmoid, &*sigmoid, &[[1.0, 0.45], [0.45, 1.0]]);
    assert!((got.value_value - 0.2692712788530289).abs() < 1e-13);
    assert!((got.slope_slope - 0.0430936820577811).abs() < 1e-13);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn exchanging_the_fields_exchanges_the_averages(
        i in 0..NAMES.len(), j in 0..NAMES.len(), q in 0.1..3.0f64, r in 0.1..3.0f64, rho in -0.99..0.99f64,
    ) {
        let (a, b) = (parse(NAMES[i]).unwrap(), parse(NAMES[j]).unwrap());
        let c = [[q, rho * (q * r).sqrt()], [rho * (q * r).sqrt(), r]];
        let there = pair_averages(&*a, &*b, &c);
        let back = pair_averages(&*b, &*a, &transposed(&c)).swapped();
        close(there, back, 1e-12, &format!("{}, {}, {c:?}", NAMES[i], NAMES[j]));
    }
}
