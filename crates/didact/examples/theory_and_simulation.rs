//! Two erf units learn from two: the order-parameter equations beside SGD in 1000 dimensions, with the time of specialisation.
//!
//! `cargo run --release -p didact --example theory_and_simulation`

use didact::prelude::*;

#[expect(clippy::print_stdout, reason = "a program for a terminal")]
fn main() -> Result<(), BuildError> {
    let problem = Problem::of(Committee::soft(2, 2, "erf(z/sqrt2)"))
        .start([[0.25, 0.0], [0.0, 0.25]], [[0.1, 0.0], [0.0, 0.1]])
        .learning_rate(1.0)
        .dimension(1000);
    let record =
        Record::until(80.0, 9).replicas(32).seed(7).event("specialised", "R[0,0]", Crossing::Rises, 0.9);
    let theory = problem.run(Ode::default(), &record)?;
    let sgd = problem.run(Reduced, &record)?;

    println!("steps/d   theory     SGD, d = 1000");
    let simulated = sgd.mean("loss").unwrap_or_default();
    for ((time, predicted), s) in
        theory.times.iter().zip(theory.mean("loss").unwrap_or_default()).zip(simulated)
    {
        println!("{time:6.1}  {:9.6}  {:9.6} ± {:.6}", predicted.value, s.value, s.error);
    }
    let passed = |t: &Trajectory| -> Vec<f64> {
        t.event("specialised").unwrap_or_default().iter().flatten().copied().collect()
    };
    let (limit, times) = (passed(&theory), passed(&sgd));
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    println!(
        "specialised at {:.1} in theory, at {mean:.1} on average over {} replicas",
        limit[0],
        times.len()
    );
    Ok(())
}
