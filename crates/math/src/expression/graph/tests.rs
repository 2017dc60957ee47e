use super::elementary::{ALL, Elementary};
use super::*;
use crate::expression::Notation;
use proptest::prelude::*;

const NAMES: [&str; 4] = ["x", "y", "z", "w"];

fn parse(text: &str) -> Expression {
    Expression::parse(text, &NAMES).unwrap()
}

/// f, its gradient and the rows of its second derivatives, as one tape.
fn second_order(formula: &Expression) -> Tape {
    let mut graph = Graph::new(&[false; 4]);
    let f = graph.add(formula);
    let slopes = graph.gradient(f, &[0, 1, 2, 3]);
    let mut outputs = vec![f];
    outputs.extend(&slopes);
    for slope in slopes {
        outputs.extend(graph.gradient(slope, &[0, 1, 2, 3]));
    }
    Tape::new(&graph, &outputs, &[])
}

fn at(tape: &Tape, x: [f64; 4]) -> Vec<f64> {
    let mut out = Vec::new();
    tape.run_one(|v| x[v], |_, value| out.push(value));
    out
}

/// Formulas of four variables, smooth and of moderate size for moderate variables.
fn smooth_formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
        1 => (-20i32..20).prop_map(|n| format!("{}", f64::from(n) / 8.0)),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})*({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})/(1 + ({b})^2)")),
            (inner.clone(), -2i32..4).prop_map(|(a, n)| format!("(1 + ({a})^2)^({n})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(1.5 + tanh({a}))^tanh({b})")),
            (
                inner,
                prop::sample::select(vec![
                    "tanh", "erf", "sigmoid", "softplus", "gelu", "sin", "cos", "atan", "erfc"
                ])
            )
                .prop_map(|(a, f)| format!("{f}({a})")),
        ]
    })
}

fn point() -> impl Strategy<Value = [f64; 4]> {
    [-1.5..1.5f64, -1.5..1.5, -1.5..1.5, -1.5..1.5]
}

/// The fourth-order difference quotient of width h.
fn difference(f: impl Fn(f64) -> f64, h: f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn values_and_single_derivatives_are_those_of_jets(text in smooth_formula(), x in point()) {
        let formula = parse(&text);
        let all = at(&second_order(&formula), x);
        for variable in 0..4 {
            let jet = formula.jet(&x, variable);
            let exact = [jet.value, jet.slope, jet.curvature];
            let got = [all[0], all[1 + variable], all[5 + 5 * variable]];
            for (got, exact) in got.iter().zip(exact) {
                prop_assume!(exact.abs() < 1e6);
                // Terms may cancel: the sizes of all derivatives set the scale.
                let scale = 1.0 + exact.abs() + jet.value.abs() + jet.slope.abs();
                prop_assert!((got - exact).abs() <= 1e-9 * scale, "{}: {} {}", text, got, exact);
            }
        }
    }

    #[test]
    fn derivatives_are_those_of_finite_differences(text in smooth_formula(), x in point()) {
        let tape = second_order(&parse(&text));
        let all = at(&tape, x);
        prop_assume!(all.iter().all(|v| v.abs() < 1e4));
        for k in 0..4 {
            let moved = |entry: usize, by: f64| {
                let mut x = x;
                x[k] += by;
                at(&tape, x)[entry]
            };
            // Entry 0 is f, entries 1 to 4 are slopes whose derivatives follow.
            for entry in 0..5 {
                let exact = if entry == 0 { all[1 + k] } else { all[1 + 4 * entry + k] };
                let coarse = difference(|by| moved(entry, by), 2e-3);
                let fine = difference(|by| moved(entry, by), 1e-3);
                let trust = (coarse - fine).abs() + 1e-9 * (1.0 + all[entry].abs() + exact.abs());
                prop_assert!((exact - fine).abs() <= 4.0 * trust, "{}: {} {}", text, exact, fine);
            }
        }
    }

    #[test]
    fn second_derivatives_are_symmetric(text in smooth_formula(), x in point()) {
        let all = at(&second_order(&parse(&text)), x);
        prop_assume!(all.iter().all(|v| v.abs() < 1e6));
        let size: f64 = all.iter().map(|v| v.abs()).sum();
        for (i, k) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let (a, b) = (all[5 + 4 * i + k], all[5 + 4 * k + i]);
            prop_assert!((a - b).abs() <= 1e-10 * (1.0 + size), "{}: {} {}", text, a, b);
        }
    }

    #[test]
    fn a_batch_is_its_samples_to_the_last_bit(text in smooth_formula(), size in 1usize..40, seed in point()) {
        let text = format!("{text} + abs(x)*relu(y) + max(z, w) - 1{{x > y}}*exp(z)");
        let tape = second_order(&parse(&text));
        let columns: Vec<Vec<f64>> = (0..4)
            .map(|v| (0..size).map(|j| seed[v] + 0.37 * (j as f64 * (1.0 + v as f64)).sin()).collect())
            .collect();
        let mut batch = vec![vec![f64::NAN; size]; 21];
        tape.run(
            size,
            |v| if v == 3 { VariableValues::All(seed[3]) } else { VariableValues::Each(&columns[v]) },
            |entry, from, values| batch[entry][from..from + values.len()].copy_from_slice(values),
        );
        for j in 0..size {
            let one = at(&tape, [columns[0][j], columns[1][j], columns[2][j], seed[3]]);
            for (entry, one) in one.iter().enumerate() {
                let same = one.to_bits() == batch[entry][j].to_bits() || (one.is_nan() && batch[entry][j].is_nan());
                prop_assert!(same, "{}: entry {} of sample {}: {} {}", text, entry, j, one, batch[entry][j]);
            }
        }
    }
}

/// Every function is the derivative's anti-derivative, and the values are those of the standard library.
#[test]
fn the_list_of_functions_is_closed_under_differentiation() {
    for &function in ALL {
        let mut graph = Graph::new(&[false]);
        let x = graph.variable(0);
        let f = graph.apply(function, x);
        let slope = graph.gradient(f, &[0])[0];
        let curvature = graph.gradient(slope, &[0])[0];
        let tape = Tape::new(&graph, &[f, slope, curvature], &[]);
        let of = |x: f64| {
            let mut out = [0.0; 3];
            tape.run_one(|_| x, |i, value| out[i] = value);
            out
        };
        for x in [0.13, 0.42, 0.77] {
            let all = of(x);
            for order in 0..2 {
                let expected = difference(|by| of(x + by)[order], 1e-3);
                let close = (all[order + 1] - expected).abs() < 1e-7 * (1.0 + expected.abs());
                assert!(close, "{function:?} at {x}: {} {expected}", all[order + 1]);
            }
        }
    }
}

#[test]
fn functions_agree_with_those_of_single_numbers() {
    let texts = [
        "exp(x)",
        "log(x)",
        "sqrt(x)",
        "abs(x)",
        "sign(x)",
        "step(x)",
        "relu(x)",
        "tanh(x)",
        "sinh(x)",
        "cosh(x)",
        "sin(x)",
        "cos(x)",
        "tan(x)",
        "asin(x)",
        "acos(x)",
        "atan(x)",
        "erf(x)",
        "erfc(x)",
        "gelu(x)",
        "sigmoid(x)",
        "softplus(x)",
        "floor(x)",
        "x^3",
        "x^-2",
        "x^0.5",
        "x^2.5",
        "2^x",
        "max(x, 0.3)",
        "min(x, 0.3)",
        "x/3",
        "3/x",
    ];
    for text in texts {
        let formula = Expression::parse(text, &["x"]).unwrap();
        let mut graph = Graph::new(&[false]);
        let f = graph.add(&formula);
        let slope = graph.gradient(f, &[0])[0];
        let tape = Tape::new(&graph, &[f, slope], &[]);
        for x in [-30.0, -2.5, -0.7, -0.3, 0.0, 1e-9, 0.2, 0.3, 0.9, 3.2, 40.0] {
            let jet = formula.jet(&[x], 0);
            let mut got = [0.0; 2];
            tape.run_one(|_| x, |i, value| got[i] = value);
            for (got, expected) in got.iter().zip([jet.value, jet.slope]) {
                // At a pole both are beyond all bounds, in one way or another.
                let both = !got.is_finite() && !expected.is_finite() || *got == expected;
                // Slopes of tanh and sigmoid are differences from 1: their absolute error is that of rounding.
                let close = (got - expected).abs() <= 4e-15 * expected.abs() + 4e-16;
                assert!(both || close, "{text} at {x}: {got} {expected}");
            }
        }
    }
}

#[test]
fn shared_parts_are_computed_once() {
    // tanh(x) once for value and slope, its square once: (t − y)²/2 with slopes (t − y)(1 − t²) and −(t − y).
    let mut graph = Graph::new(&[false; 2]);
    let f = graph.add(&Expression::parse("(tanh(x) - y)^2/2", &["x", "y"]).unwrap());
    let slopes = graph.gradient(f, &[0, 1]);
    let tape = Tape::new(&graph, &[slopes[0], slopes[1]], &[]);
    assert_eq!(tape.len(), 6, "{tape:?}"); // tanh, −y, square, 1 −, ×, y −
    let twice = Expression::parse("exp(x*y) + exp(y*x)", &["x", "y"]).unwrap();
    let mut graph = Graph::new(&[false; 2]);
    let f = graph.add(&twice);
    assert_eq!(Tape::new(&graph, &[f], &[]).len(), 3);
}

#[test]
fn a_zero_factor_wins_over_an_infinite_slope() {
    let mut graph = Graph::new(&[false]);
    let f = graph.add(&Expression::parse("(sqrt(relu(x)) - 1)^2", &["x"]).unwrap());
    let slope = graph.gradient(f, &[0])[0];
    let curvature = graph.gradient(slope, &[0])[0];
    Tape::new(&graph, &[f, slope, curvature], &[]).run_one(
        |_| -0.5,
        |i, value| {
            assert_eq!(value, [1.0, 0.0, 0.0][i], "entry {i}");
        },
    );
}

#[test]
fn what_is_known_early_is_one_node_where_that_is_possible() {
    let vectors = [("h", 0..2), ("v", 2..4)];
    let notation = Notation { vectors: &vectors, ..Notation::default() };
    let early = [false, false, true, true, true];
    for (text, expected) in [
        ("(sum(tanh(h[i]), i) - sum(tanh(v[i]), i) - e)^2/2", true),
        ("(tanh(h1) - v1 + tanh(h2) - v2^2)^2", true),
        ("log(1 + exp(-h1*h2*sign(v1 + v2)))", true),
        ("(h1 + 0.5*v1)^2 - v2*h1", false),
        ("(h1*v1 - v2)^2", false),
        ("h1^2 + h2", false),
    ] {
        let names = ["h1", "h2", "v1", "v2", "e"];
        let formula = Expression::parse_with(text, &names, notation).unwrap();
        let mut graph = Graph::new(&early);
        let loss = graph.add(&formula);
        let part = graph.early_part(loss);
        assert_eq!(part.is_some(), expected, "{text}");
        let Some(part) = part else { continue };
        // The slopes by the late variables need no more of the early ones than this part.
        let slopes = graph.gradient(loss, &[0, 1]);
        let (whole, label) = (Tape::new(&graph, &slopes, &[]), Tape::new(&graph, &[part], &[]));
        let told = Tape::new(&graph, &slopes, &[(part, 5)]);
        let x = [0.3, -0.8, 1.1, 0.4, -0.2];
        let mut y = 0.0;
        label.run_one(|v| x[v], |_, value| y = value);
        let mut expected = Vec::new();
        whole.run_one(|v| x[v], |_, value| expected.push(value));
        told.run_one(
            |v| match v {
                0 | 1 => x[v],
                5 => y,
                other => panic!("{text}: variable {other} is read"),
            },
            |i, value| assert_eq!(value, expected[i], "{text}"),
        );
    }
}

#[test]
fn jumps_are_found() {
    for (text, loss, slope) in [
        ("tanh(x)^2 + relu(y)", false, false),
        ("relu(x)*y", false, true),
        ("relu(x)^2", false, false),
        ("abs(x)", false, true),
        ("abs(x)^3", false, false),
        ("max(x, y)^2", false, true),
        ("max(x, 0)*x", false, false),
        ("(x - sign(y))^2", false, false),
        ("sign(x)*y", true, false),
        ("floor(3*x)", true, false),
        ("abs(x - 1.5)*sign(x - 1.5)", false, false),
        ("min(abs(x - y), 1)^2", false, true),
    ] {
        let mut graph = Graph::new(&[false; 2]);
        let f = graph.add(&Expression::parse(text, &["x", "y"]).unwrap());
        let slopes = graph.gradient(f, &[0]);
        assert_eq!(graph.jumps_along(&[f], 0..1), loss, "{text}");
        assert_eq!(graph.jumps_along(&slopes, 0..1), slope, "slope of {text}");
    }
}

#[test]
fn constants_are_folded() {
    let mut graph = Graph::new(&[false]);
    let f = graph.add(&Expression::parse("2*(x*3)/6 + tanh(0)*x + 0*exp(x) - 0", &["x"]).unwrap());
    assert_eq!(f, graph.variable(0));
    assert_eq!(Elementary::Square.value(3.0), 9.0);
}

/// relu in two panels: values, slopes and the search for jumps go through the graph as they do for the function itself.
#[test]
fn functions_known_by_numbers_have_slopes_and_jumps() {
    let sampled = second_order(&parse("(sampled[-8, !0, 8; 0; 4, 4](2*x - y) - z)^2/2"));
    let exact = second_order(&parse("(relu(2*x - y) - z)^2/2"));
    for x in [[0.3, -0.4, 0.7, 0.0], [-1.0, 0.5, 0.2, 0.0], [6.0, -3.0, 0.1, 0.0]] {
        for (own, exact) in at(&sampled, x).iter().zip(at(&exact, x)) {
            assert!((own - exact).abs() < 1e-12, "{own} is not {exact} at {x:?}");
        }
    }
    let mut graph = Graph::new(&[false; 4]);
    let f = graph.add(&parse("sampled[-8, !0, 8; 0; 4, 4](2*x - y)"));
    let slopes = graph.gradient(f, &[0]);
    assert!(!graph.jumps_along(&[f], 0..2));
    assert!(graph.jumps_along(&slopes, 0..2));
}
