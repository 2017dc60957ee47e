//! Starts made of others: trained scalars with a law of their own, and a state of which a part begins anew.

use crate::overlaps::Overlaps;
use crate::rule::Shape;
use crate::spectrum::Spectrum;
use crate::start::{
    FrozenRows, RandomRows, RowLaw, START_LANE, Setting, Start, StartError, StartSpread, StateSpread,
};
use didact_math::random::{RngAddress, Stream};
use std::sync::Arc;

/// Where the trained scalars begin.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarLaw {
    /// Exactly there.
    Given(Vec<f64>),
    /// All at size/√d.
    Fixed {
        /// In units of d^{−1/2}.
        size: f64,
    },
    /// N(0, deviation²/d), drawn anew for every replica.
    Gaussian {
        /// In units of d^{−1/2}.
        deviation: f64,
    },
}

impl ScalarLaw {
    /// The scalars of one replica. `beginning` tells the draws of one replica apart: 0 for its start.
    fn draw(&self, setting: &Setting, beginning: u64) -> Result<Vec<f64>, StartError> {
        let expected = setting.shape.scalars;
        let unit = || setting.dimension.map(|d| (d as f64).sqrt().recip()).ok_or(StartError::ScalarDimension);
        Ok(match self {
            Self::Given(list) if list.len() != expected => {
                return Err(StartError::Scalars { given: list.len(), expected });
            }
            Self::Given(list) => list.clone(),
            Self::Fixed { size } => vec![size * unit()?; expected],
            Self::Gaussian { deviation } => {
                let (mut stream, scale) = (stream(setting, SCALAR_LANE, beginning), deviation * unit()?);
                (0..expected).map(|_| scale * stream.normal()).collect()
            }
        })
    }
}

/// The lane of scalars that are drawn; rows have the one above.
const SCALAR_LANE: u16 = START_LANE - 1;

fn stream(setting: &Setting, lane: u16, beginning: u64) -> Stream {
    Stream::at(RngAddress { seed: setting.seed, replica: setting.replica, step: beginning, lane })
}

/// The rows of one start with scalars of their own law.
#[derive(Debug, Clone)]
pub struct WithScalars {
    /// Gives the rows.
    pub rows: Arc<dyn Start>,
    /// Gives the scalars.
    pub scalars: ScalarLaw,
}

impl Start for WithScalars {
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        let mut state = self.rows.draw(setting)?;
        state.scalars = self.scalars.draw(setting, 0)?;
        Ok(state)
    }

    fn is_random(&self) -> bool {
        self.rows.is_random() || matches!(self.scalars, ScalarLaw::Gaussian { .. })
    }

    fn centre(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        let mut state = self.rows.centre(setting)?;
        state.scalars = match &self.scalars {
            // Scalars of one size vanish like their fluctuations do, but are where they are at a finite dimension.
            ScalarLaw::Fixed { size } => {
                let unit = setting.dimension.map_or(0.0, |d| (d as f64).sqrt().recip());
                vec![size * unit; setting.shape.scalars]
            }
            ScalarLaw::Gaussian { .. } => vec![0.0; setting.shape.scalars],
            given @ ScalarLaw::Given(_) => given.draw(setting, 0)?,
        };
        Ok(state)
    }

    fn spread(&self) -> Option<StartSpread> {
        let scalar_deviation = match self.scalars {
            ScalarLaw::Gaussian { deviation } => deviation,
            ScalarLaw::Given(_) | ScalarLaw::Fixed { .. } => 0.0,
        };
        Some(StartSpread { scalar_deviation, ..self.rows.spread()? })
    }

    /// Scalars of order d^{−1/2} vanish.
    fn limit(&self, shape: Shape, spectrum: &Spectrum) -> Result<Overlaps, StartError> {
        let mut state = self.rows.limit(shape, spectrum)?;
        state.scalars = match &self.scalars {
            ScalarLaw::Given(list) => list.clone(),
            _ => vec![0.0; shape.scalars],
        };
        Ok(state)
    }
}

/// What begins anew when a stage of a schedule has ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restart {
    /// The trained scalars.
    pub scalars: Option<ScalarLaw>,
    /// The trained rows: new ones, independent of all others.
    pub rows: Option<RowLaw>,
    /// The velocities, which become 0. Those of new rows are 0 in any case.
    pub velocity: bool,
}

/// Where an earlier stage ended, with some of it begun anew.
#[derive(Debug, Clone)]
pub struct Restarted {
    /// The end of the stage before.
    pub before: Overlaps,
    /// What is new.
    pub restart: Restart,
    /// How many stages came before, so that every one draws other numbers.
    pub stage: u64,
    /// How replicas scatter at the end of the stage before, from a theory that follows it.
    pub spread: Option<Arc<StateSpread>>,
}

impl Start for Restarted {
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        let mut state = self.before.clone();
        if let Some(trained) = self.restart.rows {
            let k = setting.shape.trained;
            let frozen = self.before.blocks.iter().map(|g| g.block(k..g.rows(), k..g.cols())).collect();
            let law =
                RandomRows { trained, frozen: FrozenRows::Blocks(frozen), scalars: state.scalars.clone() };
            state = law.draw_at(setting, self.stage)?;
        }
        if let Some(law) = &self.restart.scalars {
            state.scalars = law.draw(setting, self.stage)?;
        }
        if self.restart.velocity {
            state.velocities = None;
        }
        Ok(state)
    }

    fn is_random(&self) -> bool {
        self.restart.rows.is_some() || matches!(self.restart.scalars, Some(ScalarLaw::Gaussian { .. }))
    }

    fn spread(&self) -> Option<StartSpread> {
        let scalar_deviation = match self.restart.scalars {
            Some(ScalarLaw::Gaussian { deviation }) => deviation,
            _ => 0.0,
        };
        Some(StartSpread {
            rows: self.restart.rows,
            orthogonal_to: 0,
            sampled_teachers: false,
            scalar_deviation,
            earlier: self.spread.clone(),
        })
    }

    /// New rows become orthogonal to the rows that stay, with the lengths that they have on average; scalars of order d^{−1/2} vanish.
    fn limit(&self, shape: Shape, spectrum: &Spectrum) -> Result<Overlaps, StartError> {
        let mut state = self.before.clone();
        if let Some(law) = self.restart.rows {
            let length = law.length();
            for (g, weight) in state.blocks.iter_mut().zip(spectrum.weights()) {
                for i in 0..shape.trained {
                    for j in 0..shape.rows() {
                        let own = if i == j { length * length * weight } else { 0.0 };
                        g[(i, j)] = own;
                        g[(j, i)] = own;
                    }
                }
            }
        }
        match &self.restart.scalars {
            Some(ScalarLaw::Given(list)) => state.scalars.clone_from(list),
            Some(_) => state.scalars.fill(0.0),
            None => {}
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::Given;
    use didact_math::linalg::Mat;
    use didact_math::random::statistics::Moments;

    const SHAPE: Shape = Shape { trained: 1, frozen: 2, scalars: 2, own_frozen: 0 };

    fn setting(spectrum: &Spectrum, replica: u32) -> Setting<'_> {
        Setting { shape: SHAPE, spectrum, dimension: Some(25), seed: 3, replica }
    }

    /// Rows with overlaps of their own in each of two eigenspaces.
    fn state() -> (Spectrum, Overlaps) {
        let spectrum = Spectrum::new(vec![2.0, 0.5], vec![0.4, 0.6]).unwrap();
        let rows = [[0.5, 0.1, 0.2], [0.1, 0.4, 0.05], [0.2, 0.05, 0.7]].map(Vec::from);
        let block = Mat::from_rows(&rows).unwrap();
        let blocks = vec![block.clone(), block.scaled(0.5)];
        (spectrum, Overlaps::new(SHAPE, blocks, vec![0.3, -0.4], 2).unwrap())
    }

    fn with(scalars: ScalarLaw) -> WithScalars {
        WithScalars { rows: Arc::new(Given(state().1)), scalars }
    }

    #[test]
    fn scalars_follow_their_law_and_rows_stay() {
        let (spectrum, overlaps) = state();
        let fixed = with(ScalarLaw::Fixed { size: 2.0 }).draw(&setting(&spectrum, 0)).unwrap();
        assert_eq!((fixed.scalars, &fixed.blocks), (vec![0.4, 0.4], &overlaps.blocks));
        let law = with(ScalarLaw::Gaussian { deviation: 3.0 });
        let mut squares = Moments::default();
        for replica in 0..20_000 {
            let drawn = law.draw(&setting(&spectrum, replica)).unwrap();
            assert_ne!(drawn.scalars[0], drawn.scalars[1]);
            squares.push(drawn.scalars[1].powi(2));
        }
        assert!((squares.mean() - 9.0 / 25.0).abs() < 4.0 * squares.standard_error());
        assert_eq!(law.limit(SHAPE, &spectrum).unwrap().scalars, [0.0, 0.0]);
        assert!(law.is_random() && !with(ScalarLaw::Fixed { size: 1.0 }).is_random());
    }

    #[test]
    fn laws_that_shrink_with_the_dimension_need_one_and_lists_need_their_length() {
        let (spectrum, _) = state();
        let open = Setting { dimension: None, ..setting(&spectrum, 0) };
        let refused = |law: ScalarLaw| with(law).draw(&open).unwrap_err();
        assert_eq!(refused(ScalarLaw::Fixed { size: 1.0 }), StartError::ScalarDimension);
        assert_eq!(refused(ScalarLaw::Gaussian { deviation: 1.0 }), StartError::ScalarDimension);
        assert_eq!(refused(ScalarLaw::Given(vec![0.0])), StartError::Scalars { given: 1, expected: 2 });
        assert_eq!(with(ScalarLaw::Given(vec![1.0, 2.0])).draw(&open).unwrap().scalars, [1.0, 2.0]);
    }

    #[test]
    fn a_restart_replaces_what_it_names() {
        let (spectrum, before) = state();
        let restarted =
            |restart: Restart, stage: u64| Restarted { before: before.clone(), restart, stage, spread: None };
        let scalars = Restart { scalars: Some(ScalarLaw::Given(vec![0.0, 1.0])), ..Restart::default() };
        let state = restarted(scalars, 1).draw(&setting(&spectrum, 0)).unwrap();
        assert_eq!((state.scalars, &state.blocks), (vec![0.0, 1.0], &before.blocks));

        let rows = Restart { rows: Some(RowLaw::Sphere { radius: 1.5 }), ..Restart::default() };
        let [first, second] = [1, 2].map(|stage| {
            let state = restarted(rows.clone(), stage).draw(&setting(&spectrum, 0)).unwrap();
            assert_eq!(state.scalars, before.scalars);
            assert!((state.moment(&spectrum, 0)[(0, 0)] - 2.25).abs() < 1e-12);
            for (new, old) in state.blocks.iter().zip(&before.blocks) {
                for (i, j) in [(1, 1), (1, 2), (2, 2)] {
                    assert!((new[(i, j)] - old[(i, j)]).abs() < 1e-14, "frozen rows stay");
                }
            }
            state.moment(&spectrum, 0)[(0, 1)]
        });
        assert_ne!(first, second, "stages draw different rows");
    }

    #[test]
    fn restarted_rows_are_independent_of_the_frozen_ones() {
        // ρ = w·v/|v| has mean 0 and, on the unit sphere in 25 dimensions, E ρ² = 1/25.
        let (spectrum, before) = state();
        let rows = Restart { rows: Some(RowLaw::Sphere { radius: 1.0 }), ..Restart::default() };
        let law = Restarted { before, restart: rows, stage: 1, spread: None };
        let (mut mean, mut square) = (Moments::default(), Moments::default());
        for replica in 0..20_000 {
            let g = law.draw(&setting(&spectrum, replica)).unwrap().moment(&spectrum, 0);
            let overlap = g[(0, 1)] / g[(1, 1)].sqrt();
            mean.push(overlap);
            square.push(overlap * overlap);
        }
        assert!(mean.mean().abs() < 4.0 * mean.standard_error());
        assert!((square.mean() - 0.04).abs() < 4.0 * square.standard_error());
    }
}
