//! Norm learning, plateau, escape and learning rates.

use super::{
    DELTA, EPSILON, MOST_UNITS, RATE, STUDENTS, TEACHERS, delta, domain, epsilon, optional, rate, required,
    widths,
};
use crate::quadratic::plateau::{Widths, staircase};
use crate::quadratic::rates::FinitePlateau;
use crate::quadratic::stationary::manifold_dimension;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::json;

const TIME: Input = required("t", Kind::Number, "time t = eta alpha");

pub(super) const PLATEAU: Quantity = Quantity {
    name: "plateau",
    summary: "plateau of small learning rates: growth of rho, decay of Q offdiagonal and of the common norm per t, squared norm, risk; risks of the staircase",
    inputs: &[STUDENTS, TEACHERS],
    outputs: &["growth", "decay", "norm", "risk", "norm-rate", "initial-risk", "least-risk", "staircase"],
    compute: |a| {
        let w = widths(a);
        let learned = a.count_up_to("p", MOST_UNITS).and(a.count_up_to("p_star", MOST_UNITS));
        let learned = learned.map(|_| w.student.min(w.teacher) as usize)?;
        let steps: Vec<f64> = (0..=learned).map(|s| staircase(w, s as f64)).collect();
        Ok(vec![
            ("growth", json!(w.growth())),
            ("decay", json!(w.decay())),
            ("norm", json!(w.plateau_norm())),
            ("risk", json!(w.plateau_risk())),
            ("norm-rate", json!(8.0 / w.student)),
            ("initial-risk", json!(w.initial_risk())),
            ("least-risk", json!(w.least_risk())),
            ("staircase", json!(steps)),
        ])
    },
};

pub(super) const NORM_LEARNING: Quantity = Quantity {
    name: "norm-learning",
    summary: "squared norm of the students and gain rho(t)/rho(0) while norms relax to the plateau",
    inputs: &[
        STUDENTS,
        TEACHERS,
        TIME,
        Input {
            name: "q0",
            kind: Kind::Number,
            default: Some("1"),
            about: "squared norm of every student at the start",
        },
    ],
    outputs: &["norm", "gain"],
    compute: |a| {
        let norm = a.number("q0");
        if norm <= 0.0 {
            return domain(format!("q0 is {norm}; w = 0 is a stationary point, use a positive squared norm"));
        }
        let (q, gain) = widths(a).norm_learning(norm, a.number("t"));
        Ok(vec![("norm", json!(q)), ("gain", json!(gain))])
    },
};

pub(super) const LOSS_REDUCTION: Quantity = Quantity {
    name: "plateau-loss-reduction",
    summary: "mean relative loss reduction at a time t from plateau onset, and from Q = 1 (eps^2 times p/(p+2))",
    inputs: &[STUDENTS, TEACHERS, EPSILON, TIME],
    outputs: &["from-plateau", "from-orthonormal"],
    compute: |a| {
        let (w, eps, t) = (widths(a), epsilon(a)?, a.number("t"));
        Ok(vec![
            ("from-plateau", json!(w.loss_reduction(eps, t))),
            ("from-orthonormal", json!(w.loss_reduction(eps * w.plateau_norm().sqrt(), t))),
        ])
    },
};

pub(super) const ESCAPE_TIME: Quantity = Quantity {
    name: "escape-time",
    summary: "time t at which the loss has dropped by delta of the plateau (linear theory), from the plateau and from Q = 1",
    inputs: &[
        STUDENTS,
        TEACHERS,
        required("sum_rho2", Kind::Number, "sum of the squared overlaps at the start"),
        DELTA,
    ],
    outputs: &["from-plateau", "from-orthonormal"],
    compute: |a| {
        let n2 = a.number("sum_rho2");
        if n2 <= 0.0 {
            return domain(format!(
                "sum_rho2 is {n2}: without overlaps the equations stay on the plateau for ever; see `noise-seeded-escape`"
            ));
        }
        let (from_plateau, from_orthonormal) = widths(a).escape_times(n2, delta(a)?);
        Ok(vec![("from-plateau", json!(from_plateau)), ("from-orthonormal", json!(from_orthonormal))])
    },
};

pub(super) const ESCAPE_STATISTICS: Quantity = Quantity {
    name: "escape-time-statistics",
    summary: "mean and standard deviation of the escape time t from Q = 1 over Gaussian overlaps (linear theory); per unit: in t/p, one deviation below and above",
    inputs: &[STUDENTS, TEACHERS, EPSILON, DELTA],
    outputs: &["mean", "deviation", "mean-per-unit", "lower-per-unit", "upper-per-unit"],
    compute: |a| {
        let w = widths(a);
        let (mean, deviation) = w.escape_statistics(epsilon(a)?, delta(a)?);
        let per_unit = |deviations: f64| json!((mean + deviations * deviation) / w.student);
        Ok(vec![
            ("mean", json!(mean)),
            ("deviation", json!(deviation)),
            ("mean-per-unit", per_unit(0.0)),
            ("lower-per-unit", per_unit(-1.0)),
            ("upper-per-unit", per_unit(1.0)),
        ])
    },
};

/// The plateau at the learning rate asked for.
fn finite(arguments: &Arguments) -> Result<(Widths, FinitePlateau), QuantityError> {
    let (w, eta) = (widths(arguments), rate(arguments)?);
    match w.finite_plateau(eta) {
        Some(found) => Ok((w, found)),
        None => domain(format!(
            "no plateau at eta = {eta}: norms run away above {:.6}; use a smaller learning rate",
            w.plateau_rate()
        )),
    }
}

pub(super) const FINITE_RATE: Quantity = Quantity {
    name: "plateau-finite-rate",
    summary: "plateau at a finite learning rate: squared norm, and growth of rho per unit alpha (negative: stable)",
    inputs: &[STUDENTS, TEACHERS, RATE],
    outputs: &["norm", "growth"],
    compute: |a| {
        let (_, found) = finite(a)?;
        Ok(vec![("norm", json!(found.norm)), ("growth", json!(found.growth))])
    },
};

pub(super) const LEARNING_RATES: Quantity = Quantity {
    name: "learning-rates",
    summary: "learning rates: stability of solutions (p >= p*), existence and stability of the plateau, fastest escape and its growth per alpha",
    inputs: &[STUDENTS, TEACHERS],
    outputs: &["solution", "plateau", "fastest", "largest-growth", "stable-plateau", "usable"],
    compute: |a| {
        let w = widths(a);
        let (fastest, growth) = w.fastest_escape();
        let solution = (w.student >= w.teacher).then(|| w.solution_rate());
        let usable = solution.unwrap_or(f64::INFINITY).min(w.plateau_rate());
        let answer = vec![
            ("solution", json!(solution)),
            ("plateau", json!(w.plateau_rate())),
            ("fastest", json!(fastest)),
            ("largest-growth", json!(growth)),
            ("stable-plateau", json!(w.stable_plateau_rate())),
            ("usable", json!(usable)),
        ];
        let reasons = [
            ("solution", "fewer students than teachers have no solution"),
            ("stable-plateau", "the plateau is never stable"),
        ];
        Ok(explained(answer, &reasons))
    },
};

pub(super) const NOISE_SEEDED: Quantity = Quantity {
    name: "noise-seeded-escape",
    summary: "escape from rho(0) = 0 at finite N: noise variance V (`feed`) and noise floor kappa in N<rho_kl^2> = (N rho(0)^2 + kappa) exp(2 Gamma alpha) - kappa",
    inputs: &[
        STUDENTS,
        TEACHERS,
        RATE,
        optional(
            "alpha",
            Kind::Number,
            "adds N times the sum of all <rho_kl^2> at this alpha, from rho(0) = 0",
        ),
    ],
    outputs: &["feed", "kappa", "growth", "relative-noise", "overlap"],
    compute: noise_seeded,
};

fn noise_seeded(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (w, found) = finite(arguments)?;
    let mut answer = vec![
        ("feed", json!(found.noise_variance)),
        ("kappa", json!(found.noise_floor)),
        ("growth", json!(found.growth)),
        // Relative size of the noise beside a random start, rho(0)^2 = 1/N, which norm learning scales to Qbar/N.
        ("relative-noise", json!((found.noise_floor / found.norm).abs().sqrt())),
    ];
    if arguments.given("alpha") {
        let grown = (2.0 * found.growth * arguments.number("alpha")).exp_m1();
        answer.push(("overlap", json!(w.student * w.teacher * found.noise_floor * grown)));
    }
    Ok(answer)
}

pub(super) const SPHERICAL: Quantity = Quantity {
    name: "spherical-rate",
    summary: "rows of norm 1: growth of rho per unit alpha at Q = 1, largest learning rate with escape, dimension of the solutions",
    inputs: &[STUDENTS, TEACHERS, RATE],
    outputs: &["growth", "largest-rate", "manifold-dimension"],
    compute: |a| {
        let (w, p, teachers) = (widths(a), a.count("p") as u64, a.count("p_star") as u64);
        // Unit norms are p conditions; one is implied by the trace, all of them for p = p*.
        let conditions = if p > teachers { p - 1 } else { 0 };
        let dimension = manifold_dimension(u64::MAX, teachers, p).map(|d| d - conditions);
        let answer = vec![
            ("growth", json!(w.spherical_growth(rate(a)?))),
            ("largest-rate", json!(w.spherical_rate())),
            ("manifold-dimension", json!(dimension)),
        ];
        Ok(explained(answer, &[("manifold-dimension", "fewer students than teachers have no solution")]))
    },
};
