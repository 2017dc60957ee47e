//! Every way of training: `reduced` and `direct` agree in law where 1/d is large, and what changes nothing changes no bit.

use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::start::Given;
use didact_model::training::{Batches, Drift, FactorSchedule, GradientMap, Momentum, MomentumKind, Training};
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Trajectory, observable};
use didact_simulate::{Direct, FullBatch, Reduced};
use std::sync::Arc;

fn problem(training: Training, spectrum: Spectrum, dimension: u64) -> Problem {
    let spec = Committee { train_output: true, ..Committee::soft(2, 2, "erf(z/sqrt2)") };
    let rule = spec.rule().unwrap();
    let q = Mat::from_rows(&[vec![0.5, 0.1], vec![0.1, 0.4]]).unwrap();
    let r = Mat::from_rows(&[vec![0.3, 0.05], vec![0.1, 0.25]]).unwrap();
    let parts = (&q, &r, &Mat::identity(2));
    let start = Overlaps::spread(rule.shape(), &spectrum, parts, spec.starting_scalars()).unwrap();
    let clock = if training.samples.is_some() { Clock::Steps } else { Clock::Alpha };
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(dimension),
        training,
        start: Arc::new(Given(start)),
        clock,
    }
}

fn run(engine: &dyn Engine, problem: &Problem, times: &[f64], replicas: u32) -> Trajectory {
    let mut names = vec!["loss", "Q[0,0]", "Q[0,1]", "R[0,0]", "R[1,0]", "R[1,1]", "scalar[0]"];
    if problem.training.momentum.is_some() && problem.training.samples.is_none() {
        names.extend(["Qwp[0,1]", "Qpp[0,0]", "Rp[1,1]"]);
    }
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let record = Record { replicas, seed: 11, ..Record::new(times.to_vec(), observables) };
    engine.run(problem, &record, &NoMonitor).unwrap()
}

fn online() -> Training {
    Training { scalar_ratio: 0.5, label_noise: 0.3, ..Training::online(0.7) }
}

fn all_ways() -> Vec<(&'static str, Training)> {
    let rotation = Mat::from_rows(&[vec![0.0, 0.8], vec![-0.8, 0.0]]).unwrap();
    let sphere = |retraction| Constraint { sphere: Some(retraction), ..Constraint::none() };
    let decay = Constraint { weight_decay: 0.3, ..Constraint::none() };
    let off = Constraint { off_frozen: true, weight_decay: 0.2, ..Constraint::none() };
    vec![
        ("heavy ball", Training { momentum: Some(Momentum::heavy_ball(0.6)), ..online() }),
        ("nesterov", Training { momentum: Some(Momentum::nesterov(0.6)), constraint: decay, ..online() }),
        ("rate", Training { momentum: Some(Momentum::rate(4.0)), constraint: decay, ..online() }),
        (
            "rate, ahead, on the sphere",
            Training {
                momentum: Some(Momentum { kind: MomentumKind::Nesterov, ..Momentum::rate(6.0) }),
                constraint: sphere(Retraction::Euclidean),
                ..online()
            },
        ),
        (
            "momentum off frozen rows",
            Training { momentum: Some(Momentum::heavy_ball(0.5)), constraint: off, ..online() },
        ),
        ("schedule", Training { schedule: FactorSchedule::formula("1/(1+2*t)").unwrap(), ..online() }),
        ("clip, batch", Training { gradient: GradientMap::Clip(0.3), batch: 3, ..online() }),
        (
            "normalised, tangent",
            Training {
                gradient: GradientMap::Normalised,
                constraint: sphere(Retraction::Tangent),
                ..online()
            },
        ),
        ("diffusion", Training { drift: Some(Drift::diffusion(1.5)), ..online() }),
        ("rotation", Training { drift: Some(Drift::rotation(rotation)), ..online() }),
        ("trained levels", Training { trained_levels: Some(1), constraint: decay, ..online() }),
        (
            "trained levels, momentum",
            Training { trained_levels: Some(1), momentum: Some(Momentum::rate(4.0)), batch: 2, ..online() },
        ),
        ("dropout", Training { dropout: Some(0.6), batch: 2, ..online() }),
        ("input noise", Training { input_noise: 0.8, batch: 2, ..online() }),
        ("weight noise", Training { weight_noise: 0.8, batch: 2, ..online() }),
        (
            "noise and momentum",
            Training { weight_noise: 0.5, input_noise: 0.5, momentum: Some(Momentum::rate(3.0)), ..online() },
        ),
    ]
}

#[test]
fn reduced_and_direct_agree_in_law_for_every_way_that_both_run() {
    let spectra = [
        (Spectrum::isotropic(), 16),
        // An eigenspace with fewer dimensions than rows is kept coordinate by coordinate.
        (Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap(), 20),
    ];
    for (name, training) in all_ways() {
        for (spectrum, dimension) in &spectra {
            let problem = problem(training.clone(), spectrum.clone(), *dimension);
            let runs = [&Reduced as &dyn Engine, &Direct].map(|e| run(e, &problem, &[0.0, 1.0], 1500));
            for column in runs[0].column_names() {
                let [a, b] = [0, 1].map(|i| runs[i].mean(column).unwrap());
                assert!((a[0].value - b[0].value).abs() < 1e-12, "{name}: {column} at the start");
                // Lengths on the sphere do not scatter but by rounding.
                let error = a[1].error.hypot(b[1].error).max(1e-14);
                let z = (a[1].value - b[1].value) / error;
                let (a, b) = (a[1].value, b[1].value);
                assert!(z.abs() < 4.5, "{name}, d = {dimension}: {column} is {a} and {b}, z = {z}");
            }
        }
    }
}

/// What a user writes who asks for nothing.
fn nothing(base: Training) -> Training {
    Training {
        momentum: Some(Momentum::heavy_ball(0.0)),
        gradient: GradientMap::Clip(f64::INFINITY),
        dropout: Some(1.0),
        schedule: FactorSchedule::formula("1").unwrap(),
        ..base
    }
}

#[test]
fn what_changes_nothing_changes_no_bit() {
    let drift = Some(Drift::diffusion(0.0));
    for engine in [&Reduced as &dyn Engine, &Direct] {
        let plain = problem(online(), Spectrum::isotropic(), 40);
        let same = problem(Training { drift: drift.clone(), ..nothing(online()) }, Spectrum::isotropic(), 40);
        let (a, b) = (run(engine, &plain, &[0.5, 2.0], 4), run(engine, &same, &[0.5, 2.0], 4));
        assert_eq!(a.curves("loss"), b.curves("loss"), "{}", engine.name());
    }
    let base = || Training { label_noise: 0.2, ..Training::full_batch(0.3, 3.0) };
    let whole = Some(Batches::independent(1.0));
    let plain = problem(base(), Spectrum::isotropic(), 30);
    let same = problem(Training { batches: whole, ..nothing(base()) }, Spectrum::isotropic(), 30);
    let (a, b) =
        (run(&FullBatch::default(), &plain, &[3.0], 2), run(&FullBatch::default(), &same, &[3.0], 2));
    assert_eq!(a.curves("loss"), b.curves("loss"));
}

#[test]
fn a_constant_factor_is_a_rate_and_the_flow_clock_follows_it() {
    // Half the rate by a schedule that is no number: the general chain against the plain one, in law.
    let half = FactorSchedule::formula("0.5 + 0*t").unwrap();
    let slow = problem(Training { schedule: half, ..online() }, Spectrum::isotropic(), 30);
    let plain = problem(Training { learning_rate: 0.35, ..online() }, Spectrum::isotropic(), 30);
    for clock in [Clock::Alpha, Clock::Flow, Clock::Steps] {
        let times = if clock == Clock::Steps { [0.0, 30.0] } else { [0.0, 0.7] };
        let [a, b] = [&slow, &plain].map(|p| {
            let problem = Problem { clock, ..p.clone() };
            run(&Reduced, &problem, &times, 1500).mean("loss").unwrap()[1]
        });
        let z = (a.value - b.value) / a.error.hypot(b.error);
        assert!(z.abs() < 4.5, "{clock:?}: {} and {}, z = {z}", a.value, b.value);
    }
}

/// Exact means of a linear unit under momentum, step by step (docs/derivations/training-rules.md#s3).
#[test]
fn reduced_has_the_exact_means_of_a_linear_unit_with_momentum() {
    let spec = Committee::soft(1, 1, "linear");
    let rule = spec.rule().unwrap();
    let (d, s2, a0, steps) = (40_u64, 0.2_f64, 1.3, 60);
    let one = |x: f64| Mat::identity(1).scaled(x);
    let start = Overlaps::spread(
        rule.shape(),
        &Spectrum::isotropic(),
        (&one(1.0 + a0), &one(1.0), &one(1.0)),
        vec![],
    )
    .unwrap();
    for (momentum, beta, s) in [
        (Momentum::heavy_ball(0.8), 0.8, 0.2 / d as f64),
        (Momentum::rate(3.0), 1.0 - 3.0 / d as f64, 3.0 * 0.2 / (d * d) as f64),
    ] {
        let training = Training { momentum: Some(momentum), label_noise: s2.sqrt(), ..Training::online(0.2) };
        let problem = Problem {
            rule: rule.clone(),
            about: spec.about(),
            spectrum: Spectrum::isotropic(),
            dimension: Some(d),
            training,
            start: Arc::new(Given(start.clone())),
            clock: Clock::Steps,
        };
        let names = ["loss", "Qwp[0,0] - Rp[0,0]", "Qpp[0,0]"];
        let observables = names.iter().flat_map(|n| observable::parse(n, &problem).unwrap()).collect();
        let record = Record { replicas: 4000, seed: 3, ..Record::new(vec![f64::from(steps)], observables) };
        let run = Reduced.run(&problem, &record, &NoMonitor).unwrap();
        let (mut a, mut b, mut c) = (a0, 0.0, 0.0);
        let (z, n) = (s * s * (d as f64 + 2.0), s * s * d as f64 * s2);
        for _ in 0..steps {
            let next = [
                (1.0 - 2.0 * s + z) * a + (2.0 * beta - 2.0 * s * beta) * b + beta * beta * c + n,
                (z - s) * a + (beta - 2.0 * s * beta) * b + beta * beta * c + n,
                z * a - 2.0 * s * beta * b + beta * beta * c + n,
            ];
            [a, b, c] = next;
        }
        let d = d as f64;
        for (name, exact) in names.iter().zip([0.5 * a, d * b, d * d * c]) {
            let mean = run.mean(name).unwrap()[0];
            let z = (mean.value - exact) / mean.error;
            assert!(z.abs() < 4.5, "{name}: {} +- {} and {exact}", mean.value, mean.error);
        }
    }
}
