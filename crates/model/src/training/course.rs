//! A number as a function of the clock, given at some times and linear between them.

use super::schedule::ScheduleError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values at ascending times, linear between two of them and constant outside: `{ times = [0, 10, 50], values = [1, 0.5, 0] }`. Times
/// are those of the clock, counted from the start of the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Course {
    /// Times, ascending.
    pub times: Vec<f64>,
    /// The value at each of them, zero or positive.
    pub values: Vec<f64>,
}

impl Course {
    /// The same value at all times.
    pub fn constant(value: f64) -> Self {
        Self { times: vec![0.0], values: vec![value] }
    }

    /// Checks what no type can.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        if self.times.is_empty() || self.times.len() != self.values.len() {
            return Err(ScheduleError::CourseLength { times: self.times.len(), values: self.values.len() });
        }
        let ascending = self.times.windows(2).all(|pair| pair[0] < pair[1]);
        if !(ascending && self.times.iter().all(|t| t.is_finite())) {
            return Err(ScheduleError::CourseTimes);
        }
        match self.values.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
            Some(value) => Err(ScheduleError::Range {
                key: "values",
                value: *value,
                range: "zero or positive, each of them",
            }),
            None => Ok(()),
        }
    }

    /// The interval of a time as its first knot, and the share of the way to the next: the value is
    /// `(1 − share) values[k] + share values[k + 1]`.
    pub fn place(&self, t: f64) -> (usize, f64) {
        let last = self.times.len() - 1;
        let after = self.times.partition_point(|knot| *knot <= t);
        match after {
            0 => (0, 0.0),
            k if k > last => (last, 0.0),
            k => (k - 1, (t - self.times[k - 1]) / (self.times[k] - self.times[k - 1])),
        }
    }

    /// The value at a time.
    pub fn value(&self, t: f64) -> f64 {
        let (k, share) = self.place(t);
        if share == 0.0 {
            self.values[k]
        } else {
            (1.0 - share) * self.values[k] + share * self.values[k + 1]
        }
    }

    /// The same function of time, given at other times.
    pub fn resampled(&self, times: &[f64]) -> Self {
        Self { times: times.to_vec(), values: times.iter().map(|t| self.value(*t)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_linear_between_its_times_and_constant_outside() {
        let course = Course { times: vec![1.0, 3.0, 4.0], values: vec![2.0, 0.0, 5.0] };
        for (t, want) in [(0.0, 2.0), (1.0, 2.0), (2.0, 1.0), (3.0, 0.0), (3.5, 2.5), (4.0, 5.0), (9.0, 5.0)]
        {
            assert_eq!(course.value(t), want, "{t}");
        }
        assert_eq!(course.resampled(&[1.0, 2.0]).values, [2.0, 1.0]);
        assert_eq!(Course::constant(0.3).value(7.0), 0.3);
    }

    #[test]
    fn what_is_no_course_is_refused() {
        let refused = |times: &[f64], values: &[f64]| {
            Course { times: times.to_vec(), values: values.to_vec() }.validate().unwrap_err().to_string()
        };
        assert!(refused(&[0.0, 1.0], &[1.0]).contains("2 times and 1 value"));
        assert!(refused(&[], &[]).contains("0 times"));
        assert!(refused(&[0.0, 0.0], &[1.0, 1.0]).contains("ascend"));
        assert!(refused(&[0.0, 1.0], &[1.0, -1.0]).contains("values"));
        assert!(Course { times: vec![0.0, 1.0], values: vec![1.0, 0.0] }.validate().is_ok());
    }
}
