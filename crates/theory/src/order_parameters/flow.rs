//! Which equations are integrated: those of the overlaps, or those of the rows.

use super::overlap_flow::{Layout, OverlapFlow};
use super::row_flow::{RowFlow, RowLayout};
use didact_math::ode::VectorField;
use didact_model::{Constraint, Needed, Overlaps, Problem, Shape};

/// The equations of one replica: of the overlaps, or of the rows where those are fewer numbers.
pub(super) enum Flow<'a> {
    Overlaps(OverlapFlow<'a>),
    Rows(RowFlow<'a>, RowLayout),
}

/// Number of variables of the equations that [`Flow::new`] chooses, at most: known before a start is drawn.
pub(super) fn variables(problem: &Problem, needed: Needed) -> usize {
    let Shape { trained: k, frozen: f, scalars, .. } = problem.rule.shape();
    let levels = problem.spectrum.len();
    let overlaps = levels * (k * f + k * (k + 1) / 2) + scalars;
    if needed != Needed::Drift || problem.training.constraint != Constraint::none() {
        return overlaps;
    }
    // Rows have a column per direction that they span in an eigenspace.
    let sizes = problem.dimension.and_then(|d| problem.spectrum.multiplicities(d).ok());
    let columns =
        sizes.map_or(levels * (k + f), |sizes| sizes.iter().map(|&size| (size as usize).min(k + f)).sum());
    overlaps.min(k * columns + scalars)
}

impl<'a> Flow<'a> {
    pub(super) fn new(problem: &'a Problem, start: &Overlaps, needed: Needed) -> (Self, Vec<f64>) {
        let overlaps = OverlapFlow::new(problem, start, needed);
        // Rows move by linear maps only without noise; constraints are written for overlaps.
        if needed == Needed::Drift && problem.training.constraint == Constraint::none() {
            let rows = RowLayout::of(start, problem);
            if let Some((layout, state)) = rows.filter(|(l, _)| l.dimension() < overlaps.layout.dimension()) {
                return (Self::Rows(RowFlow::new(problem, layout.clone()), layout), state);
            }
        }
        let state = overlaps.layout.pack(start);
        (Self::Overlaps(overlaps), state)
    }

    pub(super) fn field(&mut self) -> &mut dyn VectorField {
        match self {
            Self::Overlaps(flow) => flow,
            Self::Rows(flow, _) => flow,
        }
    }

    /// The relative error of averages without a closed form with which the run is content.
    pub(super) fn set_accuracy(&mut self, accuracy: Option<f64>) {
        match self {
            Self::Overlaps(flow) => flow.averages.accuracy = accuracy,
            Self::Rows(flow, _) => flow.averages.accuracy = accuracy,
        }
    }

    pub(super) fn worst_error(&self) -> f64 {
        match self {
            Self::Overlaps(flow) => flow.worst_error,
            Self::Rows(flow, _) => flow.worst_error,
        }
    }

    /// The estimated error of the last averages, in units of their largest entry.
    pub(super) fn relative_error(&self) -> f64 {
        let averages = match self {
            Self::Overlaps(flow) => &flow.averages,
            Self::Rows(flow, _) => &flow.averages,
        };
        let size = averages.drift.max_abs().max(averages.noise.max_abs());
        if size > 0.0 { averages.error / size } else { 0.0 }
    }

    /// How a state is read.
    pub(super) fn layout(&self) -> AnyLayout {
        match self {
            Self::Overlaps(flow) => AnyLayout::Overlaps(flow.layout.clone()),
            Self::Rows(_, layout) => AnyLayout::Rows(layout.clone()),
        }
    }
}

pub(super) enum AnyLayout {
    Overlaps(Layout),
    Rows(RowLayout),
}

impl AnyLayout {
    pub(super) fn unpack(&self, state: &[f64]) -> Overlaps {
        match self {
            Self::Overlaps(layout) => layout.unpack(state),
            Self::Rows(layout) => layout.unpack(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_families::Model;
    use didact_math::linalg::Mat;
    use didact_model::start::{FrozenRows, RandomRows, RowLaw};
    use didact_model::{Clock, Spectrum, Training};
    use std::sync::Arc;

    fn problem(dimension: u64) -> Problem {
        let model: Model = serde_json::from_value(serde_json::json!({
            "family": "committee", "students": 3, "teachers": 2, "activation": "erf(z/sqrt2)",
            "output": "scaled", "train-output": true,
        }))
        .unwrap();
        let start = RandomRows {
            trained: RowLaw::Gaussian { deviation: 0.7 },
            frozen: FrozenRows::Sampled,
            scalars: model.starting_scalars(),
        };
        Problem {
            rule: model.rule().unwrap(),
            about: model.about(),
            spectrum: Spectrum::power_law(6, 0.5).unwrap(),
            dimension: Some(dimension),
            training: Training { scalar_ratio: 0.3, ..Training::online(0.4) },
            start: Arc::new(start),
            clock: Clock::Alpha,
        }
    }

    fn start(problem: &Problem) -> Overlaps {
        problem.start.draw(&problem.setting(4, 1)).unwrap()
    }

    #[test]
    fn rows_move_as_their_overlaps_do() {
        // One and two directions per eigenspace: rank 1 and 2 for five rows.
        for dimension in [6, 12] {
            let problem = problem(dimension);
            let start = start(&problem);
            let (mut flow, state) = Flow::new(&problem, &start, Needed::Drift);
            assert!(matches!(flow, Flow::Rows(..)), "d = {dimension}");
            let layout = flow.layout();
            let again = layout.unpack(&state);
            for (a, b) in again.blocks.iter().zip(&start.blocks) {
                let mut difference = a.clone();
                difference.add_scaled(-1.0, b);
                assert!(difference.max_abs() < 1e-13, "d = {dimension}: {difference:?}");
            }
            let mut moved = vec![0.0; state.len()];
            flow.field().derivative(0.0, &state, &mut moved);
            let mut slow = OverlapFlow::new(&problem, &start, Needed::Drift);
            let packed = slow.layout.pack(&start);
            let mut want = vec![0.0; packed.len()];
            slow.derivative(0.0, &packed, &mut want);
            // dG = (W + h dW)(W + h dW)ᵀ to first order, by the symmetric difference that has no second order.
            let h = 1e-6;
            let shifted = |sign: f64| -> Vec<f64> {
                let state: Vec<f64> = state.iter().zip(&moved).map(|(x, v)| x + sign * h * v).collect();
                slow.layout.pack(&layout.unpack(&state))
            };
            for ((up, down), want) in shifted(1.0).iter().zip(shifted(-1.0)).zip(&want) {
                let got = (up - down) / (2.0 * h);
                assert!((got - want).abs() < 1e-9, "{got} {want}");
            }
        }
    }

    #[test]
    fn overlaps_are_kept_where_rows_would_be_more_numbers() {
        let mut problem = problem(600);
        let start = start(&problem);
        assert!(matches!(Flow::new(&problem, &start, Needed::Drift).0, Flow::Overlaps(_)));
        problem.dimension = Some(6);
        assert!(matches!(Flow::new(&problem, &start, Needed::DriftAndNoise).0, Flow::Overlaps(_)));
        let impossible = vec![Mat::identity(5).scaled(-1.0); 6];
        let impossible = Overlaps::from_engine(start.shape(), impossible, start.scalars.clone());
        assert!(matches!(Flow::new(&problem, &impossible, Needed::Drift).0, Flow::Overlaps(_)));
    }
}
