//! The workloads that didact shares with other tools, printed one JSON line each, and its own scaling tables.
//!
//!     cargo run --release -p didact-bench -- W1 W2 W3       # workloads, one thread
//!     cargo run --release -p didact-bench -- W4 W5          # on one thread, then on two
//!     cargo run --release -p didact-bench -- mean-field     # mean-field theory of other rules
//!     cargo run --release -p didact-bench -- against 8 W5 python peers.py    # takes turns with another program, prints ratios
//!     cargo run --release -p didact-bench -- cli            # the command line, process start included
//!     cargo run --release -p didact-bench -- cost           # cost per step and per call of the parts
//!     cargo run --release -p didact-bench -- spectra        # committees on spectra: against L and width
//!     cargo run --release -p didact-bench -- own-units      # units without closed forms, against erf units
//!     cargo run --release -p didact-bench -- own-units-errors    # the same, with errors against precise runs (minutes)
//!
//! A line is `{"workload", "peer", "seconds", "work", "result"}`: seconds is the best of 3 after one untimed call, and
//! `result.ok` says that the numbers that prove the work are right. Compare only lines of the same machine and hour.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod cli;
mod committee;
mod cost;
mod descent;
mod harness;
mod lora;
mod low_rank;
mod own_units;
mod portable;
mod spectra;

use didact_math::ode::Method;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if asked.first().is_some_and(|word| word == "against") {
        if let Err(problem) = against::alternate(&asked[1..]) {
            eprintln!("error: {problem}");
            std::process::exit(2);
        }
        return;
    }
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name || a == "all");
    if wants("W1") {
        committee::ode("Adams", Method::Adams);
        committee::ode("DOP853", Method::Dop853);
    }
    if wants("W2") {
        committee::direct();
        committee::reduced();
    }
    if wants("W3") || wants("W3-reduced") {
        lora::reduced();
    }
    if wants("W3") || wants("W3-direct") {
        lora::direct();
    }
    if wants("cost") || wants("lora") {
        lora::steps();
    }
    if wants("W4") {
        [1, 2].into_iter().for_each(descent::full_batch);
    }
    if wants("W5") {
        [1, 2].into_iter().for_each(descent::mean_field);
    }
    if wants("cost") || wants("mean-field") {
        descent::other_rules();
    }
    if wants("cli") {
        cli::commands();
    }
    if wants("cost") || wants("steps") {
        cost::reduced_steps();
    }
    if wants("cost") || wants("low-rank") {
        low_rank::reduced_steps();
    }
    if wants("cost") || wants("parts") {
        cost::parts();
    }
    if wants("own-units") {
        own_units::lines(false);
    }
    if asked.iter().any(|a| a == "own-units-errors") {
        own_units::lines(true);
    }
    if wants("cost") || wants("spectra") {
        spectra::right_hand_sides();
        spectra::solutions();
        spectra::largest();
    }
}
