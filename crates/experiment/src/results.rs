//! What the runs of an experiment gave, by point of the sweep and name of the run.

use crate::points::Point;
use crate::store::Table;
use std::collections::BTreeMap;

/// All tables of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Points of the sweep (one without a sweep).
    pub points: Vec<Point>,
    /// By (point, run): the table, or why there is none.
    pub tables: BTreeMap<(usize, String), Result<Table, String>>,
}

impl Results {
    /// The table of a run at a point.
    pub fn table(&self, point: &Point, run: &str) -> Result<&Table, String> {
        match self.tables.get(&(point.index, run.to_string())) {
            Some(Ok(table)) => Ok(table),
            Some(Err(why)) => Err(format!("`{run}` failed: {why}")),
            None => Err(format!("no run `{run}`")),
        }
    }

    /// Times, means and standard errors of a column within a window of time.
    pub fn curve(
        &self,
        point: &Point,
        run: &str,
        column: &str,
        window: [f64; 2],
    ) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>), String> {
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
