//! From the spectrum of a description to eigenvalues and weights.

use crate::description::{Description, InputsSpec, SpectrumSpec, Values};
use crate::source::{Diagnostic, Source};
use crate::store::disk;
use didact_model::Spectrum;
use didact_model::spectrum::SpectrumError;
use didact_model::spectrum::file::{self, FileError, PrincipalRows};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Why a spectrum cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpectraError {
    /// Its numbers.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// Its file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Eigenvalues and weights.
pub fn build(spec: &SpectrumSpec, source: &Source) -> Result<Spectrum, SpectraError> {
    match spec {
        SpectrumSpec::Isotropic => Ok(Spectrum::isotropic()),
        SpectrumSpec::PowerLaw { levels, beta, groups } => {
            Ok(Spectrum::power_law(*levels, *beta)?.within_groups(*groups)?)
        }
        SpectrumSpec::Explicit { eigenvalues, weights } => {
            let equal = || vec![1.0 / eigenvalues.len().max(1) as f64; eigenvalues.len()];
            Ok(Spectrum::new(eigenvalues.clone(), weights.clone().unwrap_or_else(equal))?)
        }
        SpectrumSpec::Measured { name, truncate, groups } => {
            let mut spectrum = name.spectrum()?;
            if let Some(levels) = truncate {
                spectrum = spectrum.truncated(*levels)?.normalised();
            }
            Ok(spectrum.within_groups(*groups)?)
        }
        SpectrumSpec::File { path, truncate, normalise, groups } => {
            let mut spectrum = file::read(&beside(source, path))?.spectrum;
            if let Some(levels) = truncate {
                spectrum = spectrum.truncated(*levels)?;
            }
            if *normalise {
                spectrum = spectrum.normalised();
            }
            Ok(spectrum.within_groups(*groups)?)
        }
    }
}

/// Replaces every file by what it says, so that the description is whole without it and its hash knows the numbers: the spectrum
/// of the inputs, and those in changes by stages, runs, the sweep, `[quick]` and `[full]`, however deep they stand there.
pub fn resolve(mut description: Description, source: &Source) -> Result<Description, Diagnostic> {
    description.data.spectrum = written_out(description.data.spectrum, source, "data.spectrum")?;
    if let InputsSpec::Rows(rows) = &mut description.data.inputs {
        let (found, digest) = table_rows(&rows.path, source)?;
        if rows.digest.as_ref().is_some_and(|known| *known != digest) {
            let message = format!("`{}` is not the file that this description was resolved with", rows.path);
            return Err(Diagnostic::new(message)
                .hint("remove `digest` to take the file as it is now")
                .at_key(source, "data.inputs"));
        }
        rows.digest = Some(digest);
        if description.data.spectrum == SpectrumSpec::Isotropic {
            description.data.spectrum = SpectrumSpec::Explicit {
                eigenvalues: found.spectrum.eigenvalues().to_vec(),
                weights: Some(found.spectrum.weights().to_vec()),
            };
        }
        description.data.dimension.get_or_insert(found.rows.cols() as u64);
    }
    let stages = description.training.iter_mut().flat_map(|training| &mut training.stage).enumerate();
    for (index, stage) in stages {
        let owner = format!("training.stage.{index}.set");
        stage.set.values_mut().try_for_each(|value| write_out_within(value, source, &owner))?;
    }
    for (index, run) in description.run.iter_mut().enumerate() {
        let owner = format!("run.{index}.set");
        run.set.values_mut().try_for_each(|value| write_out_within(value, source, &owner))?;
    }
    for (owner, set) in [("quick", &mut description.quick), ("full", &mut description.full)] {
        set.values_mut().try_for_each(|value| write_out_within(value, source, owner))?;
    }
    for values in description.sweep.values_mut() {
        if let Values::List(list) = values {
            list.iter_mut().try_for_each(|value| write_out_within(value, source, "sweep"))?;
        }
    }
    Ok(description)
}

/// Replaces the file of a spectrum that came about by changes key by key.
pub(crate) fn resolve_last(mut description: Description, source: &Source) -> Result<Description, Diagnostic> {
    description.data.spectrum = written_out(description.data.spectrum, source, "data.spectrum")?;
    Ok(description)
}

/// Replaces every spectrum of a file in a value.
fn write_out_within(value: &mut Value, source: &Source, owner: &str) -> Result<(), Diagnostic> {
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(|value| write_out_within(value, source, owner)),
        Value::Object(fields) => {
            let is_file = fields.get("kind").is_some_and(|kind| kind == "file");
            // What is no spectrum is refused where overrides are applied, with the key it stands under.
            match serde_json::from_value::<SpectrumSpec>(Value::Object(fields.clone())) {
                Ok(spec) if is_file => {
                    let explicit = written_out(spec, source, owner)?;
                    *value = serde_json::to_value(explicit).map_err(Diagnostic::new)?;
                    Ok(())
                }
                _ => fields.values_mut().try_for_each(|value| write_out_within(value, source, owner)),
            }
        }
        _ => Ok(()),
    }
}

fn written_out(spec: SpectrumSpec, source: &Source, key: &str) -> Result<SpectrumSpec, Diagnostic> {
    if !matches!(spec, SpectrumSpec::File { .. }) {
        return Ok(spec);
    }
    let read = build(&spec, source);
    let spectrum = read.map_err(|e| Diagnostic::new(e).at_key(source, key))?;
    Ok(SpectrumSpec::Explicit {
        eigenvalues: spectrum.eigenvalues().to_vec(),
        weights: Some(spectrum.weights().to_vec()),
    })
}

/// The rows of a table, and a digest of its file.
pub fn table_rows(path: &str, source: &Source) -> Result<(PrincipalRows, String), Diagnostic> {
    let place = beside(source, path);
    let refused = |e: FileError| Diagnostic::new(e).at_key(source, "data.inputs");
    let rows = file::read_rows(&place).map_err(refused)?;
    let read = |e: std::io::Error| {
        refused(FileError::Read { path: place.display().to_string(), reason: e.to_string() })
    };
    Ok((rows, disk::digest_of_file(&place).map_err(read)?))
}

/// A path relative to the folder of the description.
pub(crate) fn beside(source: &Source, path: &str) -> PathBuf {
    let folder = Path::new(&source.name).parent().unwrap_or_else(|| Path::new(""));
    folder.join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_beside_the_description_and_written_out() {
        let folder = std::env::temp_dir().join(format!("didact-spectra-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("eigenvalues.csv"), "8\n2\n2\n").unwrap();
        let source = |options: &str| Source {
            name: folder.join("experiment.toml").display().to_string(),
            text: format!(
                "title = \"x\"\n[data]\nspectrum = {{ kind = \"file\", path = \"eigenvalues.csv\"{options} }}\n"
            ),
        };
        let spectrum = |options: &str| source(options).description().unwrap().data.spectrum;
        let explicit = |eigenvalues: &[f64], weights: &[f64]| SpectrumSpec::Explicit {
            eigenvalues: eigenvalues.to_vec(),
            weights: Some(weights.to_vec()),
        };
        assert_eq!(spectrum(", normalise = false"), explicit(&[8.0, 2.0], &[1.0 / 3.0, 2.0 / 3.0]));
        assert_eq!(spectrum(""), explicit(&[2.0, 0.5], &[1.0 / 3.0, 2.0 / 3.0]));
        assert_eq!(spectrum(", truncate = 1"), explicit(&[1.0], &[1.0]));
        assert_eq!(spectrum(", normalise = false, groups = 1"), explicit(&[4.0], &[1.0]));
        let mut other = source("");
        other.text += "[[run]]\nname = \"a\"\nengine = \"ode\"\nset = { \"data.spectrum\" = { kind = \"file\", path = \"eigenvalues.csv\" } }\n";
        let set = &other.description().unwrap().run[0].set;
        assert_eq!(set["data.spectrum"]["kind"], "explicit", "files of a single run are written out too");
        let file = "{ kind = \"file\", path = \"eigenvalues.csv\" }";
        let mut deep = source("");
        deep.text = format!(
            "title = \"x\"\nquick = {{ data = {{ spectrum = {file} }} }}\nsweep = {{ \"data.spectrum\" = [{file}, {{ kind = \"isotropic\" }}] }}\n\
             training = {{ learning-rate = 1, stage = [{{ until = {{ time = 1 }}, set = {{ data = {{ spectrum = {file} }} }} }}] }}\n\
             run = [{{ name = \"a\", engine = \"ode\", set = {{ data = {{ spectrum = {file} }} }} }}]\n"
        );
        let text = serde_json::to_string(&deep.description().unwrap()).unwrap();
        assert_eq!(text.matches("\"kind\":\"explicit\"").count(), 4, "{text}");
        assert!(!text.contains("eigenvalues.csv"), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
