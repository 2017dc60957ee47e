//! What is made of the results: measures, verdicts, figures, the report, and the folder that holds all of it.

use crate::Size;
use crate::claims::{self, Judged};
use crate::draw::Drawable;
use crate::experiment::{BUILD, Experiment, Run};
use crate::guard;
use crate::jobs::Done;
use crate::measures::{self, Estimate, Measured};
use crate::report::Report;
use crate::results::{Missing, Results};
use crate::source::Diagnostic;
use crate::store::folder::Assembly;
use crate::store::pack::{PACKED_FROM, PackWriter};
use crate::store::{Encoded, Provenance, csv};
use crate::words::Words;
use didact_figure::Figure;
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;

/// Measures, verdicts and figures.
pub(crate) struct Outcome {
    pub(crate) claims: Vec<Judged>,
    pub(crate) measured: Vec<Measured>,
    figures: Vec<DrawnFigure>,
}

/// A figure with its files.
struct DrawnFigure {
    name: String,
    figure: Figure,
    files: [(&'static str, Vec<u8>); 3],
}

/// Tables that are encoded side by side before they are written.
const ENCODED_AT_A_TIME: usize = 64;

/// The files of a table, and its path without their extensions.
struct TableFiles {
    place: String,
    encoded: Encoded,
    csv: String,
    header: Vec<u8>,
}

impl TableFiles {
    /// Their extensions and bytes.
    fn each(&self) -> [(&'static str, &[u8]); 3] {
        [("npz", self.encoded.npz_file()), ("csv", self.csv.as_bytes()), ("json", &self.header)]
    }
}

/// Why a folder could not be put together.
pub(crate) enum WriteError {
    /// The disk.
    Disk(io::Error),
    /// What was to be written.
    Text(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl Experiment {
    /// Evaluates, judges and draws. What the program fails at is added to the failures, and so is a figure that cannot be drawn
    /// where jobs have failed; without them it is an error.
    pub(crate) fn conclude(&self, done: &mut Done) -> Result<Outcome, Diagnostic> {
        let (measured, failed_measures) = measures::evaluate(&self.resolved.measure, &done.results);
        done.failed_jobs += failed_measures.len();
        done.failures.extend(failed_measures);
        let claims = claims::judge(self.claims(), self.size, &self.points, &measured);
        let drawable = Drawable { results: &done.results, measured: &measured };
        let mut figures = Vec::new();
        let mut undrawn = Vec::new();
        for spec in &self.resolved.figure {
            let draw = || -> Result<DrawnFigure, String> {
                let figure = drawable.figure(spec)?;
                let files = files_of(&figure).map_err(|e| format!("figure `{}`: {e}", spec.name))?;
                Ok(DrawnFigure { name: spec.name.clone(), figure, files })
            };
            match guard::caught(|| format!("figure `{}`", spec.name), draw) {
                Ok(Ok(figure)) => figures.push(figure),
                Ok(Err(why)) if done.failed_jobs == 0 => return Err(Diagnostic::new(why)),
                Ok(Err(why)) | Err(why) => undrawn.push(format!("figure {}: {why}", spec.name)),
            }
        }
        done.failed_jobs += undrawn.len();
        done.failures.extend(undrawn);
        Ok(Outcome { claims, measured, figures })
    }

    /// Writes everything but the provenance, and gives that without digests and time.
    pub(crate) fn put_together(
        &self,
        assembly: &Assembly,
        done: &Done,
        outcome: &Outcome,
        description: &str,
    ) -> Result<Provenance, WriteError> {
        assembly.add("description.toml", description.as_bytes())?;
        let tables = self.write_tables(assembly, &done.results)?;
        let mut scans = BTreeMap::new();
        for (scan, answers) in done.results.scans.iter().zip(&done.answers) {
            let file = format!("scan-{}.json", scan.name);
            assembly.add(&file, &answers.file())?;
            assembly.add(&format!("scan-{}.csv", scan.name), scan.csv().as_bytes())?;
            scans.insert(answers.key.clone(), file);
        }
        for figure in &outcome.figures {
            for (extension, bytes) in &figure.files {
                assembly.add(&format!("{}.{extension}", figure.name), bytes)?;
            }
        }
        let results = json!({"measures": outcome.measured, "claims": outcome.claims});
        let text = serde_json::to_string_pretty(&results).expect("plain data");
        assembly.add("results.json", text.as_bytes())?;
        let html = self.report(&done.results, &done.failures, outcome, description);
        assembly.add("report.html", html.map_err(WriteError::Text)?.as_bytes())?;
        let size = self.size.name();
        let runs = self.resolved.run.iter().map(|r| json!({"name": r.name, "engine": r.engine.name()}));
        Ok(Provenance {
            complete: true,
            didact: env!("CARGO_PKG_VERSION").into(),
            build: BUILD.into(),
            seed: self.resolved.seed(),
            runs: runs.collect(),
            points: self.points.len(),
            size: size.into(),
            failures: done.failures.clone(),
            failed_jobs: done.failed_jobs,
            threads: rayon::current_num_threads(),
            wall_seconds: 0.0,
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            tables,
            scans,
            files: BTreeMap::new(),
            seal: String::new(),
        })
    }

    /// Writes the tables of all runs, in packs where they are many; gives their places by key.
    fn write_tables(&self, assembly: &Assembly, results: &Results) -> io::Result<BTreeMap<String, String>> {
        // Two runs of the same key have equal tables; the last place in the order of the runs is listed.
        if self.resolved.sweep.is_empty() || self.runs.len() < PACKED_FROM {
            let places = self.runs.par_iter().filter_map(|run| {
                let written = self.table_files(run, results)?.and_then(|files| {
                    for (extension, bytes) in files.each() {
                        assembly.add(&format!("{}.{extension}", files.place), bytes)?;
                    }
                    Ok((run.key.clone(), files.place))
                });
                Some(written)
            });
            return places.collect::<io::Result<Vec<_>>>().map(|places| places.into_iter().collect());
        }
        let mut places = BTreeMap::new();
        let mut packs = PackWriter::new(assembly);
        for runs in self.runs.chunks(ENCODED_AT_A_TIME) {
            let encoded: Vec<_> = runs.par_iter().map(|run| self.table_files(run, results)).collect();
            for (run, files) in runs.iter().zip(encoded) {
                if let Some(files) = files.transpose()? {
                    places.insert(run.key.clone(), packs.add(&files.place, &files.each())?);
                }
            }
        }
        packs.finish()?;
        Ok(places)
    }

    /// The files of the table of a run; `None` where it has none.
    fn table_files(&self, run: &Run, results: &Results) -> Option<io::Result<TableFiles>> {
        let table = results.tables.get(&(run.point.index, run.name.clone()))?.as_ref().ok()?;
        // The experiment's own folder when there is no sweep.
        let place = if self.resolved.sweep.is_empty() {
            run.name.clone()
        } else {
            format!("point-{:04}/{}", run.point.index, run.name)
        };
        let encoded = Encoded::new(table, &run.key);
        Some(encoded.map(|encoded| {
            let header = encoded.header_file();
            TableFiles { place, csv: csv(table), encoded, header }
        }))
    }

    fn report(
        &self,
        results: &Results,
        failures: &[String],
        outcome: &Outcome,
        description: &str,
    ) -> Result<String, String> {
        let measures: Vec<(String, String)> =
            outcome.measured.iter().flat_map(|m| self.measure_rows(m)).collect();
        let mut provenance = vec![
            ("didact".to_string(), env!("CARGO_PKG_VERSION").to_string()),
            ("build".into(), BUILD.into()),
            ("seed".into(), self.resolved.seed().to_string()),
            ("folder".into(), self.folder_name().into()),
        ];
        provenance.extend(quadrature_errors(results));
        let figures: Vec<(String, Figure)> =
            outcome.figures.iter().map(|f| (f.name.clone(), f.figure.clone())).collect();
        let report = Report {
            title: &self.resolved.title,
            about: &self.resolved.about,
            notice: self.notice(),
            words: &Words::new(&self.resolved),
            claims: &outcome.claims,
            figures: &figures,
            measures: &measures,
            scans: &results.scans,
            description,
            provenance: &provenance,
            references: &self.resolved.references(),
            failures,
        };
        report.html()
    }

    /// What a reader of the report must know first.
    fn notice(&self) -> Option<&'static str> {
        match self.size {
            Size::Quick => Some(
                "A quick run (--quick): smaller than the experiment describes, so that it takes seconds. Without --quick it runs as described.",
            ),
            Size::Full => Some("Run at full size (--full): as large as the source."),
            Size::Normal => None,
        }
    }

    fn measure_rows(&self, measured: &Measured) -> Vec<(String, String)> {
        let text = |value: &Result<Estimate, Missing>| match value {
            Ok(estimate) => estimate.to_string(),
            Err(why) => why.to_string(),
        };
        if measured.global || self.points.len() == 1 {
            return vec![(measured.name.clone(), text(&measured.values[0]))];
        }
        let first = text(&measured.values[0]);
        if measured.values.len() > 2 && measured.values.iter().all(|value| text(value) == first) {
            return vec![(format!("{} at all {} points", measured.name, self.points.len()), first)];
        }
        let rows = self.points.iter().zip(&measured.values);
        rows.map(|(p, v)| (format!("{} at {}", measured.name, p.label()), text(v))).collect()
    }
}

fn files_of(figure: &Figure) -> Result<[(&'static str, Vec<u8>); 3], didact_figure::Error> {
    Ok([
        ("svg", didact_figure::to_svg(figure)?.into_bytes()),
        ("pdf", didact_figure::to_pdf(figure)?),
        ("png", didact_figure::to_png(figure, 200.0)?),
    ])
}

/// The largest error of an average without closed form, per run that has any, for the report.
fn quadrature_errors(results: &Results) -> Vec<(String, String)> {
    let mut worst: BTreeMap<&str, f64> = BTreeMap::new();
    for ((_, run), table) in &results.tables {
        let statistics = table.iter().flat_map(|table| &table.statistics);
        for error in statistics.filter_map(|s| s.quadrature_error).filter(|error| *error > 0.0) {
            let known = worst.entry(run).or_default();
            *known = known.max(error);
        }
    }
    let row = |(run, error): (&str, f64)| {
        (format!("error of Gaussian averages of {run}"), format!("{error:.1e}, estimated"))
    };
    worst.into_iter().map(row).collect()
}
