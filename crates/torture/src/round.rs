//! One round: an experiment is disturbed in some way, run once more in peace, and compared with the undisturbed run.
//!
//! | kind | what happens |
//! |---|---|
//! | full disk | the k-th change of the disk (or all from the k-th on) finds no space: exit 2 with that message |
//! | death | the process ends before the k-th change of the disk, without any order |
//! | kill | SIGKILL at a random moment, up to four times |
//! | together | two to eight processes on one folder, some of them `--fresh`: all succeed |
//! | together, killed | the same, some of them killed: the others succeed |
//! | short reads | what was left by a death is read a few bytes at a time, with interruptions |
//! | clock | files get dates between 1970 and 2150, and the clock of the process jumps |
//! | damage | a file of what was left by a death, or of the finished folder, is changed, cut or removed |
//! | panic | a job panics: exit 3, and the others are kept |
//!
//! The first rounds are a full disk at every k, a disk that is full from every k on, and a death at every k; the rest is drawn from
//! the seed. Every process has a number of threads between 1 and 16 of its own.

use crate::folder::{self, Contents};
use crate::process::{Ended, Launcher, Started};
use didact_math::random::{RngAddress, Stream};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Two runs at two points, a scan, a measure and a claim, in milliseconds.
const SMALL: &str = r#"
title = "Tortured"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 200 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = { from = 0, to = 4, points = 5 }, replicas = 2 }
sweep = { "training.learning-rate" = [0.2, 0.8] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
scan = [{ name = "s", quantity = "committee/escape", inputs = { eta = 0.1 }, over = { M = [2, 3, 4] } }]
measure = [{ name = "end", kind = "value-at", run = "sgd", observable = "loss", time = 4 }]
claim = [{ says = "the loss is small", measure = "end", check = { at-most = 10 } }]
"#;

/// The same with a figure, which takes most of the time.
const FIGURE: &str = r#"
figure = [{ name = "loss", panel = [{ y = { label = "loss", scale = "log" }, series = [{ run = "sgd" }] }] }]
"#;

/// Every so many rounds the experiment has a figure.
const FIGURE_EVERY: u32 = 25;

/// An experiment and what the undisturbed run left.
struct Undisturbed {
    file: PathBuf,
    contents: Contents,
    /// Changes of the disk that it made.
    changes: u64,
    duration: Duration,
}

/// What rounds are compared with.
pub(crate) struct Reference {
    small: Undisturbed,
    with_figure: Undisturbed,
}

impl Reference {
    /// Runs both experiments in peace.
    pub(crate) fn make(launcher: &Launcher, out: &Path) -> Result<Self, String> {
        let undisturbed = |name: &str, text: &str| -> Result<Undisturbed, String> {
            let (file, place) = (out.join(format!("{name}.toml")), out.join(name));
            std::fs::create_dir_all(out)
                .and_then(|()| std::fs::write(&file, text))
                .map_err(|e| e.to_string())?;
            let begun = Instant::now();
            let ended = launcher.run(&file, &place, &["count".into()])?;
            ended.expect(&[0])?;
            let changes = ended.said.trim().parse().map_err(|_| format!("no count: {}", ended.said))?;
            let contents = folder::contents(&folder::only_folder(&place)?)?;
            Ok(Undisturbed { file, contents, changes, duration: begun.elapsed() })
        };
        Ok(Self {
            small: undisturbed("small", SMALL)?,
            with_figure: undisturbed("with-figure", &format!("{SMALL}{FIGURE}"))?,
        })
    }
}

/// How a round disturbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    FullDisk { at: u64, stays: bool },
    Death { at: u64 },
    Kill,
    Together { kill: bool },
    ShortReads,
    Clock,
    Damage { finished: bool },
    Panic,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::FullDisk { stays: false, .. } => "full disk at a change",
            Self::FullDisk { stays: true, .. } => "full disk from a change on",
            Self::Death { .. } => "death before a change",
            Self::Kill => "kill at a random moment",
            Self::Together { kill: false } => "processes together",
            Self::Together { kill: true } => "processes together, some killed",
            Self::ShortReads => "short reads",
            Self::Clock => "clock jumps",
            Self::Damage { finished: false } => "damage of an unfinished folder",
            Self::Damage { finished: true } => "damage of a finished folder",
            Self::Panic => "panic in a job",
        }
    }

    /// Every change of the small experiment in turn in three ways, then what the stream says.
    fn of(number: u32, changes: u64, stream: &mut Stream) -> Self {
        let (turn, at) = (u64::from(number) / changes, u64::from(number) % changes + 1);
        match turn {
            0 => return Self::FullDisk { at, stays: false },
            1 => return Self::FullDisk { at, stays: true },
            2 => return Self::Death { at },
            _ => {}
        }
        let at = stream.below(changes) + 1;
        match stream.below(10) {
            0 => Self::FullDisk { at, stays: stream.below(2) == 0 },
            1 => Self::Death { at },
            2 | 3 => Self::Kill,
            4 => Self::Together { kill: false },
            5 => Self::Together { kill: true },
            6 => Self::ShortReads,
            7 => Self::Clock,
            8 => Self::Damage { finished: stream.below(2) == 0 },
            _ => Self::Panic,
        }
    }
}

/// What happened, over rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rounds: BTreeMap<&'static str, usize>,
    processes: usize,
    killed: usize,
    refused: usize,
}

impl Tally {
    fn count(&mut self, ended: &Ended) {
        self.processes += 1;
        self.killed += usize::from(ended.was_killed());
        self.refused += usize::from(ended.code() == Some(2));
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        for (kind, count) in other.rounds {
            *self.rounds.entry(kind).or_default() += count;
        }
        self.processes += other.processes;
        self.killed += other.killed;
        self.refused += other.refused;
        self
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.rounds {
            writeln!(out, "  {count:>6}  {kind}")?;
        }
        write!(
            out,
            "  {:>6}  processes, of which {} ended without any order and {} with the message of a full disk",
            self.processes, self.killed, self.refused
        )
    }
}

/// Plays one round of a seed in a folder of its own, which stays if the round fails.
pub(crate) fn play(
    launcher: &Launcher,
    reference: &Reference,
    (seed, number): (u64, u32),
    out: &Path,
) -> Result<Tally, String> {
    let mut stream = Stream::at(RngAddress { seed, replica: number, step: 0, lane: 0 });
    let small = &reference.small;
    let kind = Kind::of(number, small.changes, &mut stream);
    let with_figure = number % FIGURE_EVERY == FIGURE_EVERY - 1;
    let undisturbed = if with_figure { &reference.with_figure } else { small };
    let place = out.join(format!("round-{number}"));
    let mut round = Round { launcher, undisturbed, place: place.clone(), stream, tally: Tally::default() };
    round.tally.rounds.insert(kind.name(), 1);
    let ended = round.disturb(kind).and_then(|()| round.settle());
    ended.map_err(|why| format!("{kind:?} in {}: {why}", place.display()))?;
    std::fs::remove_dir_all(&place).map_err(|e| e.to_string())?;
    Ok(round.tally)
}

struct Round<'a> {
    launcher: &'a Launcher,
    undisturbed: &'a Undisturbed,
    place: PathBuf,
    stream: Stream,
    tally: Tally,
}

impl Round<'_> {
    /// Starts a process with these faults and a number of threads of its own.
    fn start(&mut self, faults: &[String]) -> Result<Started, String> {
        let threads = format!("threads={}", 1 + self.stream.below(16));
        let all: Vec<String> = faults.iter().cloned().chain([threads]).collect();
        self.launcher.start(&self.undisturbed.file, &self.place, &all)
    }

    /// Starts one and waits for it.
    fn run(&mut self, faults: &[String]) -> Result<Ended, String> {
        let ended = self.start(faults)?.wait()?;
        self.tally.count(&ended);
        Ok(ended)
    }

    /// A random moment of a run, or shortly after it.
    fn moment(&mut self) -> Duration {
        self.undisturbed.duration.mul_f64(1.2 * self.stream.uniform())
    }

    /// Leaves what a process leaves that ends before a change of the disk.
    fn die(&mut self, at: u64) -> Result<(), String> {
        let ended = self.run(&[format!("die-at={at}")])?;
        if ended.was_killed() { Ok(()) } else { ended.expect(&[0]) }
    }

    fn die_somewhere(&mut self) -> Result<(), String> {
        let at = self.stream.below(self.undisturbed.changes) + 1;
        self.die(at)
    }

    fn disturb(&mut self, kind: Kind) -> Result<(), String> {
        match kind {
            Kind::FullDisk { at, stays } => {
                let word = if stays { "fail-from" } else { "fail-at" };
                let ended = self.run(&[format!("{word}={at}")])?;
                ended.expect(&[0, 2])?;
                if ended.code() == Some(2) { ended.expect_words("cannot write to") } else { Ok(()) }
            }
            Kind::Death { at } => self.die(at),
            Kind::Kill => {
                for _ in 0..=self.stream.below(4) {
                    let delay = self.moment();
                    let ended = self.start(&[])?.kill_after(delay)?;
                    self.tally.count(&ended);
                    if !ended.was_killed() {
                        ended.expect(&[0])?;
                    }
                }
                Ok(())
            }
            Kind::Together { kill } => self.together(kill),
            Kind::ShortReads => {
                self.die_somewhere()?;
                for _ in 0..2 {
                    let number = self.stream.below(1 << 40) + 1;
                    self.run(&[format!("short-reads={number}")])?.expect(&[0])?;
                }
                Ok(())
            }
            Kind::Clock => {
                self.die_somewhere()?;
                if self.place.is_dir() {
                    folder::misdate(&self.place, &mut self.stream)?;
                }
                let jump = self.stream.below(1 << 40);
                self.run(&[format!("jump={jump}")])?.expect(&[0])?;
                folder::misdate(&self.place, &mut self.stream)
            }
            Kind::Damage { finished } => {
                if finished {
                    self.run(&[])?.expect(&[0])?;
                } else {
                    self.die_somewhere()?;
                }
                for _ in 0..=self.stream.below(3) {
                    if self.place.is_dir() {
                        folder::damage(&self.place, &mut self.stream)?;
                    }
                }
                Ok(())
            }
            Kind::Panic => {
                let job = ["run theory", "run sgd", "scan s"][self.stream.below(3) as usize];
                let at = 1 + self.stream.below(2);
                let ended = self.run(&[format!("panic-in={job}"), format!("panic-at={at}")])?;
                ended.expect(&[3])?;
                ended.expect_words("a panic on purpose")
            }
        }
    }

    /// Several processes at once; all that are not killed succeed.
    fn together(&mut self, kill: bool) -> Result<(), String> {
        let mut started = Vec::new();
        for _ in 0..2 + self.stream.below(7) {
            let fresh: &[String] = if self.stream.below(4) == 0 { &["fresh".into()] } else { &[] };
            let delay = (kill && self.stream.below(2) == 0).then(|| self.moment());
            started.push((self.start(fresh)?, delay));
        }
        let waiting = started.into_iter().map(|(process, delay)| {
            std::thread::spawn(move || match delay {
                Some(delay) => process.kill_after(delay),
                None => process.wait(),
            })
        });
        // All threads run before the first is waited for.
        let waiting: Vec<_> = waiting.collect();
        for thread in waiting {
            let ended = thread.join().map_err(|_| "a thread panicked".to_string())??;
            self.tally.count(&ended);
            if !(kill && ended.was_killed()) {
                ended.expect(&[0])?;
            }
        }
        Ok(())
    }

    /// One run in peace, after which everything is as if nothing had happened.
    fn settle(&mut self) -> Result<(), String> {
        self.run(&[])?.expect(&[0])?;
        folder::compare(&self.place, &self.undisturbed.contents)
    }
}
