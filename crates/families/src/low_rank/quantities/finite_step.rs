//! Finite steps at large d: noise, equations of motion, stationary overlap, step sizes.

use super::super::dynamics::{Draws, FiniteStep, chain_step};
use super::super::loading::typical_sign_pair;
use super::super::network::{Mode, Network};
use super::super::noise::{Class, NoiseTable, gradient_noise};
use super::super::orthonormal::Signal;
use super::inputs::{
    ACTIVATION, LOADING, MOST_UNITS, OUTPUT_SCALE, OVERLAPS, SECOND_LAYER, SIGNS, STEP, STRENGTH,
    STUDENT_LOADING, STUDENT_SIGNS, UNITS, activation, domain, like, loading, needed, network, optional,
    overlaps, positive, second_layer, signs,
};
use super::orthonormal::{ascending, reached};
use didact_math::random::{RngAddress, Stream};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

const LABEL_NOISE: Input =
    optional("label_noise", Kind::Number, "0", "standard deviation of the label noise");

/// An instance on an orthonormal base, by its signs.
struct Signed {
    network: Network,
    signs: Vec<f64>,
    student_signs: Vec<f64>,
    label_noise: f64,
}

impl Signed {
    fn read(a: &Arguments) -> Result<Self, QuantityError> {
        let units = a.numbers("b").len();
        Ok(Self {
            network: network(a, units, false)?,
            signs: signs(a, "b", units)?,
            student_signs: signs(a, "b_hat", units)?,
            label_noise: a.number("label_noise"),
        })
    }

    fn flow(&self) -> Result<FiniteStep<'_>, QuantityError> {
        FiniteStep::new(&self.network, &self.signs, &self.student_signs, self.label_noise)
            .map_err(|e| domain(e.to_string()))
    }
}

pub(super) const NOISE: Quantity = Quantity {
    name: "gradient-noise",
    summary: "V(m) = 4 E[D^2 F^2] and V_u(m) = 4 E[D^2 F^2 b^2], orthonormal base, normalised",
    inputs: &[ACTIVATION, SIGNS, STUDENT_SIGNS, STRENGTH, SECOND_LAYER, LABEL_NOISE, OVERLAPS],
    outputs: &["V", "V_u"],
    compute: noise,
};

fn noise(a: &Arguments) -> Result<Answer, QuantityError> {
    let it = Signed::read(a)?;
    let root = (it.signs.len() as f64).sqrt();
    let scaled = |signs: &[f64]| -> Vec<f64> { signs.iter().map(|b| b / root).collect() };
    let (c, own) = (scaled(&it.signs), scaled(&it.student_signs));
    let (mut whole, mut along) = (Vec::new(), Vec::new());
    for m in overlaps(a, "m")? {
        let got =
            gradient_noise(&it.network, &c, &own, m, it.label_noise).map_err(|e| domain(e.to_string()))?;
        whole.push(got.whole);
        along.push(got.along);
    }
    Ok(vec![("V", like(a.value("m"), &whole)), ("V_u", like(a.value("m"), &along))])
}

pub(super) const ODE: Quantity = Quantity {
    name: "ode",
    summary: "m(alpha) of dm/dalpha = gamma h (1 - m^2) - gamma^2/2 m V(m), alpha = steps/d_perp",
    inputs: &[
        ACTIVATION,
        SIGNS,
        STUDENT_SIGNS,
        STRENGTH,
        SECOND_LAYER,
        LABEL_NOISE,
        STEP,
        needed("m0", Kind::Number, "overlap at the start"),
        needed("alpha", Kind::Numbers, "ascending times"),
    ],
    outputs: &["m", "alpha"],
    compute: |a| {
        let it = Signed::read(a)?;
        let times = ascending(a, "alpha")?;
        let m = it.flow()?.trajectory(positive(a, "gamma")?, overlaps(a, "m0")?[0], &times);
        reached(&m, &times)?;
        Ok(vec![("m", like(a.value("alpha"), &m)), ("alpha", a.value("alpha").clone())])
    },
};

pub(super) const STATIONARY: Quantity = Quantity {
    name: "fixed-point",
    summary: "stationary overlap m* at a finite step, reached from m = 0; null when h(0) = 0",
    inputs: &[ACTIVATION, SIGNS, STUDENT_SIGNS, STRENGTH, SECOND_LAYER, LABEL_NOISE, STEP],
    outputs: &["m", "distance"],
    compute: |a| {
        let (it, gamma) = (Signed::read(a)?, positive(a, "gamma")?);
        let m = it.flow()?.stationary(gamma);
        let distance = m.map_or(Value::Null, |m| json!(1.0 - m.abs()));
        let answer = vec![("m", m.map_or(Value::Null, Value::from)), ("distance", distance)];
        let none = "h(0) = 0, so that nothing is learned from m = 0";
        Ok(explained(answer, &[("m", none), ("distance", none)]))
    },
};

const STEP_INPUTS: &[Input] = &[
    ACTIVATION,
    optional("b", Kind::Numbers, "null", "signs of c"),
    optional("b_hat", Kind::Numbers, "null", "signs of c_hat"),
    optional("k", Kind::Number, "null", "hidden units with typical signs, in place of b and b_hat"),
    optional("xi", Kind::Number, "null", "strength"),
    optional("relative", Kind::Number, "null", "strength over sqrt k, in place of xi"),
    SECOND_LAYER,
    LABEL_NOISE,
    optional("g", Kind::Number, "0.25", "fraction of the largest useful step"),
    optional(
        "m0",
        Kind::Number,
        "null",
        "overlap at the start; 0, or 1/sqrt(d - k) with the sign of h(0) when d is given",
    ),
    optional("level", Kind::Number, "0.8", "overlap that counts as recovery"),
    optional("d", Kind::Number, "null", "dimension of the `steps-per-dimension`; infinite unless given"),
];

pub(super) const STEP_SIZE: Quantity = Quantity {
    name: "step-size",
    summary: "step gamma = g min 2h(1-m^2)/(mV) of this instance, the overlap it ends at, and steps/d_perp to recovery",
    inputs: STEP_INPUTS,
    outputs: &["gamma", "largest", "m", "alpha", "steps-per-dimension", "h", "V"],
    compute: step,
};

fn step(a: &Arguments) -> Result<Answer, QuantityError> {
    let (it, share, level) = (step_instance(a)?, positive(a, "g")?, a.number("level"));
    if share > 100.0 {
        return Err(domain(format!(
            "g is {share:e}; a step beyond 100 times the largest useful one learns nothing"
        )));
    }
    let flow = it.flow()?;
    let Some(largest) = flow.largest_step() else {
        return Err(domain(
            "no step is useful on this instance: h(0) = 0, or h changes its sign before m = 0.9 (condition 3 fails)",
        ));
    };
    let gamma = share * largest;
    let units = it.signs.len() as f64;
    // A description with learning rate γ steps by γ/d, so that η d_⊥ = γ d_⊥/d, and counts time in steps/d.
    let (perpendicular, dilution) = match a.given("d") {
        true if a.number("d") < units + 3.0 => {
            return Err(domain(format!("d is {}; {units} orthonormal rows need d >= k + 3", a.number("d"))));
        }
        true => (Some(a.number("d") - units), 1.0 - units / a.number("d")),
        false => (None, 1.0),
    };
    let from = match perpendicular {
        _ if a.given("m0") => overlaps(a, "m0")?[0],
        Some(d) => flow.signal().at(0.0).signum() / d.sqrt(),
        None => 0.0,
    };
    let (m, time) = (flow.stationary(gamma), flow.passage(gamma, from, level));
    let steps = match perpendicular {
        None => time,
        Some(d) => flow.clone().in_dimension(d).passage(gamma * dilution, from, level).map(|t| t * dilution),
    };
    let number = |x: Option<f64>| x.map_or(Value::Null, Value::from);
    let answer = vec![
        ("gamma", json!(gamma)),
        ("largest", json!(largest)),
        ("m", number(m)),
        ("alpha", number(time)),
        ("steps-per-dimension", number(steps)),
        ("h", json!(flow.signal().at(0.0))),
        ("V", json!(flow.noise(0.0))),
    ];
    let never = "the overlap does not reach the level";
    let none = "no overlap is stationary at this step";
    Ok(explained(answer, &[("m", none), ("alpha", never), ("steps-per-dimension", never)]))
}

pub(super) const FASTEST_STEP: Quantity = Quantity {
    name: "fastest-step",
    summary: "constant step gamma that reaches |m| = 1 - eps soonest, and steps/d_perp that it takes; null where none does",
    inputs: &[
        ACTIVATION,
        SIGNS,
        STUDENT_SIGNS,
        STRENGTH,
        SECOND_LAYER,
        LABEL_NOISE,
        optional("m0", Kind::Number, "0", "overlap at the start"),
        needed("eps", Kind::Number, "accuracy"),
    ],
    outputs: &["gamma", "alpha"],
    compute: |a| {
        let (it, accuracy) = (Signed::read(a)?, a.number("eps"));
        if !(accuracy > 0.0 && accuracy < 1.0) {
            return Err(domain(format!("eps is {accuracy}; it lies between 0 and 1")));
        }
        let found = it.flow()?.fastest_step(overlaps(a, "m0")?[0], accuracy);
        let entry = |x: Option<f64>| x.map_or(Value::Null, Value::from);
        let answer = vec![("gamma", entry(found.map(|f| f.0))), ("alpha", entry(found.map(|f| f.1)))];
        let none = "no constant step reaches the accuracy";
        Ok(explained(answer, &[("gamma", none), ("alpha", none)]))
    },
};

/// An instance by its signs, or the typical one of a width.
fn step_instance(a: &Arguments) -> Result<Signed, QuantityError> {
    let (signs, student_signs) = match (a.given("b") && a.given("b_hat"), a.given("k")) {
        (true, false) => {
            let units = a.numbers("b").len();
            (signs(a, "b", units)?, signs(a, "b_hat", units)?)
        }
        (false, true)
            if (1.0..=MOST_UNITS as f64).contains(&a.number("k")) && a.number("k").fract() == 0.0 =>
        {
            typical_sign_pair(a.number("k") as usize)
        }
        (false, true) => {
            return Err(domain(format!(
                "k is {}; it must be a whole number from 1 to {MOST_UNITS}",
                a.number("k")
            )));
        }
        _ => return Err(domain("give the signs b and b_hat, or k alone for typical ones")),
    };
    let units = signs.len();
    let xi = strength(a, units)?;
    let network = Network::new(activation(a)?, second_layer(a, units)?, xi, Mode::Normalised);
    Ok(Signed { network, signs, student_signs, label_noise: a.number("label_noise") })
}

/// ξ, or ξ/√k times √k.
fn strength(a: &Arguments, units: usize) -> Result<f64, QuantityError> {
    match (a.given("xi"), a.given("relative")) {
        (true, false) => positive(a, "xi"),
        (false, true) => Ok(positive(a, "relative")? * (units as f64).sqrt()),
        _ => Err(domain("give one of xi and relative (xi/sqrt k)")),
    }
}

pub(super) const TYPICAL: Quantity = Quantity {
    name: "typical",
    summary: "median over random signs of V(0)/h(0)^2, |h(0)| and V(0); orthonormal base, lambda = 1",
    inputs: &[
        ACTIVATION,
        UNITS,
        optional("xi", Kind::Number, "null", "strength"),
        optional("relative", Kind::Number, "null", "strength over sqrt k, in place of xi"),
        optional("draws", Kind::Count, "240", "pairs of sign vectors"),
        optional("seed", Kind::Number, "0", "seed of the signs"),
    ],
    outputs: &["ratio", "h", "V"],
    compute: typical,
};

fn typical(a: &Arguments) -> Result<Answer, QuantityError> {
    let (k, draws) = (a.count_up_to("k", MOST_UNITS)?, a.count_up_to("draws", 100_000)?);
    let root = (k as f64).sqrt();
    let xi = strength(a, k)?;
    let network = Network::new(activation(a)?, vec![1.0; k], xi, Mode::Normalised);
    let class = |b: f64, s: f64| Class { loading: b / root, student_loading: s / root, weight: 1.0 };
    let classes = [class(1.0, 1.0), class(1.0, -1.0), class(-1.0, 1.0), class(-1.0, -1.0)];
    // The conditional cumulants are the same for every draw: only the numbers of neurons per class differ.
    let table = NoiseTable::new(&network, &classes, 0.0).map_err(|e| domain(e.to_string()))?;
    let mut stream = Stream::at(RngAddress { seed: a.number("seed") as u64, replica: 0, step: 0, lane: 0 });
    let (mut ratios, mut signals, mut noises) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..draws {
        let b: Vec<f64> = (0..k).map(|_| stream.sign()).collect();
        let s: Vec<f64> = (0..k).map(|_| stream.sign()).collect();
        let mut counts = [0; 4];
        for (b, s) in b.iter().zip(&s) {
            counts[2 * usize::from(*b < 0.0) + usize::from(*s < 0.0)] += 1;
        }
        let signal = Signal::of(&network, &b, &s);
        let h = if signal.vanishes_at_zero() { 0.0 } else { signal.at(0.0).abs() };
        let v = table.average(&counts).whole;
        // A draw without a signal needs infinitely long.
        ratios.push(if h > 0.0 { v / (h * h) } else { f64::INFINITY });
        signals.push(h);
        noises.push(v);
    }
    let median = |list: &mut Vec<f64>| {
        list.sort_by(f64::total_cmp);
        f64::midpoint(list[(list.len() - 1) / 2], list[list.len() / 2])
    };
    let answer = vec![
        ("ratio", json!(median(&mut ratios))),
        ("h", json!(median(&mut signals))),
        ("V", json!(median(&mut noises))),
    ];
    Ok(explained(answer, &[("ratio", "infinite: most signs have no signal at m = 0")]))
}

pub(super) const CHAIN_STEP: Quantity = Quantity {
    name: "one-step",
    summary: "one step of the overlap for given draws: the next m, the residual D and the gain F",
    inputs: &[
        ACTIVATION,
        needed("y", Kind::Numbers, "fields of the base rows"),
        needed("a", Kind::Number, "field of û"),
        needed("b", Kind::Number, "component of x along u - m û"),
        needed("q", Kind::Number, "squared length of the rest of x"),
        needed("m", Kind::Number, "overlap"),
        SECOND_LAYER,
        LOADING,
        STUDENT_LOADING,
        STRENGTH,
        needed("kappa", Kind::Number, "scale of the pre-activations"),
        OUTPUT_SCALE,
        needed("eta", Kind::Number, "step size"),
    ],
    outputs: &["m", "D", "F"],
    compute: one_step,
};

fn one_step(a: &Arguments) -> Result<Answer, QuantityError> {
    let base = a.numbers("y");
    let units = base.len();
    let mut network = network(a, units, false)?;
    (network.scale, network.output_scale) = (positive(a, "kappa")?, a.number("A"));
    let (c, own) = (loading(a, "c", units)?, loading(a, "c_hat", units)?);
    let draws = Draws { base: &base, along: a.number("a"), across: a.number("b"), rest: a.number("q") };
    let (m, d, f) = chain_step(&network, (&c, &own), overlaps(a, "m")?[0], positive(a, "eta")?, &draws);
    Ok(vec![("m", json!(m)), ("D", json!(d)), ("F", json!(f))])
}
