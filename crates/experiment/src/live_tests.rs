use super::*;
use crate::claims::Verdict;
use crate::frontend::SharedMonitor;
use didact_model::NoMonitor;

const TEXT: &str = r#"
title = "Live"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 60 }
training = { learning-rate = 1.0 }
start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1, 0], [0, 0.1]] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
sweep = { "training.learning-rate" = [0.5, 1.0] }

[record]
times = { from = 0, to = 8, points = 9 }
observe = ["loss", "R[0,0]"]
replicas = 20

[[record.event]]
name = "low"
observable = "loss"
level = 0.3
crossing = "falls"

[[scan]]
name = "plateau"
quantity = "committee/plateau"
over = { M = [2, 3, 4] }

[[measure]]
name = "predicted"
kind = "value-at"
run = "theory"
observable = "loss"
time = 8

[[measure]]
name = "simulated"
kind = "value-at"
run = "sgd"
observable = "loss"
time = 8

[[measure]]
name = "ratio"
kind = "formula"
formula = "a/b"
with = { a = "simulated", b = "predicted" }

[[claim]]
says = "They are close"
measure = "ratio"
check = { equals = 1, absolute = 0.3 }

[[figure]]
name = "loss"
panel = [
  { series = [{ run = "theory", legend = "{training.learning-rate}" }, { run = "sgd", style = "markers" }] },
  { series = [{ scan = "plateau", x = "M", y = "loss" }] },
]
"#;

const TRAINING_SET: &str = r#"
title = "A training set"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 60, samples-per-dimension = 2 }
training = { learning-rate = 0.1, scaling = "plain" }
start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1, 0], [0, 0.1]] }
record = { clock = "steps", times = [0, 4, 8], replicas = 20 }
run = [{ name = "sgd", engine = "full-batch" }]
"#;

fn source(text: &str) -> Source {
    Source { name: "live.toml".into(), text: text.into() }
}

fn live(text: &str) -> Live {
    Live::new(Experiment::new(source(text), Size::Normal, None).unwrap())
}

/// The slow twin is the run on disk.
#[test]
fn parts_done_one_after_the_other_are_the_run_on_disk_to_the_bit() {
    let mut live = live(TEXT);
    live.predict(&NoMonitor).unwrap();
    assert!(live.scan(&NoMonitor, || true).unwrap());
    // Not a multiple of the replicas that are stepped together.
    for replicas in [3, 8, 13, 100] {
        assert!(!live.is_complete());
        live.simulate(replicas, &NoMonitor).unwrap();
    }
    assert!(live.is_complete());
    let folder = std::env::temp_dir().join(format!("didact-live-{}", std::process::id()));
    let finished = live.experiment.execute(&folder, &NoMonitor).unwrap();
    let outcome = live.outcome();
    let measured: Vec<Measured> = outcome.measures.iter().map(|m| m.measured.clone()).collect();
    assert_eq!(measured, finished.measured);
    assert!(outcome.measures.iter().all(|m| m.progress == LiveProgress::Final));
    let claims: Vec<Judged> = outcome.claims.iter().map(|c| c.0.clone()).collect();
    assert_eq!(claims, finished.claims);
    let (name, figure) = &outcome.figures[0];
    let drawn = didact_figure::to_svg(figure.as_ref().unwrap()).unwrap();
    assert_eq!(drawn, std::fs::read_to_string(finished.folder.join(format!("{name}.svg"))).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_waits_and_what_is_provisional_is_told_through_other_measures_too() {
    let mut live = live(TEXT);
    let progress =
        |live: &Live| -> Vec<LiveProgress> { live.outcome().measures.iter().map(|m| m.progress).collect() };
    assert_eq!(progress(&live), [LiveProgress::Waiting; 3]);
    live.predict(&NoMonitor).unwrap();
    assert_eq!(progress(&live), [LiveProgress::Final, LiveProgress::Waiting, LiveProgress::Waiting]);
    live.simulate(8, &NoMonitor).unwrap();
    let outcome = live.outcome();
    assert_eq!(progress(&live), [LiveProgress::Final, LiveProgress::Provisional, LiveProgress::Provisional]);
    assert_eq!(outcome.claims[0].1, LiveProgress::Provisional);
    assert_eq!(outcome.claims[0].0.verdict, Verdict::Holds);
    assert_eq!(outcome.measures[2].engines, ["ode", "reduced"]);
    let events: Vec<&str> = outcome.readings.iter().map(|r| r.measured.name.as_str()).collect();
    assert_eq!(events[0], "low (theory)");
    assert!(events.contains(&"loss at the end (sgd)"), "{events:?}");
}

#[test]
fn a_cancelled_part_ends_and_leaves_the_rest_as_it_was() {
    let mut live = live(TEXT);
    let monitor = SharedMonitor::default();
    monitor.cancel();
    assert_eq!(live.predict(&monitor), Err(Interrupted));
    assert_eq!(live.simulate(8, &monitor), Err(Interrupted));
    assert_eq!(live.scan(&monitor, || true), Err(Interrupted));
    assert_eq!(live.waiting(), ["sgd", "theory"]);
    assert_eq!(live.scan(&NoMonitor, || false), Ok(false));
    live.predict(&NoMonitor).unwrap();
    assert_eq!(live.waiting(), ["sgd"]);
}

#[test]
fn a_hasty_experiment_is_right_to_the_width_of_a_line_and_takes_fewer_steps() {
    let mut exact = live(TEXT);
    let mut hasty = Live::new(Experiment::hasty(source(TEXT)).unwrap());
    exact.predict(&NoMonitor).unwrap();
    hasty.predict(&NoMonitor).unwrap();
    for (place, table) in &exact.results.tables {
        let (Ok(exact), Ok(hasty)) = (table, &hasty.results.tables[place]) else { continue };
        assert!(hasty.statistics[0].evaluations < exact.statistics[0].evaluations);
        for (a, b) in exact.curves("loss").unwrap()[0].iter().zip(&hasty.curves("loss").unwrap()[0]) {
            assert!((a - b).abs() < 1e-3 * a.abs(), "{a} {b}");
        }
    }
    assert_eq!(exact.experiment.resolved, hasty.experiment.resolved, "it says what was asked for");
    // What a description asks for is not made worse than it is.
    let coarse = TEXT.replace("engine = \"ode\"", "engine = \"ode\", tolerance = 1e-3");
    let hasty = Experiment::hasty(source(&coarse)).unwrap();
    assert_eq!(hasty.runs[0].key, Experiment::new(source(&coarse), Size::Normal, None).unwrap().runs[0].key);
}

/// Bands take several times what the curve takes: a drawing that moves has the curve, and the band when the hand rests.
#[test]
fn a_hasty_experiment_has_the_curve_and_no_band_yet() {
    let text = TEXT.replace("engine = \"ode\"", "engine = \"ode\", fluctuations = true");
    let text = text.replace("{ run = \"theory\", legend", "{ run = \"theory\", band = \"theory\", legend");
    assert!(text.contains("band = "), "the series of the theory has a band");
    let mut hasty = Live::new(Experiment::hasty(source(&text)).unwrap());
    hasty.predict(&NoMonitor).unwrap();
    hasty.scan(&NoMonitor, || true).unwrap();
    let outcome = hasty.outcome();
    let (_, figure) = &outcome.figures[0];
    let figure = figure.as_ref().expect("a curve is drawn");
    assert!(didact_figure::to_svg(figure).is_ok(), "with a band of no numbers");
    let table = hasty.results.tables.values().find_map(|table| table.as_ref().ok()).unwrap();
    assert!(table.curves("sd(loss)").unwrap()[0].iter().all(|sd| sd.is_nan()));
    assert!(table.curves("loss").unwrap()[0].iter().all(|loss| loss.is_finite()));
}

#[test]
fn a_description_without_a_figure_gets_one() {
    let without = TEXT.split("[[figure]]").next().unwrap();
    let mut first = live(without);
    first.predict(&NoMonitor).unwrap();
    first.simulate(8, &NoMonitor).unwrap();
    let outcome = first.outcome();
    let figure = outcome.figures[0].1.as_ref().unwrap();
    assert_eq!(figure.panels.len(), 2, "losses, and the overlap");
    // Two points of the sweep, theory and simulation.
    assert_eq!(figure.panels[0].layers.len(), 4);
    didact_figure::to_svg(figure).unwrap();
    let scans =
        "title = \"s\"\n[[scan]]\nname = \"p\"\nquantity = \"committee/plateau\"\nover = { M = [2, 3] }\n";
    let mut live = live(scans);
    assert!(live.scan(&NoMonitor, || true).unwrap() && live.is_complete());
    didact_figure::to_svg(live.outcome().figures[0].1.as_ref().unwrap()).unwrap();
}

#[test]
fn replicas_in_parts_are_the_replicas_of_one_run_on_every_simulator() {
    let staged = "training = { learning-rate = 1.0, stage = [{ until = { time = 3 }, set = { \"training.learning-rate\" = 0.5 } }] }";
    let staged = TEXT.replace("training = { learning-rate = 1.0 }", staged);
    for (engine, text) in
        [("reduced", TEXT), ("direct", TEXT), ("reduced", &staged), ("full-batch", TRAINING_SET)]
    {
        let text = text.replace("engine = \"reduced\"", &format!("engine = \"{engine}\""));
        let live = live(&text);
        let run = live.experiment.runs.iter().find(|run| run.name == "sgd").unwrap();
        let whole = run.schedule.run(&NoMonitor).unwrap();
        let mut parts = run.schedule.run_replicas(0..7, &NoMonitor).unwrap();
        parts.append_replicas(run.schedule.run_replicas(7..20, &NoMonitor).unwrap());
        // Remarks of an engine come once with every part.
        parts.notes.clone_from(&whole.notes);
        assert_eq!(parts, whole, "{engine}");
    }
}
