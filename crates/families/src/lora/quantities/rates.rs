//! The search phase and the descent, as quantities.

use super::{
    ACTIVATION, DELTA, LABELS, LOSS, M, MU, NO_GROWTH, TEACHER, U, delta, domain, landscape, landscape_at,
    number, optional, required, state,
};
use crate::lora::hermite;
use crate::lora::search_phase::{self, Mechanics, Rates};
use didact_math::roots::find_roots_by_scan;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

pub(super) const RATES: Quantity = Quantity {
    name: "rates",
    summary: "search phase: A, B, the growth rate lambda_+ and the escape time tau of any pair of activations",
    inputs: &[MU, ACTIVATION, TEACHER, LABELS, LOSS, DELTA],
    outputs: &["A", "B", "lambda-plus", "tau", "lambda-minus", "diverges"],
    compute: rates,
};

pub(super) const LIMITS: Quantity = Quantity {
    name: "limits",
    summary: "escape time as mu -> 1, K/(1-mu)^2, and at mu -> 0, of a matched pair",
    inputs: &[ACTIVATION, DELTA],
    outputs: &["strong", "weak", "weak-power", "slope-square", "weighted-slope-square"],
    compute: limits,
};

pub(super) const MISALIGNED: Quantity = Quantity {
    name: "misaligned-rates",
    summary: "search phase of pre-training a w* + b xi: alpha, beta, G, lambda_+ and tau",
    inputs: &[
        required("a", Kind::Number, "weight along the teacher"),
        required("b", Kind::Number, "weight along xi"),
        optional("nu", Kind::Number, "0", "xi.w*"),
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS,
        DELTA,
    ],
    outputs: &["alpha", "beta", "G", "lambda-plus", "tau"],
    compute: misaligned,
};

pub(super) const DESCENT: Quantity = Quantity {
    name: "descent-rates",
    summary: "rates of the approach to the teacher (sign 1) or its mirror (sign -1, even students): of 1-|m| and of u",
    inputs: &[MU, ACTIVATION, optional("sign", Kind::Number, "1", "sign of m_eff at the minimum"), DELTA],
    outputs: &["overlap", "amplitude"],
    compute: descent,
};

pub(super) const MECHANICS: Quantity = Quantity {
    name: "mechanics",
    summary: "search phase as a particle: position g = atanh m, speed, potential, energy and its rate",
    inputs: &[MU, ACTIVATION, TEACHER, LABELS, LOSS, U, M],
    outputs: &["g", "speed", "V", "E", "power"],
    compute: mechanics,
};

pub(super) const POTENTIAL: Quantity = Quantity {
    name: "potential",
    summary: "the potential V(g) = -A^2 log cosh g of the search phase",
    inputs: &[MU, ACTIVATION, TEACHER, LABELS, LOSS, required("g", Kind::Number, "position, atanh m")],
    outputs: &["V"],
    compute: potential,
};

pub(super) const ZEROS: Quantity = Quantity {
    name: "zeros",
    summary: "all mu in (0, 1) where A vanishes, for any pair; tau diverges there if B < 0",
    inputs: &[
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS,
        optional("points", Kind::Count, "800", "points of the scan for sign changes"),
    ],
    outputs: &["mu", "B", "diverges", "count"],
    compute: zeros,
};

fn rates(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let r = Rates::of(&landscape(arguments)?, delta(arguments)?);
    let answer = vec![
        ("A", json!(r.coupling)),
        ("B", json!(r.self_coupling)),
        ("lambda-plus", json!(r.growth)),
        ("tau", number(r.escape_time())),
        ("lambda-minus", json!(r.decay)),
        ("diverges", json!(r.growth == 0.0)),
    ];
    Ok(explained(answer, &[("tau", NO_GROWTH)]))
}

fn misaligned(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let nu = arguments.number("nu");
    if nu.abs() >= 1.0 {
        return Err(domain(format!(
            "nu is {nu}; the overlap of two different unit vectors is between -1 and 1"
        )));
    }
    let mut at = landscape_at(arguments, arguments.number("a"))?;
    (at.misalignment, at.nu) = (arguments.number("b"), nu);
    let r = Rates::of(&at, delta(arguments)?);
    let answer = vec![
        ("alpha", json!(r.coupling)),
        ("beta", json!(r.stray)),
        ("G", json!(r.self_coupling)),
        ("lambda-plus", json!(r.growth)),
        ("tau", number(r.escape_time())),
    ];
    Ok(explained(answer, &[("tau", NO_GROWTH)]))
}

/// The order of a Hermite unit by its name.
fn hermite_order(name: &str) -> Option<usize> {
    name.strip_prefix("He")?.parse().ok()
}

fn limits(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let unit =
        didact_math::activation::parse(arguments.text("activation")).map_err(|e| domain(e.to_string()))?;
    let population = crate::lora::population::Population::matched(unit.clone());
    let delta = delta(arguments)?;
    let (square, weighted) = search_phase::slope_moments(&population);
    let strong = search_phase::strong_pretraining_constant(&population) / delta;
    // tau ~ weak mu^{-power} as mu -> 0.
    let (weak, power) = match hermite_order(&unit.name()) {
        Some(k) if k >= 2 => {
            let scale = hermite::time_scale(k) * delta;
            (1.0 / (hermite::central(k / 2) * scale), if k % 2 == 0 { 0 } else { 2 })
        }
        _ if unit.form() == didact_math::activation::Form::Relu => {
            // tau of relu is twice that of linear units.
            ((1.0 + 5f64.sqrt()) / delta, 0)
        }
        _ if !unit.kinks().is_empty() => {
            return Err(domain("the limit mu -> 0 is not known for a student with kinks, other than relu"));
        }
        _ => (search_phase::without_pretraining(&population).escape_time() / delta, 0),
    };
    Ok(vec![
        ("strong", json!(strong)),
        ("weak", number(weak)),
        ("weak-power", json!(power)),
        ("slope-square", json!(square)),
        ("weighted-slope-square", json!(weighted)),
    ])
}

fn descent(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, sign, delta) = (landscape_of_matched(arguments)?, arguments.number("sign"), delta(arguments)?);
    if sign.abs() != 1.0 {
        return Err(domain(format!("sign is {sign}; use 1 or -1")));
    }
    let even = |z: f64| {
        let s = &l.population.student;
        (s.value(z) - s.value(-z)).abs() <= 1e-12 * (1.0 + s.value(z).abs())
    };
    if sign < 0.0 && !(even(0.7) && even(1.9)) {
        return Err(domain("only an even student has a minimum with m_eff = -1"));
    }
    let (overlap, amplitude) = search_phase::descent(&l.population, l.mu, sign);
    Ok(vec![("overlap", json!(delta * overlap)), ("amplitude", json!(delta * amplitude))])
}

fn landscape_of_matched(arguments: &Arguments) -> Result<crate::lora::landscape::Landscape, QuantityError> {
    let spec = crate::lora::LoraSingleIndex::matched(arguments.number("mu"), arguments.text("activation"));
    spec.landscape().map_err(|e| domain(e.to_string()))
}

fn mechanics(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let state = state(arguments, "u", "m")?;
    if state.overlap.abs() == 1.0 {
        return Err(domain("m = 1 is infinitely far: g = atanh m"));
    }
    let it = Mechanics::of(&Rates::of(&landscape(arguments)?, 1.0), state);
    Ok(vec![
        ("g", json!(it.position)),
        ("speed", json!(it.speed)),
        ("V", json!(it.potential)),
        ("E", json!(it.energy)),
        ("power", json!(it.power)),
    ])
}

fn potential(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let rates = Rates::of(&landscape(arguments)?, 1.0);
    Ok(vec![("V", json!(search_phase::potential(&rates, arguments.number("g"))))])
}

fn zeros(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let mut at = landscape_at(arguments, 0.5)?;
    let mut rates = |mu: f64| {
        at.mu = mu;
        Rates::of(&at, 1.0)
    };
    // A of a matched pair vanishes at mu = 1 itself.
    let found = find_roots_by_scan(
        |mu| rates(mu).coupling,
        1e-3,
        0.999,
        arguments.count_up_to("points", 100_000)?.max(3),
    );
    let self_couplings: Vec<f64> = found.iter().map(|&mu| rates(mu).self_coupling).collect();
    let diverges: Vec<Value> = self_couplings.iter().map(|b| json!(*b < 0.0)).collect();
    Ok(vec![
        ("mu", json!(found)),
        ("B", json!(self_couplings)),
        ("diverges", json!(diverges)),
        ("count", json!(found.len())),
    ])
}
