//! Replicas that step as a group give the same bits as replicas that step one by one.

use didact_families::Family;
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::record::Crossing;
use didact_model::start::Given;
use didact_model::{Clock, Engine, Event, NoMonitor, Outcome, Overlaps, Problem, Record, Spectrum, Training};
use didact_simulate::Reduced;
use didact_simulate::chain::{Chain, ReplicaAddress};
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
    let make = |replica| {
        let start = problem.start.draw(&problem.setting(5, replica)).unwrap();
        ReducedChain::new(problem, &start, ReplicaAddress { seed: 5, replica, stage: 0 }).unwrap()
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
fn every_lane_gives_the_bits_of_a_single_chain() {
    for (name, problem) in settings() {
        for count in [3, 8] {
            let mut alone = chains(&problem, count);
            let mut group =
                ReducedChain::group(chains(&problem, count)).unwrap_or_else(|_| panic!("{name}: alone"));
            // Past the end of a chunk of random numbers.
            for _ in 0..700 {
                group.step();
                alone.iter_mut().for_each(Chain::step);
            }
            for (index, alone) in alone.iter().enumerate() {
                assert_eq!(group.member(index).overlaps(), alone.overlaps(), "{name}: replica {index}");
            }
        }
    }
}

#[test]
fn chains_of_another_kind_go_alone() {
    let erf = Committee::soft(2, 2, "erf(z/sqrt2)");
    let online = || Training::online(1.0);
    let batched = problem(&erf, Spectrum::isotropic(), Training { batch: 2, ..online() });
    assert!(ReducedChain::group(chains(&batched, 8)).is_err());
    let fits = problem(&erf, Spectrum::isotropic(), online());
    assert!(ReducedChain::group(chains(&fits, 2)).is_err());
    let narrow = Problem { dimension: Some(4), ..fits };
    assert!(ReducedChain::group(chains(&narrow, 8)).is_err());
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
        let (together, ends) = Reduced.run_with_end_states(&problem, &record, &NoMonitor).unwrap();
        for replica in 0..together.replicas() {
            let one = Record { first_replica: replica as u32, replicas: 1, ..record.clone() };
            let (alone, alone_ends) = Reduced.run_with_end_states(&problem, &one, &NoMonitor).unwrap();
            assert_eq!(together.rows(replica), alone.rows(0), "replica {replica}");
            assert_eq!(together.events[0].times[replica], alone.events[0].times[0], "replica {replica}");
            assert_eq!(together.outcomes[replica], alone.outcomes[0], "replica {replica}");
            assert_eq!(ends[replica].time, alone_ends[0].time, "replica {replica}");
            kinds[match together.outcomes[replica] {
                Outcome::Completed => 0,
                Outcome::Stopped { .. } => 1,
                Outcome::Diverged { .. } => 2,
            }] += 1;
        }
    }
    assert!(kinds.iter().all(|&count| count > 0), "completed, stopped, diverged: {kinds:?}");
}
