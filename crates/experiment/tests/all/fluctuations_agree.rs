//! Replicas scatter as the theory of fluctuations says: variances and covariances over replicas of `reduced`, for every family that can be
//! trained in one pass, at two dimensions.

use didact_experiment::{Source, build};
use didact_model::{Engine, Needed, NoMonitor, Problem, Record, observable};
use didact_simulate::Reduced;
use didact_theory::fluctuations::FluctuationTheory;
use serde_json::{Value, json};

/// The problem of the sections of a description.
fn problem(sections: &Value) -> Problem {
    let mut description = json!({ "title": "test", "record": { "times": [0, 1] } });
    for (key, value) in sections.as_object().unwrap() {
        description[key] = value.clone();
    }
    let source = Source::of_value(&description);
    let description = source.description().unwrap_or_else(|e| panic!("{e}"));
    let draft = build::problem(&description, &source).unwrap_or_else(|e| panic!("{e}"));
    Problem { rule: description.model.unwrap().rule().unwrap(), ..draft }
}

/// Every variance and covariance of the observables at every time is the predicted one within four standard errors, at both dimensions.
///
/// Of r Gaussian replicas a covariance has the variance (V_a V_b + C_ab²)/(r − 1).
fn replicas_scatter_as_predicted(
    about: &str,
    sections: &Value,
    times: &[f64],
    names: &[&str],
    dimensions: [u64; 2],
) {
    const REPLICAS: u32 = 600;
    for dimension in dimensions {
        let mut sections = sections.clone();
        sections["data"]["dimension"] = json!(dimension);
        let problem = problem(&sections);
        let observables: Vec<_> =
            names.iter().flat_map(|n| observable::parse(n, &problem).unwrap()).collect();
        let theory = FluctuationTheory::new(&problem, Needed::DriftAndNoise, 1e-4).unwrap();
        let predicted = theory.covariances(times, &observables).unwrap();
        let record = Record { replicas: REPLICAS, seed: 11, ..Record::new(times.to_vec(), observables) };
        let simulated = Reduced.run(&problem, &record, &NoMonitor).unwrap();
        for (at, predicted) in predicted.iter().enumerate() {
            let columns: Vec<Vec<f64>> =
                simulated.columns.iter().map(|c| c.curves.iter().map(|curve| curve[at]).collect()).collect();
            let count = f64::from(REPLICAS);
            let mean = |column: &[f64]| column.iter().sum::<f64>() / count;
            for a in 0..columns.len() {
                for b in 0..=a {
                    let (x, y) = (mean(&columns[a]), mean(&columns[b]));
                    let products = columns[a].iter().zip(&columns[b]).map(|(u, v)| (u - x) * (v - y));
                    let found = dimension as f64 * products.sum::<f64>() / (count - 1.0);
                    let expected = predicted[(a, b)];
                    let own = predicted[(a, a)] * predicted[(b, b)];
                    // What does not scatter must not do so but for rounding.
                    let error = ((own + expected * expected) / (count - 1.0)).sqrt() + 1e-12;
                    let z = (found - expected) / error;
                    assert!(
                        z.abs() < 4.0,
                        "{about}, d = {dimension}, alpha = {}: d Cov[{}, {}] is {found:.5}, predicted {expected:.5}, z = {z:.2}",
                        times[at],
                        names[a],
                        names[b]
                    );
                }
            }
        }
    }
}

#[test]
fn committees_of_erf_units_with_noise() {
    let sections = json!({
        "model": { "family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)" },
        "training": { "learning-rate": 1.0, "label-noise": 0.3 },
        "start": { "q": [[0.4, 0.1], [0.1, 0.3]], "r": [[0.25, 0.05], [0.0, 0.2]] },
        "data": {},
    });
    replicas_scatter_as_predicted(
        "erf 2-2",
        &sections,
        &[0.5, 2.0],
        &["R[0,0]", "Q[0,1]", "loss"],
        [200, 800],
    );
}

#[test]
fn relu_units_on_two_eigenspaces_from_a_random_start_with_sampled_teachers() {
    let sections = json!({
        "model": { "family": "committee", "students": 1, "teachers": 1, "activation": "relu" },
        "training": { "learning-rate": 0.4 },
        "start": { "students": { "law": "sphere", "radius": 0.8 }, "teachers": "sampled" },
        "data": { "spectrum": { "kind": "explicit", "eigenvalues": [2.0, 0.5], "weights": [0.25, 0.75] } },
    });
    replicas_scatter_as_predicted(
        "relu",
        &sections,
        &[0.0, 1.0],
        &["R[0,0]", "Q[0,0]", "T[0,0]", "loss"],
        [400, 1600],
    );
}

#[test]
fn batches_decay_spheres_and_trained_outputs() {
    let model = json!({ "family": "committee", "students": 2, "teachers": 1, "activation": "erf(z/sqrt2)" });
    let start = json!({ "q": [[0.5, 0.1], [0.1, 0.4]], "r": [[0.2], [-0.1]] });
    let batch = json!({
        "model": model, "start": start, "data": {},
        "training": { "learning-rate": 2.0, "batch": 4, "label-noise": 0.2, "constraint": { "weight-decay": 0.05 } },
    });
    replicas_scatter_as_predicted("batch", &batch, &[1.0], &["R[0,0]", "Q[0,0]", "loss"], [200, 800]);
    let sphere = json!({
        "model": model, "start": start,
        "data": { "spectrum": { "kind": "explicit", "eigenvalues": [2.0, 0.5], "weights": [0.25, 0.75] } },
        "training": { "learning-rate": 1.0, "constraint": { "sphere": "tangent" } },
    });
    replicas_scatter_as_predicted(
        "sphere",
        &sphere,
        &[1.0],
        &["R[0,0]", "Q[0,0]", "Q[0,1]", "loss"],
        [200, 800],
    );
    let trained = json!({
        "model": { "family": "committee", "students": 2, "teachers": 1, "activation": "erf(z/sqrt2)", "train-output": true },
        "start": { "q": [[0.5, 0.1], [0.1, 0.4]], "r": [[0.2], [-0.1]], "scalars": [0.8, 0.3] },
        "data": {},
        "training": { "learning-rate": 1.0, "label-noise": 0.2, "scalar-ratio": 0.5 },
    });
    replicas_scatter_as_predicted(
        "outputs",
        &trained,
        &[1.0],
        &["R[0,0]", "scalar[0]", "scalar[1]", "loss"],
        [200, 800],
    );
}

#[test]
fn adapters_of_one_neuron_and_of_two_layers() {
    let one = json!({
        "model": { "family": "lora-single-index", "mu": 0.4, "activation": "tanh" },
        "training": { "learning-rate": 0.5, "label-noise": 0.1, "constraint": { "sphere": "euclidean" } },
        "start": { "q": [[1.0]], "r": [[0.2]], "scalars": [0.3] },
        "data": {},
    });
    replicas_scatter_as_predicted("lora", &one, &[1.0, 3.0], &["m", "u", "loss"], [200, 800]);
    let two = json!({
        "model": {
            "family": "lora-two-layer", "hidden": 2, "rank": 1, "mu": [0.3, 0.7], "output-weights": [1.0, -0.6],
            "amplitude": 0.2, "activation": "erf(z)",
        },
        "training": { "learning-rate": 0.3, "constraint": { "sphere": "euclidean" } },
        "start": { "students": { "law": "sphere", "radius": 1.0 } },
        "data": {},
    });
    replicas_scatter_as_predicted("two-layer lora", &two, &[1.0], &["R[0,0]", "R[0,1]", "loss"], [400, 1600]);
}

#[test]
fn low_rank_perturbations_from_the_complement_of_their_base() {
    let sections = json!({
        "model": { "family": "low-rank-perturbation", "units": 3, "strength": 1.5, "activation": "tanh" },
        "training": { "learning-rate": 0.3, "constraint": { "sphere": "euclidean" } },
        "data": {},
    });
    replicas_scatter_as_predicted("low rank", &sections, &[0.0, 1.0], &["R[0,0]", "R[0,3]"], [200, 800]);
}

#[test]
fn quadratic_networks() {
    let sections = json!({
        "model": { "family": "quadratic-networks", "students": 2, "teachers": 1 },
        "training": { "learning-rate": 0.05 },
        "start": { "q": [[0.8, 0.2], [0.2, 0.6]], "r": [[0.4], [-0.3]] },
        "data": {},
    });
    replicas_scatter_as_predicted(
        "quadratic",
        &sections,
        &[0.5, 1.5],
        &["R[0,0]", "Q[0,1]", "loss"],
        [400, 1600],
    );
}

#[test]
fn models_without_closed_forms() {
    let index = json!({
        "model": { "family": "multi-index", "activation": "tanh", "link": "z + 0.3z^2", "loss": { "kind": "log-cosh" } },
        "training": { "learning-rate": 0.4 },
        "start": { "q": [[0.5]], "r": [[0.2]] },
        "data": {},
    });
    replicas_scatter_as_predicted("multi-index", &index, &[1.0], &["R[0,0]", "Q[0,0]", "loss"], [200, 800]);
    let formula = json!({
        "model": {
            "family": "formula", "trained": 1, "frozen": 1, "scalars": 1, "loss": "(tanh(mu*v + a*h) - tanh(v) - e)^2/2",
            "parameters": { "mu": 0.4 },
        },
        "training": { "learning-rate": 0.6, "label-noise": 0.2 },
        "start": { "q": [[1.0]], "r": [[0.2]], "scalars": [0.4] },
        "data": {},
    });
    replicas_scatter_as_predicted(
        "formula",
        &formula,
        &[1.0],
        &["R[0,0]", "Q[0,0]", "scalar[0]", "loss"],
        [200, 800],
    );
}
