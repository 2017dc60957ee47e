//! How long kicks of a rule and looks at a state take, by the clock: a part of what runs are estimated to cost.

use crate::averages::SAMPLED_ACCURACY;
use crate::observable::Snapshot;
use crate::problem::Problem;
use crate::record::Record;
use crate::rule::{Batch, Kick, LocalRule, Sample};
use didact_math::random::{RngAddress, Stream};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time of a kind of work on a model, measured the first time that it is asked for: points of a sweep that share a model share it.
/// Models without a name of their own are measured each time.
pub fn measured_once(problem: &Problem, work: &str, measure: impl FnOnce() -> Option<f64>) -> Option<f64> {
    static KNOWN: Mutex<BTreeMap<String, Option<f64>>> = Mutex::new(BTreeMap::new());
    let model = format!("{:?}", problem.about);
    if model == format!("{:?}", crate::NoFamily) {
        return measure();
    }
    let key = format!("{work} of {model}");
    let lock = || KNOWN.lock().expect("no thread panics while it holds the lock");
    if let Some(known) = lock().get(&key) {
        return *known;
    }
    let seconds = measure();
    lock().insert(key, seconds);
    seconds
}

/// A look that takes this long is timed only once.
const LONG_LOOK: Duration = Duration::from_millis(200);

/// States of more numbers are not looked at: their looks take as long as their steps, and room is made for them when they are run.
const LARGEST_STATE: usize = 1 << 16;

/// Where an engine has its losses from when it looks at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Losses {
    /// Averages as accurate as theory is.
    Averages,
    /// Averages to a few digits, which are enough beside the scatter of a simulation; the train loss from the training set.
    Simulated,
    /// Train and test loss from samples.
    Samples,
}

/// Seconds that one replica spends on measuring the observables of a record at all of its times, from a look at the start.
///
/// A loss without a closed form is an integral, which may take longer than thousands of steps.
pub fn seconds_of_looks(problem: &Problem, record: &Record, losses: Losses) -> f64 {
    if problem.rule.shape().rows().pow(2) * problem.spectrum.len() > LARGEST_STATE {
        return 0.0;
    }
    let setting = problem.setting(record.seed, 0);
    let start = match problem.dimension {
        Some(_) => problem.start.draw(&setting),
        None => problem.start.limit(setting.shape, setting.spectrum),
    };
    // What is wrong with a start is said elsewhere.
    let Ok(start) = start else { return 0.0 };
    let look = || {
        let mut snapshot = Snapshot::new(&start, problem);
        snapshot = match losses {
            Losses::Averages => snapshot,
            Losses::Simulated => snapshot.within(SAMPLED_ACCURACY).with_train_loss(0.0),
            Losses::Samples => snapshot.with_train_loss(0.0).with_test_loss(0.0),
        };
        let begin = Instant::now();
        record.observables.iter().for_each(|observable| {
            black_box(observable.measure(&snapshot));
        });
        begin.elapsed()
    };
    let names: Vec<String> = record.observables.iter().map(|observable| observable.name()).collect();
    let one = measured_once(problem, &format!("looks at {names:?} ({losses:?})"), || {
        let first = look();
        // The first look may fill tables that all others find.
        let seconds = if first < LONG_LOOK { first.min(look()) } else { first };
        Some(seconds.as_secs_f64())
    });
    one.unwrap_or(0.0) * record.times.len() as f64
}

/// Samples that are timed at once, at most.
const MOST_SAMPLES: usize = 64;
/// How long kicks are repeated, and how often that is done: the least time is the least disturbed.
const REPEATED: Duration = Duration::from_micros(200);
const ROUNDS: usize = 3;

/// Seconds that the kick of a sample takes in steps with so many samples.
pub fn seconds_per_kick(problem: &Problem, batch: usize) -> f64 {
    let size = batch.clamp(1, MOST_SAMPLES);
    let work = format!("kicks of {size} samples");
    measured_once(problem, &work, || Some(timed_kick(&*problem.rule, size))).unwrap_or(0.0)
}

fn timed_kick(rule: &dyn LocalRule, size: usize) -> f64 {
    let shape = rule.shape();
    let mut stream = Stream::at(RngAddress { seed: 0, replica: 0, step: 0, lane: 0 });
    let fields: Vec<f64> = (0..shape.rows() * size).map(|_| stream.normal()).collect();
    let (scalars, noise) = (vec![1.0; shape.scalars], vec![0.0; size]);
    let (mut kick, mut rows) = (Kick::new(shape), vec![0.0; shape.trained * size]);
    let mut once = || {
        if size == 1 {
            rule.kick(&Sample { fields: &fields, scalars: &scalars, noise: 0.0 }, &mut kick);
        } else {
            rule.kick_batch(&Batch::new(&fields, size, &scalars, &noise), &mut rows, &mut kick.scalars);
        }
        black_box((&kick, &rows));
    };
    once();
    let mut round = || {
        let begin = Instant::now();
        let mut calls = 0_u32;
        while calls == 0 || begin.elapsed() < REPEATED {
            once();
            calls += 1;
        }
        begin.elapsed().as_secs_f64() / f64::from(calls)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min) / size as f64
}
