//! Stationary points, their Hessians, and dimensions of sets.

use super::{DIMENSION, MOST_UNITS, STUDENTS, TEACHERS, domain, required};
use crate::quadratic::stationary::{Stationary, manifold_dimension, student_degrees_of_freedom};
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError, explained};
use serde_json::json;

pub(super) const POINT: Quantity = Quantity {
    name: "stationary-point",
    summary: "stationary point (r, s): risk, norms, Hessian eigenvalues with multiplicities, index, null directions along the set of such points",
    inputs: &[
        STUDENTS,
        TEACHERS,
        DIMENSION,
        required("r", Kind::Number, "student directions outside the teacher space"),
        required("s", Kind::Number, "student directions inside the teacher space"),
    ],
    outputs: &[
        "risk",
        "outside-norm",
        "inside-norm",
        "spectrum",
        "eigenvalues",
        "multiplicities",
        "negative",
        "null",
        "positive",
        "tangent",
        "negative-per-null",
        "kind",
    ],
    compute: point,
};

/// A whole number, 0 included.
fn whole(value: f64, name: &str) -> Result<usize, QuantityError> {
    if (0.0..=MOST_UNITS as f64).contains(&value) && value.fract() == 0.0 {
        Ok(value as usize)
    } else {
        domain(format!("{name} is {value}; it counts directions: 0, 1, 2, ..."))
    }
}

fn point(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let point = Stationary {
        students: arguments.count_up_to("p", MOST_UNITS)?,
        teachers: arguments.count_up_to("p_star", MOST_UNITS)?,
        outside: whole(arguments.number("r"), "r")?,
        inside: whole(arguments.number("s"), "s")?,
    };
    let dimension = arguments.count("N");
    let domain = |e: crate::quadratic::stationary::StationaryError| QuantityError::Domain(e.to_string());
    let spectrum = point.hessian_spectrum(dimension).map_err(domain)?;
    let count = |keep: fn(f64) -> bool| spectrum.iter().filter(|l| keep(l.0)).map(|l| l.1).sum::<usize>();
    let (negative, zero) = (count(|v| v < 0.0), count(|v| v == 0.0));
    let tangent = point.tangent_directions(dimension).map_err(domain)?;
    let kind = match negative {
        0 => "minimum",
        all if all == point.students * dimension => "maximum",
        _ => "strict saddle",
    };
    let answer = vec![
        ("risk", json!(point.risk())),
        ("outside-norm", json!(point.outside_norm())),
        ("inside-norm", json!(point.inside_norm())),
        ("spectrum", json!(spectrum)),
        // The same as two lists, to draw one against the other.
        ("eigenvalues", json!(spectrum.iter().map(|l| l.0).collect::<Vec<_>>())),
        ("multiplicities", json!(spectrum.iter().map(|l| l.1).collect::<Vec<_>>())),
        ("negative", json!(negative)),
        ("null", json!(zero)),
        ("positive", json!(count(|v| v > 0.0))),
        ("tangent", json!(tangent)),
        ("negative-per-null", json!((zero > 0).then(|| negative as f64 / zero as f64))),
        ("kind", json!(kind)),
    ];
    Ok(explained(answer, &[("negative-per-null", "no direction is flat")]))
}

pub(super) const RISKS: Quantity = Quantity {
    name: "stationary-risk",
    summary: "risk of the stationary points (r, s); the width of the student does not enter",
    inputs: &[TEACHERS, required("r_s", Kind::Rows, "pairs [r, s]")],
    outputs: &["risk"],
    compute: |a| {
        let pairs = a.matrix("r_s");
        if pairs.cols() != 2 {
            return domain("r_s is a list of pairs [r, s]");
        }
        let mut risks = Vec::new();
        for row in pairs.to_rows() {
            let (outside, inside) = (whole(row[0], "r")?, whole(row[1], "s")?);
            let point =
                Stationary { students: outside + inside, teachers: a.count("p_star"), outside, inside };
            point.check(usize::MAX).map_err(|e| QuantityError::Domain(e.to_string()))?;
            risks.push(point.risk());
        }
        Ok(vec![("risk", json!(risks))])
    },
};

pub(super) const FREEDOM: Quantity = Quantity {
    name: "degrees-of-freedom",
    summary: "dimension of the set of functions that p students reach in N dimensions",
    inputs: &[DIMENSION, STUDENTS],
    outputs: &["count"],
    compute: |a| {
        let count = student_degrees_of_freedom(a.count("N") as u64, a.count("p") as u64);
        Ok(vec![("count", json!(count))])
    },
};

pub(super) const MANIFOLD: Quantity = Quantity {
    name: "manifold-dimension",
    summary: "dimension of the set of perfect students (p >= p*)",
    inputs: &[DIMENSION, TEACHERS, STUDENTS],
    outputs: &["dimension"],
    compute: |a| {
        let (n, teachers, p) = (a.count("N") as u64, a.count("p_star") as u64, a.count("p") as u64);
        match manifold_dimension(n, teachers, p) {
            Some(dimension) => Ok(vec![("dimension", json!(dimension))]),
            None => domain(format!(
                "{p} students cannot be perfect with {teachers} teachers in N = {n}; use p >= min(p*, N)"
            )),
        }
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    /// At every point allowed for p = 3, p* = 2, N = 8: the pairs of `spectrum`, apart, and pN directions in all.
    #[test]
    fn the_lists_of_eigenvalues_and_multiplicities_are_the_spectrum() {
        for (r, s) in [(0, 0), (3, 0), (0, 2), (0, 1), (1, 1), (2, 1)] {
            let inputs = json!({"p": 3, "p_star": 2, "N": 8, "r": r, "s": s});
            let answer = POINT.evaluate(inputs.as_object().unwrap()).unwrap();
            let entry =
                |name: &str| answer.iter().find(|e| e.0 == name).unwrap().1.as_array().unwrap().clone();
            let (values, counts) = (entry("eigenvalues"), entry("multiplicities"));
            let pairs: Vec<_> = values.iter().zip(&counts).map(|(v, n)| json!([v, n])).collect();
            assert_eq!(pairs, entry("spectrum"), "({r}, {s})");
            assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 24, "({r}, {s})");
        }
    }
}
