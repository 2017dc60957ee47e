//! The singular-value equations: curves and half-loss times.

use super::{
    EPSILON, OR_FLOW, RHO0, STUDENTS, TEACHERS, domain, epsilon, orthonormal, rate_or_flow, required, widths,
};
use crate::quadratic::escape::Starts;
use crate::quadratic::singular::{HalfLoss, SingularFlow};
use didact_math::ode::OdeError;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::json;

const CAP: Input = Input {
    name: "cap",
    kind: Kind::Number,
    default: Some("100000"),
    about: "time after which a start counts as not converged",
};
const STARTS: Input =
    Input { name: "starts", kind: Kind::Count, default: Some("20"), about: "number of random starts" };
const SEED: Input =
    Input { name: "seed", kind: Kind::Number, default: Some("0"), about: "seed of the starts" };

/// The longest time, positive.
fn cap(arguments: &Arguments) -> Result<f64, QuantityError> {
    let cap = arguments.number("cap");
    if cap > 0.0 { Ok(cap) } else { domain(format!("cap is {cap}; a time is positive")) }
}

fn numerical(error: OdeError) -> QuantityError {
    QuantityError::Domain(error.to_string())
}

pub(super) const TIME: Quantity = Quantity {
    name: "half-loss-time",
    summary: "first time at which R = R(0)/2 from Q(0) = 1: alpha where eta is given, t of the gradient flow otherwise",
    inputs: &[RHO0, OR_FLOW, CAP],
    outputs: &["time", "initial-risk"],
    compute: time,
};

fn time(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let start = orthonormal(arguments, "rho0")?;
    let flow = SingularFlow::new(&start.rho, 1.0, rate_or_flow(arguments)?);
    let cap = cap(arguments)?;
    match flow.half_loss(cap).map_err(numerical)? {
        HalfLoss::Reached(time) => {
            Ok(vec![("time", json!(time)), ("initial-risk", json!(flow.initial_risk()))])
        }
        HalfLoss::Diverged(time) => {
            domain(format!("the norms run away at {time:.4}; use a smaller learning rate"))
        }
        HalfLoss::Later => domain(format!(
            "not before {cap}; raise `cap`, or use a learning rate below those of `learning-rates`"
        )),
        HalfLoss::Never(floor) => domain(format!(
            "the risk never falls below {floor:.5}, which is more than half of R(0) = {:.5}: too few students, or dependent overlaps",
            flow.initial_risk()
        )),
    }
}

fn starts(arguments: &Arguments) -> Result<Starts, QuantityError> {
    Ok(Starts {
        students: arguments.count_up_to("p", 200)?,
        teachers: arguments.count_up_to("p_star", 200)?,
        deviation: epsilon(arguments)?,
        count: arguments.count_up_to("starts", 10_000)? as u32,
        seed: arguments.number("seed") as u64,
    })
}

pub(super) const STATISTICS: Quantity = Quantity {
    name: "half-loss-statistics",
    summary: "mean half-loss time over Gaussian starts, its standard error, and the fraction of starts that never get there",
    inputs: &[STUDENTS, TEACHERS, EPSILON, OR_FLOW, STARTS, SEED, CAP],
    outputs: &["mean", "error", "not-converged"],
    compute: |a| {
        let starts = starts(a)?;
        let found = starts.half_loss(rate_or_flow(a)?, cap(a)?).map_err(numerical)?;
        // A mean over the starts that converged would be biased: there is none unless all did.
        let all = found.missed == 0;
        let answer = vec![
            ("mean", if all { json!(found.times.mean()) } else { json!(null) }),
            ("error", if all { json!(found.times.standard_error()) } else { json!(null) }),
            ("not-converged", json!(f64::from(found.missed) / f64::from(starts.count))),
        ];
        let biased = "not all starts lose half of their loss before `cap`";
        Ok(explained(answer, &[("mean", biased), ("error", biased)]))
    },
};

pub(super) const OPTIMUM: Quantity = Quantity {
    name: "half-loss-optimum",
    summary: "learning rate with the shortest mean half-loss time over Gaussian starts, and that time in alpha",
    inputs: &[STUDENTS, TEACHERS, EPSILON, STARTS, SEED, CAP],
    outputs: &["eta", "alpha", "eta-per-p"],
    compute: |a| {
        let w = widths(a);
        let highest =
            if w.student >= w.teacher { w.solution_rate().min(w.plateau_rate()) } else { w.plateau_rate() };
        let found = starts(a)?.best_learning_rate(0.05 * highest, highest, cap(a)?);
        let (eta, alpha) = found.map_err(numerical)?;
        if !alpha.is_finite() {
            return domain(
                "at no learning rate do all starts reach half of their loss; more students or a larger `cap` are needed",
            );
        }
        Ok(vec![("eta", json!(eta)), ("alpha", json!(alpha)), ("eta-per-p", json!(eta / w.student))])
    },
};

pub(super) const TRAJECTORY: Quantity = Quantity {
    name: "singular-trajectory",
    summary: "risk and singular values of rho from Q(0) = 1 at given times, by p + min(p, p*) equations in place of matrices",
    inputs: &[
        RHO0,
        OR_FLOW,
        required("times", Kind::Numbers, "increasing times, alpha where eta is given, else t"),
    ],
    outputs: &["risk", "last-risk", "singular-values", "times"],
    compute: |a| {
        let start = orthonormal(a, "rho0")?;
        let times = a.numbers("times");
        let flow = SingularFlow::new(&start.rho, 1.0, rate_or_flow(a)?);
        let states = flow.run(&times).map_err(numerical)?;
        if states.len() < times.len() {
            return domain("the norms run away before the last time; use a smaller learning rate");
        }
        let (values, risks): (Vec<_>, Vec<_>) =
            states.iter().map(|(rho, risk)| (didact_math::linalg::svd(rho).values, *risk)).unzip();
        Ok(vec![
            ("risk", json!(risks)),
            ("last-risk", json!(risks.last())),
            ("singular-values", json!(values)),
            ("times", json!(times)),
        ])
    },
};
