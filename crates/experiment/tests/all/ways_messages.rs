//! Ways of training in descriptions: what is wrong is said with its line, and stages and schedules fit together.

use crate::common::{checked, empty_folder};
use didact_model::engine::NoMonitor;

fn one_pass(training: &str, data: &str, engine: &str) -> String {
    format!(
        "title = \"T\"\n\
         model = {{ family = \"committee\", students = 2, teachers = 2, activation = \"erf(z/sqrt2)\" }}\n\
         start = {{ q = [[0.25, 0.0], [0.0, 0.25]], r = [[0.1, 0.02], [0.0, 0.08]] }}\n\
         record = {{ times = {{ from = 0, to = 100, points = 5 }}, observe = [\"loss\"] }}\n\
         run = [{{ name = \"a\", engine = \"{engine}\" }}]\n\
         [data]\ndimension = 200\n{data}\n\
         [training]\nlearning-rate = 1.0\n{training}\n"
    )
}

fn training_set(training: &str, data: &str, engine: &str) -> String {
    format!(
        "title = \"T\"\n\
         model = {{ family = \"multi-index\", activation = \"tanh\", link = \"z\" }}\n\
         start = {{ students = {{ law = \"sphere\", radius = 1.0 }} }}\n\
         record = {{ clock = \"steps\", times = [0, 8], observe = [\"loss\"] }}\n\
         run = [{{ name = \"a\", engine = \"{engine}\" }}]\n\
         [data]\ndimension = 100\nsamples-per-dimension = 2.0\n{data}\n\
         [training]\nlearning-rate = 0.4\nscaling = \"plain\"\n{training}\n"
    )
}

#[test]
fn what_is_wrong_is_said_in_words_of_the_user_at_its_line() {
    let tangent = "momentum = { beta = 0.5 }\nconstraint = { sphere = \"tangent\" }";
    let cases = [
        (
            one_pass("momentum = { beta = 1.2 }", "", "ode"),
            "the momentum is 1.2; it must be at least 0 and below 1",
        ),
        (one_pass("momentum = { rate = 0 }", "", "ode"), "the momentum rate is 0; it must be positive"),
        (
            one_pass("momentum = { rate = 300 }", "", "ode"),
            "the momentum rate is 300 but d = 200: 1 - beta = rate/d would exceed 1",
        ),
        (one_pass("momentum = { rate = 1, beta = 0.5 }", "", "ode"), "give \"beta\" or \"rate\", not both"),
        (
            training_set("momentum = { rate = 1 }", "", "full-batch"),
            "\"rate\" is 1 - beta = rate/d of one-pass training; use \"beta\" on a training set",
        ),
        (
            one_pass("momentum = { rate = 1 }\nscaling = \"plain\"", "", "ode"),
            "\"rate\" needs scaling = \"per-dimension\"",
        ),
        (
            one_pass("momentum = { beta = \"t/(t+3)\" }", "", "ode"),
            "\"beta\" may vary with t on a training set only; use \"rate\" or a schedule of the learning rate",
        ),
        (
            training_set("momentum = { beta = \"t/7\" }", "", "full-batch"),
            "the momentum is 1 at t = 7; it must be at least 0 and below 1",
        ),
        (
            one_pass(tangent, "", "ode"),
            "the velocity does not stay tangent to the sphere; use sphere = \"euclidean\"",
        ),
        (
            training_set("batches = { fraction = 0 }", "", "full-batch"),
            "the batch fraction is 0; it must be above 0 and at most 1",
        ),
        (
            one_pass("batches = { fraction = 0.5 }", "", "ode"),
            "\"batches\" needs a training set (data.samples-per-dimension); one-pass training has \"batch\"",
        ),
        (
            training_set("batches = { fraction = 0.3, order = \"cyclic\" }", "", "full-batch"),
            "a fraction of 0.3 does not divide an epoch; use 1/3 or 1/4, or order = \"independent\"",
        ),
        (
            training_set("batches = { fraction = 0.4, persistence = 0.5 }", "", "full-batch"),
            "a persistence of 0.5 steps is too short for a fraction of 0.4; it must be at least 1",
        ),
        (
            training_set("batches = { fraction = 1, persistence = 2 }", "", "full-batch"),
            "a full batch has no persistence",
        ),
        (
            training_set(
                "batches = { fraction = 0.5, persistence = 2, order = \"cyclic\" }",
                "",
                "full-batch",
            ),
            "give \"order\" or \"persistence\", not both",
        ),
        (
            training_set("batches = { fraction = 0.001 }", "", "full-batch"),
            "batches of fraction 0.001 of 200 samples are empty",
        ),
        (
            one_pass("schedule = \"1 - t/50\"", "", "ode"),
            "the schedule of the learning rate is -0.002 at t = 50.1; it must be zero or positive",
        ),
        (one_pass("schedule = \"0*t\"", "", "ode"), "the learning rate is 0 at all times"),
        (
            one_pass("schedule = { kind = \"inverse\", tau = 0 }", "", "ode"),
            "the `tau` of a schedule is 0; it must be positive",
        ),
        (
            one_pass("schedule = { kind = \"cosine\", end = 5, final = 2 }", "", "ode"),
            "the `final` of a schedule is 2; it must be between 0 and 1",
        ),
        (one_pass("gradient = { clip = 0 }", "", "ode"), "`clip` is 0; it must be positive"),
        (one_pass("dropout = { keep = 0 }", "", "ode"), "`keep` is 0; it must be above 0 and at most 1"),
        (one_pass("input-noise = -1.0", "", "ode"), "`input-noise` is -1; it must be zero or positive"),
        (one_pass("", "drift = { rate = 300 }", "ode"), "`rate` is 300; it must be at most d"),
        (
            training_set("", "drift = { rate = 0.1 }", "full-batch"),
            "the labels of a training set are drawn once",
        ),
        (
            training_set("label-noise = 0.1\nlabel-noise-schedule = \"exp(-t)\"", "", "dmft"),
            "the labels of a training set are drawn once",
        ),
        (
            one_pass("gradient = \"sign\"\ninput-noise = 0.1", "", "ode"),
            "signs do not go with \"input-noise\"",
        ),
        (
            one_pass("gradient = \"sign\"\nbatch = 2", "", "ode"),
            "signs have a limit for one sample per step only",
        ),
        (
            one_pass("gradient = \"sign\"", "", "reduced"),
            "engine \"reduced\" cannot take signs coordinate by coordinate; use \"ode\" or \"direct\"",
        ),
        (
            one_pass("", "drift = { rotation = [[0, 1, 0], [-1, 0, 0], [0, 0, 0]] }", "ode"),
            "the rotation has 3 rows but there are 2 frozen rows",
        ),
        (
            one_pass("", "drift = { rotation = [[0, 1], [1, 0]] }", "ode"),
            "the rotation changes the overlaps of the teachers; it must be antisymmetric for orthonormal ones",
        ),
        (one_pass("", "inputs = \"laplace\"", "reduced"), "engine \"reduced\" cannot draw fields of inputs"),
    ];
    for (text, message) in cases {
        let Err(error) = checked(&text) else { panic!("accepted: {text}") };
        let said = error.to_string();
        assert!(said.contains(message), "{said}\n\nexpected: {message}");
        assert!(said.contains("--> test.toml:"), "no place: {said}");
    }
    let unknown = checked(&one_pass("schedule = \"1/(1+x)\"", "", "ode")).err().unwrap().to_string();
    assert!(
        unknown.contains("hint: a schedule is a formula of t")
            || unknown.contains("a schedule is a formula of t"),
        "{unknown}"
    );
}

#[test]
fn a_schedule_that_is_piecewise_constant_is_stages_and_stages_hand_velocities_over() {
    let text = r#"
title = "Schedules and stages"

[model]
family = "committee"
students = 2
teachers = 2
activation = "erf(z/sqrt2)"

[data]
dimension = 60

[training]
learning-rate = 1.0

[start]
q = [[0.25, 0.0], [0.0, 0.25]]
r = [[0.1, 0.02], [0.0, 0.08]]

[record]
times = { from = 0, to = 6, points = 13 }
observe = ["loss", "R[0,0]"]
replicas = 2

[[run]]
name = "schedule"
engine = "ode"
set = { "training.schedule" = "1 - 0.5*step(t - 2)" }

[[run]]
name = "stages"
engine = "ode"
set = { "training.learning-rate" = 0.5, "training.stage" = [{ until = { time = 2 }, set = { "training.learning-rate" = 1.0 } }] }

[[run]]
name = "moving"
engine = "ode"
set = { "training.momentum" = { rate = 2.0 }, "training.schedule" = "1/(1+t)" }

[[run]]
name = "moving-stages"
engine = "ode"
set = { "training.momentum" = { rate = 2.0 }, "training.schedule" = "1/(1+t)", "training.stage" = [{ until = { time = 2.25 }, set = {} }] }

[[run]]
name = "stopped"
engine = "ode"
set = { "training.momentum" = { rate = 2.0 }, "training.schedule" = "1/(1+t)", "training.stage" = [{ until = { time = 2.25 }, set = {}, restart = { velocity = true } }] }

[[run]]
name = "simulated-stages"
engine = "reduced"
set = { "training.momentum" = { rate = 2.0 }, "training.stage" = [{ until = { time = 2.25 }, set = {} }] }
"#;
    let folder = empty_folder("schedules-and-stages");
    let finished = checked(text).unwrap().execute(&folder, &NoMonitor).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(finished.failures.is_empty(), "{:?}", finished.failures);
    let last = |run: &str| -> Vec<f64> {
        let table = std::fs::read_to_string(finished.folder.join(format!("{run}.csv"))).unwrap();
        let line = table.lines().last().unwrap().to_string();
        line.split(',').skip(2).map(|x| x.parse().unwrap()).collect()
    };
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
    assert!(near(&last("schedule"), &last("stages")), "{:?} {:?}", last("schedule"), last("stages"));
    assert!(
        near(&last("moving"), &last("moving-stages")),
        "{:?} {:?}",
        last("moving"),
        last("moving-stages")
    );
    assert!(!near(&last("moving"), &last("stopped")), "a restart stops the rows");
    assert!(last("simulated-stages").iter().all(|x| x.is_finite()));
}

/// Kernels of mean-field theory go on across stages: a schedule says the same, to the last bit, and training sets agree.
#[test]
fn stages_of_mean_field_theory_are_a_piecewise_constant_schedule() {
    let text = r#"
title = "Stages of kernels"

[model]
family = "multi-index"
activation = "tanh"
link = "z"

[data]
dimension = 400
samples-per-dimension = 2

[training]
learning-rate = 0.25
scaling = "plain"
label-noise = 0.2

[start]
students = { law = "sphere", radius = 1.0 }

[record]
clock = "steps"
times = { from = 0, to = 6, points = 7 }
observe = ["loss", "train_loss", "Q[0,0]", "R[0,0]"]
replicas = 48

[[run]]
name = "schedule"
engine = "dmft"
samples = 4096
set = { "training.learning-rate" = 1.0, "training.schedule" = "1 - 0.75*step(t - 2.5)" }

[[run]]
name = "stages"
engine = "dmft"
samples = 4096
set = { "training.stage" = [{ until = { time = 3 }, set = { "training.learning-rate" = 1.0 } }] }

[[run]]
name = "moving"
engine = "dmft"
samples = 4096
set = { "training.stage" = [{ until = { time = 3 }, set = { "training.learning-rate" = 0.5, "training.momentum" = { beta = 0.5 } } }, { until = { time = 5 }, set = { "training.momentum" = { beta = 0.5, kind = "nesterov" } } }] }

[[run]]
name = "simulated"
engine = "full-batch"
set = { "training.stage" = [{ until = { time = 3 }, set = { "training.learning-rate" = 1.0 } }] }

[[run]]
name = "simulated-moving"
engine = "full-batch"
set = { "training.stage" = [{ until = { time = 3 }, set = { "training.learning-rate" = 0.5, "training.momentum" = { beta = 0.5 } } }, { until = { time = 5 }, set = { "training.momentum" = { beta = 0.5, kind = "nesterov" } } }] }
"#;
    let folder = empty_folder("stages-of-kernels");
    let finished = checked(text).unwrap().execute(&folder, &NoMonitor).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(finished.failures.is_empty(), "{:?}", finished.failures);
    // Rows of a table: replica, time, and the observables.
    let table = |run: &str| -> Vec<Vec<f64>> {
        let text = std::fs::read_to_string(finished.folder.join(format!("{run}.csv"))).unwrap();
        text.lines().skip(1).map(|line| line.split(',').map(|x| x.parse().unwrap()).collect()).collect()
    };
    assert_eq!(table("schedule"), table("stages"));
    assert_ne!(table("schedule"), table("moving"));
    for (theory, simulation) in [("stages", "simulated"), ("moving", "simulated-moving")] {
        for column in 2..6 {
            let mean = |run: &str| {
                let last: Vec<f64> =
                    table(run).iter().filter(|row| row[1] == 6.0).map(|row| row[column]).collect();
                didact_math::random::statistics::SampleMean::of(last)
            };
            let (a, b) = (mean(theory), mean(simulation));
            let off = (a.value - b.value).abs();
            assert!(off < 4.5 * a.error.hypot(b.error) + 2e-3, "{theory}, column {column}: {a:?} {b:?}");
        }
    }
}

#[test]
fn stages_that_mean_field_theory_cannot_join_are_refused() {
    let text = |stage: &str| {
        format!(
            r#"
title = "Refused stages"
model = {{ family = "multi-index", activation = "tanh", link = "z" }}
data = {{ dimension = 40, samples-per-dimension = 2 }}
training = {{ learning-rate = 0.25, scaling = "plain", stage = [{stage}] }}
start = {{ students = {{ law = "sphere", radius = 1.0 }} }}
record = {{ clock = "steps", times = {{ from = 0, to = 6, points = 7 }}, observe = ["loss"] }}
run = [{{ name = "theory", engine = "dmft" }}]
"#
        )
    };
    let refusal = |stage: &str| checked(&text(stage)).err().map(|e| e.to_string()).unwrap_or_default();
    let event = refusal(r#"{ until = { observable = "loss", crossing = "falls", level = 0.1 }, set = {} }"#);
    assert!(event.contains("a stage ends at a time that is known beforehand"), "{event}");
    let model = refusal(r#"{ until = { time = 2 }, set = { "model.link" = "z^2" } }"#);
    assert!(model.contains("one training set") && model.contains("full-batch"), "{model}");
}
