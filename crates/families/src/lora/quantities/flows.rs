//! Loss, flows and what they lead to, as quantities.

use super::{
    ACTIVATION, DELTA, LABELS, LOSS as LOSS_INPUT, M, M0, MU, NO_GROWTH, TEACHER, U, U0, delta, domain,
    landscape, landscape_at, number, optional, positive, required, state,
};
use crate::lora::flow::{Flow, FlowError};
use crate::lora::landscape::{AdapterState, Gradient, Landscape};
use crate::lora::large_batch::LargeBatch;
use crate::lora::search_phase::{self, Rates};
use crate::lora::two_stage::TwoStage;
use didact_math::activation::Form;
use didact_math::roots::minimum;
use didact_model::constraint::Retraction;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

pub(super) const LOSS: Quantity = Quantity {
    name: "loss",
    summary: "population loss and its derivatives by u and m",
    inputs: &[
        MU,
        U,
        M,
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        optional("method", Kind::Text, "\"closed\"", "closed, hermite (series) or quadrature"),
        optional("terms", Kind::Count, "80", "length of the Hermite series"),
    ],
    outputs: &["loss", "by-u", "by-m"],
    compute: loss,
};

pub(super) const NOISE: Quantity = Quantity {
    name: "gradient-noise",
    summary: "E[c^2] of the per-sample gradient coefficient c = (y-f) sigma'(s)",
    inputs: &[MU, U, M, ACTIVATION, TEACHER, LABELS, LOSS_INPUT],
    outputs: &["noise"],
    compute: noise,
};

pub(super) const FLOW: Quantity = Quantity {
    name: "flow",
    summary: "gradient flow from (u0, m0): u, m, m_eff and test error at given times",
    inputs: &[
        MU,
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        DELTA,
        U0,
        M0,
        required("times", Kind::Numbers, "increasing, from 0 on"),
        optional("misalignment", Kind::Number, "0", "weight b of pre-training along xi"),
        optional("nu", Kind::Number, "0", "xi.w*"),
        optional("q0", Kind::Number, "0", "overlap of the adapter with xi at the start"),
    ],
    outputs: &["t", "u", "m", "q", "m-eff", "loss"],
    compute: flow,
};

pub(super) const EXIT: Quantity = Quantity {
    name: "exit-times",
    summary: "when the adapter leaves the search phase: along the flow (max norm) and linearised (Euclidean norm)",
    inputs: &[
        MU,
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        DELTA,
        U0,
        M0,
        optional("threshold", Kind::Number, "1", "radius in units of mu"),
    ],
    outputs: &["nonlinear", "linear", "tau"],
    compute: exit,
};

pub(super) const OUTCOME: Quantity = Quantity {
    name: "outcome",
    summary: "where gradient flow ends: recovered, mirror, trapped at zero, trapped at a spurious point, or not converged",
    inputs: &[
        MU,
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        DELTA,
        U0,
        M0,
        optional("time", Kind::Number, "1000000", "longest time followed"),
    ],
    outputs: &["outcome", "u", "m", "m-eff", "mse", "time"],
    compute: outcome,
};

pub(super) const OPTIMAL: Quantity = Quantity {
    name: "optimal-mu",
    summary: "the strength of pre-training that reaches a test error soonest, and the one that escapes soonest",
    inputs: &[
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        DELTA,
        U0,
        M0,
        optional("error", Kind::Number, "0.01", "test error E[(y-f)^2] to be reached"),
        optional("points", Kind::Count, "60", "points of the search grid in mu"),
        optional("time", Kind::Number, "1000000", "longest time followed"),
    ],
    outputs: &["mu", "time", "mu-tau", "tau"],
    compute: optimal,
};

pub(super) const SWITCH: Quantity = Quantity {
    name: "switch-window",
    summary: "two-stage training: the overlaps at which switching to plain labels recovers the teacher in time",
    inputs: &[
        MU,
        ACTIVATION,
        TEACHER,
        optional("labels", Kind::Text, "\"squared\"", "labels of the first stage"),
        LOSS_INPUT,
        DELTA,
        U0,
        M0,
        optional("time", Kind::Number, "2500", "time given to the second stage"),
        optional("reset-u", Kind::Flag, "false", "set u to 0 at the switch"),
        optional("points", Kind::Count, "40", "points of the scan"),
    ],
    outputs: &["low", "high", "windows"],
    compute: switch_window,
};

pub(super) const LARGE_BATCH: Quantity = Quantity {
    name: "large-batch-map",
    summary: "(u, m) after so many steps of spherical SGD as B, d grow at fixed d/B",
    inputs: &[
        MU,
        ACTIVATION,
        TEACHER,
        LABELS,
        LOSS_INPUT,
        U0,
        M0,
        required("eta", Kind::Number, "step size"),
        required("d-over-B", Kind::Number, "dimensions per sample of a batch; (d-2)/B at finite d"),
        required("steps", Kind::Count, "how many"),
        optional("gradient", Kind::Text, "\"euclidean\"", "euclidean or tangent"),
    ],
    outputs: &["u", "m", "m-eff"],
    compute: large_batch,
};

fn failed(error: &FlowError) -> QuantityError {
    domain(error.to_string())
}

fn needs_gradient(l: &Landscape, state: AdapterState) -> Result<(), QuantityError> {
    if l.population.student.form() == Form::Relu && l.law(state).student == 0.0 {
        return Err(domain("a relu student with W = 0 has no gradient: r must be positive"));
    }
    Ok(())
}

fn loss(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, state) = (landscape(arguments)?, state(arguments, "u", "m")?);
    needs_gradient(&l, state)?;
    let (value, gradient): (f64, Gradient) = match arguments.text("method") {
        "closed" => (l.loss(state), l.gradient(state)),
        "hermite" => l.by_series(state, arguments.count_up_to("terms", 200)?),
        "quadrature" if state.overlap.abs() < 1.0 => l.by_quadrature(state),
        "quadrature" => return Err(domain("quadrature of the sample gradient needs |m| < 1")),
        other => return Err(domain(format!("method is `{other}`; use closed, hermite or quadrature"))),
    };
    Ok(vec![("loss", json!(value)), ("by-u", json!(gradient.amplitude)), ("by-m", json!(gradient.overlap))])
}

fn noise(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, state) = (landscape(arguments)?, state(arguments, "u", "m")?);
    Ok(vec![("noise", json!(l.population.gradient_noise(l.law(state))))])
}

fn flow(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let mut l = landscape(arguments)?;
    (l.misalignment, l.nu) = (arguments.number("misalignment"), arguments.number("nu"));
    let mut start = state(arguments, "u0", "m0")?;
    start.stray = arguments.number("q0");
    let (m, q, nu) = (start.overlap, start.stray, l.nu);
    // The Gram of w, w*, xi.
    if l.is_misaligned() && 1.0 + 2.0 * m * q * nu - m * m - q * q - nu * nu < -1e-12 {
        return Err(domain(format!("no unit vectors have m = {m}, q = {q}, nu = {nu}")));
    }
    needs_gradient(&l, start)?;
    let times = arguments.numbers("times");
    let states =
        Flow { landscape: &l, delta: delta(arguments)? }.states(start, &times).map_err(|e| failed(&e))?;
    let list = |of: &dyn Fn(&AdapterState) -> f64| json!(states.iter().map(of).collect::<Vec<f64>>());
    Ok(vec![
        ("t", json!(times)),
        ("u", list(&|s| s.amplitude)),
        ("m", list(&|s| s.overlap)),
        ("q", list(&|s| s.stray)),
        ("m-eff", list(&|s| l.law(*s).overlap)),
        ("loss", list(&|s| l.loss(*s))),
    ])
}

fn exit(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, start, delta) = (landscape(arguments)?, state(arguments, "u0", "m0")?, delta(arguments)?);
    needs_gradient(&l, start)?;
    let radius = positive(arguments, "threshold")? * l.mu;
    let rates = Rates::of(&l, delta);
    let linear = rates.linear_exit(start, radius);
    // Far beyond the linear estimate nothing new happens; without growth the flow may still leave along u.
    let cap = if linear.is_finite() { 20.0 * (linear + rates.escape_time()) } else { 1e6 / delta };
    let passage = search_phase::exit(&l, delta, start, radius, cap).map_err(|e| failed(&e))?;
    let answer = vec![
        ("nonlinear", passage.map_or(Value::Null, |t| json!(t))),
        ("linear", number(linear)),
        ("tau", number(rates.escape_time())),
    ];
    Ok(explained(
        answer,
        &[
            ("nonlinear", "the flow does not leave the plateau by the threshold"),
            ("linear", "nothing grows at the start"),
            ("tau", NO_GROWTH),
        ],
    ))
}

fn outcome(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, start) = (landscape(arguments)?, state(arguments, "u0", "m0")?);
    needs_gradient(&l, start)?;
    let flow = Flow { landscape: &l, delta: delta(arguments)? };
    let end = flow.end(start, positive(arguments, "time")?).map_err(|e| failed(&e))?;
    Ok(vec![
        ("outcome", json!(end.destination.name())),
        ("u", json!(end.state.amplitude)),
        ("m", json!(end.state.overlap)),
        ("m-eff", json!(l.law(end.state).overlap)),
        ("mse", json!(2.0 * l.loss(end.state))),
        ("time", json!(end.time)),
    ])
}

/// Time until E[(y − f)²] falls below `error`; infinite if it does not within `cap`.
fn time_to(l: &Landscape, delta: f64, start: AdapterState, error: f64, cap: f64) -> Result<f64, FlowError> {
    let excess = |s: AdapterState| error - 2.0 * l.loss(s);
    Ok(Flow { landscape: l, delta }.first_passage(start, cap, excess)?.map_or(f64::INFINITY, |(t, _)| t))
}

/// The smallest value over a grid of μ, refined between the neighbours of the best point; `None` if nothing is finite.
fn best(points: usize, mut f: impl FnMut(f64) -> f64) -> Option<(f64, f64)> {
    let grid = |i: usize| (i as f64 + 0.5) / points as f64;
    let values: Vec<f64> = (0..points).map(|i| f(grid(i))).collect();
    let at =
        (0..points).filter(|&i| values[i].is_finite()).min_by(|&a, &b| values[a].total_cmp(&values[b]))?;
    let (low, high) = (grid(at.saturating_sub(1)), grid((at + 1).min(points - 1)));
    let found = minimum(&mut f, low, high, 1e-7);
    Some(if found.value <= values[at] { (found.at, found.value) } else { (grid(at), values[at]) })
}

fn optimal(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (start, delta, error) =
        (state(arguments, "u0", "m0")?, delta(arguments)?, positive(arguments, "error")?);
    let (points, cap) = (arguments.count_up_to("points", 2000)?.max(3), positive(arguments, "time")?);
    let mut l = landscape_at(arguments, 0.5)?;
    let escape = best(points.max(200), |mu| {
        l.mu = mu;
        Rates::of(&l, delta).escape_time()
    });
    let total = best(points, |mu| {
        l.mu = mu;
        time_to(&l, delta, start, error, cap).unwrap_or(f64::INFINITY)
    });
    let entry =
        |found: Option<(f64, f64)>| found.map_or((Value::Null, Value::Null), |(a, b)| (json!(a), json!(b)));
    let ((mu, time), (mu_tau, tau)) = (entry(total), entry(escape));
    let answer = vec![("mu", mu), ("time", time), ("mu-tau", mu_tau), ("tau", tau)];
    let late = "the error is not reached within `time` at any mu";
    Ok(explained(answer, &[("mu", late), ("time", late), ("mu-tau", NO_GROWTH), ("tau", NO_GROWTH)]))
}

fn switch_window(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let first = landscape(arguments)?;
    let spec = crate::lora::LoraSingleIndex {
        teacher_activation: arguments.given("teacher").then(|| arguments.text("teacher").to_owned()),
        ..crate::lora::LoraSingleIndex::matched(first.mu, arguments.text("activation"))
    };
    let schedule = TwoStage {
        first,
        second: spec.landscape().map_err(|e| domain(e.to_string()))?,
        delta: delta(arguments)?,
        start: state(arguments, "u0", "m0")?,
        time: positive(arguments, "time")?,
        reset_amplitude: arguments.flag("reset-u"),
    };
    let windows = schedule.windows(arguments.count_up_to("points", 500)?.max(2)).map_err(|e| failed(&e))?;
    let ends = |end: fn(&(f64, f64)) -> f64| windows.iter().map(end).collect::<Vec<f64>>();
    let (low, high) = (ends(|w| w.0), ends(|w| w.1));
    let answer = vec![
        ("low", json!(low.first())),
        ("high", json!(high.last())),
        ("windows", json!(windows.iter().map(|w| [w.0, w.1]).collect::<Vec<_>>())),
    ];
    let none = "no time of the switch leads to the teacher";
    Ok(explained(answer, &[("low", none), ("high", none)]))
}

fn large_batch(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (l, start) = (landscape(arguments)?, state(arguments, "u0", "m0")?);
    needs_gradient(&l, start)?;
    let ratio = arguments.number("d-over-B");
    if ratio < 0.0 {
        return Err(domain(format!("d-over-B is {ratio}; it is not negative")));
    }
    let retraction = match arguments.text("gradient") {
        "euclidean" => Retraction::Euclidean,
        "tangent" => Retraction::Tangent,
        other => return Err(domain(format!("gradient is `{other}`; use euclidean or tangent"))),
    };
    let step = positive(arguments, "eta")?;
    let map = LargeBatch { landscape: &l, step, dimensions_per_sample: ratio, retraction };
    let end = map.after(start, arguments.count_up_to("steps", 10_000_000)? as u64);
    Ok(vec![("u", json!(end.amplitude)), ("m", json!(end.overlap)), ("m-eff", json!(l.law(end).overlap))])
}
