//! How a run is integrated whose averages have no closed form.

use didact_math::ode::{Method, Options, Saving};

/// What is done where averages are sums, which cost much more than closed forms and are not exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numerical {
    /// The options are those of closed forms, and averages as accurate as the rule can make them.
    Precise,
    /// The run has this relative error, shared between integrator and averages: a step may err by a tenth of it, and an average by
    /// all of it, relative to its largest entry.
    Budget {
        /// Relative error of the run.
        error: f64,
        /// Whether the method is Adams', which needs the fewest averages, rather than that of the options.
        any_method: bool,
    },
}

impl Numerical {
    /// The relative error of a run where nothing is said.
    pub const USUAL_ERROR: f64 = 1e-6;
    /// Steps are as accurate as this budget allows even where averages are worse.
    const COARSEST: f64 = 1e-4;
    /// The usual budget.
    pub const USUAL: Self = Self::Budget { error: Self::USUAL_ERROR, any_method: true };

    /// The relative error of an average, if it need not be as small as can be.
    pub(super) fn accuracy(self) -> Option<f64> {
        match self {
            Self::Precise => None,
            Self::Budget { error, .. } => Some(error),
        }
    }

    /// The same where averages have this relative error at best, as those of many fields with kinks: steps much more accurate than that
    /// would only cost time.
    pub(super) fn at_best(self, achieved: f64) -> Self {
        match self {
            Self::Budget { error, any_method } => {
                Self::Budget { error: error.max(achieved.min(Self::COARSEST)), any_method }
            }
            Self::Precise => Self::Precise,
        }
    }

    /// The options of a run with numerical averages.
    pub(super) fn options(self, options: &Options) -> Options {
        let Self::Budget { error, any_method } = self else { return options.clone() };
        let relative = 0.1 * error;
        let mut options = Options { relative, absolute: 1e-3 * relative, ..options.clone() };
        if any_method {
            // Steps cut short would spoil the memory of a multistep method.
            (options.method, options.saving) = (Method::Adams, Saving::Dense);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_between_steps_and_averages() {
        let options = Options { relative: 1e-9, ..Options::default() };
        let shared = Numerical::USUAL.options(&options);
        assert_eq!((shared.method, shared.saving), (Method::Adams, Saving::Dense));
        assert!((shared.relative - 1e-7).abs() < 1e-20 && Numerical::USUAL.accuracy() == Some(1e-6));
        let coarse = Numerical::USUAL.at_best(3e-5).options(&options);
        assert!((coarse.relative - 3e-6).abs() < 1e-18 && Numerical::USUAL.at_best(1e-8) == Numerical::USUAL);
        let fixed = Numerical::Budget { error: 1e-4, any_method: false }.options(&options);
        assert_eq!(fixed.method, options.method);
        assert_eq!(Numerical::Precise.options(&options), options);
    }
}
