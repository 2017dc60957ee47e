//! Ratios of times to another program. On a shared machine only times of the same minutes are comparable, so the two programs
//! run alternately.

use didact_analysis::statistics::median;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Number of threads and precision, which must be equal for a comparison.
type Conditions = (u64, String);

/// Compares this program with another one; the arguments are `TURNS WORKLOAD PROGRAM ARGUMENTS…`.
///
/// In each turn it runs `PROGRAM ARGUMENTS… WORKLOAD --threads 1`, the same with 2 threads, and its own workload. For every
/// number of threads and precision that both programs report, it prints a line with the seconds of each turn (those of the
/// fastest output line with `result.ok`), the ratio of the least times over all turns, the ratios of all turns and their
/// median.
pub(crate) fn alternate(asked: &[String]) -> Result<(), String> {
    let [turns, workload, program, arguments @ ..] = asked else {
        return Err("say how many turns, which workload, and the command that runs the other program".into());
    };
    let turns: usize = turns.parse().map_err(|_| format!("`{turns}` is not a number of turns"))?;
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut found: BTreeMap<Conditions, [Vec<f64>; 2]> = BTreeMap::new();
    for turn in 1..=turns {
        let mut theirs = Vec::new();
        for threads in ["1", "2"] {
            let mut peer = Command::new(program);
            theirs.extend(lines(peer.args(arguments).args([workload, "--threads", threads]))?);
        }
        let ours = fastest(&lines(Command::new(&own).arg(workload))?);
        for (conditions, theirs) in fastest(&theirs) {
            if let Some(ours) = ours.get(&conditions) {
                let [all_theirs, all_ours] = found.entry(conditions).or_default();
                all_theirs.push(theirs);
                all_ours.push(*ours);
            }
        }
        eprintln!("turn {turn} of {turns}");
    }
    for ((threads, precision), [theirs, ours]) in found {
        let ratios: Vec<f64> = theirs.iter().zip(&ours).map(|(a, b)| a / b).collect();
        let line = json!({"workload": workload, "threads": threads, "precision": precision,
                          "peer_seconds": theirs, "seconds": ours, "ratios": ratios,
                          "best_ratio": least(&theirs) / least(&ours), "median_ratio": median(&ratios)});
        println!("{line}");
    }
    Ok(())
}

/// The JSON lines that a program prints.
fn lines(command: &mut Command) -> Result<Vec<Value>, String> {
    let name = command.get_program().display().to_string();
    let output = command.stderr(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() {
        return Err(format!("{name} printed no result ({})", output.status));
    }
    Ok(lines)
}

/// The least seconds for each number of threads and precision, over the lines with `result.ok`.
fn fastest(lines: &[Value]) -> BTreeMap<Conditions, f64> {
    let mut best = BTreeMap::new();
    for line in lines.iter().filter(|line| line["result"]["ok"] == true) {
        let work = &line["work"];
        let conditions =
            (work["threads"].as_u64().unwrap_or(1), work["precision"].as_str().unwrap_or("f64").into());
        let seconds = line["seconds"].as_f64().unwrap_or(f64::INFINITY);
        best.entry(conditions).and_modify(|least: &mut f64| *least = least.min(seconds)).or_insert(seconds);
    }
    best
}

fn least(list: &[f64]) -> f64 {
    list.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_wrong_results_do_not_count() {
        let line = |seconds: f64, ok: bool| json!({"seconds": seconds, "work": {"threads": 2, "precision": "f32"}, "result": {"ok": ok}});
        let best = fastest(&[line(2.0, true), line(1.0, false), line(3.0, true)]);
        assert_eq!(best, BTreeMap::from([((2, "f32".to_string()), 2.0)]));
    }
}
