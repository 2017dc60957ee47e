//! Ratios to another program: on a shared machine only calls of the same minutes compare, so both take turns.

use didact_analysis::statistics::median;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Threads and precision: what must be equal on both sides.
type Terms = (u64, String);

/// `TURNS WORKLOAD PROGRAM ARGUMENTS…`: runs `PROGRAM ARGUMENTS… WORKLOAD --threads 1`, then with 2, then this program's own workload,
/// so many times, and prints a line for all equal terms: seconds of each turn (of the fastest line there, those that fail their proof
/// aside), the ratio of the best of all turns, the ratios turn by turn and their median.
pub(crate) fn alternate(asked: &[String]) -> Result<(), String> {
    let [turns, workload, program, arguments @ ..] = asked else {
        return Err("say how many turns, which workload, and the command that runs the other program".into());
    };
    let turns: usize = turns.parse().map_err(|_| format!("`{turns}` is not a number of turns"))?;
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut found: BTreeMap<Terms, [Vec<f64>; 2]> = BTreeMap::new();
    for turn in 1..=turns {
        let mut theirs = Vec::new();
        for threads in ["1", "2"] {
            let mut peer = Command::new(program);
            theirs.extend(lines(peer.args(arguments).args([workload, "--threads", threads]))?);
        }
        let ours = fastest(&lines(Command::new(&own).arg(workload))?);
        for (terms, theirs) in fastest(&theirs) {
            if let Some(ours) = ours.get(&terms) {
                let [all_theirs, all_ours] = found.entry(terms).or_default();
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

/// The fewest seconds for all terms, of lines that are right.
fn fastest(lines: &[Value]) -> BTreeMap<Terms, f64> {
    let mut best = BTreeMap::new();
    for line in lines.iter().filter(|line| line["result"]["ok"] == true) {
        let work = &line["work"];
        let terms =
            (work["threads"].as_u64().unwrap_or(1), work["precision"].as_str().unwrap_or("f64").into());
        let seconds = line["seconds"].as_f64().unwrap_or(f64::INFINITY);
        best.entry(terms).and_modify(|least: &mut f64| *least = least.min(seconds)).or_insert(seconds);
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
    fn lines_that_fail_their_proof_do_not_count() {
        let line = |seconds: f64, ok: bool| json!({"seconds": seconds, "work": {"threads": 2, "precision": "f32"}, "result": {"ok": ok}});
        let best = fastest(&[line(2.0, true), line(1.0, false), line(3.0, true)]);
        assert_eq!(best, BTreeMap::from([((2, "f32".to_string()), 2.0)]));
    }
}
