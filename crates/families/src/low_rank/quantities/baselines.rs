//! Baselines and calculators.

use super::super::lazy::{LazyLoss, moment_estimator, refit_floor};
use super::super::network::information_exponent;
use super::super::noise::single_index;
use super::super::theorem::{crossovers, theorem_bounds, theorem_constants, two_optima};
use super::inputs::{
    ACTIVATION, GRAM, LOADING, MODE, OUTPUT_SCALE, OVERLAPS, SECOND_LAYER, STRENGTH, STUDENT_LOADING, UNITS,
    activation, domain, gram, instance, like, loading, needed, network, optional, overlaps, positive,
    quantised,
};
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

pub(super) const SINGLE_INDEX: Quantity = Quantity {
    name: "single-index",
    summary: "h, V and V_u of the single-index baseline at overlap m",
    inputs: &[ACTIVATION, OUTPUT_SCALE, needed("m", Kind::Number, "overlap")],
    outputs: &["h", "V", "V_u"],
    compute: |a| {
        let [h, whole, along] = single_index(&*activation(a)?, a.number("A"), overlaps(a, "m")?[0])
            .map_err(|e| domain(e.to_string()))?;
        Ok(vec![("h", json!(h)), ("V", json!(whole)), ("V_u", json!(along))])
    },
};

pub(super) const LAZY: Quantity = Quantity {
    name: "lazy",
    summary: "losses of linearised students: untrained, best full-rank, rank-one at its end, and its constant signal",
    inputs: &[ACTIVATION, GRAM, SECOND_LAYER, LOADING, STUDENT_LOADING, STRENGTH, MODE, OUTPUT_SCALE],
    outputs: &["base", "floor", "rank-one", "signal", "relative-floor"],
    compute: |a| {
        let it = instance(a, true)?;
        let lazy = LazyLoss::new(&it.network, &it.gram, &it.loading);
        let signal = lazy.rank_one_signal(it.network.strength, &it.student_loading);
        let end = lazy.rank_one_loss(it.network.strength, &it.student_loading, signal.signum());
        Ok(vec![
            ("base", json!(lazy.base)),
            ("floor", json!(lazy.floor())),
            ("rank-one", json!(end)),
            ("signal", json!(signal)),
            ("relative-floor", json!(lazy.floor() / lazy.base)),
        ])
    },
};

pub(super) const NTK_FLOW: Quantity = Quantity {
    name: "ntk-flow",
    summary: "loss of the full-rank linearised student along gradient flow from the base network",
    inputs: &[
        ACTIVATION,
        GRAM,
        SECOND_LAYER,
        LOADING,
        STRENGTH,
        MODE,
        OUTPUT_SCALE,
        needed("tau", Kind::Numbers, "times"),
    ],
    outputs: &["loss", "tau"],
    compute: |a| {
        let gram = gram(a, "c")?;
        let lazy = LazyLoss::new(&network(a, gram.rows(), true)?, &gram, &loading(a, "c", gram.rows())?);
        let losses: Vec<f64> = a.numbers("tau").iter().map(|&t| lazy.flow(t)).collect();
        Ok(vec![("loss", like(a.value("tau"), &losses)), ("tau", a.value("tau").clone())])
    },
};

pub(super) const MOMENT: Quantity = Quantity {
    name: "moment-estimator",
    summary: "first-moment estimator of u: its signal and limiting squared overlap at n/d samples",
    inputs: &[
        ACTIVATION,
        GRAM,
        SECOND_LAYER,
        LOADING,
        STRENGTH,
        MODE,
        OUTPUT_SCALE,
        needed("n_over_d", Kind::Number, "samples per dimension"),
    ],
    outputs: &["signal", "squared-overlap"],
    compute: |a| {
        let gram = gram(a, "c")?;
        let (network, c) = (network(a, gram.rows(), true)?, loading(a, "c", gram.rows())?);
        let got = moment_estimator(&network, &gram, &c, positive(a, "n_over_d")?);
        Ok(vec![("signal", json!(got.signal)), ("squared-overlap", json!(got.squared_overlap))])
    },
};

pub(super) const REFIT: Quantity = Quantity {
    name: "second-layer-refit",
    summary: "loss after the best refit of 2k output weights, given the overlap m (quantised c, normalised)",
    inputs: &[ACTIVATION, GRAM, SECOND_LAYER, LOADING, STRENGTH, OVERLAPS],
    outputs: &["c", "loss"],
    compute: |a| {
        let gram = gram(a, "c")?;
        let (network, c) = (network(a, gram.rows(), false)?, loading(a, "c", gram.rows())?);
        quantised("c", &c)?;
        Ok(vec![("loss", like(a.value("m"), &refit_floor(&network, &gram, &c, &overlaps(a, "m")?)))])
    },
};

pub(super) const TWO_OPTIMA: Quantity = Quantity {
    name: "two-optima",
    summary: "loading c for which (c, u) and (-c, u') are the same network (sigma = z^2, W = 1)",
    inputs: &[
        needed("u", Kind::Numbers, "a direction"),
        needed("u_prime", Kind::Numbers, "another of its length"),
    ],
    outputs: &["c"],
    compute: |a| match two_optima(&a.numbers("u"), &a.numbers("u_prime")) {
        Some(c) => Ok(vec![("c", json!(c))]),
        None => Err(domain("u and u_prime must be different directions of equal length")),
    },
};

pub(super) const THEOREM: Quantity = Quantity {
    name: "theorem-constants",
    summary: "step size and step counts that the convergence theorem prescribes from bounds S and V",
    inputs: &[
        needed("d", Kind::Number, "dimension"),
        needed("S", Kind::Number, "bound on the signal"),
        needed("V", Kind::Number, "bound on the noise"),
        needed("eps", Kind::Number, "accuracy, 1 - |m|"),
        optional("mu", Kind::Number, "1", "first-moment constant"),
    ],
    outputs: &["delta", "eta", "alpha", "T", "T_weak"],
    compute: theorem,
};

fn theorem(a: &Arguments) -> Result<Answer, QuantityError> {
    let (d, s, v, eps) = (positive(a, "d")?, positive(a, "S")?, positive(a, "V")?, a.number("eps"));
    if !(eps > 0.0 && eps < 1.0) {
        return Err(domain(format!("eps is {eps}; it lies between 0 and 1")));
    }
    if d * v <= 1.0 {
        return Err(domain("the theorem needs d V > 1"));
    }
    let got = theorem_constants(d, s, v, eps, positive(a, "mu")?);
    Ok(vec![
        ("delta", json!(got.delta)),
        ("eta", json!(got.rate)),
        ("alpha", json!(got.alpha)),
        ("T", json!(got.steps)),
        ("T_weak", json!(got.weak_steps)),
    ])
}

pub(super) const CROSSOVERS: Quantity = Quantity {
    name: "crossovers",
    summary: "strengths xi_1, xi_2 where the plateau becomes logarithmic, then that of a single index; theorem bounds",
    inputs: &[
        UNITS,
        needed("d", Kind::Number, "dimension"),
        optional("activation", Kind::Text, "\"He3\"", "for the theorem bounds"),
        optional("xi", Kind::Number, "1", "strength, for the theorem bounds"),
    ],
    outputs: &["xi_1", "xi_2", "S", "V"],
    compute: |a| {
        let (k, d) = (a.count("k"), positive(a, "d")?);
        let got = crossovers(k, d);
        let exponent = information_exponent(&*activation(a)?, 1.0);
        let bounds = exponent.map(|p| theorem_bounds(k, a.number("xi"), p, (1.0, 1.0)));
        let bound = |x: Option<f64>| x.map_or(Value::Null, Value::from);
        let answer = vec![
            ("xi_1", json!(got.logarithmic)),
            ("xi_2", json!(got.single_index)),
            ("S", bound(bounds.map(|b| b.signal))),
            ("V", bound(bounds.map(|b| b.noise))),
        ];
        let none = "the activation has no information exponent";
        Ok(explained(answer, &[("S", none), ("V", none)]))
    },
};
