//! `fuzz TARGET`: reads what is wrong in a thousand ways, and looks for panics, hangs and growing memory.
//!
//! Inputs are mutations of a corpus of good ones (descriptions of papers and examples, formulas, labels, files): pieces are
//! swapped, repeated, cut and replaced by words of the language and by hostile numbers. An input that draws an answer of a
//! new kind joins the corpus. Everything follows from the seed, so that a run can be repeated.
//!
//! `--minutes M` is a number of inputs, which take about as long: unlike `--seconds`, it is the same inputs on every machine.
//!
//! `--schedule time` is for long runs: inputs that took long have fewer descendants, so that most of the time does not go into a
//! few of them. Which inputs are read then depends on the machine; one that fails is kept as always.
//!
//! `fuzz campaign PROGRAM CHECKS RUNS SEED` does the same to the program itself, from outside.
//!
//! The input at work lies in a file, so that it is there even when the process is ended by the system; an input that
//! panics, takes too long or takes too much memory ends the run with exit code 1 and the name of that file.

/// A line on stdout, whether somebody reads it or not.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

mod campaign;
mod corpus;
mod mutate;
mod random;
mod targets;
mod watch;

use mutate::Mutator;
use random::Random;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use targets::Target;
use watch::Watch;

/// Inputs that are kept because they drew an answer of a new kind.
const MOST_KEPT: usize = 4000;

/// Growth of the resident memory between the end of the first tenth of a run and its end that counts as a leak, in bytes.
const MOST_GROWTH: u64 = 64 << 20;

/// How long a run goes on.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Seconds(f64),
    Runs(u64),
}

/// How often a member of the corpus is changed into a new input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    /// All members equally often: the inputs follow from the seed.
    Equal,
    /// Members that take more than [`SHORT`] less often, in proportion to their time (the idea of the power schedules of AFL).
    Time,
}

/// The time of an input, in seconds, up to which it is not held against it.
const SHORT: f64 = 1e-4;

/// However long an input takes, it is chosen with this probability when it is drawn.
const LEAST_CHANCE: f64 = 1e-3;

struct Arguments {
    target: &'static Target,
    limit: Limit,
    seed: u64,
    schedule: Schedule,
}

/// The inputs from which new ones are made, with the seconds that each took.
struct Corpus {
    inputs: Vec<Vec<u8>>,
    seconds: Vec<f64>,
}

impl Corpus {
    fn choose<'a>(&'a self, schedule: Schedule, random: &mut Random) -> &'a [u8] {
        loop {
            let at = random.below(self.inputs.len());
            let chance = match schedule {
                Schedule::Equal => 1.0,
                Schedule::Time => (SHORT / self.seconds.get(at).copied().unwrap_or(SHORT)).max(LEAST_CHANCE),
            };
            if chance >= 1.0 || (random.below(1 << 20) as f64) < chance * f64::from(1 << 20) {
                return self.inputs.get(at).map_or(&[], Vec::as_slice);
            }
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [only] = words.as_slice()
        && only == "list"
    {
        targets::ALL.iter().for_each(|target| say!("{:<14} {}", target.name, target.about));
        return ExitCode::SUCCESS;
    }
    if let [name, file] = words.as_slice()
        && let (Some(target), Some(file)) = (targets::find(name), file.strip_prefix('@'))
    {
        return replay(target, file);
    }
    if let [first, program, checks, runs, seed] = words.as_slice()
        && first == "campaign"
        && let (Ok(checks), Ok(runs), Ok(seed)) = (checks.parse(), runs.parse(), seed.parse())
    {
        return campaign::Campaign { program: program.into(), checks, runs, seed }.go();
    }
    match arguments(&words) {
        Ok(arguments) => fuzz(&arguments),
        Err(message) => {
            say!(
                "{message}\nusage: fuzz TARGET (--seconds S | --runs N | --minutes M) [--seed K] [--schedule equal|time], fuzz TARGET @FILE, fuzz list,\n       fuzz campaign PROGRAM CHECKS RUNS SEED"
            );
            ExitCode::from(2)
        }
    }
}

fn arguments(words: &[String]) -> Result<Arguments, String> {
    let (name, options) = words.split_first().ok_or("no target is given")?;
    let target = targets::find(name).ok_or_else(|| format!("there is no target `{name}`"))?;
    let (mut limit, mut seed, mut schedule) = (Limit::Seconds(10.0), 1, Schedule::Equal);
    for pair in options.chunks(2) {
        let [key, value] = pair else { return Err(format!("`{}` has no value", pair[0])) };
        let wrong = || format!("`{value}` is no value of `{key}`");
        match key.as_str() {
            "--seconds" => limit = Limit::Seconds(value.parse().map_err(|_| wrong())?),
            "--minutes" => {
                let minutes: f64 = value.parse().map_err(|_| wrong())?;
                limit = Limit::Runs((minutes * target.a_minute as f64) as u64);
            }
            "--runs" => limit = Limit::Runs(value.parse().map_err(|_| wrong())?),
            "--seed" => seed = value.parse().map_err(|_| wrong())?,
            "--schedule" => {
                schedule = match value.as_str() {
                    "equal" => Schedule::Equal,
                    "time" => Schedule::Time,
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(format!("there is no option `{key}`")),
        }
    }
    Ok(Arguments { target, limit, seed, schedule })
}

/// One input again, with the backtrace that a panic prints.
fn replay(target: &Target, file: &str) -> ExitCode {
    match std::fs::read(file) {
        Ok(bytes) => {
            say!("{}", (target.run)(&bytes));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say!("cannot read {file}: {error}");
            ExitCode::from(2)
        }
    }
}

fn fuzz(arguments: &Arguments) -> ExitCode {
    let Arguments { target, limit, seed, schedule } = *arguments;
    let watch = Watch::start(target.name);
    let mut random = Random::new(seed);
    let mut corpus = Corpus { inputs: (target.corpus)(), seconds: Vec::new() };
    let good = corpus.inputs.len();
    let mutator = Mutator::new(target.words, &corpus.inputs);
    let mut kinds = BTreeSet::new();
    // Panics are caught and reported once, with their place; the usual message for each would drown everything.
    let place = watch::remember_panics();
    let begun = Instant::now();
    let (mut runs, mut kept, mut early) = (0_u64, 0_usize, None);
    let share = |runs: u64| match limit {
        Limit::Seconds(seconds) => begun.elapsed().as_secs_f64() / seconds,
        Limit::Runs(all) => runs as f64 / all as f64,
    };
    while share(runs) < 1.0 {
        // The good inputs themselves come first.
        let first_round = (runs as usize) < good;
        let input = if first_round {
            corpus.inputs[runs as usize].clone()
        } else {
            mutator.mutate(corpus.choose(schedule, &mut random), &corpus.inputs, &mut random)
        };
        watch.begin(&input);
        let started = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let taken = started.elapsed().as_secs_f64();
        watch.end();
        runs += 1;
        let Ok(answer) = answer else {
            return watch.report(&format!(
                "run {runs} of `{}` (seed {seed}) panicked {}",
                target.name,
                place.text()
            ));
        };
        if first_round {
            corpus.seconds.push(taken);
        }
        if kept < MOST_KEPT && input.len() < 20_000 && kinds.insert(kind(&answer)) && !first_round {
            kept += 1;
            corpus.inputs.push(input);
            corpus.seconds.push(taken);
        }
        if early.is_none() && share(runs) > 0.1 && begun.elapsed() > Duration::from_secs(1) {
            early = Some(watch::resident_bytes());
        }
    }
    let (now, seconds) = (watch::resident_bytes(), begun.elapsed().as_secs_f64());
    let growth = now.saturating_sub(early.unwrap_or(now));
    say!(
        "{}: {runs} inputs in {seconds:.1} s (seed {seed}), {} kinds of answers, memory {} MB, grown by {} MB",
        target.name,
        kinds.len(),
        now >> 20,
        growth >> 20
    );
    if growth > MOST_GROWTH {
        say!("memory grows: {} bytes since the first tenth of the run", growth);
        return ExitCode::FAILURE;
    }
    watch.finish();
    ExitCode::SUCCESS
}

/// An answer without what is particular in it: numbers, and names in quotes.
fn kind(answer: &str) -> String {
    let first = answer.lines().next().unwrap_or_default();
    let outside = first.split('`').step_by(2).collect::<Vec<_>>().join("`");
    outside.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(120).collect()
}
