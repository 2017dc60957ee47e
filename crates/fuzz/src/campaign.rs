//! The program itself under mutated descriptions: `didact check`, then `didact run` of those that pass.
//!
//! Every description is refused with exit code 2 and one message, or accepted; what `check` accepts, `run` does not refuse. A
//! crash, a hang, a message with words of the program and a late refusal are findings.

use crate::corpus;
use crate::mutate::Mutator;
use crate::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long `check` may take on a busy machine, and how long a run may go on before it is told to stop.
const LONGEST_CHECK: Duration = Duration::from_secs(30);
const LONGEST_RUN: Duration = Duration::from_secs(20);

/// Runs with a larger estimate are left out, in seconds.
const CHEAP: f64 = 2.0;

/// Refusals that depend on the numbers that a run found, so that no check can foresee them.
const OF_NUMBERS: &[&str] =
    &["no finite value to choose a range", "a log axis needs positive", "a histogram of no finite number"];

pub(crate) struct Campaign {
    pub(crate) program: PathBuf,
    pub(crate) checks: u64,
    pub(crate) runs: u64,
    pub(crate) seed: u64,
}

/// How a process ended.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
    late: bool,
}

impl Campaign {
    pub(crate) fn go(&self) -> ExitCode {
        let folder =
            std::env::temp_dir().join(format!("didact-campaign-{}-{}", self.seed, std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the descriptions");
        let mut corpus = corpus::descriptions();
        corpus.extend(corpus::overrides().iter().map(|change| [corpus::SMALL.as_bytes(), change].concat()));
        corpus.retain(|text| text.len() < 6000);
        let mutator = Mutator::new(corpus::KEYS, &corpus);
        let mut random = Random::new(self.seed);
        let (mut counts, mut findings) = (BTreeMap::<&str, u64>::new(), 0_u64);
        let mut executed = 0;
        for number in 0..self.checks {
            let parent = random.choose(&corpus).cloned().unwrap_or_default();
            let text = mutator.mutate(&parent, &corpus, &mut random);
            let file = folder.join("mutated.toml");
            std::fs::write(&file, &text).expect("a description is written");
            let checked = self.call(&["check", "--json"], &file, LONGEST_CHECK);
            let mut kind = of_check(&checked);
            if kind == "accepted" && executed < self.runs && is_cheap(&checked.out) {
                executed += 1;
                let out = folder.join("runs");
                let ran = self.call(
                    &["run", "--threads", "1", "--out", &out.display().to_string()],
                    &file,
                    LONGEST_RUN,
                );
                kind = of_run(&ran);
                let _ = std::fs::remove_dir_all(&out);
                if is_finding(kind) {
                    findings += 1;
                    report(&folder, number, kind, &ran);
                }
            } else if is_finding(kind) {
                findings += 1;
                report(&folder, number, kind, &checked);
            }
            *counts.entry(kind).or_default() += 1;
        }
        say!(
            "campaign (seed {}): {} descriptions, {executed} runs, {findings} findings; {counts:?}",
            self.seed,
            self.checks
        );
        if findings > 0 {
            return ExitCode::FAILURE;
        }
        let _ = std::fs::remove_dir_all(&folder);
        ExitCode::SUCCESS
    }

    /// Calls the program with 4 GB of memory, and tells it to stop after a while.
    fn call(&self, arguments: &[&str], file: &Path, longest: Duration) -> Ended {
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""])
            .arg(&self.program)
            .args(arguments)
            .arg(file);
        let streams =
            command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().expect("the program starts");
        let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = out.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = err.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (begun, mut told) = (Instant::now(), None::<Instant>);
        let mut late = false;
        let code = loop {
            if let Ok(Some(status)) = child.try_wait() {
                break status.code();
            }
            if told.is_none() && begun.elapsed() > longest {
                let _ = Command::new("kill").arg(child.id().to_string()).status();
                told = Some(Instant::now());
            }
            if told.is_some_and(|at| at.elapsed() > Duration::from_secs(5)) {
                late = true;
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let code = if told.is_some() && !late { Some(-1) } else { code };
        Ended { code, out: reader.join().unwrap_or_default(), err: errors.join().unwrap_or_default(), late }
    }
}

/// Words that no user should read.
fn has_words_of_the_program(message: &str) -> bool {
    ["struct ", "untagged", "panicked", "usize", "unwrap", "internal error"]
        .iter()
        .any(|word| message.contains(word))
}

fn of_check(ended: &Ended) -> &'static str {
    match ended.code {
        _ if ended.late => "FINDING: does not stop",
        Some(-1) => "FINDING: check hangs",
        Some(0) => "accepted",
        Some(2) if ended.err.contains("error: ") && !has_words_of_the_program(&ended.err) => "refused",
        Some(2) => "FINDING: strange message",
        _ => "FINDING: crash",
    }
}

fn of_run(ended: &Ended) -> &'static str {
    let all = || format!("{}{}", ended.out, ended.err);
    match ended.code {
        _ if ended.late => "FINDING: does not stop",
        Some(-1) => "stopped, took long",
        Some(0 | 1 | 3) if has_words_of_the_program(&all()) => "FINDING: internal error",
        Some(0 | 1 | 3) => "ran",
        Some(2) if OF_NUMBERS.iter().any(|words| ended.err.contains(words)) => {
            "ran, figure of its numbers refused"
        }
        Some(2) => "FINDING: refused by run alone",
        _ => "FINDING: crash of a run",
    }
}

fn is_finding(kind: &str) -> bool {
    kind.starts_with("FINDING")
}

/// Whether the estimate of all jobs is small; scans have none, and are stopped if they take long.
fn is_cheap(report: &str) -> bool {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let jobs = report["jobs"].as_array();
    jobs.is_some_and(|jobs| jobs.iter().filter_map(|job| job["seconds"].as_f64()).sum::<f64>() < CHEAP)
}

/// Keeps the description, and says what happened.
fn report(folder: &Path, number: u64, kind: &str, ended: &Ended) {
    let kept = folder.join(format!("finding-{number}.toml"));
    let _ = std::fs::copy(folder.join("mutated.toml"), &kept);
    let said: String = ended.err.chars().take(300).collect();
    say!("{kind}: {}\n  {}", kept.display(), said.replace('\n', "\n  "));
}
