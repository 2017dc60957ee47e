//! Where the population flow ends, by where it starts (docs/derivations/low-rank-perturbation.md#s4-4).

use super::orthonormal::Signal;

/// Starts in an open interval of overlaps that all end at the same place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basin {
    /// Lower end: −1 or a zero of h.
    pub from: f64,
    /// Upper end: 1 or a zero of h.
    pub to: f64,
    /// Where dm/dτ = h (1 − m²) leads: to the upper end where h > 0, to the lower one where h < 0.
    pub limit: f64,
}

/// The intervals between the zeros of h, ascending.
///
/// A zero between an interval that leaves it and one that leaves it on the other side is a separatrix; one that both approach
/// is a spurious attractor; a double zero is approached from one side only.
pub fn basins(signal: &Signal) -> Vec<Basin> {
    let mut ends = vec![-1.0];
    ends.extend(signal.zeros());
    ends.push(1.0);
    ends.windows(2)
        .map(|pair| {
            let (from, to) = (pair[0], pair[1]);
            let limit = if signal.at(f64::midpoint(from, to)) > 0.0 { to } else { from };
            Basin { from, to, limit }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::orthonormal::Sums;
    use super::*;
    use didact_math::activation::parse;

    #[test]
    fn relu_units_have_a_separatrix_and_two_ends() {
        let relu = parse("relu").unwrap();
        let found = basins(&Signal::new(&*relu, Sums::plain(8, 16.0, 4.0), 0.5));
        let [low, high] = found[..] else { panic!("{found:?}") };
        assert!((low.to + 0.8125).abs() < 1e-4 && low.to == high.from);
        assert_eq!((low.limit, high.limit), (-1.0, 1.0));
    }

    #[test]
    fn a_double_zero_stops_the_flow_from_one_side() {
        // He3 with k² = O·BB: h ≥ 0, so the flow goes up to the double zero and, beyond it, on to 1.
        let cubic = parse("He3").unwrap();
        let found = basins(&Signal::new(&*cubic, Sums::plain(8, 16.0, 4.0), 0.8));
        let [low, high] = found[..] else { panic!("{found:?}") };
        assert!((low.limit + 0.125).abs() < 1e-9 && low.limit == high.from && high.limit == 1.0);
    }

    #[test]
    fn every_start_ends_where_the_flow_takes_it() {
        // BB < 0 and a large θ: a spurious attractor below 1.
        let cubic = parse("He3").unwrap();
        let signal = Signal::new(&*cubic, Sums::plain(16, -16.0, 4.0), 0.9);
        let found = basins(&signal);
        assert!(found.len() > 1 && found.iter().any(|b| b.limit.abs() < 1.0), "{found:?}");
        for basin in &found {
            let start = f64::midpoint(basin.from, basin.to);
            let end = signal.flow(start, &[200.0])[0];
            assert!((end - basin.limit).abs() < 1e-3, "{basin:?}: {end}");
        }
    }
}
