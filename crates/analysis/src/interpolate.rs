//! Curves between their samples: linear or logarithmic interpolation, which never overshoots.

use crate::error::AnalysisError;

/// How a coordinate is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// As it is.
    #[default]
    Linear,
    /// By its natural logarithm; needs positive numbers.
    Log,
}

impl Scale {
    pub(crate) fn forward(self, what: &'static str, index: usize, value: f64) -> Result<f64, AnalysisError> {
        match self {
            Scale::Linear => Ok(value),
            Scale::Log if value > 0.0 => Ok(value.ln()),
            Scale::Log => Err(AnalysisError::NotPositive { what, index, value }),
        }
    }

    /// The point a `share` of the way from `low` to `high`, measured on this scale; exact at both ends.
    fn between(self, low: f64, high: f64, share: f64) -> f64 {
        if share <= 0.0 {
            return low;
        }
        if share >= 1.0 {
            return high;
        }
        match self {
            Scale::Linear => low + share * (high - low),
            Scale::Log => low * (share * (high / low).ln()).exp(),
        }
    }

    /// The share of the way from `low` to `high` at which `value` lies, measured on this scale.
    fn share(self, low: f64, high: f64, value: f64) -> f64 {
        match self {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value / low).ln() / (high / low).ln(),
        }
    }
}

/// Scales of both coordinates. A curve is a straight line between two samples when drawn on these axes, so a
/// power law is exact on [`Axes::LOG_LOG`] and an exponential on [`Axes::LOG_VALUE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// Scale of time.
    pub time: Scale,
    /// Scale of the values.
    pub value: Scale,
}

impl Axes {
    /// Both linear.
    pub const LINEAR: Self = Self { time: Scale::Linear, value: Scale::Linear };
    /// Linear time, logarithmic value.
    pub const LOG_VALUE: Self = Self { time: Scale::Linear, value: Scale::Log };
    /// Logarithmic time, linear value.
    pub const LOG_TIME: Self = Self { time: Scale::Log, value: Scale::Linear };
    /// Both logarithmic.
    pub const LOG_LOG: Self = Self { time: Scale::Log, value: Scale::Log };
}

/// The time at which the segment between two samples passes `level`, which lies between their values.
pub(crate) fn crossing_time(
    times: &[f64],
    values: &[f64],
    right: usize,
    level: f64,
    axes: Axes,
) -> Result<f64, AnalysisError> {
    let left = right - 1;
    // A level met exactly at a sample needs no interpolation, and so no logarithm.
    if values[right] == level {
        return Ok(times[right]);
    }
    for i in [left, right] {
        axes.time.forward("times", i, times[i])?;
        axes.value.forward("values", i, values[i])?;
    }
    let share = axes.value.share(values[left], values[right], level);
    Ok(axes.time.between(times[left], times[right], share))
}
