//! A few rounds of every kind, so that `cargo test` notices at once what `.ci/run` would notice in 500.

use std::process::Command;

fn torture(arguments: &[&str]) -> (bool, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_didact-torture")).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    (ended.status.success(), text)
}

#[test]
fn disturbed_runs_end_with_the_bytes_of_the_undisturbed_one() {
    // Far beyond the rounds that break every change of the disk in turn, all kinds are drawn.
    let (right, text) = torture(&["40", "--from", "10000", "--seed", "26"]);
    assert!(right, "{text}");
    for kind in ["full disk", "death", "kill", "together", "short reads", "clock", "damage", "panic"] {
        assert!(text.contains(kind), "no round had a {kind}: {text}");
    }
}

#[test]
fn a_wrong_argument_is_an_error() {
    let (right, text) = torture(&["many"]);
    assert!(!right && text.contains("`many` is no number of rounds"), "{text}");
}
