//! Training of the directions of the largest eigenvalues: equations and simulation against the closed forms of linear units.

use didact_experiment::quantities;
use didact_families::Family;
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::{
    Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, observable, start::Given,
};
use didact_simulate::{Direct, Reduced};
use didact_theory::OrderParameterOde;
use serde_json::{Value, json};
use std::sync::Arc;

const RATE: f64 = 0.3;

fn committee() -> Committee {
    Committee { output: Output::Scaled, ..Committee::soft(1, 1, "linear") }
}

fn problem(levels: usize, dimension: Option<u64>, trained: usize) -> Problem {
    let committee = committee();
    Problem {
        rule: committee.rule().unwrap(),
        about: committee.about(),
        spectrum: Spectrum::power_law(levels, 1.0).unwrap(),
        dimension,
        training: Training { trained_levels: Some(trained), ..Training::online(RATE) },
        start: Arc::new(RandomRows {
            trained: RowLaw::Gaussian { deviation: 0.5 },
            frozen: FrozenRows::Sampled,
            scalars: vec![],
        }),
        clock: Clock::Alpha,
    }
}

/// The mean error that `committee/feature-error` gives.
fn predicted(inputs: &Value, entry: &str) -> Vec<f64> {
    let answer = quantities::find("committee/feature-error").unwrap();
    let answer = answer.evaluate(inputs.as_object().unwrap()).unwrap();
    let (_, value) = answer.into_iter().find(|(name, _)| *name == entry).unwrap();
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The exact mean over starts and samples at finite N, a recursion that shares nothing with the chains.
#[test]
fn sgd_of_a_part_of_the_directions_has_the_exact_mean_of_finite_size() {
    let (levels, trained, times) = (16, 5, [1.0, 4.0, 20.0]);
    let inputs = json!({"L": levels, "beta": 1.0, "N": levels, "Nl": trained, "eta": RATE, "sigma_J2": 0.25, "alpha": times});
    let exact = predicted(&inputs, "finite-size");
    let problem = problem(levels, Some(levels as u64), trained);
    let record = Record {
        replicas: 3000,
        seed: 3,
        ..Record::new(times.to_vec(), observable::parse("loss", &problem).unwrap())
    };
    for engine in [&Direct as &dyn Engine, &Reduced] {
        let run = engine.run(&problem, &record, &NoMonitor).unwrap();
        for ((mean, exact), time) in run.mean("loss").unwrap().iter().zip(&exact).zip(times) {
            let z = (mean.value - exact) / mean.error;
            assert!(z.abs() < 4.5, "{} at {time}: {} and {exact}, z = {z}", engine.name(), mean.value);
        }
    }
}

/// From a start that is the mean of random ones the equations give their mean, since those of linear units are linear.
#[test]
fn the_equations_of_a_part_of_the_directions_have_the_closed_solution() {
    let (levels, trained, times) = (6, 2, [0.5, 2.0, 10.0]);
    let inputs = json!({"L": levels, "beta": 1.0, "N": levels, "Nl": trained, "eta": RATE, "sigma_J2": 0.25, "alpha": times});
    let exact = predicted(&inputs, "exact");
    let spectrum = Spectrum::power_law(levels, 1.0).unwrap();
    let shape = committee().rule().unwrap().shape();
    let one = |x: f64| Mat::from_rows(&[vec![x]]).unwrap();
    let start = Overlaps::spread(shape, &spectrum, (&one(0.25), &one(0.0), &one(1.0)), vec![]).unwrap();
    let problem = Problem { start: Arc::new(Given(start)), ..problem(levels, None, trained) };
    let record = Record::new(times.to_vec(), observable::parse("loss", &problem).unwrap());
    let run = OrderParameterOde::default().run(&problem, &record, &NoMonitor).unwrap();
    for ((mean, exact), time) in run.mean("loss").unwrap().iter().zip(&exact).zip(times) {
        assert!((mean.value / exact - 1.0).abs() < 1e-5, "at {time}: {} and {exact}", mean.value);
    }
}

/// A row of which a part stays as it is has no fixed length.
#[test]
fn spheres_and_levels_that_do_not_exist_are_refused() {
    let message = |trained: usize, constraint| {
        let problem = problem(4, Some(16), trained);
        let training = Training { constraint, ..problem.training.clone() };
        Problem { training, ..problem }.validate().unwrap_err().to_string()
    };
    let none = didact_model::constraint::Constraint::none();
    assert!(message(5, none).contains("the spectrum has 4"));
    assert!(message(0, none).contains("train 1 to 4"));
    assert!(message(2, didact_model::constraint::Constraint::sphere()).contains("\"sphere\""));
}
