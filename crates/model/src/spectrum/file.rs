//! Spectra from files: eigenvalues, or data whose covariance has them.
//!
//! `.npy` holds one array of 32- or 64-bit floats in C order, `.csv` (or any other text) numbers separated by commas, blanks or
//! lines; lines that start with `#` are skipped. A list is read as eigenvalues, a table (samples x features) as data.

use super::{Spectrum, SpectrumError};
use crate::files::open_bounded;
use crate::quantity::LARGEST_NUMBER;
use didact_math::linalg::{Mat, symmetric_eigen};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// What a file held.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpectrum {
    /// Eigenvalues with equal ones merged, largest first.
    pub spectrum: Spectrum,
    /// How many were merged away.
    pub merged: usize,
    /// How many were not positive beyond rounding (directions without variance) and were left out.
    pub dropped: usize,
    /// N, the number of eigenvalues kept, multiplicities included.
    pub dimension: u64,
}

/// Why a file gives no spectrum.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// It is no table of numbers.
    #[error("`{path}` is no list or table of numbers: {reason}")]
    Format {
        /// The file.
        path: String,
        /// What was found.
        reason: String,
    },
    /// Its numbers make no spectrum.
    #[error("`{path}`: {source}")]
    Spectrum {
        /// The file.
        path: String,
        /// What is wrong.
        source: SpectrumError,
    },
}

/// How a `.npy` file begins.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes of a file of eigenvalues or data.
pub const LARGEST_FILE: u64 = 256 << 20;

/// Rows of a covariance that is diagonalised, which takes a minute.
const LARGEST_COVARIANCE: usize = 4000;

/// Eigenvalues below this fraction of the largest are directions without variance: rounding of a covariance.
const NO_VARIANCE: f64 = 1e-12;

/// Reads a file of eigenvalues (one row or one column) or of data (several of each), whose covariance is then computed.
pub fn read(path: &Path) -> Result<FileSpectrum, FileError> {
    let name = path.display().to_string();
    let unreadable = |reason: String| FileError::Read { path: name.clone(), reason };
    let mut file = BufReader::new(open_bounded(path, LARGEST_FILE).map_err(unreadable)?);
    let beginning = file.fill_buf().map_err(|e| unreadable(e.to_string()))?;
    let table = if beginning.starts_with(MAGIC) {
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE).read_to_end(&mut bytes).map_err(|e| unreadable(e.to_string()))?;
        npy(&bytes)
    } else {
        text(file.take(LARGEST_FILE))
    };
    let table =
        table.and_then(moderate).map_err(|reason| FileError::Format { path: name.clone(), reason })?;
    of_table(&table).map_err(|source| FileError::Spectrum { path: name, source })
}

/// The same of bytes that are there already; nothing about a file is said.
pub fn from_bytes(bytes: &[u8]) -> Result<FileSpectrum, FileError> {
    let table = if bytes.starts_with(MAGIC) { npy(bytes) } else { text(bytes) };
    let path = || "the text".to_string();
    let table = table.and_then(moderate).map_err(|reason| FileError::Format { path: path(), reason })?;
    of_table(&table).map_err(|source| FileError::Spectrum { path: path(), source })
}

/// Refuses data whose covariance would take too long to diagonalise.
fn moderate(table: Mat) -> Result<Mat, String> {
    let (rows, columns) = (table.rows(), table.cols());
    if rows.min(columns) > LARGEST_COVARIANCE {
        return Err(format!(
            "a table of {rows} samples of {columns} features has a covariance of more than {LARGEST_COVARIANCE} rows; give its eigenvalues"
        ));
    }
    Ok(table)
}

fn of_table(table: &Mat) -> Result<FileSpectrum, SpectrumError> {
    let is_list = table.rows() == 1 || table.cols() == 1;
    let (eigenvalues, dropped) = if is_list {
        (table.as_slice().to_vec(), 0)
    } else {
        let all = covariance_eigenvalues(table);
        let largest = all.iter().copied().fold(0.0, f64::max);
        let kept: Vec<f64> = all.iter().copied().filter(|l| *l > NO_VARIANCE * largest).collect();
        let dropped = all.len() - kept.len();
        (kept, dropped)
    };
    let (spectrum, merged) = Spectrum::of_eigenvalues(&eigenvalues)?;
    Ok(FileSpectrum { spectrum, merged, dropped, dimension: eigenvalues.len() as u64 })
}

/// Eigenvalues of the sample covariance (1/n) Σ (x − mean)(x − mean)ᵀ, largest first; with fewer samples than features
/// those of the equally good n x n matrix.
fn covariance_eigenvalues(data: &Mat) -> Vec<f64> {
    let (n, p) = (data.rows(), data.cols());
    let mean: Vec<f64> = (0..p).map(|j| (0..n).map(|i| data[(i, j)]).sum::<f64>() / n as f64).collect();
    let centred = Mat::from_fn(n, p, |i, j| (data[(i, j)] - mean[j]) / (n as f64).sqrt());
    let gram = if n < p { centred.gram() } else { centred.transpose().gram() };
    let mut values = symmetric_eigen(&gram).values;
    values.reverse();
    values
}

/// Reads line by line: the text is never held as a whole.
fn text(lines: impl BufRead) -> Result<Mat, String> {
    let mut rows = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(|_| "not a text, and not .npy".to_string())?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The word itself is not shown: the file may not be one that its owner wants to see quoted.
        let number = |(entry, word): (usize, &str)| {
            let place = || format!("entry {} of line {} is no number", entry + 1, index + 1);
            word.parse::<f64>().map_err(|_| place())
        };
        let words = line.split([',', ';', ' ', '\t']).filter(|w| !w.is_empty()).enumerate();
        rows.push(words.map(number).collect::<Result<Vec<f64>, String>>()?);
    }
    table(&rows)
}

fn table(rows: &[Vec<f64>]) -> Result<Mat, String> {
    let table = Mat::from_rows(rows).ok_or("its rows have different lengths")?;
    if table.as_slice().is_empty() {
        return Err("it holds no number".into());
    }
    match table.as_slice().iter().find(|x| !x.is_finite() || x.abs() > LARGEST_NUMBER) {
        Some(bad) if bad.is_nan() => Err("it holds nan".into()),
        Some(bad) if bad.is_infinite() => Err("it holds inf".into()),
        Some(_) => {
            Err(format!("it holds numbers above {LARGEST_NUMBER:e}, of which no covariance can be computed"))
        }
        None => Ok(table),
    }
}

/// Format versions 1 to 3: magic, version, length of the header, header (a Python dict), data.
fn npy(bytes: &[u8]) -> Result<Mat, String> {
    let short = || "the file ends too early".to_string();
    let wide = bytes.get(6).copied().ok_or_else(short)? >= 2;
    let (length, from) = if wide {
        let raw: [u8; 4] = bytes.get(8..12).ok_or_else(short)?.try_into().map_err(|_| short())?;
        (u32::from_le_bytes(raw) as usize, 12)
    } else {
        let raw: [u8; 2] = bytes.get(8..10).ok_or_else(short)?.try_into().map_err(|_| short())?;
        (u16::from_le_bytes(raw) as usize, 10)
    };
    let header = bytes.get(from..from + length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text".to_string())?;
    let field = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    if field("fortran_order").is_some_and(|v| v.starts_with("True")) {
        return Err("its order is Fortran's; save np.ascontiguousarray of it".into());
    }
    let shape = field("shape").and_then(|v| v.strip_prefix('(')).and_then(|v| v.split_once(')'));
    let shape = shape.ok_or("its header has no shape")?.0;
    let sides: Vec<usize> = shape.split(',').filter_map(|s| s.trim().parse().ok()).collect();
    let (rows, cols) = match sides[..] {
        [n] => (1, n),
        [n, m] => (n, m),
        _ => return Err(format!("its shape is ({shape}); use a list or a table")),
    };
    let data = &bytes[from + length..];
    let wanted = rows.checked_mul(cols).ok_or_else(short)?;
    let values: Vec<f64> = match field("descr") {
        Some(d) if d.starts_with("'<f8'") => {
            data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
        }
        Some(d) if d.starts_with("'<f4'") => data
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes"))))
            .collect(),
        _ => return Err("its type is neither float64 nor float32; save np.asarray(x, float) of it".into()),
    };
    if values.len() < wanted || cols == 0 {
        return Err(short());
    }
    let rows: Vec<Vec<f64>> = values[..wanted].chunks_exact(cols).map(<[f64]>::to_vec).collect();
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_eigenvalues_and_a_table_is_data() {
        let list = of_table(&text(&b"# mine\n3\n1\n1\n0.5\n"[..]).unwrap()).unwrap();
        assert_eq!((list.spectrum.eigenvalues(), list.merged, list.dimension), (&[3.0, 1.0, 0.5][..], 1, 4));
        // Two features, second twice the first: one direction of variance 5 Var.
        let data = of_table(&text(&b"1 2\n-1 -2\n1,2\n-1,-2\n"[..]).unwrap()).unwrap();
        assert_eq!((data.spectrum.len(), data.dropped, data.dimension), (1, 1, 1));
        assert!((data.spectrum.eigenvalues()[0] - 5.0).abs() < 1e-12);
    }

    #[test]
    fn npy_of_both_precisions_is_read() {
        let header = |descr: &str, shape: &str| {
            let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
            [b"\x93NUMPY\x01\x00".as_slice(), &(dict.len() as u16).to_le_bytes(), dict.as_bytes()].concat()
        };
        let mut bytes = header("<f8", "(2,)");
        bytes.extend([2.5f64, 0.5].iter().flat_map(|x| x.to_le_bytes()));
        assert_eq!(npy(&bytes).unwrap().as_slice(), &[2.5, 0.5]);
        let mut bytes = header("<f4", "(2, 2)");
        bytes.extend([1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
        assert_eq!(npy(&bytes).unwrap().row(1), &[3.0, 4.0]);
        assert!(npy(&bytes[..bytes.len() - 1]).unwrap_err().contains("too early"));
        assert!(npy(&header("<i8", "(2,)")).unwrap_err().contains("float64"));
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_place() {
        assert!(text(&b"1\nx\n"[..]).unwrap_err().contains("entry 1 of line 2"));
        assert!(text(&b"1 2\n3\n"[..]).unwrap_err().contains("different lengths"));
        assert!(text(&b"1 nan\n"[..]).unwrap_err().contains("nan"));
        assert!(
            text(&b"1 2e200\n3 4\n"[..]).unwrap_err().contains("above 1e100"),
            "its covariance overflows"
        );
        assert!(matches!(of_table(&text(&b"1\n-1\n"[..]).unwrap()), Err(SpectrumError::Eigenvalue { .. })));
    }
}
