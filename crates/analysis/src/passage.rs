//! First passages: when does a curve first reach a level?

use crate::error::{AnalysisError, check_curve, check_replicas};
use crate::interpolate::{Axes, crossing_time};

/// From which side a level is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageDirection {
    /// From below: passed where value ≥ level.
    Rising,
    /// From above: passed where value ≤ level.
    Falling,
}

/// A level to be passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The level itself.
    pub value: f64,
    /// The side from which it is passed.
    pub direction: PassageDirection,
    /// Axes on which the curve is straight between two samples.
    pub axes: Axes,
}

impl Level {
    /// Passed from below, linear interpolation.
    pub fn rising(value: f64) -> Self {
        Self { value, direction: PassageDirection::Rising, axes: Axes::LINEAR }
    }

    /// Passed from above, linear interpolation.
    pub fn falling(value: f64) -> Self {
        Self { value, direction: PassageDirection::Falling, axes: Axes::LINEAR }
    }

    /// The same level, with interpolation on other axes.
    pub fn on(self, axes: Axes) -> Self {
        Self { axes, ..self }
    }

    fn passed_by(self, value: f64) -> bool {
        match self.direction {
            PassageDirection::Rising => value >= self.value,
            PassageDirection::Falling => value <= self.value,
        }
    }
}

/// The first passage of one curve, such as one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Passage {
    /// The curve was beyond the level at its first sample, so the passage lies at or before this time.
    AtStart {
        /// First time of the curve.
        time: f64,
    },
    /// The curve passed the level.
    Passed {
        /// When, interpolated between two samples.
        time: f64,
    },
    /// The curve ended before it passed the level: its passage time is censored.
    Censored {
        /// Last time of the curve.
        at: f64,
    },
}

impl Passage {
    /// The time of the passage (the first time of a curve already beyond the level); None where censored.
    pub fn time(self) -> Option<f64> {
        match self {
            Passage::AtStart { time } | Passage::Passed { time } => Some(time),
            Passage::Censored { .. } => None,
        }
    }

    /// The last time of a curve that never passed the level; None where it was passed.
    pub fn censored_at(self) -> Option<f64> {
        match self {
            Passage::Censored { at } => Some(at),
            _ => None,
        }
    }

    /// The time of the passage or of the censoring.
    pub fn watched_until(self) -> f64 {
        match self {
            Passage::AtStart { time } | Passage::Passed { time } | Passage::Censored { at: time } => time,
        }
    }
}

/// First passage of one curve.
///
/// The sampled curve decides: an excursion between two samples is not seen, which biases the passage of a
/// noisy curve late by up to the sampling interval.
pub fn first_passage(times: &[f64], values: &[f64], level: Level) -> Result<Passage, AnalysisError> {
    check_curve(times, values)?;
    check_level(level)?;
    passage_of(times, values, level)
}

/// First passage of every replica. A replica that stopped early has a shorter curve, on the first of the times.
pub fn first_passages(
    times: &[f64],
    replicas: &[Vec<f64>],
    level: Level,
) -> Result<Vec<Passage>, AnalysisError> {
    check_replicas(times, replicas)?;
    check_level(level)?;
    let one = |(index, curve): (usize, &Vec<f64>)| {
        passage_of(&times[..curve.len()], curve, level).map_err(|e| e.in_replica(index))
    };
    replicas.iter().enumerate().map(one).collect()
}

fn check_level(level: Level) -> Result<(), AnalysisError> {
    if level.value.is_finite() {
        return Ok(());
    }
    Err(AnalysisError::BadParameter { what: "level", value: level.value, requirement: "it must be finite" })
}

fn passage_of(times: &[f64], values: &[f64], level: Level) -> Result<Passage, AnalysisError> {
    Ok(match values.iter().position(|&v| level.passed_by(v)) {
        Some(0) => Passage::AtStart { time: times[0] },
        Some(right) => {
            Passage::Passed { time: crossing_time(times, values, right, level.value, level.axes)? }
        }
        None => Passage::Censored { at: times[times.len() - 1] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_law_passes_at_its_exact_time_on_its_own_axes() {
        let times: Vec<f64> = (1..20).map(f64::from).collect();
        let passage = |law: &dyn Fn(f64) -> f64, level: Level| {
            let values: Vec<f64> = times.iter().map(|&t| law(t)).collect();
            first_passage(&times, &values, level).expect("passage").time().expect("passed")
        };
        let linear = passage(&|t| 0.1 * t, Level::rising(0.55));
        assert!((linear - 5.5).abs() < 1e-14);
        let exponential = passage(&|t| (0.3 * t).exp(), Level::rising(7.0).on(Axes::LOG_VALUE));
        assert!((exponential - 7f64.ln() / 0.3).abs() < 1e-13);
        let power = passage(&|t| t.powf(-0.5), Level::falling(0.3).on(Axes::LOG_LOG));
        assert!((power - 0.3f64.powi(-2)).abs() < 1e-13);
    }

    #[test]
    fn the_first_of_several_passages_counts() {
        let times = [0.0, 1.0, 2.0, 3.0, 4.0];
        let values = [0.0, 1.0, 0.0, 1.0, 2.0];
        assert_eq!(first_passage(&times, &values, Level::rising(0.5)), Ok(Passage::Passed { time: 0.5 }));
        // A level met exactly at a sample is passed there, even where the sample before has no logarithm.
        let exact = first_passage(&times, &values, Level::rising(1.0).on(Axes::LOG_LOG));
        assert_eq!(exact, Ok(Passage::Passed { time: 1.0 }));
    }

    #[test]
    fn a_curve_beyond_the_level_at_the_start_and_one_that_never_reaches_it_say_so() {
        let times = [2.0, 3.0];
        let start = first_passage(&times, &[0.7, 0.1], Level::rising(0.5)).expect("passage");
        assert_eq!((start, start.time()), (Passage::AtStart { time: 2.0 }, Some(2.0)));
        let never = first_passage(&times, &[0.1, 0.2], Level::rising(0.5)).expect("passage");
        assert_eq!((never.time(), never.censored_at(), never.watched_until()), (None, Some(3.0), 3.0));
    }

    #[test]
    fn a_logarithm_that_does_not_exist_is_refused_with_its_position() {
        let zero = first_passage(&[0.0, 1.0], &[0.0, 1.0], Level::rising(0.5).on(Axes::LOG_VALUE));
        assert_eq!(zero, Err(AnalysisError::NotPositive { what: "values", index: 0, value: 0.0 }));
        assert!(first_passage(&[0.0], &[0.0], Level::rising(f64::NAN)).is_err());
    }

    proptest! {
        #[test]
        fn shifting_time_shifts_and_scaling_time_scales_the_passage(
            values in prop::collection::vec(-1.0..2.0f64, 2..30),
            shift in -5.0..5.0f64,
            factor in 0.1..10.0f64,
        ) {
            let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
            let moved: Vec<f64> = times.iter().map(|t| factor * t + shift).collect();
            let original = first_passage(&times, &values, Level::rising(1.0)).expect("passage");
            let mapped = first_passage(&moved, &values, Level::rising(1.0)).expect("passage");
            prop_assert!((factor * original.watched_until() + shift - mapped.watched_until()).abs() < 1e-11);
            prop_assert_eq!(original.time().is_some(), mapped.time().is_some());
        }

        #[test]
        fn mirroring_the_values_mirrors_the_direction(values in prop::collection::vec(-1.0..2.0f64, 2..30)) {
            let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
            let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
            prop_assert_eq!(
                first_passage(&times, &values, Level::rising(1.0)),
                first_passage(&times, &mirrored, Level::falling(-1.0))
            );
        }

        #[test]
        fn a_higher_level_is_passed_no_earlier(
            values in prop::collection::vec(0.0..2.0f64, 2..30), low in 0.0..2.0f64, high in 0.0..2.0f64,
        ) {
            let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
            let time = |level: f64| {
                let passage = first_passage(&times, &values, Level::rising(level)).expect("passage");
                passage.time().unwrap_or(f64::INFINITY)
            };
            prop_assert!(time(low.min(high)) <= time(low.max(high)));
        }
    }
}
