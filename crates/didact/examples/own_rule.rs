//! A student and a teacher of your own: a unit with a gate, g(h) = h s(h) with s the logistic function, learns under the Huber loss.
//!
//! `cargo run --release -p didact --example own_rule`

use didact::prelude::*;

/// f(h) = h/(1 + e⁻ʰ) of one row.
#[derive(Debug)]
struct Gated;

impl Gated {
    /// f and f′.
    fn value_and_slope(h: f64) -> (f64, f64) {
        let s = 1.0 / (1.0 + (-h).exp());
        (h * s, s + h * s * (1.0 - s))
    }
}

impl Student for Gated {
    fn shape(&self) -> Shape {
        Shape { trained: 1, ..Shape::default() }
    }
    fn output(&self, fields: &[f64], _: &[f64]) -> f64 {
        Self::value_and_slope(fields[0]).0
    }
    fn gradient(&self, fields: &[f64], _: &[f64], out: &mut Kick) -> f64 {
        let (value, slope) = Self::value_and_slope(fields[0]);
        out.rows[0] = slope;
        value
    }
}

impl Teacher for Gated {
    fn directions(&self) -> usize {
        1
    }
    fn label(&self, fields: &[f64]) -> f64 {
        Self::value_and_slope(fields[0]).0
    }
}

#[expect(clippy::print_stdout, reason = "a program for a terminal")]
fn main() -> Result<(), BuildError> {
    let rule = TeacherStudent::new(Gated, Gated, Loss::Huber { kappa: 1.0 });
    let problem = Problem::of_rule(rule).start([[0.3]], [[0.05]]).learning_rate(0.8).dimension(400);
    let record = Record::until(40.0, 5).observe(["loss", "alignment[0,0]"]).replicas(8);
    let (theory, sgd) = (problem.run(Ode::default(), &record)?, problem.run(Direct, &record)?);
    println!("steps/d  alignment: theory, SGD with d = 400");
    let (a, b) =
        (theory.mean("alignment[0,0]").unwrap_or_default(), sgd.mean("alignment[0,0]").unwrap_or_default());
    for ((time, a), b) in theory.times.iter().zip(a).zip(b) {
        println!("{time:6.1}   {:.4}   {:.4} ± {:.4}", a.value, b.value, b.error);
    }
    Ok(())
}
