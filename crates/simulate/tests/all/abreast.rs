//! Replicas side by side are the replicas one by one, to the last bit.

use didact_families::Family;
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::record::Crossing;
use didact_model::start::Given;
use didact_model::{Clock, Engine, Event, Outcome, Overlaps, Problem, Record, Spectrum, Training, Unwatched};
use didact_simulate::Reduced;
use didact_simulate::chain::{Chain, Seat};
use didact_simulate::reduced::ReducedChain;
use std::sync::Arc;

fn problem(spec: &Committee, spectrum: Spectrum, training: Training) -> Problem {
    // Teachers that are not orthogonal: the frozen factor is a full triangle.
    with_teachers(0.2, spec, spectrum, training)
}

fn with_teachers(overlap: f64, spec: &Committee, spectrum: Spectrum, training: Training) -> Problem {
    let rule = spec.rule().unwrap();
    let q = Mat::from_fn(spec.students, spec.students, |i, j| if i == j { 0.5 } else { 0.1 });
    let r = Mat::from_fn(spec.students, spec.teachers, |i, n| 0.1 * ((i + 2 * n) as f64).cos());
    let t = Mat::from_fn(spec.teachers, spec.teachers, |i, j| if i == j { 1.0 } else { overlap });
    let start = Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), Vec::new()).unwrap();
    let start = Arc::new(Given(start));
    Problem { rule, about: spec.about(), spectrum, dimension: Some(60), training, start, clock: Clock::Steps }
}

fn chains(problem: &Problem, count: u32) -> Vec<ReducedChain> {
    let spectrum = &problem.spectrum;
    let setting = |replica| didact_model::start::Setting {
        shape: problem.rule.shape(),
        spectrum,
        dimension: problem.dimension,
        seed: 5,
        replica,
    };
    let make = |replica| {
        let start = problem.start.draw(&setting(replica)).unwrap();
        ReducedChain::new(problem, &start, Seat { seed: 5, replica, stage: 0 }).unwrap()
    };
    (0..count).map(make).collect()
}

fn settings() -> Vec<(&'static str, Problem)> {
    let two = || Spectrum::new(vec![1.8, 0.4], vec![0.5, 0.5]).unwrap();
    let kept = |sphere| Constraint { sphere: Some(sphere), ..Constraint::none() };
    let with = |constraint| Training { constraint, ..Training::online(1.5) };
    let erf = |k, m| Committee::soft(k, m, "erf(z/sqrt2)");
    let decay = Constraint { weight_decay: 0.3, ..Constraint::none() };
    let barred = Constraint { off_frozen: true, ..Constraint::none() };
    let noisy = Training { label_noise: 0.3, ..with(decay) };
    let scaled = Committee { output: Output::Scaled, ..Committee::soft(3, 1, "relu") };
    vec![
        ("free rows", problem(&erf(2, 2), Spectrum::isotropic(), Training::online(1.0))),
        ("two eigenspaces, decay and label noise", problem(&scaled, two(), noisy)),
        ("sphere", problem(&erf(2, 3), Spectrum::isotropic(), with(kept(Retraction::Euclidean)))),
        ("tangent steps on the sphere", problem(&erf(3, 5), two(), with(kept(Retraction::Tangent)))),
        ("rows kept off the teachers", problem(&erf(2, 2), Spectrum::isotropic(), with(barred))),
        ("orthogonal teachers", with_teachers(0.0, &erf(2, 3), two(), Training::online(1.0))),
        ("many units", problem(&erf(9, 10), Spectrum::isotropic(), Training::online(0.2))),
    ]
}

#[test]
fn every_lane_is_the_chain_alone_to_the_last_bit() {
    for (name, problem) in settings() {
        for count in [3, 8] {
            let mut alone = chains(&problem, count);
            let mut company =
                ReducedChain::abreast(chains(&problem, count)).unwrap_or_else(|_| panic!("{name}: alone"));
            // Past the end of a chunk of random numbers.
            for _ in 0..700 {
                company.step();
                alone.iter_mut().for_each(Chain::step);
            }
            for (index, alone) in alone.iter().enumerate() {
                assert_eq!(company.member(index).overlaps(), alone.overlaps(), "{name}: replica {index}");
            }
        }
    }
}

#[test]
fn chains_of_another_kind_go_alone() {
    let erf = Committee::soft(2, 2, "erf(z/sqrt2)");
    let online = || Training::online(1.0);
    let batched = problem(&erf, Spectrum::isotropic(), Training { batch: 2, ..online() });
    assert!(ReducedChain::abreast(chains(&batched, 8)).is_err());
    let fits = problem(&erf, Spectrum::isotropic(), online());
    assert!(ReducedChain::abreast(chains(&fits, 2)).is_err());
    let narrow = Problem { dimension: Some(4), ..fits };
    assert!(ReducedChain::abreast(chains(&narrow, 8)).is_err());
}

/// All replicas of a record are what they are one by one: rows, events, outcomes.
#[test]
fn replicas_end_each_in_its_own_time() {
    let erf = Committee::soft(1, 1, "erf(z/sqrt2)");
    let passing = problem(&erf, Spectrum::isotropic(), Training::online(1.0));
    let cubic = Committee::soft(2, 1, "He3");
    let diverging = problem(&cubic, Spectrum::isotropic(), Training::online(2.0));
    let mut kinds = [0; 3];
    for (problem, steps) in [(passing, 60.0), (diverging, 20.0)] {
        let parse = |name: &str| didact_model::observable::parse(name, &problem).unwrap().remove(0);
        let mut record = Record::new(vec![0.0, steps / 2.0, steps], vec![parse("loss"), parse("Q[0,0]")]);
        record.events = vec![Event {
            name: "passes".into(),
            observable: parse("R[0,0]"),
            level: 0.45,
            crossing: Crossing::Rises,
            stops: true,
        }];
        record.watch_every = Some(3.0);
        record.replicas = 11;
        let together = Reduced.run(&problem, &record, &Unwatched).unwrap();
        for (replica, seen) in together.replicas.iter().enumerate() {
            let one = Record { first_replica: replica as u32, replicas: 1, ..record.clone() };
            let alone = Reduced.run(&problem, &one, &Unwatched).unwrap().replicas.remove(0);
            assert_eq!(seen.rows, alone.rows, "replica {replica}");
            assert_eq!(seen.events, alone.events, "replica {replica}");
            assert_eq!(seen.outcome, alone.outcome, "replica {replica}");
            assert_eq!(seen.last_time, alone.last_time, "replica {replica}");
            kinds[match seen.outcome {
                Outcome::Completed => 0,
                Outcome::Stopped { .. } => 1,
                Outcome::Diverged { .. } => 2,
            }] += 1;
        }
    }
    assert!(kinds.iter().all(|&count| count > 0), "completed, stopped, diverged: {kinds:?}");
}
