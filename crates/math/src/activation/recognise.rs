//! Formulas that mean a known function are that function: `tanh(x)`, `max(x, 0)`, `1/(1 + exp(-x))`, `x*(1 + erf(x/sqrt(2)))/2`.
//!
//! Known functions have closed forms, vectorised loops and shorter sums, so a formula is compared with each of them at many points.
//! Two different functions of the catalogue, or a formula that only looks like one, differ by far more than rounding at most
//! of these.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::Arc;

use super::{Abs, Activation, Erf, Formula, Gelu, PiecewiseLinear, Relu, Sigmoid, Tanh};

/// Rounding of a formula of a few operations, in units of the size of its values.
const ROUNDING: f64 = 1e-13;

/// The known function that a formula is, if any.
pub(super) fn recognise(formula: &Formula) -> Option<Arc<dyn Activation>> {
    let (known, sides): (Vec<Arc<dyn Activation>>, _) = match formula.kinks() {
        [] => (vec![Arc::new(Tanh), Arc::new(Sigmoid), Arc::new(Gelu)], None),
        [kink] if kink.at == 0.0 => {
            (vec![Arc::new(Relu), Arc::new(Abs)], Some((-formula.value(-1.0), formula.value(1.0))))
        }
        _ => return None,
    };
    let erf = || {
        // erf(s x) has slope 2s/√π at 0, and 1/sqrt(2) typed in any way is one and the same unit.
        let scale = formula.slope(0.0) / std::f64::consts::FRAC_2_SQRT_PI;
        let saad_solla = (scale - FRAC_1_SQRT_2).abs() <= 4.0 * f64::EPSILON;
        let erf = Erf { scale: if saad_solla { FRAC_1_SQRT_2 } else { scale } };
        (formula.kinks().is_empty() && scale != 0.0).then(|| Arc::new(erf) as Arc<dyn Activation>)
    };
    let linear =
        || sides.map(|(below, above)| Arc::new(PiecewiseLinear::new(below, above)) as Arc<dyn Activation>);
    known.into_iter().chain(erf()).chain(linear()).find(|known| same(formula, known.as_ref()))
}

/// Whether two functions agree at points that are dense near the origin and reach far into the tails.
fn same(formula: &Formula, known: &dyn Activation) -> bool {
    (-60..=60).all(|k| {
        let z = f64::from(k) * 0.0717 + (f64::from(k) * 0.0431).powi(3);
        let (a, b) = (formula.value(z), known.value(z));
        // 1 + e^{−z} and its like round absolutely where they are small.
        (a - b).abs() <= ROUNDING * (1.0 + b.abs())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Form, parse};

    #[test]
    fn formulas_that_mean_a_known_function_are_that_function() {
        for (text, name) in [
            ("tanh(x)", "tanh"),
            ("(exp(x) - exp(-x))/(exp(x) + exp(-x))", "tanh"),
            ("2/(1 + exp(-2*z)) - 1", "tanh"),
            ("1/(1+exp(-x))", "sigmoid"),
            ("sigmoid(x)", "sigmoid"),
            ("x*(1 + erf(x/sqrt(2)))/2", "gelu"),
            ("gelu(z)", "gelu"),
            ("max(x, 0)", "relu"),
            ("(x + abs(x))/2", "relu"),
            ("relu(x)", "relu"),
            ("max(x, -x)", "abs"),
            ("abs(x)", "abs"),
            ("1 - erfc(x/sqrt(2))", "erf(z/sqrt2)"),
        ] {
            assert_eq!(parse(text).unwrap().name(), name, "{text}");
        }
        for (text, below, above) in [
            ("max(x,0) - 0.1*x", -0.1, 0.9),
            ("max(x, 0.01*x)", 0.01, 1.0),
            ("3*abs(x)", -3.0, 3.0),
            ("max(x,0)/2", 0.0, 0.5),
        ] {
            let Form::PiecewiseLinear { below: got, above: high } = parse(text).unwrap().form() else {
                panic!("{text}");
            };
            assert!((got - below).abs() < 1e-15 && (high - above).abs() < 1e-15, "{text}");
        }
    }

    #[test]
    fn others_stay_formulas() {
        for text in [
            "tanh(1.0000001*x)",
            "tanh(x) + 1e-9*x",
            "x*sigmoid(1.702*x)",
            "max(x,0) + 0.001",
            "max(x-0.1,0)",
            "max(x,0)^2",
            "max(x,0) + 1e-6*x^2",
            "log(1+exp(x))",
        ] {
            let unit = parse(text).unwrap();
            assert_eq!(unit.form(), Form::General, "{text}");
            assert_eq!(unit.name(), text);
        }
    }

    #[test]
    fn piecewise_linear_units_are_read_back() {
        let unit = parse("max(x,0) - 0.1*x").unwrap();
        let again = parse(&unit.name()).unwrap();
        for z in [-2.0, -0.3, 0.0, 0.7, 5.0] {
            assert_eq!(unit.value(z), again.value(z));
            assert_eq!(unit.slope(z), again.slope(z));
        }
        for k in 0..8 {
            let by_quadrature = crate::gauss::hermite::of_activation(unit.as_ref(), k, 0.8);
            assert!((unit.hermite(k, 0.8) - by_quadrature).abs() < 1e-14, "{k}");
        }
    }
}
