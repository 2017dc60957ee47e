//! Curves that diverge, from the run to the figure.

use crate::common::{checked, empty_folder};
use didact_model::NoMonitor;

/// A linear unit at a rate of 10, ten times the critical one, beside one that learns.
const RATES: &str = r#"
title = "Two rates"
sweep = { "training.learning-rate" = [0.5, 10.0] }

[model]
family = "committee"
students = 1
teachers = 1
activation = "linear"

[data]
dimension = 20

[training]
learning-rate = 0.5

[record]
times = { from = 0, to = 200, points = 41 }
observe = ["loss"]
replicas = 2

[[run]]
name = "sgd"
engine = "direct"

[[figure]]
name = "loss"
caption = "Loss of both."

[[figure.panel]]
y = { label = "loss", scale = "log" }
series = [{ run = "sgd", legend = "{training.learning-rate}" AT }]
"#;

/// Where all replicas of a run diverge its curve rises to the top of the panel, the axis does not follow it, and the caption says what the
/// arrow is.
#[test]
fn a_run_that_diverges_ends_in_an_arrow_that_the_caption_explains() {
    let sentence = "An arrow at the top of a panel marks where a curve diverges.";
    let figure = |name: &str, at: &str| {
        let experiment = checked(&RATES.replace("AT", at)).unwrap();
        let finished = experiment.execute(&empty_folder(name), &NoMonitor).unwrap();
        let report = std::fs::read_to_string(finished.folder.join("report.html")).unwrap();
        let drawing = std::fs::read_to_string(finished.folder.join("loss.svg")).unwrap();
        (report.contains(sentence), drawing)
    };
    let (explained, both) = figure("divergence-both", "");
    assert!(explained);
    let (explained, one) = figure("divergence-one", ", at = { \"training.learning-rate\" = 0.5 }");
    assert!(!explained, "nothing diverges there");
    // The head of the arrow is the one filled shape that the drawing of the other lacks.
    let filled = |svg: &str| svg.matches("fill=\"#D55E00\"").count();
    assert!(filled(&both) == filled(&one) + 1, "{} and {}", filled(&both), filled(&one));
}
