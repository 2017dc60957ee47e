//! Theory and simulation agree: single runs scatter about the order-parameter equations as d^{−1/2}, and their mean,
//! which is off by O(1/d) only, lies on them.

use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::fits::{Noise, power_law};
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::start::Given;
use didact_model::{
    Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, Trajectory, observable,
};
use didact_simulate::Reduced;
use didact_theory::OrderParameterOde;
use std::sync::Arc;

/// Two students that lean to different teachers, not much: specialisation takes place within the run.
fn problem(spec: &Committee, spectrum: Spectrum, training: Training) -> Problem {
    let rule = spec.rule().unwrap();
    let q = Mat::from_rows(&[vec![0.5, 0.1], vec![0.1, 0.4]]).unwrap();
    let r = Mat::from_rows(&[vec![0.3, 0.05], vec![0.1, 0.25]]).unwrap();
    let blocks = (&q, &r, &Mat::identity(2));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, spec.starting_scalars()).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn record(problem: &Problem, times: &[f64], names: &[&str]) -> Record {
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    Record { seed: 5, ..Record::new(times.to_vec(), observables) }
}

fn simulated(problem: &Problem, record: &Record, dimension: u64, replicas: u32) -> Trajectory {
    let finite = Problem { dimension: Some(dimension), ..problem.clone() };
    Reduced.run(&finite, &Record { replicas, ..record.clone() }, &NoMonitor).unwrap()
}

fn predicted(problem: &Problem, record: &Record) -> Trajectory {
    OrderParameterOde::default().run(problem, record, &NoMonitor).unwrap()
}

/// |mean over replicas − theory| < 4 standard errors, for every column and time.
fn assert_means_agree(theory: &Trajectory, simulation: &Trajectory) {
    for name in theory.column_names() {
        let exact = &theory.curves(name).unwrap()[0];
        for ((mean, exact), time) in simulation.mean(name).unwrap().iter().zip(exact).zip(&theory.times) {
            let z = (mean.value - exact) / mean.error;
            assert!(z.abs() < 4.0, "{name} at {time}: {} +- {} and {exact}, z = {z}", mean.value, mean.error);
        }
    }
}

#[test]
fn single_runs_approach_the_ode_as_the_root_of_the_dimension() {
    let problem =
        problem(&Committee::soft(2, 2, "erf(z/sqrt2)"), Spectrum::isotropic(), Training::online(2.0));
    // Before, at the onset of, and during specialisation.
    let record = record(&problem, &[1.0, 4.0, 10.0], &["Q[0,0]", "Q[0,1]", "R[0,0]", "R[1,0]", "R[1,1]"]);
    let theory = predicted(&problem, &record);
    let gap =
        |time: usize| theory.curves("R[0,0]").unwrap()[0][time] - theory.curves("R[1,0]").unwrap()[0][time];
    assert!(gap(0) < 0.3 && gap(2) > 2.0 * gap(0), "specialisation: {} {} {}", gap(0), gap(1), gap(2));
    let dimensions = [1_000, 10_000, 100_000];
    let replicas = 24;
    let runs: Vec<Trajectory> =
        dimensions.iter().map(|&d| simulated(&problem, &record, d, replicas)).collect();
    assert_means_agree(&theory, &runs[2]);
    for (time, alpha) in theory.times.iter().enumerate() {
        for name in theory.column_names() {
            let exact = theory.curves(name).unwrap()[0][time];
            let rms = |run: &Trajectory| {
                let squares: f64 = run.curves(name).unwrap().iter().map(|r| (r[time] - exact).powi(2)).sum();
                (squares / f64::from(replicas)).sqrt()
            };
            let deviations: Vec<f64> = runs.iter().map(rms).collect();
            // The root of a mean of n squares of normals is known to 1/√(2n).
            let errors: Vec<f64> = deviations.iter().map(|v| v / f64::from(2 * replicas).sqrt()).collect();
            let x = dimensions.map(|d| d as f64);
            let fit = power_law(&x, &deviations, Noise::Known(&errors), (1.0, 1e6)).unwrap();
            let z = (fit.exponent + 0.5) / fit.exponent_error;
            let what = format!("{name} at {alpha}: {deviations:?}");
            assert!(z.abs() < 4.0, "{what}: exponent {} +- {}", fit.exponent, fit.exponent_error);
            assert!(fit.exponent_error < 0.05, "{what}: too wide an error to say anything");
        }
    }
}

#[test]
fn spherical_rows_with_trained_output_weights_follow_the_ode() {
    let spec = Committee {
        train_output: true,
        student_weights: Some(vec![0.6, 0.9]),
        ..Committee::soft(2, 2, "erf(z)")
    };
    for sphere in [Retraction::Euclidean, Retraction::Tangent] {
        let constraint = Constraint { sphere: Some(sphere), ..Constraint::none() };
        let training = Training { constraint, scalar_ratio: 0.5, batch: 2, ..Training::online(0.8) };
        let problem = problem(&spec, Spectrum::isotropic(), training);
        let record =
            record(&problem, &[1.0, 5.0], &["loss", "Q[0,1]", "R[0,0]", "R[1,1]", "scalar[0]", "scalar[1]"]);
        assert_means_agree(&predicted(&problem, &record), &simulated(&problem, &record, 20_000, 16));
    }
}

#[test]
fn two_eigenspaces_with_label_noise_follow_the_ode() {
    let spectrum = Spectrum::new(vec![1.6, 0.4], vec![0.5, 0.5]).unwrap();
    let training = Training { label_noise: 0.3, ..Training::online(0.8) };
    let problem = problem(&Committee::soft(2, 2, "erf(z/sqrt2)"), spectrum, training);
    let names = ["loss", "Q[0,0]", "Q0[1,1]", "Q2[0,1]", "R[0,0]", "R0[1,1]", "R2[1,0]"];
    let record = record(&problem, &[1.0, 6.0], &names);
    assert_means_agree(&predicted(&problem, &record), &simulated(&problem, &record, 50_000, 16));
}

/// Units without closed forms: the noise matrix comes from quadrature.
#[test]
fn tanh_units_follow_the_ode() {
    let problem = problem(&Committee::soft(2, 2, "tanh"), Spectrum::isotropic(), Training::online(0.8));
    let record = record(&problem, &[1.0, 4.0], &["loss", "Q[0,0]", "Q[0,1]", "R[0,0]", "R[1,1]"]);
    assert_means_agree(&predicted(&problem, &record), &simulated(&problem, &record, 20_000, 16));
}
