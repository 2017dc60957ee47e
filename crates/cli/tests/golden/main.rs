//! Reference numbers from independent code, one verdict per case.
//!
//! Reads `golden/*.json`, or the folder named by the environment variable `DIDACT_GOLDEN`. The adapters beside this file
//! turn a case into a library call; they hold no mathematics.

#![allow(missing_docs, unreachable_pub, clippy::print_stdout)]

mod compare;
mod fluctuations;
mod gd_phase_transitions;
mod inputs;
mod lora_single_index;
mod low_rank_perturbation;
mod optimal_protocols;
mod power_law_spectra;
mod quadratic_networks;
mod training_rules;

use compare::{Answer, verdict};
use inputs::Inputs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Answers one kind of a family; `None` for a kind it does not know.
type Adapter = fn(kind: &str, inputs: &Inputs) -> Option<Answer>;

/// The families; an adapter knows every kind of its file.
const FAMILIES: [(&str, Adapter); 8] = [
    ("power-law-spectra", power_law_spectra::answer),
    ("quadratic-networks", quadratic_networks::answer),
    ("lora-single-index", lora_single_index::answer),
    ("low-rank-perturbation", low_rank_perturbation::answer),
    ("gd-phase-transitions", gd_phase_transitions::answer),
    ("training-rules", training_rules::answer),
    ("fluctuations", fluctuations::answer),
    ("optimal-protocols", optimal_protocols::answer),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Test runners ask every test program for the names of its tests; this one has a single one, and none that is ignored.
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            println!("golden: test");
        }
        return ExitCode::SUCCESS;
    }
    let folder = std::env::var_os("DIDACT_GOLDEN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden"), PathBuf::from);
    let mut failed = 0;
    for (family, adapter) in FAMILIES {
        failed += run_family(&folder, family, adapter);
    }
    ExitCode::from(u8::from(failed > 0))
}

fn run_family(folder: &Path, family: &str, adapter: Adapter) -> usize {
    let path = folder.join(format!("{family}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("{family}: no file {}", path.display());
        return 0;
    };
    let cases: Vec<Value> = serde_json::from_str(&text).expect("a golden file is a list of cases");
    let (mut passed, mut failed) = (0, 0);
    for case in &cases {
        let id = case["id"].as_str().unwrap_or("(no id)");
        let kind = case["kind"].as_str().unwrap_or_default();
        let name = kind.strip_prefix(family).and_then(|k| k.strip_prefix('/')).unwrap_or(kind);
        // A case that panics fails by itself; the panic has said why.
        let inputs = Inputs(&case["inputs"], case);
        let Ok(answer) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| adapter(name, &inputs)))
        else {
            failed += 1;
            println!("  {id} ({kind}): panicked");
            continue;
        };
        let verdict = match answer {
            Some(answer) => verdict(case, &answer),
            None => Err("unknown kind".into()),
        };
        match verdict {
            Ok(()) => passed += 1,
            Err(report) => {
                failed += 1;
                println!("  {id} ({kind}): {report}");
            }
        }
    }
    println!("{family}: {passed} passed, {failed} failed");
    failed
}
