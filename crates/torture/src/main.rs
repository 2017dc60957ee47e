//! `didact-torture`: runs that are killed, starved of disk, run against each other, misread, misdated, damaged and made to panic,
//! and afterwards hold the same bytes as a run that nobody disturbed.
//!
//! ```text
//! didact-torture [ROUNDS] [--from ROUND] [--seed S] [--jobs N] [--out FOLDER]
//! didact-torture signals PROGRAM [TIMES]
//! ```
//!
//! The first rounds break every single change of the disk in turn (see [`round`]); the others draw what happens from the seed.
//! Every process under test is this program again, as `didact-torture worker …`, which does what `didact run` does with faults
//! behind the one module through which results come to the disk (`didact_experiment::store::disk`). The exit code is 0 when all
//! rounds ended with the bytes of the undisturbed run, else 1; a round that failed is named and its folder kept.
//!
//! `signals` measures how long the program `didact` goes on after SIGTERM and SIGINT at random moments of heavy work. Times depend
//! on what else the machine does, so this is done by hand and no part of the tests.

mod folder;
mod process;
mod round;
mod signals;
mod worker;

use process::Launcher;
use rayon::prelude::*;
use round::{Reference, Tally};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What the user asks for.
struct Options {
    rounds: u32,
    seed: u64,
    jobs: usize,
    out: PathBuf,
    from: u32,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        // Memory in place of a disk, where there is some: most of the time would go into waiting for a disk otherwise.
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let mut options = Self {
            rounds: 500,
            seed: 1,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            out: base.join(format!("didact-torture-{}", std::process::id())),
            from: 0,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || -> Result<u64, String> {
                let value = rest.next().ok_or_else(|| format!("`{argument}` needs a value"))?;
                value.parse().map_err(|_| format!("`{value}` is no number"))
            };
            match argument.as_str() {
                "--seed" => options.seed = number()?,
                "--jobs" => options.jobs = number()?.max(1) as usize,
                "--from" => options.from = number()? as u32,
                "--out" => options.out = rest.next().ok_or("`--out` needs a folder")?.into(),
                other => {
                    options.rounds = other.parse().map_err(|_| {
                        format!("`{other}` is no number of rounds\n\nhint: didact-torture [ROUNDS] [--from ROUND] [--seed S] [--jobs N] [--out FOLDER]")
                    })?;
                }
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "worker") {
        return worker::main(&arguments[1..]);
    }
    let done = match arguments.as_slice() {
        [first, program, rest @ ..] if first == "signals" => {
            let times =
                rest.first().map_or(Ok(4), |text| text.parse()).map_err(|_| "TIMES is no number".to_string());
            let folder = std::env::temp_dir().join(format!("didact-signals-{}", std::process::id()));
            times.and_then(|times| signals::measure(program, times, &folder))
        }
        _ => Options::parse(&arguments).and_then(|options| torture(&options)),
    };
    match done {
        Ok(report) => {
            let _ = writeln!(std::io::stdout(), "{report}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "error: {why}");
            ExitCode::from(1)
        }
    }
}

/// Does all rounds; the text says how many of each kind there were.
fn torture(options: &Options) -> Result<String, String> {
    let begun = Instant::now();
    let launcher = Launcher::new()?;
    let reference = Reference::make(&launcher, &options.out)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs);
    let pool = pool.build().map_err(|e| e.to_string())?;
    let rounds: Vec<u32> = (options.from..options.from.saturating_add(options.rounds)).collect();
    let done: Result<Vec<Tally>, String> = pool.install(|| {
        let one = |number: &u32| {
            let ended = round::play(&launcher, &reference, (options.seed, *number), &options.out);
            ended.map_err(|why| {
                format!("round {number} of seed {}: {why}\n\nhint: `didact-torture 1 --from {number} --seed {}` plays it again", options.seed, options.seed)
            })
        };
        rounds.par_iter().map(one).collect()
    });
    let total = done?.into_iter().fold(Tally::default(), Tally::and);
    std::fs::remove_dir_all(&options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    Ok(format!(
        "{} rounds of seed {}, all ended with the bytes of the undisturbed run ({:.0} s)\n{total}",
        rounds.len(),
        options.seed,
        begun.elapsed().as_secs_f64()
    ))
}
