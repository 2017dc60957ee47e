//! What begins anew between two stages of a schedule, and scalars that start with a law, with every engine of fresh samples.

use didact_experiment::{Experiment, Size, Source};
use didact_model::{NoMonitor, Trajectory};

/// A linear LoRA neuron until step 160, and beyond; `%` stands for what the test is about.
const LORA: &str = r#"
title = "Restart"

[model]
family = "lora-single-index"
mu = 0.5
activation = "linear"

[data]
dimension = 100

[training]
learning-rate = 0.1
scaling = "plain"
batch = 1000
constraint = { sphere = "euclidean" }

[[training.stage]]
until = { time = 160 }
restart = {%}

[start]
q = [[1.0]]
r = [[0.1]]
scalars = [0.1]

[record]
clock = "steps"
times = [0, 160, 161, 400]
observe = ["u", "m"]
replicas = 3
seed = 5

[[run]]
name = "ode"
engine = "ode"

[[run]]
name = "reduced"
engine = "reduced"

[[run]]
name = "direct"
engine = "direct"
"#;

fn runs(text: &str) -> Vec<Trajectory> {
    let source = Source { name: "restart.toml".into(), text: text.into() };
    let experiment = Experiment::new(source, Size::Normal, None).unwrap_or_else(|e| panic!("{e}"));
    experiment.runs.iter().map(|run| run.schedule.run(&NoMonitor).unwrap()).collect()
}

#[test]
fn a_scalar_is_set_back_when_its_stage_has_ended() {
    for run in runs(&LORA.replace('%', " scalars = [0.0] ")) {
        for rows in (0..run.replicas()).map(|replica| run.rows(replica)) {
            let [u, m] = rows[1][..] else { panic!("two columns") };
            assert!(u > 0.2 && m > 0.7, "{}: learned before the switch, u = {u}, m = {m}", run.engine);
            let [after, overlap] = rows[2][..] else { panic!("two columns") };
            // u' = (1 − μ) m − u from u = 0, one step of 0.1 with noise of 0.1 |e b|/√1000 = 2e-3, and step errors of 0.1².
            assert!((after - 0.05 * m).abs() < 0.01, "{}: u = {after} one step after the reset", run.engine);
            assert!((overlap - m).abs() < 0.02, "{}: m = {overlap} goes on from {m}", run.engine);
            assert!(rows[3][1] > 0.98, "{}: and learning goes on", run.engine);
        }
    }
}

#[test]
fn rows_are_drawn_anew_when_their_stage_has_ended() {
    for run in runs(&LORA.replace('%', r#" students = { law = "sphere", radius = 1.0 } "#)) {
        let mut overlaps = Vec::new();
        for rows in (0..run.replicas()).map(|replica| run.rows(replica)) {
            let (before, after) = (&rows[1], &rows[2]);
            // Unit vectors in 100 dimensions have overlaps of 0.1.
            assert!(before[1] > 0.7 && after[1].abs() < 0.45, "{}: {before:?} {after:?}", run.engine);
            assert!((after[0] - before[0]).abs() < 0.1, "{}: u stays, {before:?} {after:?}", run.engine);
            overlaps.push(after[1]);
        }
        assert!(overlaps[0] != overlaps[1] && overlaps[1] != overlaps[2], "replicas have rows of their own");
    }
}

#[test]
fn scalars_start_with_their_law_in_every_engine() {
    let start = |scalars: &str| {
        let text = LORA.replace("[[training.stage]]\nuntil = { time = 160 }\nrestart = {%}\n", "");
        let runs = runs(&text.replace("scalars = [0.1]", scalars));
        let first =
            |run: &Trajectory| run.columns[0].curves.iter().map(|curve| curve[0]).collect::<Vec<f64>>();
        let all: Vec<_> = runs.iter().map(first).collect();
        // The equations run once for replicas that start alike.
        let alike = |u: &Vec<f64>| u.iter().zip(&all[1]).all(|(a, b)| a == b);
        assert!(all.iter().all(alike), "engines start alike: {all:?}");
        all[1].clone()
    };
    assert_eq!(start("scalars = [0.0]"), [0.0; 3]);
    assert_eq!(start("scalars = { law = \"fixed\", size = 2.0 }"), [0.2; 3]);
    // What the family says: d^{−1/2}.
    assert_eq!(start(""), [0.1; 3]);
    let drawn = start("scalars = { law = \"gaussian\", deviation = 1.0 }");
    assert!(drawn[0] != drawn[1] && drawn.iter().all(|u| u.abs() < 0.5), "{drawn:?}");
}
