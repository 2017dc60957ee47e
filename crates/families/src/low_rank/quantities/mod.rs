//! Predictions that are not trajectories, by name; inputs are named as in the table of
//! docs/derivations/low-rank-perturbation.md#s2.

mod baselines;
mod finite_step;
mod inputs;
mod kernels;
mod orthonormal;
mod population;

use didact_model::quantity::Quantity;

pub(super) const ALL: &[Quantity] = &[
    kernels::HERMITE,
    kernels::KERNEL,
    kernels::PAIR,
    population::SIGNAL,
    population::LOSS,
    population::SERIES,
    population::INTERACTION,
    population::VARIANCE,
    population::LOADING_GRADIENT,
    population::ORTHOGONAL_TEACHER,
    orthonormal::SIGNAL,
    orthonormal::ZEROS,
    orthonormal::BASINS,
    orthonormal::FLOW_TIME,
    orthonormal::FLOW,
    orthonormal::CONDITION,
    finite_step::NOISE,
    finite_step::ODE,
    finite_step::STATIONARY,
    finite_step::STEP_SIZE,
    finite_step::FASTEST_STEP,
    finite_step::TYPICAL,
    finite_step::CHAIN_STEP,
    baselines::SINGLE_INDEX,
    baselines::LAZY,
    baselines::NTK_FLOW,
    baselines::MOMENT,
    baselines::REFIT,
    baselines::TWO_OPTIMA,
    baselines::THEOREM,
    baselines::CROSSOVERS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    fn compute(name: &str, inputs: Value) -> Result<Vec<(&'static str, Value)>, String> {
        let given: Map<String, Value> = inputs.as_object().unwrap().clone();
        let quantity = ALL.iter().find(|q| q.name == name).unwrap();
        quantity.evaluate(&given).map_err(|e| e.to_string())
    }

    #[test]
    fn names_are_unique_and_every_quantity_refuses_an_unknown_activation() {
        for (i, quantity) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|q| q.name != quantity.name), "{}", quantity.name);
        }
        let error =
            compute("signal-zeros", json!({"activation": "rleu", "k": 8, "BB": 16, "O": 4, "theta": 0.5}));
        assert!(error.unwrap_err().contains("did you mean `relu`"));
    }

    #[test]
    fn impossible_inputs_are_refused_with_a_reason() {
        let two = json!([[1, 0], [0, 1]]);
        let half = 0.5f64.sqrt();
        let orthonormal = |bb: f64, o: f64, theta: f64| json!({"activation": "relu", "k": 8, "BB": bb, "O": o, "theta": theta});
        for (name, inputs, reason) in [
            (
                "signal",
                json!({"activation": "relu", "G": two, "c": [1, 1], "c_hat": [1, 0], "xi": 1, "m": 0}),
                "unit vector",
            ),
            (
                "signal",
                json!({"activation": "relu", "G": two, "c": [1, 0], "c_hat": [1, 0], "xi": 0, "m": 0}),
                "positive",
            ),
            (
                "signal",
                json!({"activation": "relu", "G": two, "c": [1, 0], "c_hat": [1, 0], "xi": 1, "m": 1.2}),
                "|m| <= 1",
            ),
            (
                "signal",
                json!({"activation": "relu", "G": [[1, 2], [2, 1]], "c": [1, 0], "c_hat": [1, 0], "xi": 1, "m": 0}),
                "negative eigenvalue",
            ),
            (
                "signal",
                json!({"activation": "relu", "G": [[2, 0], [0, 1]], "c": [1, 0], "c_hat": [1, 0], "xi": 1, "m": 0}),
                "unit vectors",
            ),
            (
                "signal",
                json!({"activation": "poly(2)", "G": two, "c": [1, 0], "c_hat": [1, 0], "xi": 1, "m": 0}),
                "constant",
            ),
            (
                "signal-series",
                json!({"activation": "relu", "G": two, "c": [1, 0], "c_hat": [half, half], "xi": 1, "n": 2}),
                "quantised",
            ),
            ("signal-zeros", orthonormal(16.0, 4.0, 1.0), "theta"),
            ("signal-zeros", orthonormal(64.0, 4.0, 0.5), "no signs"),
            ("signal-zeros", orthonormal(16.5, 4.0, 0.5), "no signs"),
            ("theorem-constants", json!({"d": 1000, "S": 0.5, "V": 64, "eps": 1.5}), "eps"),
            (
                "fixed-point",
                json!({"activation": "relu", "b": [1, 1], "b_hat": [1, -1], "xi": 1, "gamma": 0}),
                "gamma",
            ),
            (
                "gradient-noise",
                json!({"activation": "relu", "b": [1, 0.5], "b_hat": [1, -1], "xi": 1, "m": 0}),
                "signs",
            ),
        ] {
            let error = compute(name, inputs.clone()).expect_err(&format!("{name} {inputs}"));
            assert!(error.contains(reason), "{name} {inputs}: {error}");
        }
    }

    #[test]
    fn an_unreachable_overlap_is_an_answer() {
        let inputs =
            json!({"activation": "relu", "k": 8, "BB": 16, "O": 4, "theta": 0.5, "m0": -0.9, "m1": 0.5});
        let answer = compute("flow-time", inputs).unwrap();
        assert_eq!(answer[0], ("tau", Value::Null));
        assert_eq!(answer[1], ("reachable", json!(false)));
        assert!(answer[2].1.as_str().unwrap().contains("stops at the zero"));
    }

    #[test]
    fn the_step_rule_is_a_quantity() {
        let inputs = json!({"activation": "relu", "b": [1, 1, 1, 1, 1, 1, -1, -1], "b_hat": [1, 1, 1, 1, 1, -1, -1, 1],
                            "xi": 8f64.sqrt()});
        let answer = compute("step-size", inputs.clone()).unwrap();
        assert!((answer[0].1.as_f64().unwrap() / 0.01856 - 1.0).abs() < 1e-3, "{answer:?}");
        // docs/derivations/low-rank-perturbation.md#exp1: from m = 1/√d_⊥ at d = 4000 the equation takes 10.27 d_⊥
        // steps; with d_⊥/d in step and time, a little less.
        let mut finite = inputs;
        finite["d"] = json!(4000);
        let answer = compute("step-size", finite).unwrap();
        assert_eq!((answer[3].0, answer[4].0), ("alpha", "steps-per-dimension"));
        assert!((answer[3].1.as_f64().unwrap() - 10.27).abs() < 0.01, "{answer:?}");
        assert!((answer[4].1.as_f64().unwrap() - 10.27).abs() < 0.03, "{answer:?}");
    }

    #[test]
    fn typical_noise_over_signal_is_reproducible() {
        let inputs = json!({"activation": "quad", "k": 64, "xi": 1, "draws": 60});
        let (a, b) = (compute("typical", inputs.clone()).unwrap(), compute("typical", inputs).unwrap());
        assert_eq!(a, b);
        assert!(a[0].1.as_f64().unwrap() > 0.0);
    }
}
