//! Functions that are linear between kinks, wherever these are: leaky ReLU with a shifted kink, hard tanh, tables of straight lines.

use super::{Activation, Form, Kink};

/// σ(z) = intercept + slope·z + Σ_j jump_j (z − at_j)₊, kinks ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearPieces {
    /// Value at 0 of the line left of all kinks.
    pub intercept: f64,
    /// Slope left of all kinks.
    pub slope: f64,
    /// Where the slope jumps, and by how much.
    pub kinks: Vec<Kink>,
}

/// Functions with more kinks than this have no advantage from being linear between them: every kink is a term of their averages.
const MOST_KINKS: usize = 8;
/// Rounding of formulas, and of functions that were fitted to numbers.
const ROUNDING: f64 = 1e-11;
/// Points that are tried on every piece.
const POINTS: i32 = 60;

impl LinearPieces {
    /// σ(z).
    pub fn value(&self, z: f64) -> f64 {
        let line = self.slope.mul_add(z, self.intercept);
        self.kinks.iter().fold(line, |sum, kink| kink.jump.mul_add((z - kink.at).max(0.0), sum))
    }

    /// σ′(z), half-way between its two sides at a kink.
    pub fn slope(&self, z: f64) -> f64 {
        let passed = |kink: &Kink| 0.5 * (f64::from(z > kink.at) + f64::from(z >= kink.at));
        self.kinks.iter().fold(self.slope, |sum, kink| sum + kink.jump * passed(kink))
    }

    /// Whether σ(−z) = −σ(z), up to rounding: every kink then has one of the opposite jump at the opposite place.
    pub fn is_odd(&self) -> bool {
        let close = |a: f64, b: f64| (a - b).abs() <= ROUNDING * (1.0 + a.abs());
        let opposite =
            |(one, other): (&Kink, &Kink)| close(one.at, -other.at) && close(one.jump, -other.jump);
        close(self.value(0.0), 0.0) && self.kinks.iter().zip(self.kinks.iter().rev()).all(opposite)
    }

    /// Of a function of known form, if it is one.
    pub(super) fn of_form(form: &Form) -> Option<Self> {
        if let Form::Polynomial(coefficients) = form {
            let [intercept, slope] = [0, 1].map(|k| coefficients.get(k).copied().unwrap_or(0.0));
            return (coefficients.len() <= 2).then_some(Self { intercept, slope, kinks: Vec::new() });
        }
        let [below, above] = form.sides()?;
        let kinks = if below == above { Vec::new() } else { vec![Kink { at: 0.0, jump: above - below }] };
        Some(Self { intercept: 0.0, slope: below, kinks })
    }

    /// Of a function with these kinks: `None` if it is not linear between them, which is seen from values and curvatures at many points
    /// of every piece.
    pub(super) fn of(activation: &dyn Activation) -> Option<Self> {
        let at = activation.kinks();
        if at.is_empty() || at.len() > MOST_KINKS || at.iter().any(|kink| kink.jump == 0.0) {
            return None;
        }
        // Distances from the end of an unbounded piece, dense near it and far into the tail.
        let away = |k: i32| f64::from(k) * 0.0717 + (f64::from(k) * 0.0431).powi(3);
        let (first, last) = (at[0].at, at[at.len() - 1].at);
        let mut pieces = vec![(1..=POINTS).rev().map(|k| first - away(k)).collect::<Vec<f64>>()];
        pieces.extend(at.windows(2).map(|ends| {
            let step = (ends[1].at - ends[0].at) / f64::from(POINTS + 1);
            (1..=POINTS).map(|k| ends[0].at + f64::from(k) * step).collect()
        }));
        pieces.push((1..=POINTS).map(|k| last + away(k)).collect());
        let lines: Vec<(f64, f64)> =
            pieces.iter().map(|points| line(activation, points)).collect::<Option<_>>()?;
        let kinks = at.iter().zip(lines.windows(2));
        let kinks = kinks.map(|(kink, sides)| Kink { at: kink.at, jump: sides[1].1 - sides[0].1 }).collect();
        let found = Self { intercept: lines[0].0, slope: lines[0].1, kinks };
        // Jumps that were missed would show as a difference on the pieces to the right.
        pieces.iter().flatten().all(|&z| close(activation.value(z), found.value(z), z)).then_some(found)
    }
}

fn close(a: f64, b: f64, z: f64) -> bool {
    (a - b).abs() <= ROUNDING * (1.0 + a.abs() + z.abs())
}

/// (Value at 0, slope) of the straight line through these points of a function, if they lie on one.
fn line(activation: &dyn Activation, points: &[f64]) -> Option<(f64, f64)> {
    let (from, to) = (points[0], points[points.len() - 1]);
    let (low, high) = (activation.value(from), activation.value(to));
    let slope = (high - low) / (to - from);
    let intercept = low - slope * from;
    let on_it = |&z: &f64| {
        let (value, own_slope, curvature) = activation.jet(z);
        let straight = (own_slope - slope).abs() <= 100.0 * ROUNDING * (1.0 + slope.abs())
            && curvature.abs() <= 1e4 * ROUNDING * (1.0 + slope.abs());
        straight && close(value, intercept + slope * z, z)
    };
    (intercept.is_finite() && slope.is_finite() && points.iter().all(on_it)).then_some((intercept, slope))
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn functions_that_are_linear_between_kinks_are_seen_to_be() {
        for (text, kinks) in [
            ("relu", vec![(0.0, 1.0)]),
            ("abs", vec![(0.0, 2.0)]),
            ("max(x, 0.01*x)", vec![(0.0, 0.99)]),
            ("0.2+max(x-0.2,0.1*(x-0.2))", vec![(0.2, 0.9)]),
            ("min(max(x,-1),1)", vec![(-1.0, 1.0), (1.0, -1.0)]),
            ("3*x - 1 + abs(2*x - 1)", vec![(0.5, 4.0)]),
            ("sampled[-8, !0, 8; 0; 4, 4](2*x - 1)", vec![(0.5, 2.0)]),
            ("max(x, 0) + 0.001", vec![(0.0, 1.0)]),
        ] {
            let unit = parse(text).unwrap();
            let pieces = unit.linear_pieces().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(pieces.kinks.len(), kinks.len(), "{text}");
            for (found, (at, jump)) in pieces.kinks.iter().zip(kinks) {
                assert!((found.at - at).abs() < 1e-12 && (found.jump - jump).abs() < 1e-10, "{text}");
            }
            for z in [-7.0, -1.3, -0.4, 0.1, 0.3, 0.9, 1.2, 30.0] {
                assert!((pieces.value(z) - unit.value(z)).abs() < 1e-11, "{text} at {z}");
                assert!((pieces.slope(z) - unit.slope(z)).abs() < 1e-10, "slope of {text} at {z}");
            }
        }
    }

    #[test]
    fn odd_functions_are_seen_to_be() {
        let is_odd = |text: &str| parse(text).unwrap().linear_pieces().unwrap().is_odd();
        for text in
            ["linear", "min(max(x,-1),1)", "x - 0.3*min(max(2*x,-1),1)", "abs(x - 0.7) - abs(x + 0.7)"]
        {
            assert!(is_odd(text), "{text}");
        }
        for text in
            ["relu", "abs", "min(max(x,-1),1) + 0.1", "min(max(x,-1),1.001)", "abs(x - 0.7) - 2*abs(x + 0.7)"]
        {
            assert!(!is_odd(text), "{text}");
        }
    }

    #[test]
    fn others_are_not() {
        for text in [
            "tanh",
            "He3",
            "max(x,0)^2",
            "max(x-0.1,0) + 1e-6*x^2",
            "abs(x - 0.5) + 0.001*sin(x)",
            "max(x, 0.3) + 1e-4*exp(-1000*(x-2)^2)",
            "max(x, 0.3) + max(x - 1, 0)^2",
        ] {
            assert!(parse(text).unwrap().linear_pieces().is_none(), "{text}");
        }
        let many: Vec<String> = (0..9).map(|k| format!("abs(x - {k})")).collect();
        assert!(parse(&many.join("+")).unwrap().linear_pieces().is_none());
    }
}
