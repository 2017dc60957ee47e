//! Population loss and signal of any instance.

use super::super::network::{Mode, Network};
use super::super::population::{Instance, signal_variance};
use super::super::theorem::orthogonal_teacher_gram;
use super::inputs::{
    ACTIVATION, GRAM, LOADING, MODE, OUTPUT_SCALE, OVERLAPS, SECOND_LAYER, STRENGTH, STUDENT_LOADING,
    STUDENT_SIGNS, activation, domain, gram, instance, like, loading, needed, network, overlaps, quantised,
    second_layer, signs,
};
use didact_math::activation::Linear;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::json;
use std::sync::Arc;

const INSTANCE: [Input; 8] =
    [ACTIVATION, GRAM, SECOND_LAYER, LOADING, STUDENT_LOADING, STRENGTH, MODE, OUTPUT_SCALE];

const WITH_OVERLAPS: &[Input] = &[
    INSTANCE[0],
    INSTANCE[1],
    INSTANCE[2],
    INSTANCE[3],
    INSTANCE[4],
    INSTANCE[5],
    INSTANCE[6],
    INSTANCE[7],
    OVERLAPS,
];

pub(super) const SIGNAL: Quantity = Quantity {
    name: "signal",
    summary: "h(m) = -dPhi/dm, the drift of the overlap; any loadings, base and mode",
    inputs: WITH_OVERLAPS,
    outputs: &["h"],
    compute: |a| Ok(vec![("h", like(a.value("m"), &instance(a, true)?.signal(&overlaps(a, "m")?)))]),
};

pub(super) const LOSS: Quantity = Quantity {
    name: "loss",
    summary: "population loss Phi(m) = E(f* - f)^2; any loadings, base and mode",
    inputs: WITH_OVERLAPS,
    outputs: &["loss"],
    compute: |a| Ok(vec![("loss", like(a.value("m"), &instance(a, true)?.loss(&overlaps(a, "m")?)))]),
};

pub(super) const LOADING_GRADIENT: Quantity = Quantity {
    name: "loading-gradient",
    summary: "dPhi/dc_hat at overlap m, not projected on the sphere",
    inputs: &[
        INSTANCE[0],
        INSTANCE[1],
        INSTANCE[2],
        INSTANCE[3],
        INSTANCE[4],
        INSTANCE[5],
        INSTANCE[6],
        INSTANCE[7],
        needed("m", Kind::Number, "overlap"),
    ],
    outputs: &["gradient"],
    compute: |a| Ok(vec![("gradient", json!(instance(a, true)?.loading_gradient(overlaps(a, "m")?[0])))]),
};

pub(super) const SERIES: Quantity = Quantity {
    name: "signal-series",
    summary: "coefficients a_0..a_{n-1} of h(m) = sum a_l m^l (quantised loadings, normalised)",
    inputs: &[
        ACTIVATION,
        GRAM,
        SECOND_LAYER,
        LOADING,
        STUDENT_LOADING,
        STRENGTH,
        needed("n", Kind::Count, "number of coefficients"),
    ],
    outputs: &["a"],
    compute: series,
};

fn series(a: &Arguments) -> Result<Answer, QuantityError> {
    let it = instance(a, false)?;
    quantised("c", &it.loading)?;
    quantised("c_hat", &it.student_loading)?;
    Ok(vec![("a", json!(it.signal_series(a.count_up_to("n", 200)?)))])
}

pub(super) const INTERACTION: Quantity = Quantity {
    name: "interaction-tensor",
    summary: "T(l, s): sums of powers of the Gram matrix, weighted by the loadings for even l",
    inputs: &[GRAM, SECOND_LAYER, LOADING, STUDENT_LOADING, needed("pairs", Kind::Rows, "pairs [l, s]")],
    outputs: &["T"],
    compute: interaction,
};

fn interaction(a: &Arguments) -> Result<Answer, QuantityError> {
    let (gram, pairs) = (gram(a, "c")?, a.matrix("pairs"));
    let units = gram.rows();
    // T depends neither on the activation nor on the strength.
    let network = Network::new(Arc::new(Linear), second_layer(a, units)?, 1.0, Mode::Normalised);
    let (loading, student_loading) = (loading(a, "c", units)?, loading(a, "c_hat", units)?);
    let it = Instance { network, gram, loading, student_loading };
    if pairs.cols() != 2 || pairs.as_slice().iter().any(|x| *x < 0.0 || x.fract() != 0.0) {
        return Err(domain("pairs must be rows of two whole numbers such as [[0, 1], [1, 2]]"));
    }
    let value = |i: usize| it.interaction(pairs[(i, 0)] as usize, pairs[(i, 1)] as usize);
    Ok(vec![("T", json!((0..pairs.rows()).map(value).collect::<Vec<_>>()))])
}

pub(super) const VARIANCE: Quantity = Quantity {
    name: "signal-variance",
    summary: "variance of h(0) over uniform signs of both loadings (normalised)",
    inputs: &[
        ACTIVATION,
        needed("G", Kind::Matrix, "Gram matrix of the base rows, unit diagonal"),
        SECOND_LAYER,
        STRENGTH,
    ],
    outputs: &["variance"],
    compute: |a| {
        let gram = gram(a, "G")?;
        Ok(vec![("variance", json!(signal_variance(&network(a, gram.rows(), false)?, &gram)))])
    },
};

pub(super) const ORTHOGONAL_TEACHER: Quantity = Quantity {
    name: "orthogonal-teacher-signal",
    summary: "h(m) on the separating instance: xi = 1, perturbed rows orthogonal, c_i = (-1)^i/sqrt k",
    inputs: &[ACTIVATION, STUDENT_SIGNS, OVERLAPS],
    outputs: &["h"],
    compute: orthogonal_teacher,
};

fn orthogonal_teacher(a: &Arguments) -> Result<Answer, QuantityError> {
    let k = a.numbers("b_hat").len();
    let root = (k as f64).sqrt();
    let own = signs(a, "b_hat", k)?.iter().map(|b| b / root).collect();
    let loading: Vec<f64> = (1..=k).map(|i| if i % 2 == 1 { -1.0 } else { 1.0 } / root).collect();
    let it = Instance {
        network: Network::new(activation(a)?, vec![1.0; k], 1.0, Mode::Normalised),
        gram: orthogonal_teacher_gram(&loading),
        loading,
        student_loading: own,
    };
    Ok(vec![("h", like(a.value("m"), &it.signal(&overlaps(a, "m")?)))])
}
