//! What can be asked of a link alone: its easy and hard directions (`landscape/easy-hard`), and baselines (`recovery/…`).

use super::quantities::{DELTA, NOISE, SEED, count, label_noise, positive_delta, refused, whole};
use super::recovery::weak_recovery;
use super::{Preprocessing, sampled_spectral_method, spectral_method, split};
use didact_model::Link;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::json;

const LINK: Input = Input {
    name: "link",
    kind: Kind::Text,
    default: None,
    about: "y as a formula of z1, z2, … (z) and the noise e",
};
/// Latent directions over which averages are computed by quadrature.
const MOST_DIRECTIONS: usize = 8;

const DIRECTIONS: Input = count("directions", "1", "latent directions k");
const PREPROCESSING: Input = Input {
    name: "preprocessing",
    kind: Kind::Text,
    default: Some("\"optimal\""),
    about: "optimal, mondelli-montanari, or a formula in y and delta",
};

pub(super) static LINKS: &[Quantity] = &[Quantity {
    name: "easy-hard",
    summary: "which directions of a link show at first order, and which are hidden",
    inputs: &[LINK, DIRECTIONS, NOISE],
    outputs: &[
        "easy",
        "hard",
        "easy-directions",
        "hard-directions",
        "projector",
        "singular-values",
        "tolerances",
    ],
    compute: easy_hard,
}];

pub(super) static RECOVERY: &[Quantity] = &[
    Quantity {
        name: "threshold",
        summary: "delta_alg: samples per dimension from which an efficient method can see the directions of a link",
        inputs: &[LINK, DIRECTIONS, NOISE],
        outputs: &["delta", "error", "method", "easy"],
        compute: recovery_threshold,
    },
    Quantity {
        name: "spectral-method",
        summary: "top eigenvector of (1/n) sum T(y) x x^T: right edge of the bulk, eigenvalue and squared overlap",
        inputs: &[LINK, DIRECTIONS, NOISE, PREPROCESSING, DELTA],
        outputs: &["right-edge", "eigenvalue", "overlap"],
        compute: spectral,
    },
    Quantity {
        name: "spectral-sample",
        summary: "the same for one data set",
        inputs: &[LINK, DIRECTIONS, NOISE, PREPROCESSING, DELTA, count("d", "400", "dimension"), SEED],
        outputs: &["eigenvalue", "overlap"],
        compute: spectral_sample,
    },
];

/// The link, and whether it sees noise.
fn link(arguments: &Arguments) -> Result<(Link, f64), QuantityError> {
    let link = Link::parse(arguments.text("link"), arguments.count_up_to("directions", MOST_DIRECTIONS)?)
        .map_err(|error| refused(format!("input `link`: {error}")))?;
    let noise = label_noise(arguments, link.standard_noise())?;
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
    let (d, seed) = (arguments.count_up_to("d", 100_000)?, whole(arguments, "seed")? as u64);
    let delta = positive_delta(arguments)?;
    let (eigenvalue, overlap) =
        sampled_spectral_method(link.directions(), &label, &preprocessing(arguments)?, delta, d, seed)
            .map_err(refused)?;
    Ok(vec![("eigenvalue", json!(eigenvalue)), ("overlap", json!(overlap))])
}
