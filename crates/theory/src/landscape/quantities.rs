//! What the command line, scans and measures can ask about landscapes along training (`landscape/…`).

use super::link_quantities::{LINKS, RECOVERY};
use super::population::quantities::POPULATION;
use super::{
    Descent, EmpiricalDescent, Ensemble, HessianSpectrum, LandscapeError, Sampled, at_start, long_time,
    one_step,
};
use crate::dmft::Sampling;
use crate::model_input::{MODEL, model, rule};
use didact_math::random::statistics::SampleMean;
use didact_math::spectra::Outlier;
use didact_model::LocalRule;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};
use std::sync::Arc;

/// All of them, with the name of their group.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    let group = |name: &'static str, list: &'static [Quantity]| list.iter().map(move |q| (name, q));
    let all = group("landscape", LINKS).chain(group("landscape", LANDSCAPE));
    all.chain(group("landscape", POPULATION)).chain(group("recovery", RECOVERY)).collect()
}

const fn number(name: &'static str, default: Option<&'static str>, about: &'static str) -> Input {
    Input { name, kind: Kind::Number, default, about }
}

pub(super) const fn count(name: &'static str, default: &'static str, about: &'static str) -> Input {
    Input { name, kind: Kind::Count, default: Some(default), about }
}

pub(super) const DELTA: Input = number("delta", None, "n/d, samples per dimension");
const ETA: Input = number("eta", Some("1"), "learning rate of full-batch gradient descent");
const STEP: Input = number("t", Some("0"), "steps of gradient descent before the Hessian is taken");
const LENGTH: Input = number("start-length", Some("1"), "length of the trained rows at the start");
pub(super) const NOISE: Input = number(
    "label-noise",
    Some("null"),
    "standard deviation of the label noise; unless given 1 for a link that names e, 0 otherwise",
);
const ROW: Input = number("row", Some("0"), "which trained row, from 0");
const SAMPLES: Input = count("samples", "16384", "samples of the effective process, a power of two");
pub(super) const SEED: Input = number("seed", Some("0"), "of the samples");
const SCRAMBLES: Input = count("scrambles", "2", "independent sets of samples: their scatter is the error");

static LANDSCAPE: &[Quantity] = &[
    Quantity {
        name: "hessian",
        summary: "Hessian of one row along gradient descent: left edge, psi, outlier and its squared overlap",
        inputs: &[MODEL, DELTA, ETA, STEP, LENGTH, NOISE, ROW, SAMPLES, SCRAMBLES, SEED],
        outputs: &[
            "edge",
            "edge-error",
            "psi",
            "psi-error",
            "outlier",
            "outlier-error",
            "overlap",
            "overlap-error",
            "outliers",
        ],
        compute: hessian,
    },
    Quantity {
        name: "bulk",
        summary: "density of the eigenvalues of that Hessian, as lists x and density",
        inputs: &[
            MODEL,
            DELTA,
            ETA,
            STEP,
            LENGTH,
            NOISE,
            ROW,
            SAMPLES,
            SEED,
            count("points", "300", "points of the curve"),
        ],
        outputs: &["x", "density", "edge", "outlier", "outlier-x", "outlier-y"],
        compute: bulk,
    },
    Quantity {
        name: "empirical-hessian",
        summary: "eigenvalues of the Hessian of one data set after t steps (of a row, or whole), and the overlap of the lowest eigenvector",
        inputs: &[
            MODEL,
            DELTA,
            ETA,
            STEP,
            LENGTH,
            NOISE,
            ROW,
            SEED,
            count("d", "400", "dimension"),
            Input {
                name: "lanczos",
                kind: Kind::Flag,
                default: Some("false"),
                about: "only the lowest two eigenvalues, without forming the matrix",
            },
            Input {
                name: "whole",
                kind: Kind::Flag,
                default: Some("false"),
                about: "the Hessian of the risk in all m rows (m d x m d), in place of the block of one row",
            },
        ],
        outputs: &["lowest", "second", "overlap", "eigenvalues"],
        compute: empirical_hessian,
    },
    Quantity {
        name: "threshold",
        summary: "delta*(t): samples per dimension from which the Hessian at step t points to the hard directions",
        inputs: &[MODEL, ETA, STEP, LENGTH, NOISE, SAMPLES, SCRAMBLES, SEED],
        outputs: &["delta", "error", "convergence", "rows"],
        compute: threshold,
    },
    Quantity {
        name: "long-time",
        summary: "delta_NN: delta*(t) extrapolated to t = infinity, with the range over the assumed approach",
        inputs: &[
            MODEL,
            ETA,
            Input {
                name: "times",
                kind: Kind::Numbers,
                default: Some("[10, 20, 40]"),
                about: "steps, ascending",
            },
            LENGTH,
            NOISE,
            SAMPLES,
            SCRAMBLES,
            SEED,
        ],
        outputs: &["delta", "low", "high", "uncertainty", "times", "thresholds", "errors", "assumes"],
        compute: extrapolated,
    },
];

pub(super) fn refused(error: impl ToString) -> QuantityError {
    QuantityError::Domain(error.to_string())
}

pub(super) fn whole(arguments: &Arguments, name: &'static str) -> Result<usize, QuantityError> {
    let value = arguments.number(name);
    if value < 0.0 || value.fract() != 0.0 || value > 1e6 {
        return Err(refused(format!("input `{name}` is {value}; expected a whole number from 0 to 1000000")));
    }
    Ok(value as usize)
}

/// Steps of gradient descent: the effective process remembers all of them, at a cost that grows with their square.
const MOST_STEPS: usize = 1000;

/// Rows of a model whose Hessian is computed: averages run over the fields of all of them.
const MOST_ROWS: usize = 64;

/// t, a whole number of steps.
fn steps(arguments: &Arguments) -> Result<usize, QuantityError> {
    match whole(arguments, "t")? {
        t if t <= MOST_STEPS => Ok(t),
        t => Err(refused(format!("input `t` is {t}; up to {MOST_STEPS} steps can be followed"))),
    }
}

/// The standard deviation of the label noise, the standard one unless told otherwise.
pub(super) fn label_noise(arguments: &Arguments, standard: f64) -> Result<f64, QuantityError> {
    if !arguments.given("label-noise") {
        return Ok(standard);
    }
    let noise = arguments.number("label-noise");
    if noise < 0.0 {
        return Err(refused(format!("input `label-noise` is {noise}; a standard deviation is not negative")));
    }
    if noise != 0.0 && !(1e-6..=1e6).contains(&noise) {
        return Err(refused(format!("input `label-noise` is {noise:e}; 0, or 1e-6 to 1e6, can be computed")));
    }
    Ok(noise)
}

/// What a description of descent says, and its rule.
fn descent(arguments: &Arguments) -> Result<(Descent, Arc<dyn LocalRule>), QuantityError> {
    let rule = rule(arguments)?;
    let noise = label_noise(arguments, model(arguments)?.standard_noise())?;
    let (eta, length) = (arguments.number("eta"), arguments.number("start-length"));
    if !(0.0..=100.0).contains(&length) {
        return Err(refused(format!("input `start-length` is {length}; lengths up to 100 can be computed")));
    }
    let rows = rule.shape().rows();
    if rows > MOST_ROWS {
        return Err(refused(format!(
            "input `model` has {rows} rows; Hessians of up to {MOST_ROWS} can be computed"
        )));
    }
    Ok((Descent::new(rule.clone(), eta, length, noise).map_err(refused)?, rule))
}

/// The same, with the size and the seed of the samples.
fn sampled_descent(arguments: &Arguments) -> Result<(Descent, Arc<dyn LocalRule>), QuantityError> {
    let (mut descent, rule) = descent(arguments)?;
    let samples = arguments.count_up_to("samples", 1 << 22)?;
    let fewest = Sampling::FEWEST;
    if !samples.is_power_of_two() || samples < fewest {
        return Err(refused(format!(
            "input `samples` is {samples}; expected a power of two, at least {fewest}"
        )));
    }
    descent.sampling.samples = samples;
    descent.sampling.seed = whole(arguments, "seed")? as u64;
    Ok((descent, rule))
}

/// Weights by quadrature: before the first step and after it, if the rule is simple enough.
fn exact(
    arguments: &Arguments,
    descent: &Descent,
    rule: &dyn LocalRule,
) -> Result<Option<Ensemble>, LandscapeError> {
    let (delta, t) = (arguments.number("delta"), arguments.number("t") as usize);
    let infimum = descent.check_weights()?;
    let shape = rule.shape();
    let (length, noise) = (descent.start_length, descent.label_noise);
    // Up to two Gaussian variables beside the trained field.
    let simple = shape.trained == 1 && shape.frozen + usize::from(noise > 0.0) <= 2;
    let ensemble = match t {
        0 if simple => at_start(rule, length, noise)?.ensemble,
        1 if simple => one_step(rule, length, noise, delta, descent.step)?.ensemble,
        _ => return Ok(None),
    };
    ensemble.with_infimum(infimum).map(Some)
}

fn row(arguments: &Arguments, rule: &dyn LocalRule) -> Result<usize, QuantityError> {
    let (row, rows) = (whole(arguments, "row")?, rule.shape().trained);
    if row >= rows {
        return Err(refused(format!(
            "input `row` is {row}; the model has {rows} trained rows, counted from 0"
        )));
    }
    Ok(row)
}

pub(super) fn positive_delta(arguments: &Arguments) -> Result<f64, QuantityError> {
    let delta = arguments.number("delta");
    if delta <= 0.0 {
        return Err(refused(format!("input `delta` is {delta}; n/d must be positive")));
    }
    if !(1e-4..=1e4).contains(&delta) {
        return Err(refused(format!("input `delta` is {delta:e}; n/d from 1e-4 to 1e4 can be computed")));
    }
    Ok(delta)
}

fn hessian(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, t) = (positive_delta(arguments)?, steps(arguments)?);
    let (mut descent, rule) = sampled_descent(arguments)?;
    descent.scrambles = arguments.count_up_to("scrambles", 100)? as u32;
    let row = row(arguments, rule.as_ref())?;
    let spectra = match exact(arguments, &descent, rule.as_ref()).map_err(refused)? {
        Some(ensemble) => vec![ensemble.hessian(row, delta, &descent.split().hard).map_err(refused)?],
        None => descent.spectra(delta, t, row).map_err(refused)?,
    };
    let mean = |read: &dyn Fn(&HessianSpectrum) -> f64| SampleMean::of(spectra.iter().map(read));
    let (edge, psi) = (mean(&|s| s.edge.position), mean(&|s| s.psi));
    // The mean decides; scrambles without an outlier have nothing to add to its position.
    let lowest = |read: &dyn Fn(&Outlier) -> f64| {
        let found = spectra.iter().filter_map(|s| s.outliers.first()).map(read);
        Some(SampleMean::of(found)).filter(|m| psi.value < 0.0 && m.count > 0)
    };
    let (outlier, overlap) = (lowest(&|o| o.position), lowest(&|o| o.overlap));
    let count = spectra.iter().map(|s| s.outliers.len()).max().unwrap_or(0);
    let answer = vec![
        ("edge", json!(edge.value)),
        ("edge-error", json!(edge.error)),
        ("psi", json!(psi.value)),
        ("psi-error", json!(psi.error)),
        ("outlier", json!(outlier.map(|o| o.value))),
        ("outlier-error", json!(outlier.map(|o| o.error))),
        ("overlap", json!(overlap.map(|o| o.value))),
        ("overlap-error", json!(overlap.map(|o| o.error))),
        ("outliers", json!(if psi.value < 0.0 { count } else { 0 })),
    ];
    let (none, all_easy) = ("no eigenvalue leaves the bulk", "the link has no hard direction");
    Ok(explained(
        answer,
        &[
            ("psi", all_easy),
            ("psi-error", all_easy),
            ("outlier", none),
            ("outlier-error", none),
            ("overlap", none),
            ("overlap-error", none),
        ],
    ))
}

fn bulk(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, t) = (positive_delta(arguments)?, steps(arguments)?);
    let (descent, rule) = sampled_descent(arguments)?;
    let row = row(arguments, rule.as_ref())?;
    let ensemble = match exact(arguments, &descent, rule.as_ref()).map_err(refused)? {
        Some(exact) => exact,
        None => descent.ensemble(delta, t, 0).map_err(refused)?,
    };
    let (x, density) =
        ensemble.density(row, delta, arguments.count_up_to("points", 10_000)?).map_err(refused)?;
    let lowest = ensemble.hessian(row, delta, &descent.split().hard).map_err(refused)?;
    let outlier = lowest.outliers.first().map(|o| o.position);
    let answer = vec![
        ("x", json!(x)),
        ("density", json!(density)),
        ("edge", json!(lowest.edge.position)),
        ("outlier", json!(outlier)),
        // A line to draw: from the axis up to a height that shows beside the bulk.
        ("outlier-x", json!(outlier.map_or(Vec::new(), |x| vec![x, x]))),
        (
            "outlier-y",
            json!(
                outlier.map_or(Vec::new(), |_| vec![0.0, 0.25 * density.iter().copied().fold(0.0, f64::max)])
            ),
        ),
    ];
    Ok(explained(answer, &[("outlier", "no eigenvalue leaves the bulk")]))
}

fn empirical_hessian(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, t) = (positive_delta(arguments)?, steps(arguments)?);
    let d = arguments.count_up_to("d", 100_000)?;
    let (descent, rule) = descent(arguments)?;
    let row = row(arguments, rule.as_ref())?;
    let seed = whole(arguments, "seed")? as u64;
    let (whole_matrix, lanczos) = (arguments.flag("whole"), arguments.flag("lanczos"));
    let size = if whole_matrix { d * rule.shape().trained } else { d };
    if size > LARGEST_DENSE && !lanczos {
        return Err(refused(format!(
            "the matrix has {size} rows; all eigenvalues need up to {LARGEST_DENSE}\n\nhint: set lanczos = true"
        )));
    }
    let mut run =
        EmpiricalDescent::new(rule.as_ref(), d, delta, descent.start_length, descent.label_noise, seed)
            .map_err(refused)?;
    run.descend(descent.step, t);
    let hessian = if whole_matrix { run.whole_hessian() } else { run.hessian(row) };
    let hard = &descent.split().hard;
    if lanczos {
        let pairs = hessian.extreme(didact_math::spectra::SpectrumEnd::Lowest, 2, seed);
        let values: Vec<f64> = pairs.iter().map(|p| p.value).collect();
        let answer = vec![
            ("lowest", json!(values[0])),
            ("second", json!(values.get(1))),
            ("overlap", json!(run.overlap(&pairs[0].vector, hard))),
            ("eigenvalues", json!(values)),
        ];
        return Ok(explained(answer, &[("second", ONE_ROW)]));
    }
    let eigen = hessian.eigen();
    let lowest: Vec<f64> = (0..size).map(|i| eigen.vectors[(i, 0)]).collect();
    let answer = vec![
        ("lowest", json!(eigen.values[0])),
        ("second", json!(eigen.values.get(1))),
        ("overlap", json!(run.overlap(&lowest, hard))),
        ("eigenvalues", json!(eigen.values)),
    ];
    Ok(explained(answer, &[("second", ONE_ROW)]))
}

/// Why there is no second eigenvalue.
const ONE_ROW: &str = "the matrix has one row";

/// Beyond, a dense eigenproblem takes minutes.
const LARGEST_DENSE: usize = 2000;

fn threshold(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let t = steps(arguments)?;
    let (mut descent, rule) = sampled_descent(arguments)?;
    descent.scrambles = arguments.count_up_to("scrambles", 100)? as u32;
    lowest_of_rows(&descent, rule.shape().trained, t).map(|(found, rows)| {
        let answer = vec![
            ("delta", json!(found.value)),
            ("error", json!(found.error)),
            ("convergence", json!(found.convergence)),
            ("rows", json!(rows)),
        ];
        explained(answer, &[("rows", "null for rows without a threshold")])
    })
}

/// min_j δ*_j(t), and δ*_j(t) of every row (null where none exists).
fn lowest_of_rows(descent: &Descent, rows: usize, t: usize) -> Result<(Sampled, Vec<Value>), QuantityError> {
    let found: Vec<_> = (0..rows).map(|row| descent.threshold(row, t)).collect();
    let best = found.iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value));
    match best {
        Some(best) => {
            let list = found.iter().map(|f| f.as_ref().map_or(Value::Null, |f| json!(f.value))).collect();
            Ok((*best, list))
        }
        None => Err(found.into_iter().find_map(Result::err).map_or_else(|| refused("no rows"), refused)),
    }
}

fn extrapolated(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (mut descent, rule) = sampled_descent(arguments)?;
    descent.scrambles = arguments.count_up_to("scrambles", 100)? as u32;
    let times = arguments.numbers("times");
    if times.len() < 2
        || times.windows(2).any(|w| w[1] <= w[0])
        || times.iter().any(|t| !(1.0..=MOST_STEPS as f64).contains(t) || t.fract() != 0.0)
    {
        return Err(refused(format!(
            "input `times` needs at least two ascending whole numbers from 1 to {MOST_STEPS}"
        )));
    }
    let (mut thresholds, mut errors) = (Vec::new(), Vec::new());
    for t in &times {
        let (found, _) = lowest_of_rows(&descent, rule.shape().trained, *t as usize)?;
        thresholds.push(found.value);
        errors.push(found.error.hypot(found.convergence));
    }
    let limit =
        long_time(&times, &thresholds, &errors).ok_or_else(|| refused("two ascending times are needed"))?;
    Ok(vec![
        ("delta", json!(limit.value)),
        ("low", json!(limit.range.0)),
        ("high", json!(limit.range.1)),
        ("uncertainty", json!(limit.uncertainty)),
        ("times", json!(times)),
        ("thresholds", json!(thresholds)),
        ("errors", json!(errors)),
        (
            "assumes",
            json!(
                "delta*(t) = delta - c t^-p through the last two times, p = 1 (delta), p from 2 (low) to 1/2 (high); the theory does not fix p"
            ),
        ),
    ])
}
