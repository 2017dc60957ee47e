//! Probabilities have intervals with two different ends, in results, report and figure.

use crate::common::{checked, empty_folder};
use didact_model::NoMonitor;

const PASSING: &str = r#"
title = "passing"
model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
data = { dimension = 50 }
start = { q = [[0.5]], r = [[0.0]] }

[training]
learning-rate = 1.0

[record]
times = [0, 4]
observe = ["R[0,0]"]
replicas = 10
event = [
    { name = "always", observable = "R[0,0]", level = 0.02, crossing = "rises" },
    { name = "never", observable = "R[0,0]", level = 5.0, crossing = "rises" },
]

[[run]]
name = "chain"
engine = "reduced"

[sweep]
"training.learning-rate" = [0.8, 1.0]

[[measure]]
name = "seen"
kind = "event-fraction"
run = "chain"
event = "always"

[[measure]]
name = "unseen"
kind = "event-fraction"
run = "chain"
event = "never"

[[measure]]
name = "seen at rate 1"
kind = "elsewhere"
of = "seen"
at = { "training.learning-rate" = 1.0 }

[[claim]]
says = "a claim takes the standard error"
measure = "unseen"
check = { equals = 0.1, sigmas = 3, resolution = 0.2 }

[[figure]]
name = "fraction"

[[figure.panel]]
x = { label = "rate" }
y = { label = "fraction" }
series = [
    { measure = "seen", x = "training.learning-rate", style = "markers" },
    { measure = "unseen", x = "training.learning-rate", style = "markers" },
]
"#;

#[test]
fn the_interval_of_a_probability_stays_between_0_and_1_and_is_shown() {
    let experiment = checked(PASSING).unwrap_or_else(|e| panic!("{e}"));
    let root = empty_folder("probability");
    let finished = experiment.execute(&root, &NoMonitor).unwrap();
    // Wilson at 0 and n of n successes, z = 1: [0, 1/(n + 1)] and its mirror image.
    let edge = 1.0 / 11.0;
    let near = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).abs() < 1e-12 && (a[1] - b[1]).abs() < 1e-12;
    for (measured, value, interval) in [
        (&finished.measured[0], 1.0, [1.0 - edge, 1.0]),
        (&finished.measured[1], 0.0, [0.0, edge]),
        (&finished.measured[2], 1.0, [1.0 - edge, 1.0]),
    ] {
        for found in &measured.values {
            let found = found.as_ref().unwrap();
            assert_eq!(found.value, value, "{}", measured.name);
            assert!(found.interval.is_some_and(|own| near(own, interval)), "{found:?}");
            assert!((found.error - 0.5 * edge).abs() < 1e-12, "{found:?}");
            assert!(near(found.reach(), [value - interval[0], interval[1] - value]), "{found:?}");
        }
    }
    assert_eq!(finished.claims[0].verdict.words(), "holds", "{}", finished.claims[0].evidence);
    assert!(finished.claims[0].evidence.contains("0.00000 ± 0.04545"), "{}", finished.claims[0].evidence);
    let report = std::fs::read_to_string(finished.folder.join("report.html")).unwrap();
    assert!(report.contains("0.00000 (0.00000 to 0.09091)"), "the report shows both ends");
    let figure = std::fs::read_to_string(finished.folder.join("fraction.svg")).unwrap();
    assert!(report.contains(&figure), "and draws the figure as its own file does");
    // What is kept is what was found.
    let again = experiment.execute(&root, &NoMonitor).unwrap();
    assert!(again.reused && again.measured == finished.measured);
}
