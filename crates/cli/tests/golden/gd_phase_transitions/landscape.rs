//! Kinds about Hessians: spectra, outliers, thresholds, easy and hard directions, baselines.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::spectra::{Bulk, Complex, WeightLaw, marchenko_pastur};
use didact_model::loss::Loss;
use didact_model::{Link, LocalRule};
use didact_theory::dmft::{Points, Process, Sampling};
use didact_theory::landscape::recovery::weak_recovery;
use didact_theory::landscape::{
    Descent, Ensemble, HessianSpectrum, Preprocessing, at_start, one_step, spectral_method, split,
    weight_infimum,
};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "initial-scalars" => initial_scalars(inputs),
        "teacher-response" => teacher_response(inputs),
        "threshold-initial" => Answer::exact(descent(inputs, 1.0).initial_threshold().expect("a threshold")),
        "one-step-kernels" => one_step_kernels(inputs),
        "marchenko-pastur" => {
            let delta = inputs.number("delta");
            let alpha = marchenko_pastur::stieltjes(delta, point(inputs));
            Answer::exact(vec![marchenko_pastur::support(delta).0, alpha.re, alpha.im])
        }
        "generalised-mp" => {
            let law = WeightLaw::new(&inputs.list("prob"), &inputs.list("G")).expect("a law");
            let bulk = Bulk::new(&law, inputs.number("delta")).expect("a bulk");
            let (edge, alpha) = (bulk.left_edge(), bulk.stieltjes(point(inputs)));
            Answer::exact(vec![edge.alpha, edge.position, alpha.re, alpha.im])
        }
        "easy-projector" => {
            let link = link(inputs);
            let split = split(link.directions(), false, &|z, e| link.label(z, e)).expect("a split");
            Answer::exact(split.easy_projector().as_slice().to_vec())
        }
        "weak-recovery-threshold" => {
            let link = link(inputs);
            // Noise that the link does not name would be added by `label`.
            let label = |z: &[f64], e: f64| link.label(z, if link.names_noise() { e } else { 0.0 });
            Answer::exact(weak_recovery(link.directions(), &label).expect("a threshold").delta)
        }
        "spectral-method" => {
            let preprocessing = Preprocessing::parse(text(inputs, "preprocessing", "")).expect("a formula");
            let found =
                spectral_method(1, false, &|z, _| z[0] * z[0], &preprocessing, inputs.number("delta"));
            let found = found.expect("a spectrum");
            let outlier = found.outlier.map(|(position, overlap)| [position, overlap]);
            Answer::exact(
                [found.right_edge].into_iter().chain(outlier.into_iter().flatten()).collect::<Vec<_>>(),
            )
        }
        "dmft" => dmft(inputs),
        "dmft-multi" => dmft_multi(inputs),
        "threshold-at-time" => {
            let mut descent = descent(inputs, inputs.number("eta"));
            descent.sampling.samples = 1 << 16;
            Answer::exact(descent.threshold(0, inputs.count("t")).expect("a threshold").value)
        }
        _ => return None,
    })
}

fn text<'a>(inputs: &'a Inputs, key: &str, default: &'a str) -> &'a str {
    inputs.0[key].as_str().unwrap_or(default)
}

fn point(inputs: &Inputs) -> Complex {
    let z = inputs.list("z");
    Complex::new(z[0], z[1])
}

/// The link of a case: `s` is a number of the case, k the largest index unless given.
fn link(inputs: &Inputs) -> Link {
    let mut formula = text(inputs, "link", "z^2").to_string();
    if inputs.has("s") {
        formula = formula.replace("s*eps", &format!("{}*eps", inputs.number("s")));
    }
    let largest = (1..=9).rev().find(|k| formula.contains(&format!("z{k}"))).unwrap_or(1);
    let directions = if inputs.has("k") { inputs.count("k") } else { largest };
    Link::parse(&formula, directions).expect("a link")
}

fn rule(inputs: &Inputs, link: &str, directions: usize) -> Arc<dyn LocalRule> {
    let loss = match text(inputs, "loss", "square") {
        "square" => Loss::HALF_SQUARE,
        "logcosh" => Loss::LogCosh,
        "huber" => Loss::Huber { kappa: inputs.number("kappa") },
        _ => Loss::PseudoHuber { kappa: inputs.number("kappa") },
    };
    let list = |key: &str| inputs.has(key).then(|| inputs.list(key));
    let (weights, biases) = (list("a"), list("b"));
    let students = weights.as_ref().or(biases.as_ref()).map_or(1, Vec::len);
    let activation = text(inputs, "activation", "gelu");
    let spec =
        MultiIndex { students, weights, biases, directions, ..MultiIndex::single(activation, link, loss) };
    spec.rule().expect("a rule")
}

fn descent(inputs: &Inputs, eta: f64) -> Descent {
    let rule = rule(inputs, text(inputs, "link", "z^2"), 1);
    Descent::new(rule, eta, inputs.number_or("norm0", 1.0), 0.0).expect("a descent")
}

/// Edge, ψ and outlier of one trained row, from quadrature nodes.
fn hessian(ensemble: Ensemble, rule: &dyn LocalRule, delta: f64) -> HessianSpectrum {
    let ensemble =
        ensemble.with_infimum(weight_infimum(rule, false).expect("bounded weights")).expect("a law");
    ensemble.hessian(0, delta, &[vec![1.0]]).expect("a spectrum")
}

fn by_key(inputs: &Inputs, value: impl Fn(&str) -> f64) -> Answer {
    let keys = inputs.0["keys"].as_array().expect("keys");
    Answer::exact(keys.iter().map(|key| value(key.as_str().expect("a word"))).collect::<Vec<f64>>())
}

fn initial_scalars(inputs: &Inputs) -> Answer {
    let rule = rule(inputs, text(inputs, "link", "z^2"), 1);
    let start = at_start(rule.as_ref(), inputs.number_or("norm0", 1.0), 0.0).expect("averages");
    let spectrum =
        std::cell::LazyCell::new(|| hessian(start.ensemble.clone(), rule.as_ref(), inputs.number("delta")));
    by_key(inputs, |key| match key {
        "loss" => start.loss,
        "Rl00" | "EG" => start.response,
        "Cl00" => start.correlation,
        "EG2" => start.second_moment,
        "EGv2" => start.teacher_moment[0],
        other => of_spectrum(&spectrum, other),
    })
}

fn of_spectrum(spectrum: &HessianSpectrum, key: &str) -> f64 {
    match key {
        "alpha_c" => spectrum.edge.alpha,
        "edge" => spectrum.edge.position,
        "psi" => spectrum.psi,
        "lam" => spectrum.outliers[0].position,
        "ov2" => spectrum.outliers[0].overlap,
        "alpha" => spectrum.outliers[0].alpha,
        other => panic!("unknown key {other}"),
    }
}

fn teacher_response(inputs: &Inputs) -> Answer {
    let rule = rule(inputs, &format!("z + ({})*z^2", inputs.number("c2")), 1);
    let start = at_start(rule.as_ref(), inputs.number_or("norm0", 1.0), 0.0).expect("averages");
    Answer::exact(vec![start.teacher_response[0], start.response, start.correlation, start.loss])
}

fn one_step_kernels(inputs: &Inputs) -> Answer {
    let rule = rule(inputs, text(inputs, "link", "z^2"), 1);
    let (delta, eta) = (inputs.number("delta"), inputs.number("eta"));
    let step = one_step(rule.as_ref(), inputs.number_or("norm0", 1.0), 0.0, delta, eta).expect("kernels");
    let spectrum = std::cell::LazyCell::new(|| hessian(step.ensemble.clone(), rule.as_ref(), delta));
    by_key(inputs, |key| match key {
        "Cth10" => step.correlation_10,
        "Cth11" => step.correlation_11,
        "train1" => step.train,
        "test1" => step.test,
        "Rl11" => step.response_11,
        "Rl10" => step.response_10,
        "Cl11" => step.kick_11,
        "Cl10" => step.kick_10,
        "Rth20" => step.parameter_response_20,
        "Cth20" => step.correlation_20,
        "Cth22" => step.correlation_22,
        other => of_spectrum(&spectrum, other),
    })
}

/// The effective process at step T.
fn process_at<T>(
    descent: &Descent,
    rule: &dyn LocalRule,
    delta: f64,
    steps: usize,
    read: impl Fn(&Process) -> T,
) -> T {
    let equations = descent.equations(delta);
    let shape = rule.shape();
    let mut points = Points::sobol(&descent.sampling, 0, shape.frozen, shape.trained, steps + 1);
    let mut process = Process::new(&equations, &mut points);
    (0..=steps).for_each(|_| assert!(process.advance(), "diverges"));
    read(&process)
}

fn dmft(inputs: &Inputs) -> Answer {
    let (delta, t) = (inputs.number("delta"), inputs.count("T"));
    let rule = rule(inputs, text(inputs, "link", "z^2"), 1);
    let mut descent = descent(inputs, inputs.number("eta"));
    descent.sampling = Sampling { samples: 1 << 16, seed: 0, spread: 1.0 };
    let (mut values, spectrum) = process_at(&descent, rule.as_ref(), delta, t, |process| {
        let ((train, test), kernels) = (process.losses(), &process.kernels);
        let values = vec![
            train,
            test,
            kernels.weights[t][t][(0, 0)],
            kernels.weights[t][0][(0, 0)],
            kernels.weights_response[t][0][(0, 0)],
            kernels.kicks_response[t][t][(0, 0)],
            kernels.kicks_response[t][0][(0, 0)],
            kernels.kicks[t][t][(0, 0)],
        ];
        let ensemble = Ensemble::of_process(process, rule.as_ref()).expect("a law");
        (values, ensemble.hessian(0, delta, &descent.split().hard).expect("a spectrum"))
    });
    values.push(spectrum.edge.position);
    if let Some(outlier) = spectrum.outliers.first().filter(|outlier| outlier.overlap > 0.1) {
        values.extend([outlier.position, outlier.overlap]);
    }
    Answer::exact(values)
}

fn dmft_multi(inputs: &Inputs) -> Answer {
    let (delta, t) = (inputs.number("delta"), inputs.count("T"));
    let rule = rule(inputs, "z1+z2+z1*z2", 2);
    let mut descent = Descent::new(rule.clone(), inputs.number("eta"), inputs.number_or("norm0", 1.0), 0.0)
        .expect("a descent");
    descent.sampling = Sampling { samples: 1 << 17, seed: 0, spread: 1.0 };
    let (mut values, spectra) = process_at(&descent, rule.as_ref(), delta, t, |process| {
        let ((train, test), kernels) = (process.losses(), &process.kernels);
        let mut values = vec![train, test];
        values.extend_from_slice(kernels.weights[t][t].as_slice());
        values.extend_from_slice(kernels.weights_frozen[t].as_slice());
        let ensemble = Ensemble::of_process(process, rule.as_ref()).expect("a law");
        let spectrum = |row| ensemble.hessian(row, delta, &descent.split().hard).expect("a spectrum");
        (values, (0..ensemble.rows()).map(spectrum).collect::<Vec<_>>())
    });
    values.extend(spectra.iter().map(|s| s.edge.position));
    values.extend(spectra.iter().map(|s| s.psi));
    Answer::exact(values)
}
