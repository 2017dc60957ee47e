//! A process that watches over the one that computes.
//!
//! A piece that needs too much memory, or makes the program crash, ends the process that computes it. Another process then knows
//! which pieces were at work, writes down what happened, and starts a new one for the rest, so that one bad point does not keep
//! the others from being computed. What the computing process reports comes through a pipe and is written to the report of
//! the task here; the end of a second pipe asks it to stop, also when this process is gone.

use crate::exit::{self, Ending};
use crate::slurm;
use didact_experiment::Diagnostic;
use didact_experiment::sweep::log::{Attempt, HEARTBEAT};
use didact_experiment::sweep::{FailureKind, Job, TaskEnd, TaskEvent, TaskLog};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a process that was asked to stop may take: Slurm kills 30 s after its first signal unless it is told otherwise.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often signals and the time are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Of what a process says before it dies, so much is kept.
const LAST_WORDS: usize = 4000;

/// A task to be watched over.
pub(crate) struct Supervisor {
    /// The plan.
    pub(crate) plan: PathBuf,
    /// Which task.
    pub(crate) task: usize,
    /// Where run folders are.
    pub(crate) root: PathBuf,
    /// Cores.
    pub(crate) threads: usize,
    /// Seconds until its time is over.
    pub(crate) seconds_left: Option<f64>,
    /// How often a task whose time is over is put back into the queue.
    pub(crate) requeues: u32,
    /// Flags that are handed on.
    pub(crate) flags: Vec<&'static str>,
}

/// How the computing process ended.
enum ChildEnd {
    /// In good order, with this exit code.
    Code(u8),
    /// It died; what was at work, and whether memory was the reason.
    Died { open: Vec<Job>, kind: Option<FailureKind>, why: String },
}

impl Supervisor {
    /// Runs the task to its end, or as far as time and signals allow.
    pub(crate) fn run(&self) -> Result<Ending, Diagnostic> {
        let begun = Instant::now();
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGTERM, SIGINT, SIGHUP, SIGUSR1] {
            // A signal that cannot be heard keeps its meaning.
            let _ = signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize);
        }
        let unwritable =
            |error: std::io::Error| Diagnostic::new(format!("cannot write the report of the task: {error}"));
        let mut log = TaskLog::create(&self.plan, self.task).map_err(unwritable)?;
        log.add(&TaskEvent::Begin { attempt: self.attempt() }).map_err(unwritable)?;
        log.sync().map_err(unwritable)?;
        // Time to stop and to write comes out of the time of the task.
        let deadline =
            self.seconds_left.map(|left| begun + Duration::from_secs_f64((left - lead(left)).max(0.0)));
        // Pieces of which one ended a process: they are computed one at a time.
        let mut suspects: Vec<Job> = Vec::new();
        let (end, code) = loop {
            let alone = (!suspects.is_empty()).then_some(suspects.as_slice());
            match self.one_process(&mut log, &signal, deadline, alone)? {
                ChildEnd::Code(code) if alone.is_some() && (code == 0 || code == 3) => suspects.clear(),
                ChildEnd::Code(exit::ERROR) => return Ok(Ending::Told),
                ChildEnd::Code(code) => break (None, code),
                ChildEnd::Died { open, kind: Some(kind), why } if !open.is_empty() => {
                    suspects.retain(|job| !open.contains(job));
                    if let [only] = &open[..] {
                        let failed = TaskEvent::Failed { job: only.clone(), kind, why: why.clone() };
                        log.add(&failed).map_err(unwritable)?;
                    } else {
                        suspects.extend(open);
                    }
                    log.add(&TaskEvent::Restart { why }).map_err(unwritable)?;
                }
                ChildEnd::Died { why, kind: Some(_), .. } => {
                    return Err(Diagnostic::new(format!(
                        "the process that computes died before it began: {why}"
                    )));
                }
                ChildEnd::Died { kind: None, .. } => break (Some(TaskEnd::Killed), exit::TRY_AGAIN),
            }
        };
        if let Some(end) = end {
            log.add(&TaskEvent::End { end, left: 0 }).map_err(unwritable)?;
        }
        log.sync().map_err(unwritable)?;
        if code == exit::TRY_AGAIN {
            // Whoever cancels a job sends SIGTERM, and does not want it back.
            let asked = signal.load(Ordering::SeqCst);
            let time_is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            self.requeue(time_is_over || asked == SIGUSR1 as usize || asked == 0);
        }
        Ok(match code {
            0 => Ending::Done,
            exit::TRY_AGAIN => Ending::TryAgain,
            _ => Ending::FailedJobs,
        })
    }

    /// Puts a task that is not done, and was not cancelled, back into the queue, but not for ever.
    fn requeue(&self, wanted: bool) {
        let Some(task) = slurm::own_task().filter(|_| wanted && slurm::restarts() < self.requeues) else {
            return;
        };
        match slurm::requeue(&task) {
            Ok(()) => complain!("task {task} is not done and goes back into the queue"),
            Err(why) => complain!("warning: task {task} could not be put into the queue again: {why}"),
        }
    }

    fn attempt(&self) -> Attempt {
        let host = std::env::var("SLURMD_NODENAME").ok();
        let host = host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
        Attempt {
            host: host.unwrap_or_default().trim().into(),
            process: std::process::id(),
            job: slurm::own_task(),
            restarts: slurm::restarts(),
            threads: self.threads,
            seconds_left: self.seconds_left,
        }
    }

    fn command(&self, deadline: Option<Instant>, alone: Option<&[Job]>) -> Result<Command, Diagnostic> {
        let (program, beginning) = own_program()?;
        let mut command = Command::new(program);
        command.args(beginning).args(["sweep", "work", "--compute", "--plan"]).arg(&self.plan);
        command.arg("--shard").arg(self.task.to_string()).arg("--out").arg(&self.root);
        command.arg("--threads").arg(self.threads.to_string()).args(&self.flags);
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
            command.arg("--seconds-left").arg(format!("{left:.3}"));
        }
        if let Some(alone) = alone {
            command.arg("--alone").arg(serde_json::to_string(alone).expect("jobs are plain data"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs one computing process to its end, and writes down what it reports.
    fn one_process(
        &self,
        log: &mut TaskLog,
        signal: &AtomicUsize,
        deadline: Option<Instant>,
        alone: Option<&[Job]>,
    ) -> Result<ChildEnd, Diagnostic> {
        let kills = OomKills::now();
        let mut child = self
            .command(deadline, alone)?
            .spawn()
            .map_err(|error| Diagnostic::new(format!("cannot start the process that computes: {error}")))?;
        let mut leash = child.stdin.take();
        let last_words = listen_to(child.stderr.take());
        let events = events_of(&mut child);
        let (mut open, mut ended): (Vec<Job>, bool) = (Vec::new(), false);
        let (mut asked, mut killed): (Option<Instant>, bool) = (None, false);
        let mut synced = Instant::now();
        loop {
            match events.recv_timeout(LOOK) {
                Ok(event) => {
                    match &event {
                        TaskEvent::Start { job } => open.push(job.clone()),
                        TaskEvent::Done { job, .. } | TaskEvent::Failed { job, .. } => {
                            open.retain(|other| other != job);
                        }
                        TaskEvent::End { .. } => ended = true,
                        _ => {}
                    }
                    // The end of a process that computed suspects alone is not that of the task.
                    let inner =
                        alone.is_some() && matches!(event, TaskEvent::End { end: TaskEnd::Finished, .. });
                    if !inner {
                        log.add(&event).map_err(|e| {
                            Diagnostic::new(format!("cannot write the report of the task: {e}"))
                        })?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if synced.elapsed() >= Duration::from_secs(HEARTBEAT) {
                let _ = log.sync();
                synced = Instant::now();
            }
            let over = deadline.is_some_and(|deadline| Instant::now() >= deadline + Duration::from_secs(1));
            if asked.is_none() && (over || signal.load(Ordering::SeqCst) != 0) {
                stop(&mut leash);
                asked = Some(Instant::now());
            }
            if asked.is_some_and(|since| since.elapsed() > PATIENCE) && !killed {
                killed = child.kill().is_ok();
            }
        }
        let status =
            child.wait().map_err(|e| Diagnostic::new(format!("the process that computes is lost: {e}")))?;
        let words = last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(code) = status.code() {
            let code = u8::try_from(code).unwrap_or(exit::ERROR);
            if code == exit::TRY_AGAIN && !ended {
                let end = if signal.load(Ordering::SeqCst) == 0 { TaskEnd::Time } else { TaskEnd::Signal };
                let _ = log.add(&TaskEvent::End { end, left: open.len() });
            }
            // A panic outside of a job ends the process with a code of its own; the rest are codes of ours.
            if [0, exit::ERROR, 3, exit::TRY_AGAIN].contains(&code) {
                return Ok(ChildEnd::Code(code));
            }
        }
        if killed {
            let end = if signal.load(Ordering::SeqCst) == 0 { TaskEnd::Time } else { TaskEnd::Signal };
            let _ = log.add(&TaskEvent::End { end, left: open.len() });
            return Ok(ChildEnd::Code(exit::TRY_AGAIN));
        }
        let (kind, why) = cause_of_death(status, &words, kills.since());
        Ok(ChildEnd::Died { open, kind, why })
    }
}

/// How this program is started: its file, and what stands before `sweep` among its arguments, which is the path of a script where
/// Python has started it.
pub(crate) fn own_program() -> Result<(PathBuf, Vec<OsString>), Diagnostic> {
    let program = std::env::current_exe()
        .map_err(|error| Diagnostic::new(format!("the program does not find itself: {error}")))?;
    let beginning = std::env::args_os().skip(1).take_while(|argument| argument != "sweep");
    let absolute = |argument: OsString| {
        let path = Path::new(&argument);
        if path.is_file() {
            std::path::absolute(path).map_or(argument, PathBuf::into_os_string)
        } else {
            argument
        }
    };
    Ok((program, beginning.map(absolute).collect()))
}

/// How much of the time of a task is left for its end.
fn lead(seconds: f64) -> f64 {
    (0.05 * seconds).clamp(2.0, 60.0)
}

/// The computing process stops when this pipe ends.
fn stop(leash: &mut Option<ChildStdin>) {
    drop(leash.take());
}

/// Hands on what the computing process complains about, and remembers the last of it.
fn listen_to(stderr: Option<ChildStderr>) -> Arc<Mutex<String>> {
    let words = Arc::new(Mutex::new(String::new()));
    if let Some(mut stderr) = stderr {
        let kept = Arc::clone(&words);
        std::thread::spawn(move || {
            let mut piece = [0; 1024];
            while let Ok(length) = stderr.read(&mut piece) {
                if length == 0 {
                    break;
                }
                let _ = std::io::stderr().write_all(&piece[..length]);
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&String::from_utf8_lossy(&piece[..length]));
                if kept.len() > LAST_WORDS {
                    let cut = kept.len() - LAST_WORDS;
                    let cut = (cut..kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
                    kept.drain(..cut);
                }
            }
        });
    }
    words
}

/// What the computing process reports, line by line; the channel ends with the process.
fn events_of(child: &mut Child) -> Receiver<TaskEvent> {
    let (send, receive) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(event) = serde_json::from_str(&line)
                    && send.send(event).is_err()
                {
                    break;
                }
            }
        });
    }
    receive
}

/// Why a process died; no kind when somebody outside killed it.
fn cause_of_death(status: ExitStatus, words: &str, oom_kills: u64) -> (Option<FailureKind>, String) {
    use std::os::unix::process::ExitStatusExt;
    // A backtrace may follow what a process says first.
    let line = |text: &str| words.lines().map(str::trim).find(|line| !line.is_empty() && line.contains(text));
    let said = line("").unwrap_or_default();
    if let Some(refused) = line("memory allocation of") {
        return (Some(FailureKind::OutOfMemory), refused.into());
    }
    match status.signal() {
        Some(9) if oom_kills > 0 => (
            Some(FailureKind::OutOfMemory),
            "the system killed the process that computed it, for its memory".into(),
        ),
        Some(9 | 15 | 2 | 1) => (None, "it was killed from outside".into()),
        Some(signal) => (
            Some(FailureKind::Crash),
            format!("the process that computed it died of signal {signal}: {said}"),
        ),
        None => {
            let code = status.code().unwrap_or(-1);
            (Some(FailureKind::Crash), format!("the process that computed it ended with code {code}: {said}"))
        }
    }
}

/// How often the system has killed for memory, by the counters of the control group and of the machine.
struct OomKills {
    group: Option<u64>,
    machine: Option<u64>,
}

impl OomKills {
    fn now() -> Self {
        Self { group: group_kills(), machine: count_after(Path::new("/proc/vmstat"), "oom_kill") }
    }

    /// Kills since then: those of the control group where it counts them.
    fn since(&self) -> u64 {
        let now = Self::now();
        let difference = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        difference(self.group, now.group).or_else(|| difference(self.machine, now.machine)).unwrap_or(0)
    }
}

/// The number after a word at the beginning of a line.
fn count_after(path: &Path, word: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(word))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn group_kills() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let of_version_2 = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let of_version_1 = groups.lines().find_map(|line| line.split_once(":memory:/").map(|(_, path)| path));
    let two = of_version_2.map(|path| Path::new("/sys/fs/cgroup").join(path).join("memory.events"));
    let one =
        of_version_1.map(|path| Path::new("/sys/fs/cgroup/memory").join(path).join("memory.oom_control"));
    [two, one].into_iter().flatten().find_map(|path| count_after(&path, "oom_kill"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn memory_crashes_and_kills_from_outside_are_told_apart() {
        let signal = ExitStatus::from_raw;
        let failed = "\nmemory allocation of 80000000 bytes failed\nstack backtrace:\n   0: here\n";
        let told = "memory allocation of 80000000 bytes failed".to_string();
        assert_eq!(cause_of_death(signal(6), failed, 0), (Some(FailureKind::OutOfMemory), told));
        assert_eq!(cause_of_death(signal(9), "", 1).0, Some(FailureKind::OutOfMemory));
        assert_eq!(cause_of_death(signal(9), "", 0).0, None);
        assert_eq!(cause_of_death(signal(11), "", 1).0, Some(FailureKind::Crash));
        let (kind, why) = cause_of_death(signal(6), "thread has overflowed its stack\n\n", 0);
        assert_eq!(kind, Some(FailureKind::Crash));
        assert!(why.contains("signal 6") && why.contains("overflowed its stack"), "{why}");
        let (kind, why) = cause_of_death(signal(101 << 8), "thread 'main' panicked", 0);
        assert!(kind == Some(FailureKind::Crash) && why.contains("code 101"), "{why}");
    }

    #[test]
    fn a_short_task_keeps_little_time_for_its_end_and_a_long_one_a_minute() {
        assert_eq!((lead(60.0), lead(600.0), lead(1e5)), (3.0, 30.0, 60.0));
        assert_eq!(lead(1.0), 2.0);
    }
}
