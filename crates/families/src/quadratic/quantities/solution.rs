//! Alignment of the two spaces, the solution that is reached, and how it is approached.

use super::{
    DIMENSION, OR_FLOW, Q0, RATE, RHO0, STUDENTS, TEACHERS, domain, full_rank, orthonormal, rate,
    rate_or_flow, required, state, widths,
};
use crate::quadratic::alignment::{
    alignment, alignment_at, closest_solution, commutator, polar_drift, polar_factor,
    squared_distance_to_solutions,
};
use crate::quadratic::plateau::Widths;
use didact_math::linalg::symmetric_eigen;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError, explained};
use serde_json::json;

pub(super) const ALIGNMENT: Quantity = Quantity {
    name: "alignment",
    summary: "K(t) = rho^T Q^-1 rho of the gradient flow from any start: matrix, eigenvalues, and times t at which directions are half learned",
    inputs: &[RHO0, Q0, required("t", Kind::Number, "time t = eta alpha")],
    outputs: &["K", "eigenvalues", "smallest", "largest", "half-times"],
    compute: |a| {
        let start = state(a, "rho0", "Q0")?;
        let (p, scale) = (start.rho.rows(), (start.rho.rows() * start.rho.cols()) as f64 / 16.0);
        let (now, then) = (alignment(&start), alignment_at(&alignment(&start), p, a.number("t")));
        // A direction that no student sees is never learned.
        let half = |k: &f64| (*k > 1e-15).then(|| scale * ((1.0 - k) / k).max(0.0).ln());
        let halves: Vec<Option<f64>> = symmetric_eigen(&now).values.iter().map(half).collect();
        let answer = vec![
            ("K", json!(then.to_rows())),
            ("eigenvalues", json!(symmetric_eigen(&then).values)),
            ("smallest", json!(symmetric_eigen(&then).values.first())),
            ("largest", json!(symmetric_eigen(&then).values.last())),
            ("half-times", json!(halves)),
        ];
        let never = "null where no student sees a direction, or it is learned at the start";
        Ok(explained(answer, &[("half-times", never)]))
    },
};

pub(super) const ENDPOINT: Quantity = Quantity {
    name: "endpoint",
    summary: "where learning ends: rho and Q there, its risk, squared distance from the start; exact when Q(0) commutes with rho(0) rho(0)^T",
    inputs: &[RHO0, Q0],
    outputs: &["rho", "Q", "risk", "squared-distance", "exact", "note"],
    compute: endpoint,
};

fn endpoint(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let start = state(arguments, "rho0", "Q0")?;
    full_rank(&start.rho)?;
    let end = closest_solution(&start.rho);
    let exact = commutator(&start) <= 1e-12 * start.q.max_abs();
    let perfect = start.rho.rows() >= start.rho.cols();
    let note = if !perfect {
        "fewer students than teachers: no student is perfect, and learning from Q(0) = 1 ends in this minimum of the risk"
    } else if exact {
        "the polar factor is conserved: learning ends here"
    } else {
        "Q(0) does not commute with rho(0) rho(0)^T: this is the solution closest to the start, but learning ends near it, not in it"
    };
    let answer = vec![
        ("rho", json!(end.rho.to_rows())),
        ("Q", json!(end.q.to_rows())),
        ("risk", json!(end.risk())),
        ("squared-distance", json!(perfect.then(|| squared_distance_to_solutions(&start)))),
        ("exact", json!(exact)),
        ("note", json!(note)),
    ];
    Ok(explained(answer, &[("squared-distance", "there is no perfect student to be distant from")]))
}

pub(super) const POLAR: Quantity = Quantity {
    name: "polar-factor",
    summary: "polar factor S = U V^T of the overlaps, conserved in the equations from Q(0) = 1, and its singular values",
    inputs: &[super::RHO],
    outputs: &["S", "singular-values"],
    compute: |a| {
        let rho = a.matrix("rho");
        full_rank(&rho)?;
        let polar = polar_factor(&rho);
        Ok(vec![("S", json!(polar.factor.to_rows())), ("singular-values", json!(polar.singular_values))])
    },
};

pub(super) const POLAR_DRIFT: Quantity = Quantity {
    name: "polar-drift",
    summary: "how far SGD noise moves the polar factor at finite N: root mean square of |S - S(0)| after the escape, to first order",
    inputs: &[RHO0, RATE, DIMENSION],
    outputs: &["drift"],
    compute: |a| {
        let start = orthonormal(a, "rho0")?;
        full_rank(&start.rho)?;
        let widths = Widths::new(start.rho.rows(), start.rho.cols());
        let Some(plateau) = widths.finite_plateau(rate(a)?) else {
            return domain(format!("no plateau: norms run away above eta = {:.6}", widths.plateau_rate()));
        };
        let relative = plateau.noise_floor / (plateau.norm * a.number("N"));
        Ok(vec![("drift", json!(polar_drift(&start.rho, relative)))])
    },
};

pub(super) const TAIL: Quantity = Quantity {
    name: "tail",
    summary: "power-law tail for p > p*, t = eta alpha: limits of R t^2, q_j t (one surplus norm) and |rho - rhobar| t",
    inputs: &[STUDENTS, TEACHERS, OR_FLOW],
    outputs: &["risk", "norm", "distance"],
    compute: |a| {
        let w = widths(a);
        if w.student <= w.teacher {
            return domain(
                "a power-law tail needs more students than teachers; for p = p* see `final-rate`, for p < p* the risk ends above 0",
            );
        }
        let (risk, norm, distance) = w.tail();
        let factor = match rate_or_flow(a)? {
            Some(eta) if eta >= w.solution_rate() => {
                return domain(format!("solutions are unstable from eta = {:.6} on", w.solution_rate()));
            }
            Some(eta) => w.tail_factor(eta),
            None => 1.0,
        };
        Ok(vec![("risk", json!(factor * risk)), ("norm", json!(norm)), ("distance", json!(distance))])
    },
};

pub(super) const FINAL_RATE: Quantity = Quantity {
    name: "final-rate",
    summary: "d ln R/d alpha at the end of learning for p = p*: -(16 eta/p p*)(1 - eta/eta_sol)",
    inputs: &[STUDENTS, TEACHERS, RATE],
    outputs: &["rate"],
    compute: |a| {
        let w = widths(a);
        if w.student != w.teacher {
            return domain("only p = p* ends exponentially to zero; for p > p* see `tail`");
        }
        Ok(vec![("rate", json!(w.final_rate(rate(a)?)))])
    },
};
