//! The one recorder behind every engine: it saves columns, watches events and notes how a replica ended.

use crate::observable::Snapshot;
use crate::overlaps::Overlaps;
use crate::problem::Problem;
use crate::record::Record;
use crate::trajectory::{EndState, Outcome, Passages, RecordedColumn, Statistics, Trajectory};
use didact_math::linalg::Mat;
use std::sync::Arc;

/// The part of the way to its level that a watched observable may go between two looks.
const SHARE_OF_WAY: f64 = 0.25;
/// The part of a run that may pass between two looks: a first passage is placed linearly between two of them.
const LONGEST_INTERVAL: f64 = 1.0 / 250.0;

/// Writes down one replica.
///
/// An engine that steps calls [`Recorder::observe`] wherever a time is to be saved or an event to be looked for. An
/// integrator that locates events itself calls [`Recorder::save`] and [`Recorder::note_passage`]. Either calls
/// [`Recorder::end`] once, and [`Trajectory::of_replicas`] puts the replicas side by side.
#[derive(Debug, Clone)]
pub struct Recorder<'a> {
    record: &'a Record,
    /// One curve per observable.
    curves: Vec<Vec<f64>>,
    /// Number of times saved so far.
    saved: usize,
    /// Time of the last look at the events, and the excess of each over its level.
    last_look: Option<(f64, Vec<f64>)>,
    /// No look at the events before this time, unless something is saved; `None` where every look is taken.
    quiet_until: Option<f64>,
    /// First passages so far.
    passages: Vec<Option<f64>>,
    statistics: Option<Statistics>,
    /// Largest estimated error of the averages behind what was measured.
    quadrature_error: f64,
    end: Option<(Outcome, EndState)>,
}

impl<'a> Recorder<'a> {
    /// For one replica of a record.
    pub fn new(record: &'a Record) -> Self {
        Self {
            record,
            curves: vec![Vec::with_capacity(record.times.len()); record.observables.len()],
            saved: 0,
            last_look: None,
            quiet_until: None,
            passages: vec![None; record.events.len()],
            statistics: None,
            quadrature_error: 0.0,
            end: None,
        }
    }

    /// For one replica whose events are looked for more rarely while they are far off, where looks are expensive: where what is watched
    /// has no closed form. The next look comes when an event that keeps its pace has a quarter of its way behind it, and no
    /// later than after twice the last interval or a fixed share of the run. Cheap looks are all taken.
    pub fn adaptive(record: &'a Record) -> Self {
        Self { quiet_until: Some(f64::NEG_INFINITY), ..Self::new(record) }
    }

    /// Records a state: `due` saved times fall on it, and events are looked for. Returns the outcome that it leads to when an
    /// event ends the replica here; the caller then calls [`Recorder::end`].
    pub fn observe(&mut self, time: f64, due: usize, snapshot: &Snapshot) -> Option<Outcome> {
        for _ in 0..due {
            self.save(snapshot);
        }
        if due == 0 && self.quiet_until.is_some_and(|until| time < until) {
            return None;
        }
        // What was saved is in the same snapshot, so its error tells of the events only where nothing was.
        self.look(time, snapshot, due == 0)
    }

    /// Saves the observables of a state as those of the next time of the record.
    pub fn save(&mut self, snapshot: &Snapshot) {
        for (curve, observable) in self.curves.iter_mut().zip(&self.record.observables) {
            curve.push(observable.measure(snapshot));
        }
        self.quadrature_error = self.quadrature_error.max(snapshot.quadrature_error());
        self.saved += 1;
    }

    /// Notes first passages, placed linearly between two looks. The first event of the record that passed now and stops the
    /// replica gives the outcome.
    fn look(&mut self, time: f64, snapshot: &Snapshot, alone: bool) -> Option<Outcome> {
        let events = &self.record.events;
        let excess: Vec<f64> = events.iter().map(|e| e.excess(e.observable.measure(snapshot))).collect();
        let mut outcome = None;
        if let Some((then, before)) = &self.last_look {
            for (index, event) in events.iter().enumerate() {
                let (a, b) = (before[index], excess[index]);
                if self.passages[index].is_none() && a < 0.0 && b >= 0.0 {
                    let at = then + (time - then) * (-a / (b - a));
                    self.passages[index] = Some(at);
                    if event.stops && outcome.is_none() {
                        outcome = Some(Outcome::Stopped { by: event.name.clone(), at });
                    }
                }
            }
        }
        if self.quiet_until.is_some() && alone && snapshot.quadrature_error() > 0.0 {
            self.quiet_until = Some(self.next_look(time, &excess));
        }
        self.last_look = Some((time, excess));
        outcome
    }

    /// When events have to be looked for again, after a look at `time`.
    fn next_look(&self, time: f64, excess: &[f64]) -> f64 {
        let Some((then, before)) = &self.last_look else { return time };
        let interval = time - then;
        let pending = (0..excess.len()).filter(|index| self.passages[*index].is_none());
        let way = pending.fold(f64::INFINITY, |least: f64, index| {
            let pace = (excess[index] - before[index]).abs() / interval;
            least.min(if pace > 0.0 { SHARE_OF_WAY * excess[index].abs() / pace } else { f64::INFINITY })
        });
        time + way.min(2.0 * interval).min(LONGEST_INTERVAL * self.record.end())
    }

    /// Notes a passage that the engine located itself; only the first one counts.
    pub fn note_passage(&mut self, event: usize, time: f64) {
        self.passages[event].get_or_insert(time);
    }

    /// Keeps the work of the integrator.
    pub fn set_statistics(&mut self, statistics: Statistics) {
        self.statistics = Some(statistics);
    }

    /// Number of times saved so far.
    pub fn saved(&self) -> usize {
        self.saved
    }

    /// True once the replica has ended.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the replica in this state.
    pub fn end(&mut self, outcome: Outcome, time: f64, overlaps: Overlaps, weights: Option<Arc<Mat>>) {
        self.end = Some((outcome, EndState { time, saved: self.saved, overlaps, weights, spread: None }));
    }
}

impl Trajectory {
    /// A trajectory of no replicas: the names and times of a record.
    pub fn of_record(engine: &str, problem: &Problem, record: &Record) -> Self {
        let column = |name: String| RecordedColumn { name, curves: Vec::new() };
        Self {
            engine: engine.into(),
            clock: problem.clock,
            times: record.times.clone(),
            columns: record.observables.iter().map(|o| column(o.name())).collect(),
            events: record
                .events
                .iter()
                .map(|e| Passages { name: e.name.clone(), times: Vec::new() })
                .collect(),
            outcomes: Vec::new(),
            statistics: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// What the recorders of all replicas wrote down, and where each replica ended.
    ///
    /// # Panics
    ///
    /// When a replica has not ended: that is a mistake of the engine.
    pub fn of_replicas(
        engine: &str,
        problem: &Problem,
        record: &Record,
        replicas: Vec<Recorder>,
    ) -> (Self, Vec<EndState>) {
        let mut trajectory = Self::of_record(engine, problem, record);
        let mut end_states = Vec::with_capacity(replicas.len());
        for replica in replicas {
            for (column, curve) in trajectory.columns.iter_mut().zip(replica.curves) {
                column.curves.push(curve);
            }
            for (event, passage) in trajectory.events.iter_mut().zip(replica.passages) {
                event.times.push(passage);
            }
            let (outcome, end_state) = replica.end.expect("every replica has ended");
            trajectory.outcomes.push(outcome);
            trajectory.statistics.extend(with_error(replica.statistics, replica.quadrature_error));
            end_states.push(end_state);
        }
        (trajectory, end_states)
    }
}

/// The work of the integrator, if there was one, with the error of the averages behind what was measured, if they have one.
fn with_error(statistics: Option<Statistics>, error: f64) -> Option<Statistics> {
    if error == 0.0 {
        return statistics;
    }
    let mut statistics = statistics.unwrap_or_default();
    statistics.add(&Statistics { quadrature_error: Some(error), ..Statistics::default() });
    Some(statistics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observable::Observable;
    use crate::record::{Crossing, Event};
    use crate::rule::{Kick, LocalRule, Sample, Shape};
    use crate::start::Given;
    use crate::{Clock, NoFamily, Spectrum, Training};

    /// One row without a task: what is recorded is given by hand.
    #[derive(Debug)]
    struct NoTask;

    impl LocalRule for NoTask {
        fn shape(&self) -> Shape {
            Shape { trained: 1, ..Shape::default() }
        }
        fn loss(&self, _sample: &Sample) -> f64 {
            0.0
        }
        fn kick(&self, _sample: &Sample, out: &mut Kick) {
            out.rows[0] = 0.0;
        }
    }

    /// |w|².
    #[derive(Debug)]
    struct Square;

    impl Observable for Square {
        fn name(&self) -> String {
            "square".into()
        }
        fn measure(&self, snapshot: &Snapshot) -> f64 {
            snapshot.overlaps.blocks[0][(0, 0)]
        }
    }

    fn state(square: f64) -> Overlaps {
        Overlaps::from_engine(NoTask.shape(), vec![Mat::identity(1).scaled(square)], Vec::new())
    }

    fn problem() -> Problem {
        Problem {
            rule: Arc::new(NoTask),
            about: Arc::new(NoFamily),
            spectrum: Spectrum::isotropic(),
            dimension: None,
            training: Training::online(1.0),
            start: Arc::new(Given(state(1.0))),
            clock: Clock::Alpha,
        }
    }

    fn event(name: &str, level: f64, crossing: Crossing, stops: bool) -> Event {
        Event { name: name.into(), observable: Arc::new(Square), level, crossing, stops }
    }

    #[test]
    fn first_passages_are_placed_linearly_between_two_looks_and_may_end_the_replica() {
        let problem = problem();
        let mut record = Record::new(vec![0.0, 2.0, 4.0], vec![Arc::new(Square)]);
        record.events = vec![
            event("up", 1.5, Crossing::Rises, false),
            event("down", 0.5, Crossing::Falls, true),
            event("never", 9.0, Crossing::Rises, true),
        ];
        let mut recorder = Recorder::new(&record);
        let looks = [(0.0, 1, 1.0), (1.0, 0, 3.0), (2.0, 1, 1.0), (3.0, 0, 2.0), (3.5, 0, 0.0)];
        let outcomes = looks
            .map(|(time, due, square)| recorder.observe(time, due, &Snapshot::new(&state(square), &problem)));
        let stopped = Outcome::Stopped { by: "down".into(), at: 3.375 };
        assert_eq!(outcomes, [None, None, None, None, Some(stopped.clone())]);
        recorder.end(stopped.clone(), 3.5, state(0.0), None);
        let (trajectory, ends) = Trajectory::of_replicas("test", &problem, &record, vec![recorder]);
        // The second rise through 1.5, between 2 and 3, is no first passage.
        let passages: Vec<_> = trajectory.events.iter().map(|e| e.times[0]).collect();
        assert_eq!(passages, [Some(0.25), Some(3.375), None]);
        assert_eq!(
            trajectory.columns[0],
            RecordedColumn { name: "square".into(), curves: vec![vec![1.0, 1.0]] }
        );
        assert_eq!((trajectory.outcomes, ends[0].saved, ends[0].time), (vec![stopped], 2, 3.5));
    }

    /// A rule whose risk w²/2 comes from quadrature.
    #[derive(Debug)]
    struct NoClosedForm;

    impl LocalRule for NoClosedForm {
        fn shape(&self) -> Shape {
            NoTask.shape()
        }
        fn loss(&self, sample: &Sample) -> f64 {
            (1.0 + sample.fields[0] * sample.fields[0]).sqrt()
        }
        fn kick(&self, _sample: &Sample, out: &mut Kick) {
            out.rows[0] = 0.0;
        }
    }

    /// 2000 looks at an average without a closed form used to take 100 times as long as the run itself.
    #[test]
    fn expensive_events_are_looked_for_rarely_and_found_where_they_are() {
        let problem = Problem { rule: Arc::new(NoClosedForm), ..problem() };
        let mut record = Record::new(vec![0.0, 1.0], Vec::new());
        let level = Snapshot::new(&state(2.7f64.exp()), &problem).loss();
        let observable: Arc<dyn Observable> = Arc::new(crate::observable::Risk);
        record.events =
            vec![Event { name: "up".into(), observable, level, crossing: Crossing::Rises, stops: true }];
        let passage = |mut recorder: Recorder| {
            let (mut looks, mut found) = (0, None);
            for step in 0..=2000 {
                let time = f64::from(step) / 2000.0;
                let state = state((3.0 * time).exp());
                let snapshot = Snapshot::new(&state, &problem);
                let outcome = recorder.observe(time, usize::from(step == 0), &snapshot);
                looks += usize::from(snapshot.quadrature_error() > 0.0);
                if let Some(Outcome::Stopped { at, .. }) = outcome {
                    found = Some(at);
                    break;
                }
            }
            (looks, found.expect("passes at 0.9"))
        };
        let (often, every) = passage(Recorder::new(&record));
        let (rarely, adaptive) = passage(Recorder::adaptive(&record));
        assert!(often > 1700 && rarely < 350, "{often} {rarely}");
        assert!((every - 0.9).abs() < 1e-6 && (adaptive - 0.9).abs() < 1e-4, "{every} {adaptive}");
    }

    #[test]
    fn saved_times_are_counted_without_columns_too() {
        let (problem, record) = (problem(), Record::new(vec![0.0, 1.0], Vec::new()));
        let mut recorder = Recorder::new(&record);
        assert_eq!(recorder.observe(1.0, 2, &Snapshot::new(&state(1.0), &problem)), None);
        recorder.end(Outcome::Completed, 1.0, state(1.0), None);
        let (trajectory, ends) = Trajectory::of_replicas("test", &problem, &record, vec![recorder]);
        assert_eq!((trajectory.replicas(), ends[0].saved), (1, 2));
    }
}
