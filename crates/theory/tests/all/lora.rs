//! The order-parameter equations of LoRA against gradient flow (docs/derivations/lora.md#s4, with two layers
//! docs/derivations/lora.md#s11).

use didact_families::Family;
use didact_families::lora::flow::Flow;
use didact_families::lora::hermite::time_scale;
use didact_families::lora::landscape::AdapterState;
use didact_families::lora::two_layer::{PerUnit, final_loss};
use didact_families::lora::{LoraSingleIndex, LoraTwoLayer};
use didact_math::linalg::Mat;
use didact_math::ode::{Method, Options};
use didact_model::constraint::Constraint;
use didact_model::start::Given;
use didact_model::{
    Clock, Engine, Needed, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, Trajectory, observable,
};
use didact_theory::{Numerical, OrderParameterOde};
use std::sync::Arc;

fn problem(spec: &impl Family, q: &Mat, r: &Mat, scalars: Vec<f64>) -> Problem {
    let rule = spec.rule().unwrap();
    let spectrum = Spectrum::isotropic();
    let frozen = Mat::identity(rule.shape().frozen);
    let start = Overlaps::spread(rule.shape(), &spectrum, (q, r, &frozen), scalars).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: None,
        training: Training { constraint: Constraint::sphere(), ..Training::online(1.0) },
        start: Arc::new(Given(start)),
        clock: Clock::Flow,
    }
}

fn run(problem: &Problem, method: Method, times: &[f64], names: &[&str]) -> Trajectory {
    let options = Options { method, relative: 1e-9, absolute: 1e-12, ..Options::default() };
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let engine = OrderParameterOde { options, needed: Needed::Drift, numerical: Numerical::Precise };
    engine.run(problem, &Record::new(times.to_vec(), observables), &NoMonitor).unwrap()
}

#[test]
fn the_general_equations_are_the_flow_of_the_adapter() {
    for (name, labels, mu) in [("erf(z)", "plain", 0.4), ("He3", "squared", 0.325), ("relu", "plain", 0.3)] {
        let spec = LoraSingleIndex { labels: labels.into(), ..LoraSingleIndex::matched(mu, name) };
        let landscape = spec.landscape().unwrap();
        let one = Mat::identity(1);
        let problem = problem(&spec, &one, &Mat::from_fn(1, 1, |_, _| 0.1), vec![0.05]);
        let times = if name == "He3" { [0.5, 2.0, 4.0] } else { [5.0, 20.0, 60.0] };
        let own = Flow { landscape: &landscape, delta: 1.0 }
            .states(AdapterState::aligned(0.05, 0.1), &times)
            .unwrap();
        let engine = run(&problem, Method::Stiff, &times, &["u", "m", "m_eff"]);
        for (row, state) in engine.rows(0).iter().zip(own) {
            let expected = [state.amplitude, state.overlap, landscape.law(state).overlap];
            for (got, expected) in row.iter().zip(expected) {
                assert!((got - expected).abs() < 1e-7, "{name} {labels}: {row:?} {state:?}");
            }
        }
    }
}

#[test]
fn stiff_equations_of_a_tenth_hermite_unit_do_not_stall() {
    let spec = LoraSingleIndex::matched(0.6, "He10");
    let problem = problem(&spec, &Mat::identity(1), &Mat::from_fn(1, 1, |_, _| 0.0316), vec![0.0316]);
    let end = 1e7 / time_scale(10);
    let run = run(&problem, Method::Stiff, &[end], &["m_eff"]);
    assert!((run.columns[0].curves[0][0].abs() - 1.0).abs() < 1e-4, "{:?}", run.columns);
}

fn two_layer(mu: Vec<f64>, v: Vec<f64>, rank: usize, q: &Mat, m: &Mat, u: &Mat) -> Problem {
    let spec = LoraTwoLayer {
        mu: PerUnit::Each(mu.clone()),
        output_weights: PerUnit::Each(v),
        ..LoraTwoLayer::uniform(mu.len(), rank, 0.5, "h2")
    };
    problem(&spec, q, &m.transpose(), u.as_slice().to_vec())
}

#[test]
fn lengths_stay_and_permuted_units_and_adapters_give_permuted_derivatives() {
    let (mu, v) = (vec![0.2, 0.5, 0.7], vec![1.0, 0.7, -0.5]);
    let q = Mat::from_rows(&[vec![1.0, 0.2], vec![0.2, 1.0]]).unwrap();
    let m = Mat::from_rows(&[vec![0.2, 0.1], vec![-0.1, 0.3], vec![0.3, 0.1]]).unwrap();
    let u = Mat::from_rows(&[vec![0.3, -0.1], vec![0.1, 0.4], vec![-0.2, 0.2]]).unwrap();
    let engine = OrderParameterOde::gradient_flow();
    let one = engine.initial_derivative(&two_layer(mu.clone(), v.clone(), 2, &q, &m, &u)).unwrap();
    assert!(one.blocks[0][(0, 0)].abs() < 1e-15 && one.blocks[0][(1, 1)].abs() < 1e-15);
    // Units 0 1 2 -> 2 0 1, adapters exchanged.
    let (units, adapters) = ([2, 0, 1], [1, 0]);
    let move_rows = |a: &Mat| Mat::from_fn(3, 2, |k, r| a[(units[k], adapters[r])]);
    let pick = |list: &[f64]| units.iter().map(|&k| list[k]).collect::<Vec<f64>>();
    let other = engine
        .initial_derivative(&two_layer(pick(&mu), pick(&v), 2, &q, &move_rows(&m), &move_rows(&u)))
        .unwrap();
    for k in 0..3 {
        for r in 0..2 {
            let (a, b) = (one.scalars[units[k] * 2 + adapters[r]], other.scalars[k * 2 + r]);
            assert!((a - b).abs() < 1e-14, "{a} {b}");
            let (a, b) = (one.blocks[0][(adapters[r], 2 + units[k])], other.blocks[0][(r, 2 + k)]);
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
    }
}

#[test]
fn flows_approach_the_final_loss_of_their_rank() {
    for rank in [1, 2] {
        let (k, mu) = (4, 0.5);
        let m = Mat::from_fn(k, rank, |i, r| 0.02 * ((3 * i + 5 * r) % 7) as f64 - 0.05);
        let u = Mat::from_fn(k, rank, |i, r| 0.01 * ((2 * i + 3 * r) % 5) as f64);
        let problem = two_layer(vec![mu; k], vec![1.0; k], rank, &Mat::identity(rank), &m, &u);
        let run = run(&problem, Method::Dop853, &[0.0, 200.0], &["loss"]);
        let (first, last) = (run.columns[0].curves[0][0], run.columns[0].curves[0][1]);
        assert!((last - final_loss(k, rank, mu)).abs() < 1e-4, "R = {rank}: {first} to {last}");
    }
}
