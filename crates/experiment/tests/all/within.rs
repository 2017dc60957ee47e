//! Sweeps in which runs differ in how far they go, and what is measured across them.

use crate::common::{ERF_UNIT, checked, empty_folder};
use didact_experiment::Experiment;
use didact_experiment::claims::Verdict;
use didact_experiment::execute::Finished;
use didact_model::engine::NoMonitor;

/// At several dimensions; one of the two runs stops at d = 40.
const SWEEP: &str = r#"
[sweep]
"data.dimension" = [10, 20, 40, 80]

[[run]]
name = "near"
engine = "reduced"
where = { "data.dimension" = [10, 40] }

[[run]]
name = "far"
engine = "reduced"

[[measure]]
name = "near"
kind = "value-at"
run = "near"
observable = "loss"
time = 1

[[measure]]
name = "far"
kind = "value-at"
run = "far"
observable = "loss"
time = 1

[[figure]]
name = "curves"

[[figure.panel]]

[[figure.panel.series]]
run = "near"
y = "loss"
"#;

/// Appended to the sweep over dimensions alone: one number per dimension.
const FITS: &str = r#"
[[measure]]
name = "exponent, within"
kind = "power-law"
of = "near"
over = "data.dimension"
window = [10, 40]
errors = "scatter"

[[measure]]
name = "exponent, everywhere"
kind = "power-law"
of = "near"
over = "data.dimension"
errors = "scatter"

[[measure]]
name = "exponent, smaller"
kind = "power-law"
of = "far"
over = "data.dimension"
window = [20, 80]
errors = "scatter"
"#;

/// Appended to the sweep over dimensions alone.
const CLAIMS: &str = r#"
[[claim]]
says = "The loss of the limited run is positive wherever it runs"
measure = "near"
check = { at-least = 0 }

[[claim]]
says = "It is none where it does not run"
measure = "near"
at = { "data.dimension" = 80 }
check = { at-least = 0 }
"#;

/// Appended to the sweep over dimensions and seeds.
const MEAN: &str = r#"
[[measure]]
name = "mean, far"
kind = "mean-over"
of = "far"
over = "record.seed"

[[measure]]
name = "at d = 10"
kind = "elsewhere"
of = "far"
at = { "data.dimension" = 10 }

[[measure]]
name = "at d = 11"
kind = "elsewhere"
of = "far"
at = { "data.dimension" = 11 }
"#;

/// The loss of an erf unit after a while, swept.
fn sweep() -> String {
    format!("title = \"Runs with limits\"\n{ERF_UNIT}{SWEEP}")
}

fn over_seeds() -> String {
    sweep().replace("[10, 20, 40, 80]\n", "[10, 20, 40, 80]\n\"record.seed\" = [1, 2, 3]\n") + MEAN
}

fn check(text: &str) -> Result<Experiment, String> {
    checked(text).map_err(|e| e.to_string())
}

fn execute(experiment: &Experiment, name: &str) -> Finished {
    let folder = empty_folder(&format!("within-{name}"));
    experiment.execute(&folder, &NoMonitor).unwrap_or_else(|_| panic!("{name} runs"))
}

#[test]
fn a_run_goes_where_it_is_asked_to_and_fits_stay_within_their_window() {
    let experiment = check(&(sweep() + FITS)).unwrap();
    assert_eq!(experiment.runs.iter().filter(|run| run.name == "near").count(), 3);
    assert_eq!(experiment.runs.iter().filter(|run| run.name == "far").count(), 4);
    let finished = execute(&experiment, "limits");
    let measured = |name: &str| finished.measured.iter().find(|m| m.name == name).unwrap();
    // Where both ran they are the same run; beyond its limit `near` has no number.
    for point in &experiment.points {
        let (near, far) = (measured("near").at(point), measured("far").at(point).unwrap());
        match point.values["data.dimension"].as_f64().unwrap() {
            d if d <= 40.0 => assert_eq!(near.unwrap(), far),
            _ => assert_eq!(near.unwrap_err().to_string(), "`near` is not run here"),
        }
    }
    // A fit leaves out the points at which its run does not run.
    let [within, everywhere, smaller] = ["within", "everywhere", "smaller"]
        .map(|name| measured(&format!("exponent, {name}")).values[0].clone().unwrap());
    assert_eq!(within.value, everywhere.value);
    assert_ne!(within.value, smaller.value);
}

#[test]
fn means_over_a_key_and_values_elsewhere_keep_the_other_keys() {
    let experiment = check(&over_seeds()).unwrap();
    let finished = execute(&experiment, "mean");
    let measured = |name: &str| finished.measured.iter().find(|m| m.name == name).unwrap();
    // d = 20 has the points 3, 4, 5.
    let mean = measured("mean, far").at(&experiment.points[4]).unwrap();
    let three: Vec<f64> = (3..6).map(|i| measured("far").at(&experiment.points[i]).unwrap().value).collect();
    assert!(three.windows(2).all(|w| w[0] != w[1]));
    assert!((mean.value - three.iter().sum::<f64>() / 3.0).abs() < 1e-15 && mean.error > 0.0);
    // The second seed at d = 20 refers to the second seed at d = 10.
    let point = &experiment.points[4];
    assert_eq!(measured("at d = 10").at(point), measured("far").at(&experiment.points[1]));
    assert!(
        measured("at d = 11")
            .at(point)
            .unwrap_err()
            .to_string()
            .contains("no point with data.dimension = 11")
    );
}

#[test]
fn limits_speak_of_swept_keys_and_leave_something() {
    let unswept = sweep().replace(r#"where = { "data.dimension""#, r#"where = { "training.learning-rate""#);
    let message = check(&unswept).err().unwrap();
    assert!(message.contains("limited in `training.learning-rate`, which is not swept"), "{message}");
    let nowhere = sweep().replace("= [10, 40] }", "= [1, 9] }");
    let message = check(&nowhere).err().unwrap();
    assert!(message.contains("no point of the sweep within its `where`"), "{message}");
    let other = over_seeds().replace(r#"over = "record.seed""#, r#"over = "record.seeds""#);
    let message = check(&other).err().unwrap();
    assert!(message.contains("no swept key `record.seeds`") && message.contains("record.seed"), "{message}");
}

#[test]
fn a_claim_speaks_of_the_points_at_which_its_run_runs() {
    let finished = execute(&check(&(sweep() + CLAIMS)).unwrap(), "claims");
    let [everywhere, beyond] = &finished.claims[..] else { panic!("two claims") };
    assert_eq!(everywhere.verdict, Verdict::Holds);
    assert_eq!(everywhere.evidence.matches("data.dimension").count(), 3, "{}", everywhere.evidence);
    assert_eq!(beyond.verdict, Verdict::Fails);
    assert_eq!(beyond.evidence, "`near` is not run here");
}
