//! The words of Slurm: times and amounts of memory as its programs write them, and its programs themselves.

use didact_experiment::Diagnostic;
use std::collections::BTreeSet;
use std::process::{Command, Output};

/// Tasks of an array where the cluster does not say: the default of Slurm is one more.
const DEFAULT_ARRAY: usize = 1000;

/// Seconds of a time such as `30`, `30:00`, `1:30:00`, `2-12` or `1-00:30:00` (minutes, minutes:seconds, hours:minutes:seconds,
/// days-hours, …); `None` for one without end, or that is no time.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let number = |t: &str| t.parse::<u32>().ok().map(f64::from);
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let parts: Vec<f64> = clock.split(':').map(number).collect::<Option<_>>()?;
    let seconds = match (days, &parts[..]) {
        (None, [minutes]) => 60.0 * minutes,
        (None, [minutes, seconds]) => 60.0 * minutes + seconds,
        (Some(_), [hours]) => 3600.0 * hours,
        (Some(_), [hours, minutes]) => 3600.0 * hours + 60.0 * minutes,
        (_, [hours, minutes, seconds]) => 3600.0 * hours + 60.0 * minutes + seconds,
        _ => return None,
    };
    Some(86400.0 * days.unwrap_or(0.0) + seconds)
}

/// A time as Slurm reads it, rounded up to whole minutes.
pub(crate) fn time_of(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil().max(1.0) as u64;
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    format!("{days}-{hours:02}:{minutes:02}:00")
}

/// Bytes of an amount such as `4G` or `512` (megabytes); `None` if it is none.
pub(crate) fn memory(text: &str) -> Option<f64> {
    let (digits, unit) = match text.char_indices().find(|(_, c)| !(c.is_ascii_digit() || *c == '.')) {
        Some((at, _)) => text.split_at(at),
        None => (text, "M"),
    };
    let unit = match unit.to_ascii_uppercase().trim_end_matches('B') {
        "K" => 1024f64,
        "M" => 1024f64.powi(2),
        "G" => 1024f64.powi(3),
        "T" => 1024f64.powi(4),
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|n| *n > 0.0).map(|n| n * unit)
}

/// An amount of memory as Slurm reads it, rounded up to megabytes.
pub(crate) fn memory_of(bytes: f64) -> String {
    format!("{}M", (bytes / 1024f64.powi(2)).ceil() as u64)
}

/// A factor such as `2x`.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    number.filter(|f| *f >= 1.0 && *f <= 1000.0).ok_or_else(|| "a factor of at least 1, such as 2x".into())
}

/// What a program of Slurm printed, or why it could not be asked.
fn asked(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_string())
}

/// The most tasks that an array may have. `MaxArraySize` bounds the index, which begins at 0.
pub(crate) fn most_tasks() -> usize {
    asked("scontrol", &["show", "config"]).ok().and_then(|text| array_size(&text)).unwrap_or(DEFAULT_ARRAY)
}

fn array_size(config: &str) -> Option<usize> {
    let line = config.lines().find(|line| line.trim_start().starts_with("MaxArraySize"))?;
    line.split_once('=')?.1.trim().parse().ok().filter(|size| *size > 0)
}

/// Array tasks of this user that the queue has, as `123_7`; `None` where there is no queue to ask.
pub(crate) fn queued() -> Option<BTreeSet<String>> {
    let text = asked("squeue", &["--me", "-h", "-r", "-o", "%F_%K"]).ok()?;
    Some(text.lines().map(|line| line.trim().to_string()).collect())
}

/// Seconds until the time of this job is over, where it runs under Slurm.
pub(crate) fn seconds_left() -> Option<f64> {
    let job = std::env::var("SLURM_JOB_ID").ok()?;
    let end = std::env::var("SLURM_JOB_END_TIME").ok().and_then(|text| text.parse::<f64>().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64();
    if let Some(end) = end.filter(|end| *end > now) {
        return Some(end - now);
    }
    time_left(&asked("squeue", &["-h", "-j", &job, "-o", "%L"]).ok()?)
}

/// Of what `squeue` prints: it writes a time of one hour as `1:00:00`, one of a minute as `1:00`.
fn time_left(text: &str) -> Option<f64> {
    let text = text.lines().next()?.trim();
    if text.contains(':') || text.contains('-') { seconds(text) } else { None }
}

/// The array task of this process, as `123_7`.
pub(crate) fn own_task() -> Option<String> {
    let of = |name: &str| std::env::var(name).ok();
    match (of("SLURM_ARRAY_JOB_ID"), of("SLURM_ARRAY_TASK_ID")) {
        (Some(array), Some(task)) => Some(format!("{array}_{task}")),
        _ => of("SLURM_JOB_ID"),
    }
}

/// How often Slurm has begun this job before.
pub(crate) fn restarts() -> u32 {
    std::env::var("SLURM_RESTART_COUNT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Cores that Slurm gave to this task.
pub(crate) fn cores() -> Option<usize> {
    std::env::var("SLURM_CPUS_PER_TASK").ok()?.parse().ok()
}

/// Bytes of memory that Slurm gave to this task.
pub(crate) fn memory_given() -> Option<f64> {
    let of =
        |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok()).filter(|m| *m > 0.0);
    let megabytes =
        of("SLURM_MEM_PER_NODE").or_else(|| Some(of("SLURM_MEM_PER_CPU")? * cores().unwrap_or(1) as f64));
    megabytes.map(|m| m * 1024f64.powi(2))
}

/// Puts this task back into the queue.
pub(crate) fn requeue(task: &str) -> Result<(), String> {
    asked("scontrol", &["requeue", task]).map(|_| ())
}

/// Submits a script; gives the number of the job.
pub(crate) fn submit(script: &std::path::Path, options: &[String]) -> Result<String, Diagnostic> {
    let output = Command::new("sbatch").arg("--parsable").args(options).arg(script).output().map_err(|error| {
        Diagnostic::new(format!("cannot start `sbatch`: {error}")).hint(
            "submit where Slurm is; elsewhere share the work out by hand: `didact sweep work FILE --shard i/n`",
        )
    })?;
    job_number(&output)
}

fn job_number(output: &Output) -> Result<String, Diagnostic> {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        let why = complained.trim();
        return Err(Diagnostic::new(format!("`sbatch` refused the job: {why}")).hint("nothing was submitted"));
    }
    // With several clusters it is `123;name`.
    let job = said.lines().next_back().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("`sbatch` gave no job number but `{}`", said.trim());
        return Err(Diagnostic::new(message).hint("see with `squeue --me` whether anything was submitted"));
    }
    Ok(job.into())
}

/// A word of a shell script that stands for itself.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        let times = [("30", 1800.0), ("1:30", 90.0), ("1:30:00", 5400.0), ("2-12", 216_000.0)];
        for (text, expected) in times.into_iter().chain([("1-00:30", 88_200.0), ("1-00:30:15", 88_215.0)]) {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        assert_eq!([seconds("UNLIMITED"), seconds(""), seconds("1:2:3:4"), seconds("-5")], [None; 4]);
        for (seconds_, text) in [(59.0, "0-00:01:00"), (5400.0, "0-01:30:00"), (90_000.0, "1-01:00:00")] {
            assert_eq!(time_of(seconds_), text);
            assert!(seconds(text).unwrap() >= seconds_);
        }
        // What is left of a time is printed with a colon.
        assert_eq!(
            (time_left("0:42\n"), time_left("1:00:00"), time_left("INVALID")),
            (Some(42.0), Some(3600.0), None)
        );
    }

    #[test]
    fn memory_is_read_as_slurm_reads_it() {
        assert_eq!(memory("512"), Some(512.0 * 1048576.0));
        assert_eq!(
            (memory("4G"), memory("4g"), memory("2GB")),
            (Some(4.0 * 1073741824.0), Some(4.0 * 1073741824.0), Some(2.0 * 1073741824.0))
        );
        assert_eq!([memory("many"), memory(""), memory("-1G"), memory("0")], [None; 4]);
        assert_eq!(memory_of(memory("1.5G").unwrap()), "1536M");
    }

    #[test]
    fn factors_are_at_least_one() {
        assert_eq!((factor("2x"), factor("1.5")), (Ok(2.0), Ok(1.5)));
        assert!(factor("0.5x").is_err() && factor("x").is_err() && factor("nan").is_err());
    }

    #[test]
    fn the_size_of_arrays_is_found_in_the_configuration() {
        assert_eq!(
            array_size("KillWait = 30 sec\nMaxArraySize            = 1001\nMaxDBDMsgs = 0"),
            Some(1001)
        );
        assert_eq!(array_size("MaxArraySize = many"), None);
    }

    #[test]
    fn a_submission_that_gives_no_number_is_an_error() {
        let output = |code: i32, stdout: &str, stderr: &str| {
            job_number(&Output {
                status: ExitStatus::from_raw(code << 8),
                stdout: stdout.into(),
                stderr: stderr.into(),
            })
        };
        assert_eq!(output(0, "123\n", "").unwrap(), "123");
        assert_eq!(output(0, "123;cluster\n", "").unwrap(), "123");
        assert!(
            output(1, "", "sbatch: error: Invalid partition")
                .unwrap_err()
                .message
                .contains("Invalid partition")
        );
        assert!(output(0, "", "").is_err() && output(0, "Submitted batch job 5", "").is_err());
    }

    #[test]
    fn words_of_a_script_stand_for_themselves() {
        assert_eq!(
            (quoted("a/b-c.json").as_str(), quoted("it's").as_str(), quoted("").as_str()),
            ("a/b-c.json", "'it'\\''s'", "''")
        );
    }
}
