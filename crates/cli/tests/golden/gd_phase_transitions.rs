//! Cases of `gd-phase-transitions`: full-batch gradient descent on multi-index targets.

mod dynamics;
mod landscape;

use crate::compare::Answer;
use crate::inputs::Inputs;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    dynamics::answer(kind, inputs).or_else(|| landscape::answer(kind, inputs))
}
