use std::f64::consts::FRAC_1_SQRT_2;

use super::names::instances;
use super::*;
use crate::gauss::hermite::of_activation;

/// Order-eight central difference.
fn difference(f: impl Fn(f64) -> f64, x: f64, h: f64) -> f64 {
    let d = |k: f64| f(x + k * h) - f(x - k * h);
    (4.0 / 5.0 * d(1.0) - d(2.0) / 5.0 + 4.0 / 105.0 * d(3.0) - d(4.0) / 280.0) / h
}

#[test]
fn every_name_of_the_catalogue_has_an_instance() {
    let instances: Vec<&str> = instances().collect();
    for (name, _) in catalogue() {
        assert!(name.contains(['<', '.']) || instances.contains(&name), "{name}");
    }
    assert!(instances.len() >= catalogue().len());
}

#[test]
fn slopes_and_curvatures_are_derivatives() {
    for name in instances() {
        let a = parse(name).unwrap();
        // h45 oscillates with wave number √45: the step must resolve it.
        let h = if name == "h45" { 4e-3 } else { 2e-2 };
        for z in [-4.3, -2.1, -0.9, -0.3, 0.2, 0.6, 1.4, 3.7] {
            let (slope, curvature) = (difference(|t| a.value(t), z, h), difference(|t| a.slope(t), z, h));
            let size = 1.0 + a.value(z).abs() + slope.abs();
            assert!((a.slope(z) - slope).abs() < 1e-10 * size, "{name} at {z}: {} {slope}", a.slope(z));
            assert!((a.curvature(z) - curvature).abs() < 1e-9 * (size + curvature.abs()), "{name} at {z}");
            assert_eq!(a.jet(z), (a.value(z), a.slope(z), a.curvature(z)), "{name}");
        }
    }
}

#[test]
fn tails_and_small_arguments_keep_their_digits() {
    for z in [1e-9, 1e-3, 0.3, 0.49, 0.51, 2.0, 7.0, 20.0, 300.0, -0.2, -40.0] {
        let (value, slope, _) = Tanh.jet(z);
        assert!((value / z.tanh() - 1.0).abs() < 4e-16, "tanh {z}");
        assert!((slope * z.cosh() * z.cosh() - 1.0).abs() < 2e-15, "sech² {z}");
    }
    assert!((Sigmoid.slope(-700.0) / (-700.0f64).exp() - 1.0).abs() < 1e-15);
    assert_eq!(Sigmoid.slope(30.0), Sigmoid.slope(-30.0));
    // Mills: Φ(−x) = φ(x)/x (1 − 1/x² + 3/x⁴ − …), so gelu(−30) = −φ(30)(1 − 1/900 + 3/810000 − …).
    let mills = 1.0 - 1.0 / 900.0 + 3.0 / 9e2f64.powi(2) - 15.0 / 9e2f64.powi(3) + 105.0 / 9e2f64.powi(4);
    let density = crate::gauss::normal::density(30.0);
    assert!((Gelu.value(-30.0) / (-density * mills) - 1.0).abs() < 1e-11);
    assert_eq!(Erf { scale: 1.0 }.value(9.0), 1.0);
}

#[test]
fn kinks_carry_the_jump_of_the_slope() {
    for name in instances() {
        let a = parse(name).unwrap();
        for kink in a.kinks() {
            let jump = a.slope(kink.at + 1e-9) - a.slope(kink.at - 1e-9);
            assert!((jump - kink.jump).abs() < 1e-8, "{name}");
            let middle = 0.5 * (a.slope(kink.at + 1e-9) + a.slope(kink.at - 1e-9));
            assert!((a.slope(kink.at) - middle).abs() < 1e-8, "{name}");
        }
    }
    assert_eq!(parse("max(x, -0.5) - 0.1*abs(x - 1)").unwrap().kinks().len(), 2);
}

#[test]
fn hermite_closed_forms_match_quadrature() {
    for name in instances() {
        let a = parse(name).unwrap();
        for variance in [0.1, 0.5, 1.0, 1.7, 4.0] {
            // The rounding of a sum of terms as large as the norm of σ.
            let norm = crate::gauss::pair_averages(&*a, &*a, &[[variance; 2]; 2]).value_value.sqrt();
            for k in 0..=40 {
                let (closed, numeric) = (a.hermite(k, variance), of_activation(&*a, k, variance));
                assert!(
                    (closed - numeric).abs() < 2e-14 * (1.0 + norm),
                    "{name}, k = {k}, r = {variance}: {closed} {numeric}"
                );
            }
        }
    }
}

#[test]
fn hermite_coefficients_obey_parseval() {
    for (name, orders, tolerance) in [
        ("linear", 2, 1e-15),
        ("erf(z)", 200, 1e-13),
        ("erf(z/sqrt2)", 120, 1e-13),
        ("gelu", 60, 1e-9),
        ("He7", 8, 1e-12),
        ("h45", 46, 1e-12),
        ("quadratic", 3, 1e-15),
        // Poles: c_k² ~ exp(−2d√(2k)): 1e-8 at k = 60 for tanh, less for sigmoid.
        ("tanh", 60, 1e-6),
        ("sigmoid", 60, 1e-10),
        // Σ_{k>K} c_k² ~ K^{−3/2}.
        ("relu", 400, 1e-4),
        ("abs", 400, 2e-4),
    ] {
        let a = parse(name).unwrap();
        let sum: f64 = (0..orders).map(|k| a.hermite(k, 1.0).powi(2)).sum();
        let norm = crate::gauss::pair_averages(&*a, &*a, &[[1.0; 2]; 2]).value_value;
        assert!((sum / norm - 1.0).abs() < tolerance, "{name}: {sum} {norm}");
        assert!(sum <= norm * (1.0 + 1e-12), "{name}: Bessel");
    }
}

#[test]
fn golden_hermite_coefficients_are_reproduced() {
    // golden/low-rank-perturbation.json: mu_relu_R1.0, mu_sigmoid_R1.0, mu_He3_R1.4 (R² = variance).
    let cases: [(&str, f64, &[f64]); 3] = [
        (
            "relu",
            1.0,
            &[
                0.3989422804014327,
                0.5,
                0.2820947917738782,
                0.0,
                -0.08143375198381998,
                0.0,
                0.044603102903819296,
                0.0,
                -0.029801701688056,
            ],
        ),
        (
            "sigmoid",
            1.0,
            &[
                0.5,
                0.20662096414190684,
                0.0,
                -0.025473257907323417,
                0.0,
                0.005877060600013518,
                0.0,
                -0.001726656287568247,
            ],
        ),
        ("He3", 1.4, &[0.0, 4.031999999999998, 0.0, 6.721399854197038]),
    ];
    for (name, scale, expected) in cases {
        for (k, expected) in expected.iter().enumerate() {
            let got = parse(name).unwrap().hermite(k, scale * scale);
            assert!((got - expected).abs() < 1e-14, "{name}, {k}: {got} {expected}");
        }
    }
}

#[test]
fn expanded_and_recurrent_hermite_agree() {
    for k in [0, 1, 2, 5, 12, 20] {
        let a = HermitePolynomial::new(k, false).unwrap();
        let Form::Polynomial(coefficients) = a.form() else { panic!("order {k} is expanded") };
        let expanded = Polynomial::new(&coefficients);
        for z in [-1.5, 0.0, 0.4, 2.0] {
            let size: f64 =
                coefficients.iter().enumerate().map(|(m, c)| (c * f64::powi(z, m as i32)).abs()).sum();
            assert!((a.value(z) - expanded.value(z)).abs() <= 1e-14 * size, "He{k}({z})");
        }
    }
    assert_eq!(parse("He3").unwrap().form(), Form::Polynomial(vec![0.0, -3.0, 0.0, 1.0]));
    assert_eq!(parse("He21").unwrap().form(), Form::General);
}

#[test]
fn names_are_read_back() {
    for name in instances() {
        let a = parse(name).unwrap();
        let b = parse(&a.name()).unwrap();
        assert_eq!(a.name(), b.name());
        assert_eq!(a.value(0.7), b.value(0.7));
    }
    assert_eq!(parse(" ReLU ").unwrap().name(), "relu");
    assert_eq!(parse("erf( x / sqrt(2) )").unwrap().name(), "erf(z/sqrt2)");
    assert_eq!(parse("erf(0.5*z)").unwrap().form(), Form::Erf { scale: 0.5 });
    assert_eq!(parse("erf(x)").unwrap().form(), Form::Erf { scale: 1.0 });
    assert_eq!(parse("Erf(Z/Sqrt2)").unwrap().form(), Form::Erf { scale: FRAC_1_SQRT_2 });
    assert_eq!(parse("z^3 - 3*z").unwrap().form(), Form::Polynomial(vec![0.0, -3.0, 0.0, 1.0]));
    assert_eq!(parse("He3").unwrap().value(2.0), 2.0);
    assert_eq!(parse("quad").unwrap().name(), "quadratic");
    for (name, _) in catalogue() {
        if !name.contains(['<', '.']) {
            assert!(parse(name).is_ok(), "{name}");
        }
    }
}

#[test]
fn refusals_say_what_to_do() {
    let message = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        message("erf"),
        "`erf` is ambiguous\nhint: write `erf(z)`, or `erf(z/sqrt2)` for the convention of Saad and Solla"
    );
    assert_eq!(message("sigmod"), "unknown activation `sigmod`\nhint: did you mean `sigmoid`?");
    assert_eq!(message("he3"), "unknown activation `he3`\nhint: did you mean `He3`?");
    assert_eq!(message("H4"), "unknown activation `H4`\nhint: did you mean `h4`?");
    assert_eq!(message("He61"), "`He61`: Hermite activations go up to order 60");
    assert_eq!(message("poly(1, a)"), "coefficient 1 of `poly` is `a`, which is not a finite number");
    assert_eq!(
        message("tanh(x) + y"),
        "unknown name `y`\n  tanh(x) + y\n            ^\nhint: did you mean `x`?"
    );
    assert_eq!(message("softplus"), "`softplus` is a function\n  softplus\n  ^\nhint: write `softplus(...)`");
    assert!(message("x + z").contains("exactly one of x and z"));
    assert!(message("pi").contains("exactly one of x and z"));
    assert!(message("sign(x)").contains("jumps by 2 at 0"));
    assert!(message("1/x").contains("must be finite"));
    assert!(message("log(x)").contains("must be finite"));
    assert!(message("").contains("empty"));
}

#[test]
fn formulas_measure_their_own_resolution() {
    assert!(parse("tanh(x) + 0*sin(x)").unwrap().resolution() >= 0.15);
    // Poles at ±0.1i.
    assert!(parse("1/(1 + 100*x^2)").unwrap().resolution() <= 0.02);
}

#[test]
fn jets_of_many_arguments_are_the_jets_one_by_one() {
    let z: Vec<f64> = (0..61).map(|i| 0.173 * f64::from(i) - 5.2).collect();
    for name in instances() {
        let a = parse(name).unwrap();
        let (mut value, mut slope, mut curvature) = (vec![0.0; 61], vec![0.0; 61], vec![0.0; 61]);
        a.jets(&z, &mut value, &mut slope, &mut curvature);
        for (i, &z) in z.iter().enumerate() {
            let (v, s, c) = a.jet(z);
            // Absolute near 0 (Φ by erf, not erfc), relative for polynomials, which sum large terms.
            let close = |x: f64, y: f64| (x - y).abs() <= 2e-14 * (1.0 + y.abs());
            assert!(
                close(value[i], v) && close(slope[i], s) && close(curvature[i], c),
                "{name} at {z}: {} {v}, {} {s}, {} {c}",
                value[i],
                slope[i],
                curvature[i]
            );
        }
    }
}
