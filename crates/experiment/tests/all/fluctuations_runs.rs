//! Runs of `ode` with fluctuations: columns, events, stages, figures, measures and refusals.

use crate::common::{checked, empty_folder};
use didact_experiment::Experiment;
use didact_experiment::quantities::{self, NoAnswer};
use didact_model::{NoMonitor, Trajectory};
use serde_json::json;

/// One erf unit; `run` has the keys of the run beside its name and engine, `more` what follows.
fn description(run: &str, more: &str) -> String {
    format!(
        "title = \"T\"\n\
         model = {{ family = \"committee\", students = 1, teachers = 1, activation = \"erf(z/sqrt2)\" }}\n\
         start = {{ q = [[0.5]], r = [[0.2]] }}\n\
         data = {{ dimension = 400 }}\n\
         run = [{{ name = \"a\", engine = \"ode\"{run} }}]\n\
         [training]\nlearning-rate = 1.0\n\
         [record]\ntimes = [0, 1, 2.5, 5]\nobserve = [\"loss\", \"R[0,*]\"]\n\
         event = [{{ name = \"half\", observable = \"loss\", level = 0.05, crossing = \"falls\" }}]\n\
         {more}"
    )
}

fn table(text: &str) -> Trajectory {
    let experiment: Experiment = checked(text).unwrap_or_else(|e| panic!("{e}"));
    experiment.runs[0].schedule.run(&NoMonitor).unwrap()
}

fn column(table: &Trajectory, name: &str) -> Vec<f64> {
    table.curves(name).unwrap_or_else(|| panic!("no column `{name}`"))[0].clone()
}

#[test]
fn standard_deviations_stand_behind_the_columns_and_the_mean_stays_as_it_is() {
    let plain = table(&description("", ""));
    let with = table(&description(", fluctuations = true", ""));
    let names: Vec<&str> = with.column_names().collect();
    assert_eq!(names, ["loss", "R[0,0]", "sd(loss)", "sd(R[0,0])"]);
    for name in ["loss", "R[0,0]"] {
        assert_eq!(column(&plain, name), column(&with, name));
    }
    let scaled = table(&description(", fluctuations = \"scaled\"", ""));
    for (one, root) in column(&with, "sd(loss)").iter().zip(column(&scaled, "scaled-sd(loss)")) {
        assert!((20.0 * one - root).abs() <= 1e-12 * root);
    }
    assert_eq!(column(&with, "sd(loss)")[0], 0.0, "the start is given");
    // d Var[loss] of golden/fluctuations.json#run-erf at alpha = 1, and of the passage time of passage-erf.
    assert!((400.0 * column(&with, "sd(loss)")[1].powi(2) / 0.008574 - 1.0).abs() < 1e-3);
    let event = |name: &str| with.events.iter().find(|e| e.name == name).unwrap().times[0].unwrap();
    assert!((event("half") - 2.24983479756).abs() < 1e-6);
    assert!((400.0 * event("sd(half)").powi(2) / 4.53880129206 - 1.0).abs() < 1e-3);
    assert!(
        with.notes.iter().any(|note| note.starts_with("fluctuations: largest kappa ")),
        "{:?}",
        with.notes
    );
}

#[test]
fn a_run_cut_in_two_by_time_is_the_whole_run() {
    let stage = |until: &str, set: &str| {
        format!("[[training.stage]]\nuntil = {until}\nset = {{ \"training.learning-rate\" = {set} }}\n")
    };
    let whole = table(&description(", fluctuations = true", ""));
    // The event that ends a stage changes nothing where the drift does not change.
    for until in ["{ time = 1.7 }", "{ observable = \"loss\", crossing = \"falls\", level = 0.08 }"] {
        let text = description(", fluctuations = true", "")
            .replace("[record]", &format!("{}[record]", stage(until, "1.0")));
        let cut = table(&text);
        assert_eq!(cut.column_names().collect::<Vec<_>>(), whole.column_names().collect::<Vec<_>>());
        for name in ["sd(loss)", "sd(R[0,0])"] {
            for (a, b) in column(&cut, name).iter().zip(column(&whole, name)) {
                assert!((a - b).abs() <= 1e-3 * b, "{until} {name}: {a} {b}");
            }
        }
        let sd = |table: &Trajectory| table.events.iter().find(|e| e.name == "sd(half)").unwrap().times[0];
        assert!((sd(&cut).unwrap() / sd(&whole).unwrap() - 1.0).abs() < 1e-3);
    }
}

/// docs/derivations/fluctuations.md#eq-16: replicas that change their learning rate when their loss is low.
#[test]
fn replicas_that_change_stage_at_their_own_time_scatter_as_predicted() {
    let text = description(", fluctuations = true", "")
        .replace("learning-rate = 1.0\n", "learning-rate = 0.4\n[[training.stage]]\nuntil = { observable = \"loss\", crossing = \"falls\", level = 0.1 }\nset = { \"training.learning-rate\" = 1.5 }\n")
        .replace("times = [0, 1, 2.5, 5]", "times = [0, 4]\nreplicas = 800\nseed = 4\nwatch-every = 0.0025");
    let predicted = table(&text);
    let simulated = table(&text.replace("engine = \"ode\", fluctuations = true", "engine = \"reduced\""));
    for name in ["loss", "R[0,0]"] {
        let sd = column(&predicted, &format!("sd({name})"))[1];
        let spread = simulated.mean(name).unwrap()[1];
        let z = (799.0_f64 / 2.0).sqrt() * 2.0 * (spread.deviation / sd).ln();
        assert!(z.abs() < 4.0, "{name}: {} predicted {sd}, z = {z}", spread.deviation);
    }
}

#[test]
fn the_spread_of_simulations_is_measured_against_the_predicted_one() {
    let more = r#"
[[measure]]
name = "spread"
kind = "variance-agreement"
theory = "a"
simulation = "b"
observable = "loss"
window = [0, 5]

[[measure]]
name = "mean"
kind = "agreement"
errors = "theory"
theory = "a"
simulation = "b"
observable = "loss"
window = [0.5, 5]

[[claim]]
says = "The spread is the predicted one"
measure = "spread"
check = { at-most = 4 }

[[figure]]
name = "bands"
[[figure.panel]]
y = { scale = "log" }
[[figure.panel.series]]
run = "a"
band = "theory"
[[figure.panel.series]]
run = "a"
band = { of-mean = 100 }
[[figure.panel.series]]
run = "b"
style = "band"
"#;
    let text = description(", fluctuations = true", more)
        .replace("}]\n[training]", "}, { name = \"b\", engine = \"reduced\" }]\n[training]")
        .replace("[record]\n", "[record]\nreplicas = 200\n");
    let experiment = checked(&text).unwrap_or_else(|e| panic!("{e}"));
    let folder = empty_folder("fluctuations");
    let finished = experiment.execute(&folder, &NoMonitor).unwrap();
    let value = |name: &str| {
        let measured = finished.measured.iter().find(|m| m.name == name).unwrap();
        measured.values[0].as_ref().unwrap().value
    };
    assert!(value("spread") > 0.0 && value("spread") < 4.0, "{}", value("spread"));
    assert!(value("mean") < 4.5, "{}", value("mean"));
    // A wrong theory is seen: twice the dimension has half the variance.
    let wrong =
        text.replace("fluctuations = true", "fluctuations = true, set = { \"data.dimension\" = 800 }");
    let finished = checked(&wrong).unwrap_or_else(|e| panic!("{e}")).execute(&folder, &NoMonitor).unwrap();
    let measured = finished.measured.iter().find(|m| m.name == "spread").unwrap();
    assert!(measured.values[0].as_ref().unwrap().value > 5.0);
}

#[test]
fn what_has_no_band_is_refused_before_anything_runs() {
    let series = |band: &str, more: &str| {
        format!(
            "[[figure]]\nname = \"f\"\n[[figure.panel]]\n[[figure.panel.series]]\nrun = \"a\"\nband = {band}\n{more}"
        )
    };
    let on = ", fluctuations = true";
    let no_dimension = description(on, "").replace("data = { dimension = 400 }\n", "");
    let training_set = description(on, "")
        .replace("dimension = 400", "dimension = 400, samples = 100")
        .replace("learning-rate = 1.0\n", "learning-rate = 1.0\nscaling = \"plain\"\n")
        .replace("[record]\n", "[record]\nclock = \"steps\"\n")
        .replace("[0, 1, 2.5, 5]", "[0, 1]");
    let plain_scaled = description(", fluctuations = \"scaled\"", "")
        .replace("learning-rate = 1.0\n", "learning-rate = 0.001\nscaling = \"plain\"\n");
    let decayed = description(on, "")
        .replace("learning-rate = 1.0\n", "learning-rate = 1.0\nmomentum = { rate = 2.0 }\n");
    let frozen = description(", fluctuations = true, mean-correction = true", "")
        .replace("learning-rate = 1.0\n", "learning-rate = 1.0\nconstraint = { off-frozen = true }\n");
    let measure = "[[measure]]\nname = \"m\"\nkind = \"variance-agreement\"\ntheory = \"a\"\nsimulation = \"a\"\nobservable = \"loss\"\nwindow = [0, 1]\n";
    let cases = [
        (no_dimension, "run `a`: a band needs `data.dimension`"),
        (
            description("", "").replace("engine = \"ode\"", "engine = \"reduced\", fluctuations = true"),
            "run `a`: `fluctuations` belongs to engine `ode`, not `reduced`",
        ),
        (training_set, "run `a`: fluctuations are those of one-pass training; here is a training set"),
        (plain_scaled, "run `a`: `fluctuations = \"scaled\"` needs `scaling = \"per-dimension\"`"),
        (description(", mean-correction = true", ""), "run `a`: `mean-correction` needs `fluctuations`"),
        (frozen, "run `a`: no mean correction with `off-frozen`"),
        (
            decayed,
            "run `a`: fluctuations are known for plain descent, with batches, weight decay, spheres and stages; not with `training.momentum`",
        ),
        (
            description("", &series("\"theory\"", "")),
            "the run `a` has no band: it needs `fluctuations = true`",
        ),
        (description(on, &series("\"theory\"", "style = \"markers\"\n")), "`band` needs `style = \"line\"`"),
        (description("", measure), "run `a` has no column `sd(loss)`"),
    ];
    for (text, message) in cases {
        let error = checked(&text).err().unwrap_or_else(|| panic!("not refused: {message}"));
        assert_eq!(error.message, message);
        assert!(error.place.is_some(), "no place: {message}");
    }
}

#[test]
fn a_random_start_is_followed_from_its_centre_in_one_curve() {
    let text = description(", fluctuations = true", "")
        .replace(
            "start = { q = [[0.5]], r = [[0.2]] }\n",
            "start = { students = { law = \"gaussian\", deviation = 0.5 } }\n",
        )
        .replace("[record]\n", "[record]\nreplicas = 50\n");
    let table = table(&text);
    assert_eq!(table.replicas(), 1);
    let first = column(&table, "sd(R[0,0])")[0];
    assert!((first - 0.5 / 20.0).abs() < 1e-12, "sigma/sqrt(d): {first}");
    assert_eq!(column(&table, "R[0,0]")[0], 0.0);
}

#[test]
fn the_mean_of_replicas_is_shifted_as_the_correction_says() {
    // d (E[loss] - loss) of golden/fluctuations.json#mean-linear at alpha = 1.
    let text = description(", fluctuations = \"scaled\", mean-correction = true", "")
        .replace("erf(z/sqrt2)", "linear")
        .replace("learning-rate = 1.0", "learning-rate = 0.6");
    let table = table(&text);
    assert!((column(&table, "scaled-shift(loss)")[1] / 0.0871882573116 - 1.0).abs() < 1e-4);
}

#[test]
fn quantities_refuse_in_the_words_of_their_inputs() {
    let model = json!({ "family": "committee", "students": 1, "teachers": 1, "activation": "linear" });
    let refused = |path: &str, inputs: serde_json::Value| match quantities::compute(
        path,
        inputs.as_object().unwrap(),
    ) {
        Err(NoAnswer::Refused(why)) => why,
        other => panic!("{path}: {other:?}"),
    };
    let negative = json!({ "rate": -1, "level": 0.2, "dimension": 800, "variance": 0.08 });
    assert_eq!(
        refused("fluctuations/escape-law", negative),
        "input `rate` is -1; expected a positive number"
    );
    let stage = json!({ "model": model, "training": { "learning-rate": 0.5, "momentum": { "beta": 0.5 } },
        "start": { "q": [[0.5]], "r": [[0.2]] }, "times": [1] });
    assert!(refused("fluctuations/loss-band", stage).contains("not with `training.momentum`"));
    let none = json!({ "model": model, "training": { "learning-rate": 0.5 }, "start": { "q": [[0.5]], "r": [[0.2]] },
        "times": [1], "observe": ["los"] });
    assert!(refused("fluctuations/covariance", none).starts_with("`los` is not an observable"));
}
