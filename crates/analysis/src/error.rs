//! Why an analysis was refused, and the checks of the input that every analysis shares.

use didact_math::fits::FitError;
use thiserror::Error;

/// Why an analysis was refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AnalysisError {
    /// Nothing to analyse.
    #[error("{what}: at least one number is needed, got none")]
    Empty {
        /// Which input.
        what: &'static str,
    },
    /// Two inputs that belong together have different lengths.
    #[error("{what}: expected {expected} numbers, one for each time, got {got}")]
    LengthsDiffer {
        /// Which input.
        what: &'static str,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        got: usize,
    },
    /// A replica has more values than there are times.
    #[error(
        "the replica has {got} values but there are only {times} times\n\nhint: pass the times of the longest replica"
    )]
    ReplicaTooLong {
        /// Number of times.
        times: usize,
        /// Number of values.
        got: usize,
    },
    /// The window of a fit holds too few samples.
    #[error(
        "the window {from} to {to} holds {points} points; {needed} are needed for {needed_for}\n\n\
         hint: widen the window, or record more times inside it"
    )]
    TooFewPoints {
        /// Points inside the window.
        points: usize,
        /// Points needed.
        needed: usize,
        /// Start of the window.
        from: f64,
        /// End of the window.
        to: f64,
        /// What was to be determined.
        needed_for: &'static str,
    },
    /// A logarithm was asked of a number that has none.
    #[error(
        "{what} number {index} is {value}, which has no place on a logarithmic scale\n\n\
         hint: drop it, or use a linear scale"
    )]
    NotPositive {
        /// Which input.
        what: &'static str,
        /// Position in it.
        index: usize,
        /// The number.
        value: f64,
    },
    /// A number is NaN or infinite.
    #[error(
        "{what} number {index} is {value}; it must be finite\n\nhint: cut a diverged replica before its divergence"
    )]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Position in it.
        index: usize,
        /// The number.
        value: f64,
    },
    /// Times must increase.
    #[error("times must increase, but number {index} is {after} after {before}")]
    TimesNotIncreasing {
        /// Position of the offending time.
        index: usize,
        /// The time before it.
        before: f64,
        /// The time itself.
        after: f64,
    },
    /// An option of the analysis is unusable.
    #[error("{what} is {value}; {requirement}")]
    BadParameter {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be.
        requirement: &'static str,
    },
    /// A growth rate was asked of a curve that does not grow so far.
    #[error("the curve never passes the upper level {level}")]
    LevelNotPassed {
        /// The level.
        level: f64,
    },
    /// One replica of several could not be analysed.
    #[error("replica {replica}: {source}")]
    InReplica {
        /// Index of the replica.
        replica: usize,
        /// What is wrong with it.
        source: Box<AnalysisError>,
    },
    /// The fit itself was refused.
    #[error(transparent)]
    Fit(#[from] FitError),
}

impl AnalysisError {
    /// Says in which replica the error arose.
    pub(crate) fn in_replica(self, replica: usize) -> Self {
        Self::InReplica { replica, source: Box::new(self) }
    }
}

/// A curve: not empty, equal lengths, finite numbers, increasing times.
pub(crate) fn check_curve(times: &[f64], values: &[f64]) -> Result<(), AnalysisError> {
    check_length("values", times.len(), values.len())?;
    check_times(times)?;
    check_finite("values", values)
}

/// An ensemble: at least one replica; each not empty, finite, and on the first of the times.
pub(crate) fn check_replicas(times: &[f64], replicas: &[Vec<f64>]) -> Result<(), AnalysisError> {
    check_times(times)?;
    if replicas.is_empty() {
        return Err(AnalysisError::Empty { what: "replicas" });
    }
    let check = |values: &[f64]| {
        if values.is_empty() {
            return Err(AnalysisError::Empty { what: "values" });
        }
        if values.len() > times.len() {
            return Err(AnalysisError::ReplicaTooLong { times: times.len(), got: values.len() });
        }
        check_finite("values", values)
    };
    replicas.iter().enumerate().try_for_each(|(index, values)| check(values).map_err(|e| e.in_replica(index)))
}

pub(crate) fn check_times(times: &[f64]) -> Result<(), AnalysisError> {
    if times.is_empty() {
        return Err(AnalysisError::Empty { what: "times" });
    }
    check_finite("times", times)?;
    match times.windows(2).position(|w| w[1] <= w[0]) {
        Some(i) => {
            Err(AnalysisError::TimesNotIncreasing { index: i + 1, before: times[i], after: times[i + 1] })
        }
        None => Ok(()),
    }
}

pub(crate) fn check_length(what: &'static str, expected: usize, got: usize) -> Result<(), AnalysisError> {
    if expected == got { Ok(()) } else { Err(AnalysisError::LengthsDiffer { what, expected, got }) }
}

pub(crate) fn check_finite(what: &'static str, values: &[f64]) -> Result<(), AnalysisError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(AnalysisError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// A confidence level lies strictly between 0 and 1.
pub(crate) fn check_confidence(confidence: f64) -> Result<(), AnalysisError> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    let requirement = "a confidence lies between 0 and 1, for example 0.95";
    Err(AnalysisError::BadParameter { what: "confidence", value: confidence, requirement })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_curve_is_refused_with_the_position_of_the_fault() {
        assert_eq!(check_curve(&[], &[]), Err(AnalysisError::Empty { what: "times" }));
        let short = check_curve(&[0.0, 1.0], &[1.0]);
        assert_eq!(short, Err(AnalysisError::LengthsDiffer { what: "values", expected: 2, got: 1 }));
        let repeated = check_curve(&[0.0, 1.0, 1.0], &[1.0; 3]);
        assert_eq!(repeated, Err(AnalysisError::TimesNotIncreasing { index: 2, before: 1.0, after: 1.0 }));
        let diverged = check_curve(&[0.0, 1.0], &[1.0, f64::INFINITY]);
        assert!(matches!(diverged, Err(AnalysisError::NotFinite { what: "values", index: 1, .. })));
    }

    #[test]
    fn a_bad_replica_is_named() {
        let error = check_replicas(&[0.0, 1.0], &[vec![1.0], vec![1.0, 2.0, 3.0]]).expect_err("too long");
        assert_eq!(error, AnalysisError::ReplicaTooLong { times: 2, got: 3 }.in_replica(1));
        assert!(error.to_string().starts_with("replica 1: the replica has 3 values"));
        let empty = check_replicas(&[0.0], &[vec![]]).expect_err("empty");
        assert_eq!(empty, AnalysisError::Empty { what: "values" }.in_replica(0));
    }
}
