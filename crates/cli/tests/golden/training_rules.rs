//! Cases of `training-rules`: momentum, schedules, mini-batches, maps of the gradient, drifting teachers, noise.

mod closed_forms;
mod one_pass;
mod training_sets;

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_model::training::{
    Batches, BatchesSpec, FactorSchedule, Momentum, MomentumKind, MomentumSpec, NumberOrFormula, Training,
};

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    closed_forms::answer(kind, inputs)
        .or_else(|| one_pass::answer(kind, inputs))
        .or_else(|| training_sets::answer(kind, inputs))
}

/// A schedule among the inputs; constant 1 where there is none.
fn schedule(inputs: &Inputs, key: &str) -> FactorSchedule {
    if !inputs.has(key) {
        return FactorSchedule::default();
    }
    let spec = serde_json::from_value(inputs.0[key].clone()).expect("a schedule");
    FactorSchedule::new(spec).expect("a schedule that makes sense")
}

/// β (a number or a formula) or γ among the inputs.
fn momentum(inputs: &Inputs) -> Option<Momentum> {
    let given = |key: &str| -> Option<NumberOrFormula> {
        inputs.has(key).then(|| serde_json::from_value(inputs.0[key].clone()).expect("a number or formula"))
    };
    let (beta, rate) = (given("beta"), given("momentum_rate"));
    let kind =
        if inputs.flag_or("nesterov", false) { MomentumKind::Nesterov } else { MomentumKind::HeavyBall };
    (beta.is_some() || rate.is_some())
        .then(|| Momentum::new(&MomentumSpec { beta, rate, kind }).expect("a momentum"))
}

/// Mini-batches among the inputs.
fn batches(inputs: &Inputs) -> Option<Batches> {
    inputs.has("batch_fraction").then(|| {
        let persistence = inputs.has("persistence").then(|| inputs.number("persistence"));
        let order = inputs.0.get("order").filter(|order| *order != "persistent");
        let order = order.map(|order| serde_json::from_value(order.clone()).expect("an order"));
        let fraction = inputs.number("batch_fraction");
        Batches::new(&BatchesSpec { fraction, order, persistence }).expect("batches")
    })
}

/// What kinds on training sets and in one pass have in common.
fn training(inputs: &Inputs, base: Training) -> Training {
    let mut training = Training {
        schedule: schedule(inputs, "schedule"),
        label_noise_schedule: schedule(inputs, "noise_schedule"),
        weight_decay_schedule: schedule(inputs, "decay_schedule"),
        momentum: momentum(inputs),
        batches: batches(inputs),
        dropout: inputs.has("keep").then(|| inputs.number("keep")),
        input_noise: inputs.number_or("input_noise", 0.0),
        weight_noise: inputs.number_or("weight_noise", 0.0),
        ..base
    };
    training.constraint.weight_decay = inputs.number_or("weight_decay", 0.0);
    if inputs.flag_or("sphere", false) {
        training.constraint.sphere = Some(didact_model::constraint::Retraction::Euclidean);
    }
    training
}
