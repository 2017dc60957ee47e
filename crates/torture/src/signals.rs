//! How long `didact` goes on after a signal: SIGTERM and SIGINT at random moments of heavy work of every kind.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time from a signal to the end of the process that is allowed.
const LONGEST: Duration = Duration::from_millis(500);

/// A process that goes on for so long after a signal does not hear it.
const DEAF: Duration = Duration::from_secs(30);

/// The parts of a description that most kinds of work share.
const COMMITTEE: &str = r#"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
start = { students = { law = "gaussian", deviation = 0.5 } }
"#;

/// Work that takes a minute and more, by name: the arguments of the program, and the description that `FILE` among them stands
/// for. Each spends its time in a place of its own.
const WORK: &[(&str, &[&str], &str)] = &[
    (
        "step of a stiff integrator",
        RUN,
        r#"
model = { family = "committee", students = 40, teachers = 40, activation = "erf(z/sqrt2)" }
data = { dimension = 1000 }
training = { learning-rate = 0.1 }
record = { times = [0, 1000], observe = ["loss"] }
run = [{ name = "t", engine = "ode", method = "stiff" }]
"#,
    ),
    (
        "spectrum of a million levels",
        RUN,
        r#"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
start = { students = { law = "gaussian", deviation = 0.5 }, teachers = "sampled" }
data = { spectrum = { kind = "power-law", levels = 1000000, beta = 0.5 }, dimension = 1000000 }
training = { learning-rate = 0.1 }
record = { times = [0, 1000], observe = ["loss"] }
run = [{ name = "t", engine = "ode" }]
"#,
    ),
    (
        "reduced simulation with large batches",
        RUN,
        r#"
data = { dimension = 100000 }
training = { learning-rate = 0.5, batch = 100000 }
record = { times = { from = 0, to = 2000, points = 11 }, replicas = 4 }
run = [{ name = "t", engine = "reduced" }]
"#,
    ),
    (
        "direct simulation",
        RUN,
        r#"
data = { dimension = 1000000 }
training = { learning-rate = 0.5 }
record = { times = { from = 0, to = 20, points = 11 }, replicas = 4 }
run = [{ name = "t", engine = "direct" }]
"#,
    ),
    (
        "full-batch descent",
        RUN,
        r#"
model = { family = "multi-index", activation = "gelu", link = "z^2", loss = { kind = "pseudo-huber", kappa = 1.0 } }
data = { dimension = 6000, samples-per-dimension = 8 }
training = { learning-rate = 1.0, scaling = "plain" }
start = { students = { law = "sphere", radius = 1.0 } }
record = { clock = "steps", times = [0, 5000], observe = ["train_loss"], replicas = 2 }
run = [{ name = "t", engine = "full-batch" }]
"#,
    ),
    (
        "mean-field theory of descent",
        RUN,
        r#"
model = { family = "multi-index", activation = "gelu", link = "z^2", loss = { kind = "pseudo-huber", kappa = 1.0 } }
data = { dimension = 2000, samples-per-dimension = 4 }
training = { learning-rate = 1.0, scaling = "plain" }
start = { students = { law = "sphere", radius = 1.0 } }
record = { clock = "steps", times = { from = 0, to = 60, points = 61 }, observe = ["train_loss"] }
run = [{ name = "t", engine = "dmft", samples = 1048576 }]
"#,
    ),
    (
        "averages by quadrature",
        RUN,
        r#"
model = { family = "committee", students = 4, teachers = 3, activation = "abs(tanh(x))+0.2*x" }
data = { dimension = 1000 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = [0, 100], observe = ["loss"] }
run = [{ name = "t", engine = "ode" }]
"#,
    ),
    (
        "fluctuations",
        RUN,
        r#"
model = { family = "committee", students = 4, teachers = 4, activation = "tanh(x) + 0.1*x^2" }
data = { dimension = 1000 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = [0, 100], observe = ["loss"] }
run = [{ name = "t", engine = "ode", fluctuations = true }]
"#,
    ),
    (
        "optimal protocol",
        RUN,
        r#"
data = { dimension = 4000 }
training = { learning-rate = 1.0, label-noise = 0.1 }
record = { times = { from = 0, to = 100, points = 51 }, observe = ["loss"], replicas = 24 }
run = [{ name = "t", engine = "reduced", protocol = "best" }]

[[optimise]]
name = "best"
controls = [{ key = "training.learning-rate", knots = 80, bounds = [0, 10] }]
objective = { minimise = "loss", at = 100 }
starts = 8
replicas = 4
"#,
    ),
    (
        "point of a scan",
        RUN,
        r#"
scan = [{ name = "s", quantity = "committee/linear-error", inputs = { beta = 1, eta = 0.1, alpha = 1 }, over = { L = [9998, 9999, 10000] } }]
"#,
    ),
    ("one quantity", &["compute", "committee/linear-error", "beta=1", "eta=0.1", "alpha=1", "L=10000"], ""),
];

const RUN: &[&str] = &["run", "FILE", "--out", "OUT"];

/// How long each kind of work went on after a signal, `times` signals each; an error if one took longer than [`LONGEST`].
pub(crate) fn measure(program: &str, times: u32, folder: &Path) -> Result<String, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut report = format!("{:<40} {:>8} {:>8}\n", "milliseconds after a signal", "median", "longest");
    let mut late = Vec::new();
    for (number, (name, arguments, text)) in WORK.iter().enumerate() {
        let mut taken = Vec::new();
        for turn in 0..times {
            let out = folder.join(format!("{number}-{turn}"));
            let (mut child, file) = start(program, (name, arguments, text), &out)?;
            // From the first moments of the work, when arrays are made, to several seconds of it.
            std::thread::sleep(Duration::from_millis(120 + u64::from(turn) * 3700 / u64::from(times.max(1))));
            let signal = if turn % 2 == 0 { "-TERM" } else { "-INT" };
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("{name}: ended before the signal, with {status}"));
            }
            let begun = Instant::now();
            Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status()
                .map_err(|e| e.to_string())?;
            while child.try_wait().map_err(|e| e.to_string())?.is_none() {
                if begun.elapsed() > DEAF {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("{name}: still runs {} s after {signal}", DEAF.as_secs()));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            taken.push(begun.elapsed());
            let _ = std::fs::remove_dir_all(&out);
            let _ = std::fs::remove_file(&file);
        }
        taken.sort();
        let (Some(longest), Some(median)) = (taken.last(), taken.get(taken.len() / 2)) else { continue };
        let _ = writeln!(report, "{name:<40} {:>8} {:>8}", median.as_millis(), longest.as_millis());
        if *longest > LONGEST {
            late.push(*name);
        }
    }
    std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    if late.is_empty() {
        Ok(report)
    } else {
        Err(format!("longer than half a second: {}\n{report}", late.join(", ")))
    }
}

/// Starts one piece of work and waits until it is under way: the folder of its results is made after everything that listens to
/// signals.
fn start(
    program: &str,
    (name, arguments, text): (&str, &[&str], &str),
    out: &Path,
) -> Result<(Child, std::path::PathBuf), String> {
    let file = out.with_extension("toml");
    let common = if text.contains("family") || !text.contains("run =") { "" } else { COMMITTEE };
    std::fs::write(&file, format!("title = \"{name}\"\n{common}{text}")).map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    for argument in arguments {
        match *argument {
            "FILE" => command.arg(&file),
            "OUT" => command.arg(out),
            word => command.arg(word),
        };
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.map_err(|e| format!("{program}: {e}"))?;
    let begun = Instant::now();
    while arguments.contains(&"OUT") && !out.exists() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok((child, file))
}
