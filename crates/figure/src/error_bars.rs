//! Error bars, with one length or two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::Column;

/// Lengths of error bars: the same on both sides of a point, or a column for each side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ErrorBars {
    /// Half-lengths.
    Even(Column),
    /// Two lengths, as for a probability, whose interval does not leave [0, 1].
    Uneven(Uneven),
}

/// Lengths of the two sides of error bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Uneven {
    /// Towards smaller values.
    pub below: Column,
    /// Towards larger values.
    pub above: Column,
}

impl ErrorBars {
    /// The columns below and above the points.
    pub fn sides(&self) -> [&Column; 2] {
        match self {
            Self::Even(column) => [column, column],
            Self::Uneven(Uneven { below, above }) => [below, above],
        }
    }

    /// The lengths below and above point i; 0 where there is none.
    pub(crate) fn at(bars: Option<&Self>, i: usize) -> [f64; 2] {
        bars.map_or([0.0; 2], |bars| {
            bars.sides().map(|side| side.get(i).copied().filter(|e| e.is_finite() && *e > 0.0).unwrap_or(0.0))
        })
    }
}

impl<T: Into<Column>> From<T> for ErrorBars {
    fn from(half_lengths: T) -> Self {
        Self::Even(half_lengths.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_read_as_a_column_or_as_two() {
        let even: ErrorBars = serde_json::from_str("[0.5, null]").unwrap();
        let uneven: ErrorBars = serde_json::from_str(r#"{"below": [0.1, 0.2], "above": [0, 0.4]}"#).unwrap();
        assert_eq!([0, 1, 2].map(|i| ErrorBars::at(Some(&even), i)), [[0.5; 2], [0.0; 2], [0.0; 2]]);
        assert_eq!([0, 1].map(|i| ErrorBars::at(Some(&uneven), i)), [[0.1, 0.0], [0.2, 0.4]]);
        assert_eq!(ErrorBars::at(None, 0), [0.0; 2]);
        assert!(serde_json::from_str::<ErrorBars>(r#"{"below": [0.1]}"#).is_err());
    }
}
