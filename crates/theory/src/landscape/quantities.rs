//! What the command line, scans and measures can ask about landscapes (`landscape/…`) and about baselines (`recovery/…`).

use super::population::quantities::POPULATION;
use super::recovery::weak_recovery;
use super::{
    Descent, Ensemble, LandscapeError, Preprocessing, Run, at_start, long_time, one_step,
    sampled_spectral_method, spectral_method, split,
};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::{Link, LocalRule, Model};
use serde_json::{Value, json};
use std::sync::Arc;

/// All of them, with the name of their group.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    let group = |name: &'static str, list: &'static [Quantity]| list.iter().map(move |q| (name, q));
    let all = group("landscape", LANDSCAPE).chain(group("landscape", POPULATION));
    all.chain(group("recovery", RECOVERY)).collect()
}

const fn number(name: &'static str, default: Option<&'static str>, about: &'static str) -> Input {
    Input { name, kind: Kind::Number, default, about }
}

const fn count(name: &'static str, default: &'static str, about: &'static str) -> Input {
    Input { name, kind: Kind::Count, default: Some(default), about }
}

const MODEL: Input = Input {
    name: "model",
    kind: Kind::Any,
    default: None,
    about: "the model, as under [model] of a description",
};
const DELTA: Input = number("delta", None, "n/d, samples per dimension");
const ETA: Input = number("eta", Some("1"), "learning rate of full-batch gradient descent");
const STEP: Input = number("t", Some("0"), "steps of gradient descent before the Hessian is taken");
const LENGTH: Input = number("start-length", Some("1"), "length of the trained rows at the start");
const NOISE: Input = number("label-noise", Some("0"), "standard deviation of the label noise");
const ROW: Input = number("row", Some("0"), "which trained row, from 0");
const SAMPLES: Input = count("samples", "16384", "samples of the effective process, a power of two");
const SEED: Input = number("seed", Some("0"), "of the samples");
const SCRAMBLES: Input = count("scrambles", "2", "independent sets of samples: their scatter is the error");
const LINK: Input = Input {
    name: "link",
    kind: Kind::Text,
    default: None,
    about: "y as a formula of z1, z2, … (z) and the noise e",
};
const DIRECTIONS: Input = count("directions", "1", "latent directions k");
const PREPROCESSING: Input = Input {
    name: "preprocessing",
    kind: Kind::Text,
    default: Some("\"optimal\""),
    about: "optimal, mondelli-montanari, or a formula in y and delta",
};

static LANDSCAPE: &[Quantity] = &[
    Quantity {
        name: "easy-hard",
        summary: "which directions of a link show at first order, and which are hidden",
        inputs: &[LINK, DIRECTIONS, NOISE],
        compute: easy_hard,
    },
    Quantity {
        name: "hessian",
        summary: "Hessian of one row along gradient descent: left edge, psi, outlier and its squared overlap",
        inputs: &[MODEL, DELTA, ETA, STEP, LENGTH, NOISE, ROW, SAMPLES, SEED],
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
        compute: bulk,
    },
    Quantity {
        name: "empirical-hessian",
        summary: "eigenvalues of the Hessian of one data set after t steps, and the overlap of the lowest eigenvector",
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
        ],
        compute: empirical_hessian,
    },
    Quantity {
        name: "threshold",
        summary: "delta*(t): samples per dimension from which the Hessian at step t points to the hard directions",
        inputs: &[MODEL, ETA, STEP, LENGTH, NOISE, SAMPLES, SCRAMBLES, SEED],
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
        compute: extrapolated,
    },
];

static RECOVERY: &[Quantity] = &[
    Quantity {
        name: "threshold",
        summary: "delta_alg: samples per dimension from which an efficient method can see the directions of a link",
        inputs: &[LINK, DIRECTIONS, NOISE],
        compute: recovery_threshold,
    },
    Quantity {
        name: "spectral-method",
        summary: "top eigenvector of (1/n) sum T(y) x x^T: right edge of the bulk, eigenvalue and squared overlap",
        inputs: &[LINK, DIRECTIONS, NOISE, PREPROCESSING, DELTA],
        compute: spectral,
    },
    Quantity {
        name: "spectral-sample",
        summary: "the same for one data set",
        inputs: &[LINK, DIRECTIONS, NOISE, PREPROCESSING, DELTA, count("d", "400", "dimension"), SEED],
        compute: spectral_sample,
    },
];

fn refused(error: impl ToString) -> QuantityError {
    QuantityError::Domain(error.to_string())
}

fn whole(arguments: &Arguments, name: &'static str) -> Result<usize, QuantityError> {
    let value = arguments.number(name);
    if value < 0.0 || value.fract() != 0.0 || value > 1e6 {
        return Err(refused(format!("input `{name}` is {value}; expected a whole number from 0 to 1000000")));
    }
    Ok(value as usize)
}

fn rule(arguments: &Arguments) -> Result<Arc<dyn LocalRule>, QuantityError> {
    let model: Model = serde_json::from_value(arguments.value("model").clone()).map_err(|error| {
        refused(format!("input `model`: {error}\n\nhint: write it as the table [model] of a description"))
    })?;
    model.rule().map_err(|error| refused(format!("input `model`: {error}")))
}

/// What a description of descent says, and its rule.
fn descent(arguments: &Arguments) -> Result<(Descent, Arc<dyn LocalRule>), QuantityError> {
    let rule = rule(arguments)?;
    let noise = arguments.number("label-noise");
    let (eta, length) = (arguments.number("eta"), arguments.number("start-length"));
    Ok((Descent::new(rule.clone(), eta, length, noise).map_err(refused)?, rule))
}

/// The same, with the size and the seed of the samples.
fn sampled_descent(arguments: &Arguments) -> Result<(Descent, Arc<dyn LocalRule>), QuantityError> {
    let (mut descent, rule) = descent(arguments)?;
    let samples = arguments.count("samples");
    if !samples.is_power_of_two() || samples < 128 {
        return Err(refused(format!("input `samples` is {samples}; expected a power of two, at least 128")));
    }
    descent.sampling.samples = samples;
    descent.sampling.seed = whole(arguments, "seed")? as u64;
    Ok((descent, rule))
}

/// Weights at step t: by quadrature before the first step and after it if the rule is simple enough, else from the effective process.
fn ensemble(
    arguments: &Arguments,
    descent: &Descent,
    rule: &dyn LocalRule,
) -> Result<Ensemble, LandscapeError> {
    let (delta, t) = (arguments.number("delta"), arguments.number("t") as usize);
    let infimum = descent.check_weights()?;
    let shape = rule.shape();
    let (simple, quiet) = (shape.trained == 1, descent.label_noise == 0.0);
    let variables = shape.rows() + usize::from(!quiet);
    match t {
        0 if simple && variables <= 2 => {
            at_start(rule, descent.start_length, descent.label_noise)?.ensemble.with_infimum(infimum)
        }
        1 if simple && shape.frozen == 1 && quiet => {
            one_step(rule, descent.start_length, delta, descent.step)?.ensemble.with_infimum(infimum)
        }
        _ => descent.ensemble(delta, t, 0),
    }
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

fn positive_delta(arguments: &Arguments) -> Result<f64, QuantityError> {
    let delta = arguments.number("delta");
    if delta <= 0.0 {
        return Err(refused(format!("input `delta` is {delta}; n/d must be positive")));
    }
    Ok(delta)
}

fn hessian(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, _) = (positive_delta(arguments)?, whole(arguments, "t")?);
    let (descent, rule) = sampled_descent(arguments)?;
    let row = row(arguments, rule.as_ref())?;
    let ensemble = ensemble(arguments, &descent, rule.as_ref()).map_err(refused)?;
    let spectrum = ensemble.hessian(row, delta, &descent.split().hard).map_err(refused)?;
    let lowest = spectrum.outliers.first();
    Ok(vec![
        ("edge", json!(spectrum.edge.position)),
        ("psi", json!(spectrum.psi)),
        ("outlier", json!(lowest.map(|o| o.position))),
        ("overlap", json!(lowest.map(|o| o.overlap))),
        ("outliers", json!(spectrum.outliers.len())),
    ])
}

fn bulk(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, _) = (positive_delta(arguments)?, whole(arguments, "t")?);
    let (descent, rule) = sampled_descent(arguments)?;
    let row = row(arguments, rule.as_ref())?;
    let ensemble = ensemble(arguments, &descent, rule.as_ref()).map_err(refused)?;
    let (x, density) = ensemble.density(row, delta, arguments.count("points")).map_err(refused)?;
    let lowest = ensemble.hessian(row, delta, &descent.split().hard).map_err(refused)?;
    let outlier = lowest.outliers.first().map(|o| o.position);
    Ok(vec![
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
    ])
}

fn empirical_hessian(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (delta, t, d) = (positive_delta(arguments)?, whole(arguments, "t")?, arguments.count("d"));
    let (descent, rule) = descent(arguments)?;
    let row = row(arguments, rule.as_ref())?;
    let seed = whole(arguments, "seed")? as u64;
    let mut run = Run::new(rule.as_ref(), d, delta, descent.start_length, descent.label_noise, seed)
        .map_err(refused)?;
    run.descend(descent.step, t);
    let hessian = run.hessian(row);
    let hard = &descent.split().hard;
    if arguments.flag("lanczos") {
        let pairs = hessian.extreme(didact_math::spectra::End::Lowest, 2, seed);
        let values: Vec<f64> = pairs.iter().map(|p| p.value).collect();
        return Ok(vec![
            ("lowest", json!(values[0])),
            ("second", json!(values.get(1))),
            ("overlap", json!(run.overlap(&pairs[0].vector, hard))),
            ("eigenvalues", json!(values)),
        ]);
    }
    if d > LARGEST_DENSE {
        return Err(refused(format!(
            "d is {d}; all eigenvalues need d up to {LARGEST_DENSE}\n\nhint: set lanczos = true"
        )));
    }
    let eigen = hessian.eigen();
    let lowest: Vec<f64> = (0..d).map(|i| eigen.vectors[(i, 0)]).collect();
    Ok(vec![
        ("lowest", json!(eigen.values[0])),
        ("second", json!(eigen.values.get(1))),
        ("overlap", json!(run.overlap(&lowest, hard))),
        ("eigenvalues", json!(eigen.values)),
    ])
}

/// Beyond, a dense eigenproblem takes minutes.
const LARGEST_DENSE: usize = 2000;

fn threshold(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let t = whole(arguments, "t")?;
    let (mut descent, rule) = sampled_descent(arguments)?;
    descent.scrambles = arguments.count("scrambles") as u32;
    lowest_of_rows(&descent, rule.shape().trained, t).map(|(value, error, rows)| {
        vec![("delta", json!(value)), ("error", json!(error)), ("rows", json!(rows))]
    })
}

/// min_j δ*_j(t), its error, and δ*_j(t) of every row (null where none exists).
fn lowest_of_rows(descent: &Descent, rows: usize, t: usize) -> Result<(f64, f64, Vec<Value>), QuantityError> {
    let found: Vec<_> = (0..rows).map(|row| descent.threshold(row, t)).collect();
    let best = found.iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value));
    match best {
        Some(best) => {
            let list = found.iter().map(|f| f.as_ref().map_or(Value::Null, |f| json!(f.value))).collect();
            Ok((best.value, best.error, list))
        }
        None => Err(found.into_iter().find_map(Result::err).map_or_else(|| refused("no rows"), refused)),
    }
}

fn extrapolated(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (mut descent, rule) = sampled_descent(arguments)?;
    descent.scrambles = arguments.count("scrambles") as u32;
    let times = arguments.numbers("times");
    if times.len() < 2
        || times.windows(2).any(|w| w[1] <= w[0])
        || times.iter().any(|t| *t < 1.0 || t.fract() != 0.0)
    {
        return Err(refused("input `times` needs at least two ascending whole numbers"));
    }
    let (mut thresholds, mut errors) = (Vec::new(), Vec::new());
    for t in &times {
        let (value, error, _) = lowest_of_rows(&descent, rule.shape().trained, *t as usize)?;
        thresholds.push(value);
        errors.push(error);
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

/// The link, and whether it sees noise.
fn link(arguments: &Arguments) -> Result<(Link, f64), QuantityError> {
    let link = Link::parse(arguments.text("link"), arguments.count("directions"))
        .map_err(|error| refused(format!("input `link`: {error}")))?;
    let noise = arguments.number("label-noise");
    if noise < 0.0 {
        return Err(refused(format!("input `label-noise` is {noise}; a standard deviation is not negative")));
    }
    // A link that names its noise means a standard normal.
    let noise = if link.names_noise() && noise == 0.0 { 1.0 } else { noise };
    Ok((link, noise))
}

fn easy_hard(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (link, noise) = link(arguments)?;
    let label = |z: &[f64], e: f64| link.label(z, noise * e);
    let found = split(link.directions(), noise > 0.0, &label).map_err(refused)?;
    let rounds: Vec<&Vec<f64>> = found.rounds.iter().map(|r| &r.singular_values).collect();
    let tolerances: Vec<f64> = found.rounds.iter().map(|r| r.tolerance).collect();
    Ok(vec![
        ("easy", json!(found.easy.len())),
        ("hard", json!(found.hard.len())),
        ("easy-directions", json!(found.easy)),
        ("hard-directions", json!(found.hard)),
        ("projector", json!(found.easy_projector().to_rows())),
        ("singular-values", json!(rounds)),
        ("tolerances", json!(tolerances)),
    ])
}

fn recovery_threshold(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (link, noise) = link(arguments)?;
    let label = |z: &[f64], e: f64| link.label(z, noise * e);
    let k = link.directions();
    let easy = split(k, noise > 0.0, &label).map_err(refused)?.easy.len();
    let found = weak_recovery(k, &label).map_err(refused)?;
    Ok(vec![
        ("delta", json!(found.delta)),
        ("error", json!(found.error)),
        ("method", json!(format!("{:?}", found.method).to_lowercase())),
        ("easy", json!(easy)),
    ])
}

fn spectral(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (link, noise) = link(arguments)?;
    let label = |z: &[f64], e: f64| link.label(z, noise * e);
    let preprocessing = preprocessing(arguments)?;
    let delta = positive_delta(arguments)?;
    let found =
        spectral_method(link.directions(), noise > 0.0, &label, &preprocessing, delta).map_err(refused)?;
    Ok(vec![
        ("right-edge", json!(found.right_edge)),
        ("eigenvalue", json!(found.outlier.map_or(found.right_edge, |o| o.0))),
        ("overlap", json!(found.outlier.map_or(0.0, |o| o.1))),
    ])
}

fn preprocessing(arguments: &Arguments) -> Result<Preprocessing, QuantityError> {
    let text = arguments.text("preprocessing");
    Preprocessing::parse(text).map_err(|error| refused(format!("input `preprocessing`: {error}")))
}

fn spectral_sample(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (link, noise) = link(arguments)?;
    let label = |z: &[f64], e: f64| link.label(z, noise * e);
    let (d, seed) = (arguments.count("d"), whole(arguments, "seed")? as u64);
    let delta = positive_delta(arguments)?;
    let (eigenvalue, overlap) =
        sampled_spectral_method(link.directions(), &label, &preprocessing(arguments)?, delta, d, seed)
            .map_err(refused)?;
    Ok(vec![("eigenvalue", json!(eigenvalue)), ("overlap", json!(overlap))])
}
