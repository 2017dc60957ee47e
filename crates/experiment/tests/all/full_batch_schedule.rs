//! Stages on a fixed training set: the rows go on from where they were, on the same samples.

use crate::common::{checked, empty_folder};
use didact_model::engine::NoMonitor;

const STAGED: &str = r#"
title = "Stages on a training set"

[model]
family = "multi-index"
activation = "gelu"
link = "z^2"
loss = { kind = "pseudo-huber", kappa = 1.0 }

[data]
dimension = 40
samples-per-dimension = 10

[training]
learning-rate = 1.0
scaling = "plain"
label-noise = 0.3

[start]
students = { law = "sphere", radius = 1.0 }

[record]
clock = "steps"
times = { from = 0, to = 60, points = 13 }
observe = ["train_loss", "Q[0,0]", "abs(alignment[0,0])"]
watch-every = 1
replicas = 2
seed = 4

[[run]]
name = "plain"
engine = "full-batch"

[[run]]
name = "same"
engine = "full-batch"
set = { "training.stage" = [{ until = { time = 25 }, set = {} }] }

[[run]]
name = "slower"
engine = "full-batch"
set = { "training.stage" = [{ until = { observable = "train_loss", crossing = "falls", level = 0.45 }, set = { "training.learning-rate" = 0.5 } }] }

[[measure]]
name = "plain"
kind = "value-at"
run = "plain"
observable = "train_loss"
time = 60

[[measure]]
name = "same"
kind = "value-at"
run = "same"
observable = "train_loss"
time = 60

[[measure]]
name = "alignment, plain"
kind = "value-at"
run = "plain"
observable = "abs(alignment[0,0])"
time = 40

[[measure]]
name = "alignment, same"
kind = "value-at"
run = "same"
observable = "abs(alignment[0,0])"
time = 40

[[measure]]
name = "slower"
kind = "value-at"
run = "slower"
observable = "train_loss"
time = 5

[[measure]]
name = "faster"
kind = "value-at"
run = "plain"
observable = "train_loss"
time = 5

[[measure]]
name = "delay"
kind = "formula"
formula = "s - f"
with = { s = "slower", f = "faster" }

[[measure]]
name = "end of the slower"
kind = "value-at"
run = "slower"
observable = "train_loss"
time = 60

[[claim]]
says = "A stage that changes nothing changes no digit of what follows"
measure = "same"
check = { equals-measure = "plain", absolute = 1e-14 }

[[claim]]
says = "Nor of the alignment after it"
measure = "alignment, same"
check = { equals-measure = "alignment, plain", absolute = 1e-14 }

[[claim]]
says = "A smaller rate until an event is slower at first"
measure = "delay"
check = { at-least = 0.002 }

[[claim]]
says = "and ends in the same minimum of the same training set"
measure = "end of the slower"
check = { equals-measure = "plain", absolute = 1e-3 }
"#;

#[test]
fn stages_go_on_with_the_same_rows_and_samples() {
    let experiment = checked(STAGED).unwrap_or_else(|e| panic!("{e}"));
    let folder = empty_folder("staged");
    let finished = experiment.execute(&folder, &NoMonitor).unwrap();
    assert_eq!(finished.claims.len(), 4);
    for claim in &finished.claims {
        assert_eq!(claim.verdict.words(), "holds", "{}: {}", claim.says, claim.evidence);
    }
}
