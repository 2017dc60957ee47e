//! A number with its standard error.

use crate::claims::digits;
use didact_math::random::statistics::SampleMean;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Probability within one standard deviation of a normal variable: the confidence that makes an interval comparable
/// with a standard error.
pub(super) const ONE_SIGMA: f64 = 0.682_689_492_137_085_9;

/// A number with its standard error (0 when it has none).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error; half the length of the interval, where there is one.
    pub error: f64,
    /// The two ends of its interval of one standard deviation, where they are not at the same distance: of a probability
    /// (Wilson) and of a median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// A number with a standard error.
    pub fn new(value: f64, error: f64) -> Self {
        Self { value, error, interval: None }
    }

    /// A number without one.
    pub fn exact(value: f64) -> Self {
        Self::new(value, 0.0)
    }

    /// A number in an interval.
    pub fn within(value: f64, [low, high]: [f64; 2]) -> Self {
        Self { value, error: 0.5 * (high - low), interval: Some([low, high]) }
    }

    /// The mean of independent numbers with its standard error (0 for a single one).
    pub fn mean_of(sample: impl IntoIterator<Item = f64>) -> Self {
        let mean = SampleMean::of(sample);
        Self::new(mean.value, mean.error)
    }

    /// How far it may reach below and above the value.
    pub fn reach(&self) -> [f64; 2] {
        self.interval.map_or([self.error; 2], |[low, high]| [self.value - low, high - self.value])
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = digits(self.value);
        match self.interval {
            Some([low, high]) => write!(out, "{value} ({} to {})", digits(low), digits(high)),
            None if self.error > 0.0 => write!(out, "{value} ± {}", digits(self.error)),
            None => write!(out, "{value}"),
        }
    }
}
