//! Two-stage LoRA through a description, with every engine: squared labels until m = 0.5, then plain ones.

use crate::common::{checked, empty_folder};
use didact_model::engine::NoMonitor;

const TWO_STAGE: &str = r#"
title = "Two-stage training with every engine"

[model]
family = "lora-single-index"
mu = 0.4
activation = "He3"

[data]
dimension = 60

[training]
learning-rate = 0.0025
scaling = "plain"
batch = 1000
constraint = { sphere = "euclidean" }

[[training.stage]]
until = { observable = "m", crossing = "rises", level = 0.5 }
set = { "model.labels" = "squared" }

[start]
q = [[1.0]]
r = [[0.15]]
scalars = [0.1]

[record]
clock = "steps"
times = { from = 0, to = 3000, points = 31 }
observe = ["m", "m_eff", "u", "mse"]
replicas = 3
seed = 8

[[record.event]]
name = "switch"
observable = "m"
level = 0.5
crossing = "rises"

[[run]]
name = "ode"
engine = "ode"
method = "stiff"

[[run]]
name = "reduced"
engine = "reduced"

[[run]]
name = "direct"
engine = "direct"

[[measure]]
name = "ode"
kind = "value-at"
run = "ode"
observable = "m_eff"
time = 3000

[[measure]]
name = "reduced"
kind = "value-at"
run = "reduced"
observable = "m_eff"
time = 3000

[[measure]]
name = "direct"
kind = "value-at"
run = "direct"
observable = "m_eff"
time = 3000

[[claim]]
says = "the equations recover the teacher"
measure = "ode"
check = { equals = 1.0, absolute = 0.02 }

[[claim]]
says = "the overlaps alone do"
measure = "reduced"
check = { equals = 1.0, absolute = 0.05 }

[[claim]]
says = "and d-dimensional SGD does"
measure = "direct"
check = { equals = 1.0, absolute = 0.05 }
"#;

#[test]
fn a_two_stage_schedule_recovers_the_teacher_with_every_engine() {
    let experiment = checked(TWO_STAGE).unwrap_or_else(|e| panic!("{e}"));
    let folder = empty_folder("lora");
    let finished = experiment.execute(&folder, &NoMonitor).unwrap();
    for claim in &finished.claims {
        assert_eq!(claim.verdict.words(), "holds", "{}: {}", claim.says, claim.evidence);
    }
}
