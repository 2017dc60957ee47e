//! Answers to the cases of `golden/gd-phase-transitions.json`.

mod dynamics;

use crate::compare::Answer;
use crate::inputs::Inputs;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    dynamics::answer(kind, inputs)
}
