//! Factors that vary with time: of the learning rate, the weight decay, the label noise and the drift.

use super::course::Course;
use didact_math::expression::{Expression, ExpressionError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A schedule as a description gives it: a formula of t, or a table with a `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a schedule is a formula of t such as \"1/(1+t/20)\", or a table: { kind = \"inverse\", tau = 20 }, \
                 { kind = \"exponential\", tau = 3 }, { kind = \"cosine\", end = 100, final = 0.1 }, { kind = \"warm-up\", until = 5 }, \
                 { kind = \"course\", times = [0, 10], values = [1, 0.1] }"
)]
pub enum ScheduleSpec {
    /// A formula of t.
    Formula(String),
    /// One of the usual forms.
    Named(NamedSchedule),
}

/// The usual schedules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum NamedSchedule {
    /// (1 + t/tau)^(−power).
    Inverse {
        /// Time after which it has fallen to 2^(−power).
        tau: f64,
        /// Exponent.
        #[serde(default = "one")]
        power: f64,
    },
    /// exp(−t/tau).
    Exponential {
        /// Time of decay.
        tau: f64,
    },
    /// From 1 to `final` along half a period of a cosine, then constant.
    Cosine {
        /// Where it ends.
        end: f64,
        /// What remains, between 0 and 1.
        #[serde(default, rename = "final")]
        last: f64,
    },
    /// Linear from 0 until a time, then another schedule that starts there.
    WarmUp {
        /// Where it ends.
        until: f64,
        /// What follows; constant 1 unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<Box<ScheduleSpec>>,
    },
    /// Values at times, linear between them and constant outside.
    Course {
        /// Times, ascending.
        times: Vec<f64>,
        /// The factor at each of them.
        values: Vec<f64>,
    },
}

fn one() -> f64 {
    1.0
}

/// What is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// No formula of t.
    #[error("{0}\n\nhint: a schedule is a formula of t")]
    Formula(#[from] ExpressionError),
    /// A number outside its range.
    #[error("the `{key}` of a schedule is {value}; it must be {range}")]
    Range {
        /// Key of the table.
        key: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Not a value per time.
    #[error("a course has {times} times and {values} values; give one value per time, and at least one")]
    CourseLength {
        /// Times given.
        times: usize,
        /// Values given.
        values: usize,
    },
    /// Times out of order.
    #[error("the times of a course must ascend, each above the one before it, and be finite")]
    CourseTimes,
}

/// Relative distance within which two times are the same.
const ROUNDING: f64 = 1e-12;

/// A factor as a function of time, 1 unless a schedule is given.
#[derive(Debug, Clone, Default)]
pub struct FactorSchedule {
    given: Option<(ScheduleSpec, Form)>,
}

impl PartialEq for FactorSchedule {
    fn eq(&self, other: &Self) -> bool {
        self.spec() == other.spec()
    }
}

/// A schedule that can be evaluated.
#[derive(Debug, Clone)]
enum Form {
    Formula(Expression),
    Inverse { tau: f64, power: f64 },
    Exponential { tau: f64 },
    Cosine { end: f64, last: f64 },
    WarmUp { until: f64, then: Option<Box<Form>> },
    Course(Course),
}

impl Form {
    fn new(spec: &ScheduleSpec) -> Result<Self, ScheduleError> {
        let check = |key: &'static str, value: f64, fits: bool, range: &'static str| {
            if value.is_finite() && fits {
                Ok(value)
            } else {
                Err(ScheduleError::Range { key, value, range })
            }
        };
        Ok(match spec {
            ScheduleSpec::Formula(text) => Self::Formula(Expression::parse(text, &["t"])?),
            ScheduleSpec::Named(NamedSchedule::Inverse { tau, power }) => Self::Inverse {
                tau: check("tau", *tau, *tau > 0.0, "positive")?,
                power: check("power", *power, *power >= 0.0, "zero or positive")?,
            },
            ScheduleSpec::Named(NamedSchedule::Exponential { tau }) => {
                Self::Exponential { tau: check("tau", *tau, *tau > 0.0, "positive")? }
            }
            ScheduleSpec::Named(NamedSchedule::Cosine { end, last }) => Self::Cosine {
                end: check("end", *end, *end > 0.0, "positive")?,
                last: check("final", *last, (0.0..=1.0).contains(last), "between 0 and 1")?,
            },
            ScheduleSpec::Named(NamedSchedule::WarmUp { until, then }) => Self::WarmUp {
                until: check("until", *until, *until >= 0.0, "zero or positive")?,
                then: then.as_ref().map(|then| Self::new(then).map(Box::new)).transpose()?,
            },
            ScheduleSpec::Named(NamedSchedule::Course { times, values }) => {
                let course = Course { times: times.clone(), values: values.clone() };
                course.validate()?;
                Self::Course(course)
            }
        })
    }

    fn value(&self, t: f64) -> f64 {
        match self {
            Self::Formula(expression) => expression.value(&[t]),
            Self::Inverse { tau, power } => (1.0 + t / tau).powf(-power),
            Self::Exponential { tau } => (-t / tau).exp(),
            Self::Cosine { end, last } => last + (1.0 - last) * 0.5 * (1.0 + (PI * (t / end).min(1.0)).cos()),
            Self::WarmUp { until, then } => {
                let later = |t: f64| then.as_ref().map_or(1.0, |then| then.value(t));
                if t < *until { t / until * later(0.0) } else { later(t - until) }
            }
            Self::Course(course) => course.value(t),
        }
    }

    /// Where value or slope jumps within an interval.
    fn breaks(&self, begin: f64, end: f64) -> Vec<f64> {
        match self {
            Self::Formula(expression) => {
                expression.breaks_between(begin, end).iter().map(|found| found.at).collect()
            }
            Self::Inverse { .. } | Self::Exponential { .. } => Vec::new(),
            Self::Cosine { end, .. } => vec![*end],
            Self::WarmUp { until, then } => {
                let later = then.iter().flat_map(|then| then.breaks(0.0_f64.max(begin - until), end - until));
                std::iter::once(*until).chain(later.map(|t| t + until)).collect()
            }
            Self::Course(course) => course.times.clone(),
        }
    }

    /// True for a formula that is the number 1.
    fn is_one(&self) -> bool {
        matches!(self, Self::Formula(expression) if expression.polynomial().as_deref() == Some(&[1.0]))
    }
}

impl FactorSchedule {
    /// The schedule of a description.
    pub fn new(spec: ScheduleSpec) -> Result<Self, ScheduleError> {
        let form = Form::new(&spec)?;
        Ok(Self { given: (!form.is_one()).then_some((spec, form)) })
    }

    /// A formula of t.
    pub fn formula(text: &str) -> Result<Self, ScheduleError> {
        Self::new(ScheduleSpec::Formula(text.into()))
    }

    /// What was given, if anything was that is not the factor 1.
    pub fn spec(&self) -> Option<&ScheduleSpec> {
        self.given.as_ref().map(|(spec, _)| spec)
    }

    /// True when the factor is 1 at all times.
    pub fn is_constant(&self) -> bool {
        self.given.is_none()
    }

    /// The factor at a time.
    pub fn value(&self, t: f64) -> f64 {
        self.given.as_ref().map_or(1.0, |(_, form)| form.value(t))
    }

    /// Times strictly within an interval at which the factor or its slope jumps, ascending.
    pub fn breaks(&self, begin: f64, end: f64) -> Vec<f64> {
        let mut found = self.given.as_ref().map_or(Vec::new(), |(_, form)| form.breaks(begin, end));
        // A kink of a formula is known to rounding; one that is an end of the interval within that is none inside it.
        let rounding = ROUNDING * begin.abs().max(end.abs());
        found.retain(|t| *t > begin + rounding && *t < end - rounding);
        found.sort_by(f64::total_cmp);
        found.dedup_by(|later, t| *later - *t <= rounding);
        found
    }
}

/// A number, or a formula of t in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number, or a formula of t such as \"t/(t+3)\"")]
pub enum NumberOrFormula {
    /// The same at all times.
    Number(f64),
    /// A formula of t.
    Formula(String),
}

/// A number that may vary with time.
#[derive(Debug, Clone)]
pub enum TimedNumber {
    /// The same at all times.
    Fixed(f64),
    /// A formula of t.
    Varying(Expression),
}

impl PartialEq for TimedNumber {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            (Self::Varying(a), Self::Varying(b)) => a.text() == b.text(),
            _ => false,
        }
    }
}

impl TimedNumber {
    /// The number of a description.
    pub fn new(spec: &NumberOrFormula) -> Result<Self, ScheduleError> {
        Ok(match spec {
            NumberOrFormula::Number(value) => Self::Fixed(*value),
            NumberOrFormula::Formula(text) => Self::Varying(Expression::parse(text, &["t"])?),
        })
    }

    /// The number at a time.
    pub fn value(&self, t: f64) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Varying(formula) => formula.value(&[t]),
        }
    }

    /// True for a formula.
    pub fn varies(&self) -> bool {
        matches!(self, Self::Varying(_))
    }

    /// Times strictly within an interval at which it or its slope jumps.
    pub fn breaks(&self, begin: f64, end: f64) -> Vec<f64> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Varying(formula) => {
                let found = formula.breaks_between(begin, end);
                found.iter().map(|found| found.at).filter(|t| *t > begin && *t < end).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> FactorSchedule {
        FactorSchedule::new(serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn the_usual_forms_are_their_formulas() {
        for (given, formula) in [
            (r#"{"kind": "inverse", "tau": 20}"#, "1/(1+t/20)"),
            (r#"{"kind": "inverse", "tau": 4, "power": 0.5}"#, "(1+t/4)^(-0.5)"),
            (r#"{"kind": "exponential", "tau": 3}"#, "exp(-t/3)"),
            (r#"{"kind": "cosine", "end": 10, "final": 0.2}"#, "0.2 + 0.4*(1+cos(pi*min(t/10, 1)))"),
            (r#"{"kind": "warm-up", "until": 5}"#, "min(t/5, 1)"),
            (
                r#"{"kind": "warm-up", "until": 5, "then": {"kind": "exponential", "tau": 2}}"#,
                "min(t/5, 1)*exp(-max(t-5, 0)/2)",
            ),
        ] {
            let formula = FactorSchedule::formula(formula).unwrap();
            for t in [0.0, 1.0, 2.5, 5.0, 7.0, 10.0, 33.0] {
                let (a, b) = (schedule(given).value(t), formula.value(t));
                assert!((a - b).abs() < 1e-15, "{given} at {t}: {a} {b}");
            }
        }
    }

    #[test]
    fn kinks_and_jumps_are_found_wherever_they_are() {
        assert_eq!(schedule(r#"{"kind": "cosine", "end": 10}"#).breaks(0.0, 50.0), [10.0]);
        let warm = schedule(r#"{"kind": "warm-up", "until": 5, "then": {"kind": "cosine", "end": 40}}"#);
        assert_eq!(warm.breaks(0.0, 100.0), [5.0, 45.0]);
        assert!(warm.breaks(6.0, 40.0).is_empty());
        let late = FactorSchedule::formula("1 - min((t - 3)/10, 0.3)").unwrap();
        assert!(
            late.breaks(0.0, 6.0).is_empty(),
            "a kink at the end, but for rounding: {:?}",
            late.breaks(0.0, 6.0)
        );
        assert_eq!(late.breaks(0.0, 7.0).len(), 1);
        let kink = FactorSchedule::formula("max(0.1, exp(-t/20))").unwrap().breaks(0.0, 100.0);
        assert!(kink.len() == 1 && (kink[0] - 20.0 * 10f64.ln()).abs() < 1e-9, "{kink:?}");
    }

    #[test]
    fn the_formula_one_is_no_schedule_and_bad_numbers_are_named() {
        assert!(FactorSchedule::formula("1").unwrap().is_constant());
        let refused = |text: &str| FactorSchedule::new(serde_json::from_str(text).unwrap()).unwrap_err();
        assert_eq!(
            refused(r#"{"kind": "inverse", "tau": 0}"#).to_string(),
            "the `tau` of a schedule is 0; it must be positive"
        );
        assert!(refused(r#""1/(1+x)""#).to_string().contains("a schedule is a formula of t"));
    }
}
