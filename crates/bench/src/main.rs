//! Timed workloads, printed as one JSON line each. W1 to W5 are workloads that can be run by other programs too, for
//! comparison; the others measure how the cost of parts of didact depends on their size.
//!
//! ```text
//! cargo run --release -p didact-bench -- W1 W2 W3       # these workloads, on one thread
//! cargo run --release -p didact-bench -- W4 W5          # on one thread, then on two
//! cargo run --release -p didact-bench -- mean-field     # mean-field theory of other rules
//! cargo run --release -p didact-bench -- against 8 W5 python peers.py    # alternate with another program, print ratios
//! cargo run --release -p didact-bench -- cli            # commands of the program, including process start
//! cargo run --release -p didact-bench -- cost           # time per step and per call of the parts
//! cargo run --release -p didact-bench -- formula        # models as formulas against the families that they spell out
//! cargo run --release -p didact-bench -- spectra        # committees on power-law spectra, against L and width
//! cargo run --release -p didact-bench -- own-units      # units without closed forms, against erf units
//! cargo run --release -p didact-bench -- own-units-errors    # the same, with errors against finer runs (minutes)
//! cargo run --release -p didact-bench -- estimates [PART]    # what `check` estimates for quick papers and examples, and what they take (minutes)
//! ```
//!
//! | workload | what is computed |
//! |---|---|
//! | W1 | order-parameter equations of an erf committee |
//! | W2 | SGD of this committee, with weights in d dimensions and with overlaps alone |
//! | W3 | mini-batch SGD of a LoRA neuron, with weights and with overlaps alone |
//! | W4 | full-batch gradient descent of a GeLU neuron |
//! | W5 | dynamical mean-field theory of W4 |
//!
//! A line is `{"workload", "peer", "seconds", "work", "result"}`. `seconds` is the least time of several calls (three, unless
//! the work says otherwise) after untimed ones. `result.ok` says whether the computed numbers agree with known values, so that a
//! fast but wrong run is noticed. Times are comparable only on the same machine at about the same time.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod cli;
mod committee;
mod cost;
mod descent;
mod estimates;
mod formula;
mod harness;
mod lora;
mod low_rank;
mod own_units;
mod portable;
mod spectra;

use didact_math::ode::Method;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if asked.first().is_some_and(|first| first == "against") {
        if let Err(problem) = against::alternate(&asked[1..]) {
            eprintln!("error: {problem}");
            std::process::exit(2);
        }
        return;
    }
    if asked.first().is_some_and(|first| first == "estimates") {
        estimates::lines(std::path::Path::new("."), asked.get(1).map(String::as_str));
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
    if wants("cost") || wants("formula") {
        formula::against_families();
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
