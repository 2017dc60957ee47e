//! An experiment that is shared out in any way, and disturbed in any way, ends with the bytes of a run on one machine.

use crate::common::{checked, empty_folder};
use didact_experiment::experiment::Size;
use didact_experiment::store::Places;
use didact_experiment::sweep::log::{Attempt, TaskLog, reports_of};
use didact_experiment::sweep::pieces::{Job, Kept, Piece};
use didact_experiment::sweep::plan::{Asked, Plan, TaskCount};
use didact_experiment::sweep::status::TaskState;
use didact_experiment::sweep::work::TaskOutcome;
use didact_experiment::sweep::{FailureKind, SweepStatus, TaskEnd, TaskEvent, WorkLimits, Worker};
use didact_experiment::{Experiment, Failure};
use didact_math::random::{RngAddress, Stream};
use didact_model::{Monitor, NoMonitor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One-pass engines, theory with a random start, stages, a scan, a measure and a figure.
const ONE_PASS: &str = r#"
title = "Shared out"
model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
data = { dimension = 20 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = { from = 0, to = 4, points = 5 }, replicas = 13 }
sweep = { "training.learning-rate" = [0.2, 0.8] }
scan = [{ name = "s", quantity = "committee/escape", inputs = { eta = 0.1 }, over = { M = [2, 3, 4, 5, 6] } }]
measure = [{ name = "end", kind = "value-at", run = "sgd", observable = "loss", time = 4 }]
figure = [{ name = "loss", panel = [{ series = [{ run = "sgd" }] }] }]
run = [
    { name = "theory", engine = "ode" },
    { name = "sgd", engine = "reduced" },
    { name = "weights", engine = "direct" },
    { name = "staged", engine = "reduced", set = { "training.stage" = [{ until = { time = 2 }, set = { "training.learning-rate" = 0.1 } }] } },
]
"#;

/// Full-batch descent, whose tables have remarks, and the theory of it, which cannot be divided.
const TRAINING_SET: &str = r#"
title = "Shared out, training set"
model = { family = "multi-index", activation = "gelu", link = "z^2" }
data = { dimension = 12, samples-per-dimension = 4 }
training = { learning-rate = 0.1, scaling = "plain" }
start = { students = { law = "sphere", radius = 1.0 } }
record = { clock = "steps", times = [0, 2, 5], observe = ["train_loss"], replicas = 9 }
run = [{ name = "gd", engine = "full-batch" }, { name = "mean-field", engine = "dmft", samples = 256, scrambles = 2 }]
"#;

/// All files of the finished folder but the provenance, which says how long it took.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut all, mut open) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with("provenance.json") {
                all.insert(path.strip_prefix(folder).unwrap().into(), std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// What a run on one machine leaves.
fn reference(text: &str, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = empty_folder(name);
    let finished = checked(text).unwrap().execute(&root, &NoMonitor).unwrap();
    let files = bytes(&finished.folder);
    assert!(files.len() > 5);
    std::fs::remove_dir_all(root).unwrap();
    files
}

fn asked(tasks: usize) -> Asked {
    let source = PathBuf::from("description.toml");
    let count = TaskCount::Tasks(tasks);
    Asked { source, size: Size::Normal, seed: None, cores: 1, count, most_tasks: 1000 }
}

fn nothing_kept(root: &Path, experiment: &Experiment) -> Kept {
    Kept::new(Places::empty(root, experiment.folder_name()))
}

/// Cuts every piece at random places, shuffles, and deals at random: any plan at all must do.
fn random_plan(experiment: &Experiment, root: &Path, tasks: usize, stream: &mut Stream) -> Plan {
    let mut plan = Plan::new(experiment, &asked(1), &nothing_kept(root, experiment));
    let mut cut: Vec<Piece> = Vec::new();
    for piece in plan.tasks.remove(0) {
        let (first, end, divides) = match piece.job {
            Job::Run(run, first, end) => {
                (first as usize, end as usize, experiment.runs[run].schedule.splits())
            }
            Job::Scan(_, first, end) => (first, end, true),
        };
        let mut from = first;
        while from < end {
            let length = if divides { 1 + below(stream, end - from) } else { end - from };
            let job = match piece.job {
                Job::Run(run, ..) => Job::Run(run, from as u32, (from + length) as u32),
                Job::Scan(scan, ..) => Job::Scan(scan, from, from + length),
            };
            cut.push(Piece { job, ..piece.clone() });
            from += length;
        }
    }
    plan.tasks = vec![Vec::new(); tasks];
    while !cut.is_empty() {
        let piece = cut.swap_remove(below(stream, cut.len()));
        plan.tasks[below(stream, tasks)].push(piece);
    }
    plan
}

fn below(stream: &mut Stream, count: usize) -> usize {
    ((stream.uniform() * count as f64) as usize).min(count - 1)
}

fn stream(number: u32) -> Stream {
    Stream::at(RngAddress { seed: 24, replica: number, step: 0, lane: 0 })
}

/// Stops after so many looks.
struct Patience(Mutex<usize>);

impl Monitor for Patience {
    fn advance(&self, _: f64) {}
    fn cancelled(&self) -> bool {
        let mut left = self.0.lock().unwrap();
        *left = left.saturating_sub(1);
        *left == 0
    }
}

/// One attempt of a task, with its report.
fn attempt(
    plan: &Plan,
    path: &Path,
    root: &Path,
    task: usize,
    limits: WorkLimits,
    monitor: &dyn Monitor,
) -> TaskOutcome {
    let experiment = plan.experiment().unwrap();
    let log = Mutex::new(TaskLog::create(path, task).unwrap());
    let report = |event: TaskEvent| log.lock().unwrap().add(&event).unwrap();
    let worker = Worker { experiment: &experiment, plan, plan_path: path, task, root, limits };
    let outcome = worker.work(monitor, &report).unwrap();
    report(TaskEvent::End { end: outcome.end, left: outcome.left });
    outcome
}

fn threads(count: usize) -> WorkLimits {
    WorkLimits { threads: count, ..WorkLimits::default() }
}

/// Nothing may be left to compute: what is drawn is what the tasks have kept.
fn merged(experiment: &Experiment, root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let finished = experiment.execute_kept(root, &NoMonitor).unwrap();
    assert!(finished.failures.is_empty(), "{:?}", finished.failures);
    bytes(&finished.folder)
}

#[test]
fn any_division_order_and_interruption_gives_the_bytes_of_one_machine() {
    for (case, text) in [ONE_PASS, TRAINING_SET].into_iter().enumerate() {
        let expected = reference(text, &format!("sweep-reference-{case}"));
        let experiment = checked(text).unwrap();
        for round in 0..6 {
            let mut stream = stream(100 * case as u32 + round);
            let root = empty_folder(&format!("sweep-{case}-{round}"));
            let plan = random_plan(&experiment, &root, 1 + below(&mut stream, 7), &mut stream);
            let path = plan.write_next(&root).unwrap();
            let mut open: Vec<usize> = (0..plan.tasks.len()).collect();
            while !open.is_empty() {
                let at = below(&mut stream, open.len());
                let patience = Patience(Mutex::new(1 + below(&mut stream, 400)));
                let limits = threads(1 + below(&mut stream, 4));
                let outcome = attempt(&plan, &path, &root, open[at], limits, &patience);
                assert_eq!(outcome.failed, 0);
                match outcome.end {
                    TaskEnd::Finished => {
                        open.swap_remove(at);
                    }
                    end => assert_eq!((end, outcome.left > 0), (TaskEnd::Signal, true)),
                }
            }
            let found = merged(&experiment, &root);
            assert!(found == expected, "case {case}, round {round}: {:?}", found.keys().collect::<Vec<_>>());
            std::fs::remove_dir_all(root).unwrap();
        }
    }
}

#[test]
fn what_some_tasks_have_not_done_is_computed_by_run_from_the_parts_that_are_there() {
    let expected = reference(ONE_PASS, "sweep-half-reference");
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-half");
    let plan = random_plan(&experiment, &root, 4, &mut stream(7));
    let path = plan.write_next(&root).unwrap();
    for task in [1, 3] {
        attempt(&plan, &path, &root, task, threads(2), &NoMonitor);
    }
    // What is there is drawn, what is not is named, and nothing that was kept is lost.
    let partial = experiment.execute_kept(&root, &NoMonitor).unwrap();
    assert!(partial.failed_jobs > 0);
    assert!(partial.failures.iter().any(|line| line.contains("not computed yet")), "{:?}", partial.failures);
    assert!(root.join(format!("{}.partial", experiment.folder_name())).exists());
    let finished = experiment.execute(&root, &NoMonitor).unwrap();
    assert_eq!(finished.failed_jobs, 0);
    assert!(bytes(&finished.folder) == expected);
    assert!(!root.join(format!("{}.partial", experiment.folder_name())).exists());
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn nothing_is_written_where_nothing_is_kept_and_nothing_is_to_be_computed() {
    let root = empty_folder("sweep-nothing");
    let Err(Failure::Error(error)) = checked(ONE_PASS).unwrap().execute_kept(&root, &NoMonitor) else {
        panic!("there is nothing to draw")
    };
    assert!(error.message.contains("nothing of it is computed yet"), "{error}");
    assert_eq!(std::fs::read_dir(&root).map_or(0, Iterator::count), 0);
}

#[test]
fn two_workers_on_one_shard_waste_time_and_nothing_else() {
    let expected = reference(ONE_PASS, "sweep-twice-reference");
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-twice");
    let plan = random_plan(&experiment, &root, 1, &mut stream(9));
    let path = plan.write_next(&root).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let outcome = attempt(&plan, &path, &root, 0, threads(2), &NoMonitor);
                assert_eq!(outcome, TaskOutcome { end: TaskEnd::Finished, failed: 0, left: 0 });
            });
        }
    });
    assert!(merged(&experiment, &root) == expected);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_journal_that_was_cut_anywhere_costs_what_was_cut_off() {
    let expected = reference(TRAINING_SET, "sweep-cut-reference");
    let experiment = checked(TRAINING_SET).unwrap();
    let root = empty_folder("sweep-cut");
    let plan = random_plan(&experiment, &root, 1, &mut stream(3));
    let path = plan.write_next(&root).unwrap();
    attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    let partial = root.join(format!("{}.partial", experiment.folder_name()));
    let journal = std::fs::read_dir(&partial).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&journal).unwrap();
    // Records are of some hundred bytes, so that every one of them is cut.
    for length in (0..whole.len()).step_by(whole.len() / 9) {
        for entry in std::fs::read_dir(&partial).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        std::fs::write(&journal, &whole[..length]).unwrap();
        let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
        kept.refresh(&experiment);
        let left = plan.pieces().filter(|piece| !kept.has(&experiment, &piece.job)).count();
        assert!(left > 0, "{length} of {} bytes", whole.len());
        let outcome = attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
        assert_eq!((outcome.end, outcome.left), (TaskEnd::Finished, 0));
    }
    // A changed bit is not believed either.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for entry in std::fs::read_dir(&partial).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    std::fs::write(&journal, &damaged).unwrap();
    attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    assert_eq!(std::fs::read_dir(&partial).unwrap().count(), 2, "what was damaged is computed again");
    assert!(merged(&experiment, &root) == expected);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn the_first_of_several_processes_writes_the_plan_of_shards_and_all_follow_it() {
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-shards");
    let made: Vec<(Plan, PathBuf)> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4)
            .map(|cores| {
                let (experiment, root) = (&experiment, &root);
                // They would plan differently.
                let asked = Asked { cores: 1 + cores, ..asked(3) };
                scope.spawn(move || Plan::of_shards(experiment, &asked, root).unwrap())
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|plan| *plan == made[0]));
    let folder = made[0].1.parent().unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "no temporary file stays");
    // A plan of a submission has the next free number.
    let next = |n: u32| folder.join(format!("plan-{n}.json"));
    assert_eq!(made[0].0.write_next(&root).unwrap(), next(1));
    assert_eq!(made[0].0.write_next(&root).unwrap(), next(2));
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_plan_keeps_the_description_and_is_refused_when_something_else_has_changed() {
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-edited");
    let plan = Plan::new(&experiment, &asked(2), &nothing_kept(&root, &experiment));
    assert_eq!(plan.experiment().unwrap().folder_name(), experiment.folder_name());
    let edited = Plan { text: ONE_PASS.replace("deviation = 0.5", "deviation = 0.6"), ..plan.clone() };
    let error = edited.experiment().err().unwrap();
    assert!(error.message.contains("has changed"), "{error}");
    let mut foreign = plan;
    foreign.tasks[0].push(Piece { job: Job::Run(999, 0, 1), seconds: 1.0, memory: 0.0 });
    assert!(foreign.experiment().is_err());
}

/// Three rows cannot have these overlaps in eigenspaces of two dimensions: `direct` finds out when it builds weights.
const ONE_FAILS: &str = r#"
title = "One point fails"
model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
data = { dimension = 8 }
training = { learning-rate = 0.5 }
start = { q = [[1.0, 0.0], [0.0, 1.0]] }
record = { times = [0, 1] }
run = [{ name = "sgd", engine = "direct" }]
[sweep]
"data.spectrum" = [{ kind = "isotropic" }, { kind = "power-law", levels = 4, beta = 1.0 }]
"#;

#[test]
fn one_bad_point_neither_ends_the_others_nor_hides() {
    let experiment = checked(ONE_FAILS).unwrap();
    let root = empty_folder("sweep-failing");
    let plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    let path = plan.write_next(&root).unwrap();
    let outcome = attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    assert_eq!(outcome, TaskOutcome { end: TaskEnd::Finished, failed: 1, left: 0 });
    let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
    let status = SweepStatus::of(&experiment, &root, &mut kept, None);
    assert_eq!((status.jobs, status.done, status.failed, status.missing), (2, 1, 1, 0));
    assert_eq!(status.failures[0].kind, FailureKind::Error);
    assert!(status.failures[0].why.contains("rank 3"), "{:?}", status.failures);
    // The next attempt leaves it alone unless it is asked.
    attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    let tries = |path: &Path| {
        let events = reports_of(path).into_iter().flat_map(|report| report.events);
        events.filter(|event| matches!(event, TaskEvent::Failed { .. })).count()
    };
    assert_eq!(tries(&path), 1);
    attempt(&plan, &path, &root, 0, WorkLimits { retry_failed: true, ..threads(1) }, &NoMonitor);
    assert_eq!(tries(&path), 2);
    // A new plan has what is missing or failed.
    kept.refresh(&experiment);
    assert_eq!(Plan::new(&experiment, &asked(1), &kept).pieces().count(), 1);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn the_first_failure_ends_a_task_that_wants_it() {
    let experiment = checked(ONE_FAILS).unwrap();
    let root = empty_folder("sweep-fail-fast");
    let mut plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    plan.tasks[0].sort_by_key(|piece| piece.job != Job::Run(1, 0, 1));
    let path = plan.write_next(&root).unwrap();
    let limits = WorkLimits { fail_fast: true, ..threads(1) };
    let outcome = attempt(&plan, &path, &root, 0, limits, &NoMonitor);
    assert_eq!(outcome, TaskOutcome { end: TaskEnd::FailFast, failed: 1, left: 1 });
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn too_much_memory_is_told_from_divergence_which_is_a_result() {
    let large = r#"
        title = "Too large, and diverging"
        model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
        data = { dimension = 10 }
        training = { learning-rate = 50.0 }
        start = { q = [[1.0]], r = [[0.1]] }
        record = { times = [0, 400], replicas = 3 }
        run = [
            { name = "large", engine = "direct", set = { "data.dimension" = 100000000000, "record.replicas" = 1 } },
            { name = "diverging", engine = "reduced" },
        ]
    "#;
    let experiment = checked(large).unwrap();
    let root = empty_folder("sweep-large");
    let plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    let path = plan.write_next(&root).unwrap();
    let outcome = attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    assert_eq!(outcome.failed, 1);
    let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
    let status = SweepStatus::of(&experiment, &root, &mut kept, None);
    assert_eq!((status.done, status.failed, status.diverged), (1, 1, 3));
    assert_eq!(status.failures[0].kind, FailureKind::OutOfMemory);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn nothing_is_begun_that_does_not_fit_into_the_time_that_is_left() {
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-time");
    let mut plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    // One run is estimated to take an hour per replica.
    let long = plan.tasks[0].iter_mut().find(|piece| matches!(piece.job, Job::Run(..))).unwrap();
    let Job::Run(_, first, end) = long.job else { unreachable!() };
    long.seconds = 3600.0 * f64::from(end - first);
    let job = long.job.clone();
    let path = plan.write_next(&root).unwrap();
    let all = plan.pieces().count();
    let within = |seconds: u64| {
        let deadline = Some(Instant::now() + Duration::from_secs(seconds));
        WorkLimits { deadline, retry_failed: true, ..threads(1) }
    };
    let outcome = attempt(&plan, &path, &root, 0, within(1800), &NoMonitor);
    assert_eq!(outcome, TaskOutcome { end: TaskEnd::Finished, failed: 1, left: 0 });
    let report = reports_of(&path).remove(0);
    assert_eq!(report.failed()[0].1, FailureKind::TooLong);
    assert!(!report.events.contains(&TaskEvent::Start { job: job.clone() }), "it was begun");
    assert_eq!(report.events.iter().filter(|e| matches!(e, TaskEvent::Done { .. })).count(), all - 1);
    // With time enough it is done.
    let outcome = attempt(&plan, &path, &root, 0, within(36_000_000), &NoMonitor);
    assert_eq!(outcome, TaskOutcome { end: TaskEnd::Finished, failed: 0, left: 0 });
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn time_that_runs_out_ends_a_task_in_good_order() {
    let text = ONE_PASS.replace("dimension = 20", "dimension = 2000").replace("to = 4,", "to = 4000,");
    let experiment = checked(&text.replace("time = 4 }", "time = 4000 }")).unwrap();
    let root = empty_folder("sweep-over");
    let mut plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    // Estimates that are far too small: the time ends in the middle of a run.
    plan.tasks[0].iter_mut().for_each(|piece| piece.seconds = 1e-9);
    let path = plan.write_next(&root).unwrap();
    let limits = WorkLimits { deadline: Some(Instant::now() + Duration::from_millis(300)), ..threads(1) };
    let outcome = attempt(&plan, &path, &root, 0, limits, &NoMonitor);
    assert_eq!((outcome.end, outcome.failed, outcome.left > 0), (TaskEnd::Time, 0, true));
    std::fs::remove_dir_all(root).unwrap();
}

/// Gives a file the date of two hours ago.
fn set_back(path: &Path) {
    let hours_ago = std::time::SystemTime::now() - Duration::from_hours(2);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(hours_ago).unwrap();
}

#[test]
fn a_piece_with_which_tasks_were_lost_again_and_again_is_left_out() {
    let experiment = checked(ONE_FAILS).unwrap();
    let root = empty_folder("sweep-lost");
    let plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    let path = plan.write_next(&root).unwrap();
    for _ in 0..3 {
        // Tasks that begin a piece and are heard of no more.
        TaskLog::create(&path, 0).unwrap().add(&TaskEvent::Start { job: Job::Run(0, 0, 1) }).unwrap();
    }
    for report in reports_of(&path) {
        set_back(&report.path);
    }
    let outcome = attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    assert_eq!(outcome.failed, 2, "the other one fails by itself");
    let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
    let status = SweepStatus::of(&experiment, &root, &mut kept, None);
    let kinds: Vec<FailureKind> = status.failures.iter().map(|failure| failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Lost, FailureKind::Error]);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_task_is_stale_when_it_has_not_been_heard_of_whatever_the_clocks_of_nodes_say() {
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-stale");
    let plan = Plan::new(&experiment, &asked(4), &nothing_kept(&root, &experiment));
    let path = plan.write_next(&root).unwrap();
    attempt(&plan, &path, &root, 0, threads(1), &NoMonitor);
    let begin = |task: usize| {
        let mut log = TaskLog::create(&path, task).unwrap();
        log.add(&TaskEvent::Begin { attempt: Attempt::default() }).unwrap();
        log.add(&TaskEvent::Start { job: plan.tasks[task][0].job.clone() }).unwrap();
        reports_of(&path).into_iter().find(|report| report.task == task).unwrap().path
    };
    begin(1);
    let old = begin(2);
    set_back(&old);
    let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
    let status = SweepStatus::of(&experiment, &root, &mut kept, None);
    let states: Vec<TaskState> = status.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Done, TaskState::Running, TaskState::Stale, TaskState::Waiting]);
    assert_eq!(status.jobs, status.done + status.running + status.waiting + status.failed + status.missing);
    assert!(status.running >= 1 && status.missing >= 1 && status.waiting >= 1, "{status:?}");
    std::fs::remove_dir_all(root).unwrap();
}

/// A task is asked to stop from another thread while it computes: replicas that were finished are kept.
#[test]
fn finished_replicas_of_a_run_that_is_stopped_are_kept() {
    struct Stop(AtomicBool);
    impl Monitor for Stop {
        fn advance(&self, _: f64) {
            self.0.store(true, Ordering::SeqCst);
        }
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }
    let experiment = checked(ONE_PASS).unwrap();
    let root = empty_folder("sweep-replicas");
    let mut plan = Plan::new(&experiment, &asked(1), &nothing_kept(&root, &experiment));
    plan.tasks[0].retain(|piece| matches!(piece.job, Job::Run(1, ..)));
    // So long that every replica is kept by itself; progress is reported after the first, and the task stops there.
    plan.tasks[0][0].seconds = 1e4;
    let path = plan.write_next(&root).unwrap();
    let outcome = attempt(&plan, &path, &root, 0, threads(1), &Stop(AtomicBool::new(false)));
    assert_eq!(outcome, TaskOutcome { end: TaskEnd::Signal, failed: 0, left: 1 });
    let mut kept = Kept::new(Places::of(&root, experiment.folder_name()));
    kept.refresh(&experiment);
    assert_eq!(kept.missing_replicas(&experiment, 1), std::iter::once(1..13).collect::<Vec<_>>());
    std::fs::remove_dir_all(root).unwrap();
}
