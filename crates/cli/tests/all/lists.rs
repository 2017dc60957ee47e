//! `didact list`, `didact compute NAME --help` and `didact reproduce` without a name: what there is, and how to ask for it.

use crate::common::didact;

fn printed(arguments: &[&str]) -> String {
    let run = didact().args(arguments).output().unwrap();
    let (out, complaint) =
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8_lossy(&run.stderr).into_owned());
    assert!(run.status.success(), "{arguments:?}: {complaint}");
    out
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

#[test]
fn observables_include_the_losses_of_a_training_set() {
    let list = printed(&["list", "observables"]);
    for name in ["loss", "train_loss", "test_loss", "Q[i,j]", "expression"] {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {list}");
    }
}

#[test]
fn functions_of_formulas_are_listed() {
    let list = printed(&["list", "functions"]);
    for name in ["x + y", "x ^ y", "erf(x)", "step(x)", "max(x, y)", "pi"] {
        assert!(list.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {list}");
    }
}

#[test]
fn a_quantity_shows_its_inputs_and_outputs_before_a_wrong_guess() {
    let help = printed(&["compute", "committee/plateau", "--help"]);
    assert_eq!(help, printed(&["list", "quantities", "committee/plateau"]));
    for text in
        ["M ", "whole number from 1", "required", "teacher norm", "default 1", "outputs\n  R, Q, loss"]
    {
        assert!(help.contains(text), "{text}: {help}");
    }
    let answer = json(&["compute", "committee/plateau", "M=2"]);
    let described = json(&["list", "quantities", "committee/plateau", "--json"]);
    let names: Vec<String> = answer.as_object().unwrap().keys().cloned().collect();
    assert_eq!(described["outputs"], serde_json::json!(names));
    assert!(printed(&["compute", "--help"]).contains("key=value"));
}

#[test]
fn papers_have_one_row_each_with_the_time_at_every_size() {
    let list = printed(&["list", "papers"]);
    let keys = [
        "committee",
        "fluctuations",
        "gd-phase-transitions",
        "lora",
        "low-rank-perturbation",
        "power-law-spectra",
        "quadratic-networks",
        "optimal-protocols",
        "training-rules",
    ];
    for key in keys {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(key)), "{key}: {list}");
    }
    assert!(list.contains("not measured"), "{list}");
    let rows = json(&["list", "papers", "--json"]);
    let rows = rows["papers"].as_array().unwrap();
    assert_eq!(rows.len(), keys.len());
    for row in rows {
        let seconds = |size: &str| row["estimates"][size]["seconds-of-one-core"].as_f64().unwrap();
        // Equal sizes have different estimates: kicks and looks are timed anew for each.
        let grows = |a: &str, b: &str| seconds(a) <= 3.0 * seconds(b);
        assert!(grows("quick", "normal") && grows("normal", "full"), "{row}");
    }
    let one = printed(&["list", "papers", "lora"]);
    for text in ["arXiv:2602.02855", "lora/fig09-third-hermite", "docs/derivations/lora.md"] {
        assert!(one.contains(text), "{text}: {one}");
    }
}

#[test]
fn reproduce_without_a_name_lists_papers_and_runs_nothing() {
    // Estimates are measured, so that they differ a little from call to call.
    let keys = |text: String| -> Vec<String> {
        text.lines().filter_map(|line| line.split_whitespace().next().map(String::from)).collect()
    };
    assert_eq!(keys(printed(&["reproduce"])), keys(printed(&["list", "papers"])));
    for (wanted, hint) in [
        ("lor", "did you mean `lora`?"),
        ("lora/fig9", "did you mean `lora/fig09-third-hermite`?"),
        ("committee/plateau", "did you mean `committee/extra-plateau`?"),
    ] {
        let run = didact().args(["reproduce", wanted]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{wanted}");
        assert!(String::from_utf8_lossy(&run.stderr).contains(hint), "{wanted}");
    }
}
