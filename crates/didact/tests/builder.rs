//! Problems made in Rust are those of descriptions, and say what is wrong with them.

use didact::experiment::{Experiment, Size, Source};
use didact::prelude::*;

fn committee() -> didact::model::ProblemBuilder {
    Problem::of(Committee::soft(2, 2, "erf(z/sqrt2)"))
        .start([[0.25, 0.0], [0.0, 0.25]], [[0.1, 0.0], [0.0, 0.1]])
        .learning_rate(1.0)
        .dimension(200)
}

#[test]
fn a_built_problem_gives_the_trajectory_of_its_description_to_the_last_bit() {
    let text = r#"
        title = "two units"
        model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
        data = { dimension = 200 }
        training = { learning-rate = 1.0 }
        start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1, 0], [0, 0.1]] }
        record = { times = { from = 0, to = 10, points = 6 }, observe = ["loss", "R[*,*]"], replicas = 3, seed = 5 }
        run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
    "#;
    let source = Source { name: "two.toml".into(), text: text.into() };
    let experiment = Experiment::new(source, Size::Normal, None).unwrap();
    let described: Vec<Trajectory> =
        experiment.runs.iter().map(|run| run.schedule.run(&NoMonitor).unwrap()).collect();
    let record = Record::until(10.0, 6).observe(["loss", "R[*,*]"]).replicas(3).seed(5);
    assert_eq!(committee().run(Ode::default(), &record).unwrap(), described[0]);
    assert_eq!(committee().run(Reduced, &record).unwrap(), described[1]);
}

#[test]
fn events_are_noted_and_can_end_a_replica() {
    let record = Record::until(80.0, 3).event("half", "R[0,0]", Crossing::Rises, 0.5);
    let noted = committee().run(Ode::default(), &record).unwrap();
    let at = noted.event("half").unwrap()[0].unwrap();
    let record = Record::until(80.0, 3).stop_when("half", "R[0,0]", Crossing::Rises, 0.5);
    let stopped = committee().run(Ode::default(), &record).unwrap();
    assert!(
        matches!(&stopped.outcomes[0], Outcome::Stopped { by, at: when } if by == "half" && (when - at).abs() < 1e-6)
    );
}

#[test]
fn what_is_wrong_is_said_when_the_problem_is_built() {
    let error = |builder: didact::model::ProblemBuilder| builder.build().unwrap_err();
    let unit = || Problem::of(Committee::soft(1, 1, "erf(z/sqrt2)"));
    assert!(matches!(error(Problem::of(Committee::soft(0, 1, "relu"))), BuildError::Model(_)));
    assert!(matches!(
        error(unit().start(vec![vec![1.0], vec![]], [[0.1]])),
        BuildError::Ragged { name: "q" }
    ));
    assert!(matches!(error(unit().start([[0.5, 0.0], [0.0, 0.5]], [[0.1]])), BuildError::Overlaps(_)));
    assert!(matches!(error(unit().start([[0.5]], [[0.9]])), BuildError::Overlaps(_)));
    assert!(matches!(error(unit().learning_rate(-1.0)), BuildError::Problem(_)));
}

#[test]
fn what_is_wrong_with_a_record_is_said_when_it_is_run() {
    let error = |record| committee().run(Ode::default(), &record).unwrap_err();
    let unknown = error(Record::until(1.0, 2).observe(["lost"]));
    assert!(matches!(unknown, BuildError::Observable(_)), "{unknown}");
    let many = error(Record::until(1.0, 2).event("any", "R[*,*]", Crossing::Rises, 0.5));
    assert!(matches!(many, BuildError::EventObservable { count: 4, .. }), "{many}");
    assert!(matches!(error(Record::at([1.0, 0.5])), BuildError::Engine(_)));
    let no_dimension = Problem::of(Committee::soft(1, 1, "relu")).start([[0.5]], [[0.1]]);
    assert!(matches!(no_dimension.run(Reduced, &Record::until(1.0, 2)), Err(BuildError::Engine(_))));
}

#[test]
fn a_training_set_is_counted_in_steps() {
    let problem = Problem::of(Committee::soft(1, 1, "tanh"))
        .random_start(RowLaw::Gaussian { deviation: 1.0 })
        .training_set(4.0)
        .learning_rate(0.5)
        .dimension(50);
    assert_eq!(problem.build().unwrap().clock, Clock::Steps);
    let descent = problem.run(FullBatch::default(), &Record::until(20.0, 3).observe(["train_loss"])).unwrap();
    let loss = &descent.curves("train_loss").unwrap()[0];
    assert!(loss[2] < loss[1] && loss[1] < loss[0], "{loss:?}");
}
