//! `didact sweep` as its users meet it: shares, signals, processes that die, and Slurm as far as it can be played.

use crate::common::{didact, temporary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Some seconds of work at two points, and theory that takes no time.
const LONG: &str = r#"
title = "Shared out"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 2000 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = { from = 0, to = 20, points = 5 }, observe = ["loss"], replicas = 40 }
sweep = { "training.learning-rate" = [0.2, 0.4, 0.6, 0.8] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
"#;

/// The same, so long that it can be disturbed several times.
fn longer() -> String {
    LONG.replace("dimension = 2000", "dimension = 6000")
}

/// A folder of one test, with a description in it.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str, text: &str) -> Self {
        let folder = temporary(&format!("sweep-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("it.toml"), text).unwrap();
        Self { folder }
    }

    /// A command in this folder; programs of Slurm are those that the test has put there.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = didact();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLURM")) {
            command.env_remove(name);
        }
        command.current_dir(&self.folder).args(arguments);
        command
    }

    fn sweep(&self, arguments: &[&str]) -> Output {
        self.command(&[&["sweep"][..], arguments].concat()).output().unwrap()
    }

    fn status(&self) -> Value {
        let output = self.sweep(&["status", "it.toml", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    }

    /// A program of Slurm that does this.
    fn play(&self, program: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(self.folder.join("bin")).unwrap();
        let path = self.folder.join("bin").join(program);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The finished folder below a folder of results, but for the provenance.
    fn finished(&self, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let is_finished =
            |path: &PathBuf| path.is_dir() && path.extension().is_none_or(|e| e != "partial" && e != "sweep");
        let mut entries =
            std::fs::read_dir(self.folder.join(out)).unwrap().map(|entry| entry.unwrap().path());
        let folder = entries.find(is_finished).expect("a finished folder");
        let (mut all, mut open) = (BTreeMap::new(), vec![folder.clone()]);
        while let Some(here) = open.pop() {
            for path in std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    open.push(path);
                } else if !path.ends_with("provenance.json") {
                    all.insert(path.strip_prefix(&folder).unwrap().into(), std::fs::read(&path).unwrap());
                }
            }
        }
        all
    }

    /// What is drawn of what the shares have kept has the bytes of a run on one machine.
    fn compare_with_one_machine(&self) {
        let merged = self.command(&["run", "it.toml", "--no-compute"]).output().unwrap();
        assert_eq!(merged.status.code(), Some(0), "{}", text(&merged));
        let alone = self.command(&["run", "it.toml", "--out", "alone"]).output().unwrap();
        assert_eq!(alone.status.code(), Some(0), "{}", text(&alone));
        assert!(self.finished("runs") == self.finished("alone"), "the folders differ");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}: never");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lines of all reports of tasks that contain this.
fn reported(place: &Place, what: &str) -> usize {
    let mut count = 0;
    let mut open = vec![place.folder.join("runs")];
    while let Some(here) = open.pop() {
        for path in std::fs::read_dir(here).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "log") {
                count +=
                    std::fs::read_to_string(path).unwrap().lines().filter(|line| line.contains(what)).count();
            }
        }
    }
    count
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

#[test]
fn shares_in_any_order_give_what_one_machine_gives() {
    let place = Place::new("shares", LONG);
    let plan = place.sweep(&["plan", "it.toml", "--tasks", "3"]);
    assert!(plan.status.success() && text(&plan).contains("3 tasks"), "{}", text(&plan));
    assert!(!place.folder.join("runs").exists(), "a plan writes nothing");
    for share in ["2/3", "0/3", "1/3"] {
        let output = place.sweep(&["work", "it.toml", "--shard", share]);
        assert_eq!(output.status.code(), Some(0), "{share}: {}", text(&output));
    }
    let status = place.status();
    assert_eq!((&status["jobs"], &status["done"]), (&json!(8), &json!(8)), "{status}");
    place.compare_with_one_machine();
}

#[test]
fn signals_end_a_share_in_good_order_and_it_goes_on_from_there() {
    let place = Place::new("signals", &longer());
    for name in ["-TERM", "-USR1", "-INT"] {
        let before = reported(&place, "\"start\"");
        let mut command = place.command(&["sweep", "work", "it.toml", "--shard", "0/1", "--threads", "1"]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        until("a piece is begun", || reported(&place, "\"start\"") > before);
        signal(&child, name);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(75), "{name}: {}", text(&ended));
    }
    assert_eq!(reported(&place, "\"end\":\"signal\""), 3);
    let status = place.status();
    assert_eq!((&status["failed"], &status["running"]), (&json!(0), &json!(0)), "{status}");
    assert!(status["done"].as_u64().unwrap() < 8, "{status}");
    assert_eq!(place.sweep(&["work", "it.toml", "--shard", "0/1"]).status.code(), Some(0));
    place.compare_with_one_machine();
}

#[test]
fn killed_processes_leave_nothing_wrong_behind() {
    let place = Place::new("killed", &longer());
    for round in 0..4u32 {
        let before = reported(&place, "\"start\"");
        let mut command = place.command(&["sweep", "work", "it.toml", "--shard", "0/1", "--threads", "1"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        until("a piece is begun", || reported(&place, "\"start\"") > before);
        std::thread::sleep(Duration::from_millis(u64::from(40 * round)));
        if round % 2 == 0 {
            // The process that computes: the other one says that it is to be gone on with.
            let own = Command::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap();
            let pid = String::from_utf8(own.stdout).unwrap();
            Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(75));
        } else {
            // The one that watches: the process that computes ends with it.
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let output = place.sweep(&["work", "it.toml", "--shard", "0/1"]);
    // A piece with which three tasks were lost would be left out; here at most two were.
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    place.compare_with_one_machine();
}

/// One point of several takes more memory than the process may have. The others are done all the same.
#[test]
#[cfg(target_os = "linux")]
fn a_point_that_needs_too_much_memory_ends_neither_the_task_nor_the_others() {
    let place = Place::new(
        "memory",
        r#"
            title = "Memory"
            model = { family = "multi-index", activation = "gelu", link = "z^2" }
            data = { dimension = 10, samples-per-dimension = 4 }
            training = { learning-rate = 0.1, scaling = "plain" }
            start = { students = { law = "sphere", radius = 1.0 } }
            record = { clock = "steps", times = [0, 1], observe = ["train_loss"], replicas = 1 }
            run = [{ name = "gd", engine = "full-batch" }]
            sweep = { "data.dimension" = [10, 20, 30, 8000, 40] }
            measure = [{ name = "last", kind = "value-at", run = "gd", observable = "train_loss", time = 1 }]
            claim = [{ says = "Losses are not negative", measure = "last", check = { at-least = 0 } }]
        "#,
    );
    let program = env!("CARGO_BIN_EXE_didact");
    let limited = format!("ulimit -v 1500000; exec {program} sweep work it.toml --shard 0/1 --threads 2");
    let output = Command::new("sh").current_dir(&place.folder).args(["-c", &limited]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let status = place.status();
    assert_eq!((&status["done"], &status["failed"]), (&json!(4), &json!(1)), "{status}");
    assert_eq!(status["failures"][0]["kind"], "out-of-memory", "{status}");
    assert!(status["failures"][0]["what"].as_str().unwrap().contains("8000"), "{status}");
    // What is there is drawn; what is not is said.
    let partial = place.command(&["run", "it.toml", "--no-compute"]).output().unwrap();
    assert_eq!(partial.status.code(), Some(3));
    assert!(
        text(&partial).contains("1 of 5 points not computed yet (data.dimension = 8000)"),
        "{}",
        text(&partial)
    );
    // A claim does not fail because of what is not computed.
    assert!(
        text(&partial).contains("`gd`: not computed yet") && !text(&partial).contains("FAILS"),
        "{}",
        text(&partial)
    );
}

#[test]
fn wrong_shares_and_plans_are_refused_with_one_message() {
    let place = Place::new("wrong", LONG);
    for (arguments, part) in [
        (&["work", "it.toml", "--shard", "3/3"][..], "there is no share 3 of 3"),
        (&["work", "it.toml", "--shard", "one"], "`one` is no share"),
        (&["work", "it.toml"], "which share is to be computed?"),
        (&["work", "it.toml", "--shard", "0/2", "--threads", "0"], "0 threads compute nothing"),
        (&["work", "it.toml", "--shard", "0/2", "--seconds-left", "-1"], "unexpected argument"),
        (&["work", "it.toml", "--shard", "0/2", "--seconds-left=-1"], "-1 seconds are no time"),
        (&["work", "--plan", "none.json", "--shard", "0"], "cannot read the plan none.json"),
        (&["work", "--plan", "it.toml", "--shard", "0"], "it.toml is no plan of a sweep"),
        (&["plan", "it.toml", "--tasks", "0"], "0 is not in"),
        (&["plan", "it.toml", "--minutes", "0"], "tasks of 0 minutes make no sense"),
        (&["submit", "it.toml", "--time", "soon"], "`soon` is no time"),
        (&["submit", "it.toml", "--mem", "much"], "`much` is no amount of memory"),
        (&["resume", "it.toml"], "no sweep of this experiment was submitted"),
        (&["resume", "it.toml", "--more-time", "0.5x"], "a factor of at least 1"),
        (&["status", "none.toml"], "none.toml"),
    ] {
        let output = place.sweep(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(part), "{arguments:?}: {}", text(&output));
    }
    let left: Vec<_> =
        std::fs::read_dir(&place.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["it.toml"], "nothing is written");
}

/// Slurm as far as it matters here: a small array, a script that is kept and can be started.
const CONFIG: &str = "echo 'MaxArraySize            = 5'";

#[test]
fn a_submission_keeps_its_script_which_computes_the_shares() {
    let place = Place::new("submission", LONG);
    place.play("scontrol", CONFIG);
    place.play("sbatch", "echo \"$@\" > options.txt; echo 77");
    place.play("squeue", "exit 0");
    let submit: &[&str] = &[
        "submit",
        "it.toml",
        "--tasks",
        "4",
        "--time",
        "1:00:00",
        "--mem",
        "1G",
        "--cpus",
        "2",
        "--max-running",
        "3",
        "--partition",
        "p",
    ];
    let dry = place.sweep(&[submit, &["--dry-run"]].concat());
    assert!(dry.status.success() && text(&dry).contains("#SBATCH --array=0-3%3"), "{}", text(&dry));
    assert!(!place.folder.join("runs").exists() && !place.folder.join("options.txt").exists());
    let output = place.sweep(&[submit, &["--", "--account=physics"]].concat());
    assert!(output.status.success() && text(&output).contains("submitted job 77"), "{}", text(&output));
    assert!(
        std::fs::read_to_string(place.folder.join("options.txt"))
            .unwrap()
            .starts_with("--parsable --account=physics ")
    );
    let folder = std::fs::read_dir(place.folder.join("runs")).unwrap().next().unwrap().unwrap().path();
    let script = std::fs::read_to_string(folder.join("plan-1.sh")).unwrap();
    for line in [
        "--array=0-3%3",
        "--cpus-per-task=2",
        "--partition=p",
        "--time=1:00:00",
        "--mem=1G",
        "--requeue",
        "--signal=B:USR1@120",
    ] {
        assert!(script.contains(&format!("#SBATCH {line}\n")), "{line}\n{script}");
    }
    // An edit after the submission changes nothing: the plan has the description.
    std::fs::write(place.folder.join("edited.toml"), LONG).unwrap();
    std::fs::write(place.folder.join("it.toml"), "title = 'edited'").unwrap();
    let task = |number: &str| {
        let mut command = Command::new("sh");
        command
            .arg(folder.join("plan-1.sh"))
            .env("SLURM_ARRAY_TASK_ID", number)
            .env("SLURM_ARRAY_JOB_ID", "77");
        command.env("SLURM_CPUS_PER_TASK", "2").current_dir("/").output().unwrap()
    };
    for number in ["0", "1", "2"] {
        assert_eq!(task(number).status.code(), Some(0), "{number}");
    }
    std::fs::rename(place.folder.join("edited.toml"), place.folder.join("it.toml")).unwrap();
    let status = place.status();
    assert_eq!(status["tasks"][3]["state"], "gone", "the queue does not have it: {status}");
    // What is missing goes into a new array, with more of what was asked for.
    let output =
        place.sweep(&["resume", "it.toml", "--more-memory", "2x", "--more-time", "1.5x", "--tasks", "1"]);
    assert!(output.status.success(), "{}", text(&output));
    let script = std::fs::read_to_string(folder.join("plan-2.sh")).unwrap();
    assert!(script.contains("--mem=2048M\n") && script.contains("--time=0-01:30:00\n"), "{script}");
    assert!(script.contains("--array=0-0%3\n"), "{script}");
    let output =
        Command::new("sh").arg(folder.join("plan-2.sh")).env("SLURM_ARRAY_TASK_ID", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = place.sweep(&["resume", "it.toml"]);
    assert!(text(&output).contains("nothing is missing"), "{}", text(&output));
    place.compare_with_one_machine();
}

#[test]
fn a_submission_that_fails_says_so_and_leaves_nothing() {
    let place = Place::new("refused", LONG);
    place.play("scontrol", CONFIG);
    place.play("squeue", "exit 0");
    place.play("sbatch", "echo 'sbatch: error: invalid partition specified: p' >&2; exit 1");
    let output = place.sweep(&["submit", "it.toml", "--tasks", "2"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("`sbatch` refused the job: sbatch: error: invalid partition"),
        "{}",
        text(&output)
    );
    let left: Vec<_> = std::fs::read_dir(place.folder.join("runs")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let output = place.sweep(&["submit", "it.toml", "--tasks", "6"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("6 tasks are more than an array may have here (5"), "{}", text(&output));
}

#[test]
fn tasks_that_still_wait_are_not_submitted_twice() {
    let place = Place::new("busy", LONG);
    place.play("scontrol", CONFIG);
    place.play("sbatch", "echo 77");
    place.play("squeue", "echo 77_0; echo 77_1");
    assert!(place.sweep(&["submit", "it.toml", "--tasks", "2"]).status.success());
    let output = place.sweep(&["resume", "it.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("2 tasks of this sweep still run or wait"), "{}", text(&output));
    assert!(place.sweep(&["resume", "it.toml", "--anyway"]).status.success());
}

/// A task whose time is over goes back into the queue, but not for ever; one that was cancelled does not.
#[test]
fn requeues_are_bounded_and_a_cancelled_task_stays_away() {
    for (restarts, name, requeued) in [("0", "-USR1", true), ("2", "-USR1", false), ("0", "-TERM", false)] {
        let place = Place::new(&format!("requeue-{restarts}{name}"), &longer());
        place.play("scontrol", "echo \"$@\" > requeued.txt");
        let mut command = place.command(&[
            "sweep",
            "work",
            "it.toml",
            "--shard",
            "0/1",
            "--threads",
            "1",
            "--requeues",
            "2",
        ]);
        command
            .env("SLURM_ARRAY_JOB_ID", "5")
            .env("SLURM_ARRAY_TASK_ID", "3")
            .env("SLURM_RESTART_COUNT", restarts);
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        until("a piece is begun", || reported(&place, "\"start\"") > 0);
        signal(&child, name);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(75));
        let told = std::fs::read_to_string(place.folder.join("requeued.txt")).ok();
        assert_eq!(told.as_deref(), requeued.then_some("requeue 5_3\n"), "{restarts} {name}");
    }
}

#[test]
fn a_template_takes_options_and_command() {
    let place = Place::new("template", LONG);
    place.play("scontrol", CONFIG);
    let template = |text: &str| std::fs::write(place.folder.join("template.sh"), text).unwrap();
    let submit = || {
        place.sweep(&[
            "submit",
            "it.toml",
            "--tasks",
            "2",
            "--template",
            "template.sh",
            "--container",
            "image.sif",
            "--dry-run",
        ])
    };
    template("#!/bin/bash\n{options}\nmodule load didact\n{command}\n");
    let output = submit();
    let said = text(&output);
    assert!(output.status.success() && said.contains("module load didact\nexec apptainer exec"), "{said}");
    assert!(said.contains("image.sif didact sweep work --plan"), "{said}");
    template("#!/bin/bash\n{command}\n");
    let output = submit();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("lacks `{options}` or `{command}`"), "{}", text(&output));
}
