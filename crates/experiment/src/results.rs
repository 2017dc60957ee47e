//! What the runs of an experiment gave, by point of the sweep and name of the run.

use crate::description::Overrides;
use crate::input_files::InputFiles;
use crate::points::Point;
use crate::quantities::Scan;
use didact_model::Trajectory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Times, means and standard errors.
pub type MeanCurve = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Missing {
    /// It was not asked for: the run leaves this point out by its `where`.
    #[serde(rename_all = "kebab-case")]
    LeftOut {
        /// Which run, and where.
        left_out: String,
    },
    /// It was, and something failed.
    Failed(String),
}

impl Missing {
    /// The same, seen from elsewhere: it happened at this point.
    pub fn at(self, point: &Point) -> Self {
        let text = format!("{}: {self}", point.label());
        match self {
            Self::LeftOut { .. } => Self::LeftOut { left_out: text },
            Self::Failed(_) => Self::Failed(text),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::LeftOut { left_out: text } | Self::Failed(text)) = self;
        out.write_str(text)
    }
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for Missing {
    fn from(why: &str) -> Self {
        Self::Failed(why.into())
    }
}

impl From<Missing> for String {
    fn from(missing: Missing) -> Self {
        missing.to_string()
    }
}

/// All tables of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Points of the sweep (one without a sweep).
    pub points: Vec<Point>,
    /// By (point, run): the table, or why there is none.
    pub tables: BTreeMap<(usize, String), Result<Trajectory, String>>,
    /// Quantities over their grids.
    pub scans: Vec<Scan>,
    /// Files that quantities read.
    pub files: InputFiles,
}

impl Results {
    /// The table of a run at a point.
    pub fn table(&self, point: &Point, run: &str) -> Result<&Trajectory, Missing> {
        match self.tables.get(&(point.index, run.to_string())) {
            Some(Ok(table)) => Ok(table),
            Some(Err(why)) => Err(format!("`{run}` failed: {why}").into()),
            None => Err(Missing::LeftOut { left_out: format!("`{run}` is not run here") }),
        }
    }

    /// Points at which a run was asked for, among those that match.
    pub fn points_of(&self, run: &str, at: &Overrides) -> Vec<&Point> {
        let asked = |p: &&Point| p.matches(at) && self.tables.contains_key(&(p.index, run.to_string()));
        self.points.iter().filter(asked).collect()
    }

    /// Input and entry of a scan where both are numbers, over the rows that match.
    pub fn scanned(
        &self,
        name: &str,
        (entry, over): (&str, &str),
        at: &Overrides,
    ) -> Result<Vec<(f64, f64)>, String> {
        let scan = self.scans.iter().find(|s| s.name == name).ok_or_else(|| format!("no scan `{name}`"))?;
        let rows = scan.rows.iter().filter(|(p, _)| p.matches(at));
        let pairs = rows.filter_map(|(point, entries)| {
            let entries = entries.as_ref().ok()?;
            let x = point.values.get(over).or_else(|| entries.get(over))?.as_f64()?;
            Some((x, entries.get(entry)?.as_f64()?))
        });
        Ok(pairs.collect())
    }

    /// Times, means and standard errors of a column within a window of time.
    pub fn curve(
        &self,
        point: &Point,
        run: &str,
        column: &str,
        window: [f64; 2],
    ) -> Result<MeanCurve, Missing> {
        let table = self.table(point, run)?;
        let mean = table.mean(column).ok_or_else(|| format!("run `{run}` has no column `{column}`"))?;
        let (mut times, mut values, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (t, m) in table.times.iter().zip(mean) {
            if *t >= window[0] && *t <= window[1] && m.count > 0 {
                times.push(*t);
                values.push(m.value);
                errors.push(m.error);
            }
        }
        Ok((times, values, errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_told_from_what_failed_by_type_not_by_text() {
        let point = Point { index: 0, values: Overrides::new() };
        let mut results = Results { points: vec![point.clone()], ..Results::default() };
        let left_out = results.table(&point, "far").unwrap_err();
        assert!(matches!(left_out, Missing::LeftOut { .. }), "{left_out:?}");
        // An engine that happens to end its message so has failed all the same.
        results.tables.insert((0, "far".into()), Err("what you ask for is not run here".into()));
        let failed = results.table(&point, "far").unwrap_err();
        assert!(matches!(failed, Missing::Failed(_)), "{failed:?}");
        for why in [left_out, failed] {
            assert_eq!(std::mem::discriminant(&why.clone().at(&point)), std::mem::discriminant(&why));
            let text = serde_json::to_string(&why).unwrap();
            assert_eq!(serde_json::from_str::<Missing>(&text).unwrap(), why, "{text}");
        }
    }
}
