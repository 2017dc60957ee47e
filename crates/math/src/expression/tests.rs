use proptest::prelude::*;

use super::breaks::one_sided;
use super::function::{Callable, FUNCTIONS};
use super::*;

fn value(text: &str, x: f64) -> f64 {
    Expression::parse(text, &["x"]).unwrap().value(&[x])
}

fn message(text: &str) -> String {
    Expression::parse(text, &["x"]).unwrap_err().to_string()
}

/// Central differences of order eight, of a function.
fn difference(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-2 * (1.0 + x.abs());
    let d = |k: f64| f(x + k * h) - f(x - k * h);
    (4.0 / 5.0 * d(1.0) - d(2.0) / 5.0 + 4.0 / 105.0 * d(3.0) - d(4.0) / 280.0) / h
}

#[test]
fn operators_bind_as_in_mathematics() {
    assert_eq!(value("-x^2", 3.0), -9.0);
    assert_eq!(value("2^3^2", 0.0), 512.0);
    assert_eq!(value("2^-1 * x", 3.0), 1.5);
    assert_eq!(value("8 / 4 / 2 - 1 - 1", 0.0), -1.0);
    assert_eq!(value("1 + 2*x**2", 3.0), 19.0);
    assert_eq!(value("-2*-x", 3.0), 6.0);
    assert_eq!(value("1.5e-1 + .5 + 2.", 0.0), 2.65);
    assert_eq!(value("max(x, 1) - min(x, 1) + floor(2.5)", 3.0), 4.0);
}

#[test]
fn names_carry_indices_and_constants_can_be_shadowed() {
    let risk = Expression::parse("R[0, 0]^2/Q[0,0]", &["Q[0,0]", "R[0,0]"]).unwrap();
    assert_eq!(risk.value(&[2.0, 3.0]), 4.5);
    assert_eq!(Expression::parse_free("z1^2 + z2*R[0, 1] + pi").unwrap().variables(), ["z1", "z2", "R[0,1]"]);
    assert_eq!(Expression::parse("e", &[]).unwrap().value(&[]), std::f64::consts::E);
    assert_eq!(Expression::parse("e", &["e"]).unwrap().value(&[7.0]), 7.0);
    let mut gradient = [0.0; 2];
    assert_eq!(risk.gradient(&[2.0, 3.0], &mut gradient), 4.5);
    assert_eq!(gradient, [-2.25, 3.0]);
}

#[test]
fn indicators_stand_in_every_formula() {
    assert_eq!(value("1{x > 0}", 2.0), 1.0);
    assert_eq!(value("1{x > 0}", -2.0), 0.0);
    assert_eq!(value("3*1{x < 1 + 1}*x", 1.5), 4.5);
    assert_eq!(value("x^2*1{1{x > 0} > 0.5}", 3.0), 9.0);
    let step = Expression::parse("1{x > 0.5}", &["x"]).unwrap();
    assert!(step.has_jumps() && step.breaks()[0].at == 0.5);
    assert_eq!(
        message("1{x}"),
        "expected `>` or `<` in an indicator, found `}`\n  1{x}\n     ^\nhint: write `1{x > 0}`"
    );
    assert_eq!(message("2*1{x > 0"), "this `{` is never closed\n  2*1{x > 0\n     ^");
    // An indicator is 1{…}, not any number in front of a brace; a comparison alone is no value.
    assert!(message("11{x > 0}").contains("unexpected character `{`"));
    assert!(message("x > 0").contains("unexpected character `>`"));
}

#[test]
fn a_freer_notation_is_asked_for() {
    let notation = Notation {
        implicit_products: true,
        aliases: &[("eps", "e")],
        vectors: &[("z", 0..2)],
        ..Notation::default()
    };
    let free = |text: &str| Expression::parse_with(text, &["z1", "z2", "e"], notation);
    let at = |text: &str| free(text).unwrap().value(&[2.0, 3.0, 5.0]);
    assert_eq!(at("3z1 z2^2"), 54.0);
    assert_eq!(at("1/2z1"), 1.0);
    assert_eq!(at("-2z1(z2 - 1)(z2 + 1)"), -32.0);
    assert_eq!(at("|z|^2 + 2|z|^2^2"), 13.0 + 2.0 * 169.0);
    assert_eq!(at("2e + 0.5eps z1"), 15.0);
    assert_eq!(at("1e1z1"), 20.0);
    assert_eq!(at("z1 1{z2 > z1}1{z1>0} tanh(0 z1 + 100)"), 2.0);
    assert!(
        free("|z1|^2").is_err() && free("|z|").is_err() && free("|z|^3").is_err() && free("y z1").is_err()
    );
    // Without it the same are errors.
    for text in ["3z1", "z1 z2", "z1(z2)", "eps", "|z|^2"] {
        assert!(Expression::parse(text, &["z1", "z2", "e"]).is_err(), "{text}");
    }
}

#[test]
fn errors_point_at_the_offending_character() {
    assert_eq!(
        message("2*x + tahn(x)"),
        "unknown function `tahn`\n  2*x + tahn(x)\n        ^\nhint: did you mean `tanh`?"
    );
    assert_eq!(message("x + y"), "unknown name `y`\n  x + y\n      ^\nhint: did you mean `x`?");
    assert_eq!(
        message("2x"),
        "missing operator before `x`\n  2x\n   ^\nhint: write products with `*`, as in `2*x`"
    );
    assert_eq!(message("(x + 1"), "this `(` is never closed\n  (x + 1\n  ^");
    assert_eq!(message("x + 1)"), "this `)` was never opened\n  x + 1)\n       ^");
    assert_eq!(message("x +"), "expected a value, found the end of the formula\n  x +\n     ^");
    assert_eq!(message("x * / 2"), "expected a value, found `/`\n  x * / 2\n      ^");
    assert_eq!(message("x # 2"), "unexpected character `#`\n  x # 2\n    ^");
    assert_eq!(message("1.2.3"), "`1.2.3` is not a number\n  1.2.3\n  ^");
    assert_eq!(message("max(x)"), "`max` takes 2 argument(s), found 1\n  max(x)\n  ^");
    assert_eq!(message("tanh(x, 1)"), "`tanh` takes 1 argument(s), found 2\n  tanh(x, 1)\n  ^");
    assert_eq!(message("erf + x"), "`erf` is a function\n  erf + x\n  ^\nhint: write `erf(...)`");
    assert_eq!(message("(x, 1)"), "unexpected character `,`\n  (x, 1)\n    ^");
    assert_eq!(message("R[0"), "this `[` is never closed\n  R[0\n   ^");
    assert_eq!(message("  "), "the formula is empty\n    \n  ^");
    assert_eq!(
        message("x(2)"),
        "missing operator before `(`\n  x(2)\n   ^\nhint: write products with `*`, as in `2*x`"
    );
    // Positions count characters, not bytes.
    assert_eq!(Expression::parse("η*q", &["η"]).unwrap_err().position, 2);
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    let parentheses = "(".repeat(4_000);
    assert_eq!(Expression::parse(&parentheses, &[]).unwrap_err().problem, FormulaProblem::TooDeep);
    assert_eq!(
        Expression::parse(&"(".repeat(100_000), &[]).unwrap_err().problem,
        FormulaProblem::TooLong(100_000)
    );
    let minuses = "-".repeat(4_000) + "x";
    assert_eq!(Expression::parse(&minuses, &["x"]).unwrap_err().problem, FormulaProblem::TooDeep);
    let held = "x+(".repeat(40) + "x" + &")".repeat(40);
    assert_eq!(Expression::parse(&held, &["x"]).unwrap_err().problem, FormulaProblem::TooDeep);
}

#[test]
fn every_function_has_exact_derivatives() {
    for (name, callable) in FUNCTIONS {
        let text = match callable {
            Callable::One(_) => format!("{name}(x)"),
            Callable::Two(_) => format!("{name}(x, 2*x - 0.1)"),
        };
        let f = Expression::parse(&text, &["x"]).unwrap();
        // Inside every domain, and 4h away from every break and pole.
        for x in [0.2, 0.35, 0.5, 0.7] {
            let jet = f.jet(&[x], 0);
            let slope = difference(|t| f.value(&[t]), x);
            let curvature = difference(|t| f.jet(&[t], 0).slope, x);
            // Order eight at h ≈ 0.015: truncation h⁸f⁽⁹⁾/630, largest for log and sqrt near 0.2; round-off ε/h.
            assert!((jet.slope - slope).abs() < 3e-7 * (1.0 + slope.abs()), "{text} at {x}: {jet:?} {slope}");
            assert!((jet.curvature - curvature).abs() < 3e-6 * (1.0 + curvature.abs()), "{text} at {x}");
            assert_eq!(jet.value, f.value(&[x]));
        }
    }
}

#[test]
fn tails_keep_their_digits() {
    // erfc(5) and Φ(−10): published values (Abramowitz & Stegun; tables of the normal law).
    assert!((value("erfc(x)", 5.0) / 1.537_459_794_428_035e-12 - 1.0).abs() < 1e-14);
    assert!((value("gelu(x)", -10.0) / -7.619_853_024_160_527e-23 - 1.0).abs() < 1e-13);
    assert_eq!(value("sigmoid(x)", -800.0), 0.0);
    assert!((value("sigmoid(x)", -40.0) / (-40.0f64).exp() - 1.0).abs() < 1e-15);
    assert_eq!(value("softplus(x)", 800.0), 800.0);
    assert_eq!(Expression::parse("tanh(x)", &["x"]).unwrap().jet(&[800.0], 0).slope, 0.0);
}

#[test]
fn breaks_are_found_with_their_jumps() {
    let breaks = |text: &str| Expression::parse(text, &["x"]).unwrap().breaks();
    let kink = |at, slope_jump| Break { at, value_jump: 0.0, slope_jump };
    assert_eq!(breaks("relu(x) - 0.2*relu(-x)"), [kink(0.0, 0.8)]);
    assert_eq!(breaks("max(min(x, 1), -1)"), [kink(-1.0, 1.0), kink(1.0, -1.0)]);
    assert_eq!(breaks("abs(2*x - 100)"), [kink(50.0, 4.0)]);
    assert_eq!(breaks("3*sign(x/2)"), [Break { at: 0.0, value_jump: 6.0, slope_jump: 0.0 }]);
    assert_eq!(breaks("tanh(x)^2"), []);
    assert_eq!(breaks("x*abs(x)"), []); // the slope 2|x| is continuous
    assert_eq!(breaks("abs(x^2)"), []);
    let found = breaks("abs(x^2 - 2)");
    assert_eq!(found.len(), 2);
    for (found, at) in found.iter().zip([-(2f64.sqrt()), 2f64.sqrt()]) {
        assert!((found.at - at).abs() < 1e-15 && (found.slope_jump - 2.0 * 2.0 * 2f64.sqrt()).abs() < 1e-14);
    }
    assert_eq!(breaks("floor(x/10)").len(), 3); // −10, 0, 10 within the scan
}

#[test]
fn breaks_take_the_half_way_value() {
    let relu = Expression::parse("relu(x)", &["x"]).unwrap();
    assert_eq!(relu.jet(&[0.0], 0), Jet { value: 0.0, slope: 0.5, curvature: 0.0 });
    assert_eq!(value("step(x)", 0.0), 0.5);
    assert_eq!(value("sign(x)", 0.0), 0.0);
}

#[test]
fn polynomials_are_recognised() {
    let polynomial = |text: &str| Expression::parse(text, &["x"]).unwrap().polynomial();
    assert_eq!(polynomial("x^3 - 3*x"), Some(vec![0.0, -3.0, 0.0, 1.0]));
    assert_eq!(polynomial("-(x - 1)^2/2"), Some(vec![-0.5, 1.0, -0.5]));
    assert_eq!(polynomial("x^0.5"), None);
    assert_eq!(polynomial("1/x"), None);
    assert_eq!(polynomial("x^21"), None);
}

/// Random formulas that are smooth on the real line and stay of moderate size.
fn smooth_formula() -> impl Strategy<Value = String> {
    let leaf =
        prop_oneof![Just("x".to_owned()), (-20i32..20).prop_map(|n| format!("{:.1}", f64::from(n) / 10.0))];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let function = prop::sample::select(vec!["tanh", "sin", "cos", "erf", "sigmoid", "atan", "erfc"]);
        prop_oneof![
            (function, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}*{b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}/(2 + ({b})^2)")),
            inner.prop_map(|a| format!("({a})^2")),
        ]
    })
}

proptest! {
    #[test]
    fn jets_agree_with_differences_of_random_formulas(text in smooth_formula(), x in -1.0..1.0f64) {
        let f = Expression::parse(&text, &["x"]).unwrap();
        let jet = f.jet(&[x], 0);
        prop_assert_eq!(jet.value, f.value(&[x]));
        // Two step sizes: where they disagree the formula is too steep for differences, and says nothing.
        for (exact, g) in [
            (jet.slope, Box::new(|t: f64| f.value(&[t])) as Box<dyn Fn(f64) -> f64>),
            (jet.curvature, Box::new(|t: f64| f.jet(&[t], 0).slope)),
        ] {
            let coarse = difference(&g, x);
            let fine = difference(|s| g(x + s / 4.0), 0.0) * 4.0;
            let scale = 1.0 + fine.abs() + jet.value.abs();
            let trust = (coarse - fine).abs() + 1e-11 * scale;
            prop_assert!((exact - fine).abs() <= 2.0 * trust + 1e-10 * scale, "{}: {} {}", text, exact, fine);
        }
    }

    #[test]
    fn program_and_tree_agree(text in smooth_formula(), x in -3.0..3.0f64) {
        let f = Expression::parse(&text, &["x"]).unwrap();
        prop_assert_eq!(f.jet(&[x], 0), one_sided(&f.tree, x, 0.0));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ xe0-9.+*/^(),\\[\\]a-z-]{0,24}") {
        let _ = Expression::parse(&text, &["x"]);
        let _ = Expression::parse_free(&text);
    }
}

#[test]
fn every_entry_of_the_catalogue_is_a_formula() {
    let catalogue = catalogue();
    for (formula, about) in &catalogue {
        assert!(Expression::parse(formula, &["x", "y"]).is_ok(), "{formula}");
        assert!(!about.is_empty(), "{formula}");
    }
    for known in ["x + y", "x ^ y", "erf(x)", "max(x, y)", "pi"] {
        assert!(catalogue.iter().any(|(formula, _)| formula == known), "{known}");
    }
}

#[test]
fn a_formula_that_is_too_long_or_too_deep_is_refused_before_it_overflows() {
    let terms = vec!["x"; 50_000].join("+");
    let parentheses = "(".repeat(100_000) + "x" + &")".repeat(100_000);
    for text in [terms, parentheses, "-".repeat(2_000) + "x", vec!["x"; 2_000].join("^")] {
        let message = Expression::parse(&text, &["x"]).unwrap_err().to_string();
        assert!(message.contains("characters") || message.contains("nested too deeply"), "{message}");
        assert!(message.lines().all(|line| line.chars().count() < 130), "{message}");
    }
    assert!(Expression::parse(&vec!["x"; LONGEST / 2].join("+"), &["x"]).is_ok());
}

#[test]
fn jumps_of_the_curvature_alone_are_found_too() {
    let breaks = |text: &str| Expression::parse(text, &["x"]).unwrap().curvature_breaks();
    assert_eq!(breaks("max(x, 0)^2"), [0.0]);
    assert_eq!(breaks("max(x, 0)*tanh(1.006*x)"), [0.0]);
    assert_eq!(breaks("(x - 1)*abs(x - 1) + max(x, 0)"), [1.0]);
    assert!(
        breaks("max(x, 0)").is_empty() && breaks("max(x, 0)^3").is_empty() && breaks("tanh(x)").is_empty()
    );
}
