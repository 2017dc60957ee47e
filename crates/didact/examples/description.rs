//! A description from Rust: read, change a key, check what it would cost, and run one of its runs in memory.
//!
//! `cargo run --release -p didact --example description`

use didact::experiment::{Experiment, Size, Source};
use didact::prelude::*;

const TEXT: &str = r#"
title = "One erf unit"
model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
training = { learning-rate = 1.0 }
start = { q = [[0.5]], r = [[0.1]] }
record = { times = [0, 5, 10, 20] }
sweep = { "training.learning-rate" = [0.5, 1.0, 2.0] }
"#;

#[expect(clippy::print_stdout, reason = "a program for a terminal")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = Source { name: "one-unit.toml".into(), text: TEXT.into() };
    let experiment = Experiment::new(source, Size::Normal, None).map_err(|error| error.to_string())?;
    for run in &experiment.runs {
        let trajectory = run.schedule.run(&NoMonitor)?;
        let loss = trajectory.mean("loss").unwrap_or_default();
        for (time, mean) in trajectory.times.iter().zip(loss) {
            println!("{:<32} loss {:.3e} after {time} steps/d", run.point.label(), mean.value);
        }
    }
    Ok(())
}
