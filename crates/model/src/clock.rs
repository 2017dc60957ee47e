//! Which time an axis shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of every time of an experiment: saved times, events and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// alpha = steps / d.
    #[default]
    Alpha,
    /// t = s x steps, with s the step size: the time of gradient flow.
    Flow,
    /// t divided by the number of trained rows: the time in which networks of different width compare.
    FlowPerUnit,
    /// Number of steps.
    Steps,
}

impl Clock {
    /// Name for axes and columns, as TeX.
    pub fn label(self) -> &'static str {
        match self {
            Self::Alpha => r"$\alpha = \mathrm{steps}/d$",
            Self::Flow => r"$t = s \times \mathrm{steps}$",
            Self::FlowPerUnit => r"$\tilde t = t/(\mathrm{trained\ rows})$",
            Self::Steps => "steps",
        }
    }

    /// Name for tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alpha => "alpha",
            Self::Flow => "t",
            Self::FlowPerUnit => "t-per-unit",
            Self::Steps => "steps",
        }
    }
}
