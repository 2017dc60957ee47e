//! What a measure is given to compute its number from.

use super::{Dependency, Found, Measured, MeasuredValues};
use crate::description::{OptimiseSpec, Overrides};
use crate::input_files::InputFiles;
use crate::points::Point;
use crate::results::{MeanCurve, Missing, Results};
use didact_model::Trajectory;

/// Tables, scans and earlier measures, as far as the measure declares that it depends on them.
pub struct Findings<'a> {
    declared: Vec<Dependency<'a>>,
    results: &'a Results,
    earlier: &'a [Measured],
}

impl<'a> Findings<'a> {
    /// Of results and earlier measures, limited to the declared dependencies.
    pub(super) fn new(declared: Vec<Dependency<'a>>, results: &'a Results, earlier: &'a [Measured]) -> Self {
        Self { declared, results, earlier }
    }

    /// One number per point of the sweep.
    pub fn at_each_point(&self, evaluate: impl Fn(&Point) -> Found) -> MeasuredValues {
        MeasuredValues::PerPoint(self.points().iter().map(evaluate).collect())
    }

    /// The files that quantities read.
    pub fn files(&self) -> &'a InputFiles {
        &self.results.files
    }

    /// Points of the sweep (one without a sweep).
    pub fn points(&self) -> &'a [Point] {
        &self.results.points
    }

    /// The table of a run at a point.
    pub fn table(&self, point: &Point, run: &str) -> Result<&'a Trajectory, Missing> {
        self.require(|dependency| dependency.run() == Some(run), "run", run)?;
        self.results.table(point, run)
    }

    /// The table of an optimisation at a point.
    pub fn optimum(&self, point: &Point, name: &str) -> Result<&'a Trajectory, Missing> {
        let is = |d: &Dependency| matches!(d, Dependency::Optimise(named) if named.name == name);
        self.require(is, "optimisation", name)?;
        self.results.table(point, &OptimiseSpec::table_name(name))
    }

    /// Times, means and standard errors of a column within a window of time.
    pub fn curve(
        &self,
        point: &Point,
        run: &str,
        column: &str,
        window: [f64; 2],
    ) -> Result<MeanCurve, Missing> {
        self.table(point, run)?;
        self.results.curve(point, run, column, window)
    }

    /// Input and entry of a scan where both are numbers, over the rows that match.
    pub fn scanned(
        &self,
        scan: &str,
        entry_over: (&str, &str),
        at: &Overrides,
    ) -> Result<Vec<(f64, f64)>, String> {
        self.require(|d| matches!(d, Dependency::Scan(named) if named.name == scan), "scan", scan)?;
        self.results.scanned(scan, entry_over, at)
    }

    /// What an earlier measure found.
    pub fn measure(&self, name: &str) -> Result<&'a Measured, String> {
        self.require(|d| matches!(d, Dependency::Measure(named) if named.name == name), "measure", name)?;
        let found = self.earlier.iter().find(|m| m.name == name);
        found.ok_or_else(|| format!("no measure `{name}` before this one"))
    }

    /// Refuses what the measure does not declare: it would escape the name checks and the runs that wait for `--full`.
    fn require(&self, is: impl Fn(&Dependency) -> bool, what: &str, name: &str) -> Result<(), String> {
        if self.declared.iter().any(is) {
            return Ok(());
        }
        Err(format!("this kind of measure does not declare that it depends on the {what} `{name}`"))
    }
}
