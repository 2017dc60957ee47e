//! One test for every mistake that people met when they used the program.

use crate::common::checked;
use didact_model::{NoMonitor, Trajectory};

fn runs(text: &str) -> Vec<Trajectory> {
    let experiment = checked(text).unwrap_or_else(|e| panic!("{e}"));
    experiment.runs.iter().map(|run| run.schedule.run(&NoMonitor).unwrap()).collect()
}

fn refusal(text: &str) -> String {
    match checked(text) {
        Ok(_) => panic!("is not refused"),
        Err(error) => error.to_string(),
    }
}

const SECOND_LAYER: &str = r#"
title = "Second layer alone"

[model]
family = "low-rank-perturbation"
activation = "tanh"
units = 4
relative-strength = 1.0
student = "second-layer"

[data]
dimension = 50

[training]
learning-rate = 0.1

[record]
times = [0, 2]
observe = ["loss", "scalar[0]"]

[[run]]
name = "theory"
engine = "ode"
"#;

/// The equations of a model without trained rows have no number per eigenspace: this was a division into pieces of length 0.
#[test]
fn theory_of_a_second_layer_alone_runs_and_learns() {
    let [run] = &runs(SECOND_LAYER)[..] else { panic!("one run") };
    let loss = &run.curves("loss").unwrap()[0];
    assert!(loss[1] < loss[0] && loss[1] > 0.0, "{loss:?}");
}

#[test]
fn mean_field_theory_of_a_second_layer_alone_is_refused_with_its_reason() {
    let text = SECOND_LAYER
        .replace("dimension = 50", "dimension = 50\nsamples-per-dimension = 2")
        .replace("learning-rate = 0.1", "learning-rate = 0.1\nscaling = \"plain\"")
        .replace("[record]", "[record]\nclock = \"steps\"")
        .replace("\"ode\"", "\"dmft\"");
    assert!(refusal(&text).contains("trains scalars alone"), "{}", refusal(&text));
}

/// The limit of a random start was drawn without a dimension, and then asked for one although it was given.
#[test]
fn mean_field_theory_of_a_rank_one_change_starts_from_the_limit_of_its_random_rows() {
    let text = SECOND_LAYER
        .replace("student = \"second-layer\"", "base = \"random\"\nstart = \"uniform\"")
        .replace("dimension = 50", "dimension = 50\nsamples-per-dimension = 2")
        .replace("learning-rate = 0.1", "learning-rate = 0.1\nscaling = \"plain\"")
        .replace("[record]", "[record]\nclock = \"steps\"")
        .replace("[\"loss\", \"scalar[0]\"]", "[\"m\", \"norm[0]\"]")
        .replace("engine = \"ode\"", "engine = \"dmft\"\nsamples = 4096\nscrambles = 2");
    let [run] = &runs(&text)[..] else { panic!("one run") };
    assert_eq!((run.curves("m").unwrap()[0][0], run.curves("norm[0]").unwrap()[0][0]), (0.0, 1.0));
}

const STAGED: &str = r#"
title = "Given start with a stage"

[model]
family = "committee"
students = 2
teachers = 2
activation = "erf(z/sqrt2)"

[data]
dimension = 100

[training]
learning-rate = 0.2

[[training.stage]]
until = { time = 1 }
set = { "training.learning-rate" = 1.0 }

[start]
q = [[0.5, 0.0], [0.0, 0.5]]
r = [[0.2, 0.05], [0.05, 0.15]]

[record]
times = [0, 1, 2]
replicas = 4

[[run]]
name = "theory"
engine = "ode"

[[run]]
name = "simulation"
engine = "reduced"
"#;

#[test]
fn theory_of_a_given_start_is_one_curve_with_stages_too() {
    let [theory, simulation] = &runs(STAGED)[..] else { panic!("two runs") };
    assert_eq!((theory.replicas(), simulation.replicas()), (1, 4));
    let curves = simulation.curves("loss").unwrap();
    assert!(curves.iter().skip(1).all(|curve| curve[2] != curves[0][2]), "{curves:?}");
    // What begins anew by chance after a stage makes replicas of theory different again.
    let restarted = STAGED.replace(
        "set = { \"training.learning-rate\" = 1.0 }",
        "restart = { students = { law = \"gaussian\", deviation = 0.3 } }",
    );
    assert_eq!(runs(&restarted)[0].replicas(), 4);
}

#[test]
fn overlaps_of_the_wrong_size_are_named_with_both_sizes() {
    let few = refusal(&STAGED.replace("r = [[0.2, 0.05], [0.05, 0.15]]", "r = [[0.2, 0.05]]"));
    assert!(few.contains("`r` is 1 x 2, but the model has 2 trained and 2 frozen rows"), "{few}");
    assert!(few.contains("give 2 rows of 2 numbers"), "{few}");
    let many = refusal(&STAGED.replace("q = [[0.5, 0.0], [0.0, 0.5]]", "q = [[0.5]]"));
    assert!(many.contains("`q` is 1 x 1"), "{many}");
}

/// Times 0.5 and 1.3 were both step 1.
#[test]
fn a_clock_of_steps_takes_whole_numbers() {
    let text = STAGED.replace("times = [0, 1, 2]", "clock = \"steps\"\ntimes = [0.5, 1.3]");
    assert!(refusal(&text).contains("0.5 is not a whole number"), "{}", refusal(&text));
    let whole =
        STAGED.replace("times = [0, 1, 2]", "clock = \"steps\"\ntimes = { from = 0, to = 30, points = 4 }");
    assert!(checked(&whole).is_ok());
}

/// Line and band of a series without a group had different colours.
#[test]
fn a_band_without_a_group_has_the_colour_of_its_line() {
    let text = r#"
title = "Two bands"
model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
data = { dimension = 30 }
training = { learning-rate = 1.0 }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = { from = 0, to = 3, points = 4 }, observe = ["loss", "R[0,0]"], replicas = 4 }
run = [{ name = "sgd", engine = "reduced" }]

[[figure]]
name = "bands"
panel = [{ series = [{ run = "sgd", style = "band" }, { run = "sgd", y = "R[0,0]", style = "band" }] }]
"#;
    let folder = crate::common::empty_folder("two-bands");
    let finished = checked(text).unwrap_or_else(|e| panic!("{e}")).execute(&folder, &NoMonitor).unwrap();
    let drawing = std::fs::read_to_string(finished.folder.join("bands.svg")).unwrap();
    // The value of an attribute of an element, `name="value"`.
    let value = |element: &str, name: &str| -> Option<String> {
        let (_, rest) = element.split_once(&format!(" {name}=\""))?;
        Some(rest.split('"').next()?.to_string())
    };
    let paths = || drawing.split('<').filter(|element| element.starts_with("path"));
    let coloured = |colour: &String| colour.starts_with('#');
    // Regions are filled and partly transparent, lines are stroked and have no fill.
    let bands: Vec<String> =
        paths().filter(|p| value(p, "fill-opacity").is_some()).filter_map(|p| value(p, "fill")).collect();
    let lines: Vec<String> = paths()
        .filter(|p| value(p, "fill").is_none_or(|fill| fill == "none"))
        .filter_map(|p| value(p, "stroke"))
        .filter(coloured)
        .collect();
    assert_eq!(bands.len(), 2, "{drawing}");
    assert_ne!(bands[0], bands[1]);
    for band in &bands {
        assert!(lines.contains(band), "band {band}, lines {lines:?}");
    }
}

/// `check` said 210 s of a run that an event ends after 10 s. Theory knows when to expect the event; where it takes too long on a
/// busy machine, half of the run is said.
#[test]
fn estimates_expect_the_event_that_ends_a_run() {
    let text = |event: &str| {
        format!(
            "title = \"Ended early\"\n\
             model = {{ family = \"committee\", students = 1, teachers = 1, activation = \"erf(z/sqrt2)\" }}\n\
             data = {{ dimension = 100 }}\n\
             training = {{ learning-rate = 1.0 }}\n\
             start = {{ q = [[0.25]], r = [[0.1]] }}\n\
             record = {{ times = [0, 1000], observe = [\"loss\"] {event} }}\n\
             run = [{{ name = \"sgd\", engine = \"reduced\" }}]\n"
        )
    };
    let steps = |event: &str| {
        checked(&text(event)).unwrap_or_else(|e| panic!("{e}")).runs[0].schedule.cost().steps.unwrap()
    };
    let event = ", event = [{ name = \"half\", observable = \"R[0,0]\", crossing = \"rises\", level = 0.5, stops = true }]";
    assert_eq!(steps(""), 1e5);
    assert!(steps(event) <= 5e4 && steps(event) > 0.0, "{}", steps(event));
}
