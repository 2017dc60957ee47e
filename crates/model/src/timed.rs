//! How long looks at a state take, by the clock: a part of what runs are estimated to cost.

use crate::observable::Snapshot;
use crate::problem::Problem;
use crate::record::Record;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A look that takes this long is timed only once.
const LONG_LOOK: Duration = Duration::from_millis(2);

/// Models of more rows are not looked at: their looks are few and take as long as their steps.
const MOST_ROWS: usize = 64;

/// Seconds that one replica spends on measuring the observables of a record at all of its times, from a look at the start.
///
/// A loss without a closed form is an integral, which may take longer than thousands of steps. Engines with samples at hand find train
/// and test loss from these.
pub fn seconds_of_looks(problem: &Problem, record: &Record, losses_at_hand: bool) -> f64 {
    if problem.rule.shape().rows() > MOST_ROWS {
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
        if losses_at_hand {
            snapshot = snapshot.with_train_loss(0.0).with_test_loss(0.0);
        }
        let begin = Instant::now();
        record.observables.iter().for_each(|observable| {
            black_box(observable.measure(&snapshot));
        });
        begin.elapsed()
    };
    let first = look();
    // The first look may fill tables that all others find.
    let seconds = if first < LONG_LOOK { first.min(look()) } else { first };
    seconds.as_secs_f64() * record.times.len() as f64
}
