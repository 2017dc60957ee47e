//! What the runs of an experiment gave, by point of the sweep and name of the run.

use crate::description::Overrides;
use crate::points::Point;
use crate::quantities::Scan;
use crate::store::Table;
use std::collections::BTreeMap;

/// Times, means and standard errors.
pub type Curve = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Why there is no number at a point that a run leaves out by its `where`.
const NOT_ASKED: &str = "is not run here";

/// True when a measure has no number because its run was not asked for, as opposed to one that failed.
pub fn is_left_out(why: &str) -> bool {
    why.ends_with(NOT_ASKED)
}

/// All tables of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Points of the sweep (one without a sweep).
    pub points: Vec<Point>,
    /// By (point, run): the table, or why there is none.
    pub tables: BTreeMap<(usize, String), Result<Table, String>>,
    /// Quantities over their grids.
    pub scans: Vec<Scan>,
}

impl Results {
    /// The table of a run at a point.
    pub fn table(&self, point: &Point, run: &str) -> Result<&Table, String> {
        match self.tables.get(&(point.index, run.to_string())) {
            Some(Ok(table)) => Ok(table),
            Some(Err(why)) => Err(format!("`{run}` failed: {why}")),
            None => Err(format!("`{run}` {NOT_ASKED}")),
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
    pub fn curve(&self, point: &Point, run: &str, column: &str, window: [f64; 2]) -> Result<Curve, String> {
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
