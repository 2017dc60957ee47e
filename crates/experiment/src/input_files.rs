//! Files that quantities read: found relative to the description, and known by what they hold.
//!
//! Spectra of runs are written out when a description is read (`spectra.rs`). Quantities read their files themselves, so a digest of
//! the bytes takes the place of the path wherever it is asked what a result depends on.

use crate::description::{Description, MeasureKind};
use crate::points::Point;
use crate::quantities;
use crate::source::{Diagnostic, Source};
use crate::spectra::beside;
use crate::store::disk;
use didact_model::files::open_bounded;
use didact_model::quantity::Kind;
use didact_model::spectrum::file::LARGEST_FILE;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The files that scans and measures name, by the path that stands in the description.
#[derive(Debug, Clone, Default)]
pub struct InputFiles(BTreeMap<String, InputFile>);

#[derive(Debug, Clone)]
struct InputFile {
    path: PathBuf,
    digest: String,
}

impl InputFiles {
    /// Reads all files that scans over their grids and measures at the points of the sweep ask for.
    pub(crate) fn of(
        description: &Description,
        (points, grids): (&[Point], &[Vec<Point>]),
        source: &Source,
    ) -> Result<Self, Diagnostic> {
        let mut files = Self::default();
        for (index, (scan, grid)) in description.scan.iter().zip(grids).enumerate() {
            for name in file_inputs(&scan.quantity) {
                let varying = grid.iter().filter_map(|point| point.values.get(name));
                let key = format!("scan.{index}.quantity");
                files.add_all(scan.inputs.get(name).into_iter().chain(varying), &key, source)?;
            }
        }
        for (index, measure) in description.measure.iter().enumerate() {
            let MeasureKind::Quantity(measure) = &measure.kind else { continue };
            for name in file_inputs(&measure.quantity) {
                let Some(value) = measure.inputs.get(name) else { continue };
                let values: Vec<Value> = points.iter().map(|point| point.replace(value)).collect();
                files.add_all(values.iter(), &format!("measure.{index}.quantity"), source)?;
            }
        }
        Ok(files)
    }

    fn add_all<'a>(
        &mut self,
        values: impl Iterator<Item = &'a Value>,
        key: &str,
        source: &Source,
    ) -> Result<(), Diagnostic> {
        for name in values.filter_map(Value::as_str) {
            if self.0.contains_key(name) {
                continue;
            }
            let path = beside(source, name);
            let unreadable = |error: String| {
                Diagnostic::new(format!("cannot read `{}`: {error}", path.display())).at_key(source, key)
            };
            // A pipe would wait for a writer, and a device may have no end.
            open_bounded(&path, LARGEST_FILE).map_err(unreadable)?;
            let digest = disk::digest_of_file(&path).map_err(|error| unreadable(error.to_string()))?;
            self.0.insert(name.into(), InputFile { path, digest });
        }
        Ok(())
    }

    /// The inputs of a quantity with every file where it lies.
    pub(crate) fn located(&self, quantity: &str, inputs: Map<String, Value>) -> Map<String, Value> {
        self.replaced(quantity, inputs, |file| file.path.display().to_string())
    }

    /// The inputs of a quantity with what a file holds in place of where it lies.
    pub(crate) fn digested(&self, quantity: &str, inputs: Map<String, Value>) -> Map<String, Value> {
        self.replaced(quantity, inputs, |file| format!("sha256 {}", file.digest))
    }

    fn replaced(
        &self,
        quantity: &str,
        mut inputs: Map<String, Value>,
        by: impl Fn(&InputFile) -> String,
    ) -> Map<String, Value> {
        for name in file_inputs(quantity) {
            if let Some(value) = inputs.get_mut(name)
                && let Some(file) = value.as_str().and_then(|path| self.0.get(path))
            {
                *value = Value::from(by(file));
            }
        }
        inputs
    }

    /// Refuses results for which a file was read that is another one by now.
    pub(crate) fn check_unchanged(&self) -> Result<(), Diagnostic> {
        for file in self.0.values() {
            if disk::digest_of_file(&file.path).ok().as_ref() != Some(&file.digest) {
                let message = format!("`{}` changed while it was used", file.path.display());
                return Err(Diagnostic::new(message).hint("run it again, and leave the file alone meanwhile"));
            }
        }
        Ok(())
    }

    /// Digests by path, for the name of the folder.
    pub(crate) fn digests(&self) -> BTreeMap<&str, &str> {
        self.0.iter().map(|(path, file)| (path.as_str(), file.digest.as_str())).collect()
    }
}

/// Names of the inputs of a quantity that are files.
fn file_inputs(quantity: &str) -> impl Iterator<Item = &'static str> + use<> {
    let inputs = quantities::find(quantity).map_or(&[][..], |quantity| quantity.inputs);
    inputs.iter().filter(|input| input.kind == Kind::File).map(|input| input.name)
}
