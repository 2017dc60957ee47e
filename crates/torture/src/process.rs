//! Processes under test: started, killed, waited for.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// A process that takes longer hangs.
const LONGEST: Duration = Duration::from_mins(5);

/// Starts this program as a worker.
pub(crate) struct Launcher(PathBuf);

impl Launcher {
    pub(crate) fn new() -> Result<Self, String> {
        std::env::current_exe()
            .map(Self)
            .map_err(|e| format!("this program does not know where it lies: {e}"))
    }

    /// Starts a run of a description into a folder, with faults as the worker knows them (`fail-at=7`).
    pub(crate) fn start(&self, file: &Path, out: &Path, faults: &[String]) -> Result<Started, String> {
        let mut command = Command::new(&self.0);
        command.arg("worker").arg(file).arg(out).args(faults).env("RUST_BACKTRACE", "0");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(Started {
            child: child.map_err(|e| format!("no process could be started: {e}"))?,
            faults: faults.join(" "),
        })
    }

    /// Starts one and waits for it.
    pub(crate) fn run(&self, file: &Path, out: &Path, faults: &[String]) -> Result<Ended, String> {
        self.start(file, out, faults)?.wait()
    }
}

/// A process that runs.
pub(crate) struct Started {
    child: Child,
    faults: String,
}

impl Started {
    /// Kills it after a while, at once and without a word (SIGKILL), if it has not ended by then.
    pub(crate) fn kill_after(mut self, delay: Duration) -> Result<Ended, String> {
        std::thread::sleep(delay);
        // One that has ended cannot be killed, which is no error.
        let _ = self.child.kill();
        self.wait()
    }

    /// Waits for its end; one that hangs is killed and an error.
    pub(crate) fn wait(mut self) -> Result<Ended, String> {
        let begun = Instant::now();
        // What workers print fits into a pipe, so nobody has to read while they run.
        while self.child.try_wait().map_err(|e| e.to_string())?.is_none() {
            if begun.elapsed() > LONGEST {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return Err(format!("a process hangs ({})", self.faults));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let Output { status, stdout, stderr } = self.child.wait_with_output().map_err(|e| e.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Ended { status, said: text(stdout), complained: text(stderr), faults: self.faults })
    }
}

/// A process that has ended.
pub(crate) struct Ended {
    status: ExitStatus,
    pub(crate) said: String,
    complained: String,
    faults: String,
}

impl Ended {
    /// Whether it was ended from outside, or ended itself without any order.
    pub(crate) fn was_killed(&self) -> bool {
        self.status.code().is_none()
    }

    /// An error unless it ended with one of these codes.
    pub(crate) fn expect(&self, codes: &[i32]) -> Result<(), String> {
        if self.status.code().is_some_and(|code| codes.contains(&code)) {
            return Ok(());
        }
        let Self { status, complained, faults, .. } = self;
        Err(format!(
            "a process ended with {status}, not with one of {codes:?} (faults: {faults})\n{complained}"
        ))
    }

    /// Its exit code; `None` after a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// An error unless it complained with these words.
    pub(crate) fn expect_words(&self, words: &str) -> Result<(), String> {
        if self.complained.contains(words) {
            return Ok(());
        }
        Err(format!("a process did not say `{words}` (faults: {})\n{}", self.faults, self.complained))
    }
}
