//! What a run leaves on disk, written so that a killed run leaves nothing half-valid.
//!
//! Files are written under a temporary name and renamed. `<name>.npz` holds, for NumPy, `times` (T), one array
//! (replicas x T) per column under the column's name (NaN after a run has ended), and `event:<name>` (replicas; NaN is
//! censored). `<name>.json` says the rest: engine, clock, columns, outcomes, notes.

use crate::quantities::Rows;
use didact_math::random::statistics::SampleMean;
use didact_model::{Clock, Outcome, Trajectory};
use ndarray::{Array1, Array2};
use ndarray_npy::{NpzReader, NpzWriter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A trajectory as it is kept and analysed.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the arrays do not say.
    pub header: Header,
    /// Saved times.
    pub times: Vec<f64>,
    /// Per column: one curve per replica, as long as the run was.
    pub columns: Vec<Vec<Vec<f64>>>,
    /// Per event: first passage per replica.
    pub events: Vec<Vec<Option<f64>>>,
}

/// What the arrays do not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Header {
    /// Who computed it.
    pub engine: String,
    /// Unit of time.
    pub clock: Clock,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the events.
    pub events: Vec<String>,
    /// How every replica ended.
    pub outcomes: Vec<Outcome>,
    /// Reports of the engine.
    pub notes: Vec<String>,
    /// Digest of all that the run depends on.
    pub key: String,
}

impl Table {
    /// Of a trajectory, and the digest of all that it depends on.
    pub fn new(t: &Trajectory, key: &str) -> Self {
        let column =
            |c: usize| t.replicas.iter().map(|r| r.rows.iter().map(|row| row[c]).collect()).collect();
        Self {
            header: Header {
                engine: t.engine.clone(),
                clock: t.clock,
                columns: t.columns.clone(),
                events: t.events.clone(),
                outcomes: t.replicas.iter().map(|r| r.outcome.clone()).collect(),
                notes: t.notes.clone(),
                key: key.into(),
            },
            times: t.times.clone(),
            columns: (0..t.columns.len()).map(column).collect(),
            events: (0..t.events.len()).map(|e| t.replicas.iter().map(|r| r.events[e]).collect()).collect(),
        }
    }

    /// The runs of a column.
    pub fn runs(&self, name: &str) -> Option<&[Vec<f64>]> {
        Some(&self.columns[self.header.columns.iter().position(|c| c == name)?])
    }

    /// First passages of an event.
    pub fn event(&self, name: &str) -> Option<&[Option<f64>]> {
        Some(&self.events[self.header.events.iter().position(|e| e == name)?])
    }

    /// Mean over the replicas that reached each time.
    pub fn mean(&self, name: &str) -> Option<Vec<SampleMean>> {
        let runs = self.runs(name)?;
        let at = |time: usize| SampleMean::of(runs.iter().filter_map(|r| r.get(time).copied()));
        Some((0..self.times.len()).map(at).collect())
    }

    /// Writes `<name>.npz`, `<name>.csv` and, last, `<name>.json`: a table without its header does not exist.
    pub fn write(&self, folder: &Path, name: &str) -> io::Result<()> {
        let mut npz = NpzWriter::new(io::Cursor::new(Vec::new()));
        let other = io::Error::other::<ndarray_npy::WriteNpzError>;
        npz.add_array("times", &Array1::from_vec(self.times.clone())).map_err(other)?;
        for (name, runs) in self.header.columns.iter().zip(&self.columns) {
            let at = |(r, t): (usize, usize)| runs[r].get(t).copied().unwrap_or(f64::NAN);
            npz.add_array(name.as_str(), &Array2::from_shape_fn((runs.len(), self.times.len()), at))
                .map_err(other)?;
        }
        for (name, passages) in self.header.events.iter().zip(&self.events) {
            let values = passages.iter().map(|p| p.unwrap_or(f64::NAN)).collect();
            npz.add_array(format!("event:{name}"), &Array1::from_vec(values)).map_err(other)?;
        }
        let bytes = npz.finish().map_err(other)?.into_inner();
        write_atomically(&folder.join(format!("{name}.npz")), &bytes)?;
        write_atomically(&folder.join(format!("{name}.csv")), self.csv().as_bytes())?;
        let header = serde_json::to_string_pretty(&self.header).expect("a header is plain data");
        write_atomically(&folder.join(format!("{name}.json")), header.as_bytes())
    }

    /// Reads what [`Table::write`] wrote; `None` when it is not there, not whole, or of a run that depended on something else.
    pub fn read(folder: &Path, name: &str, key: &str) -> Option<Self> {
        let header: Header =
            serde_json::from_str(&std::fs::read_to_string(folder.join(format!("{name}.json"))).ok()?).ok()?;
        if header.key != key {
            return None;
        }
        let file = std::fs::File::open(folder.join(format!("{name}.npz"))).ok()?;
        let mut npz = NpzReader::new(file).ok()?;
        let times: Array1<f64> = npz.by_name("times").ok()?;
        let mut columns = Vec::new();
        for column in &header.columns {
            let array: Array2<f64> = npz.by_name(column).ok()?;
            let run = |row: ndarray::ArrayView1<f64>| {
                // Curves end where their run ended; a value that is truly NaN in the middle stays.
                let length = row.iter().rposition(|v| !v.is_nan()).map_or(0, |last| last + 1);
                row.iter().take(length).copied().collect::<Vec<f64>>()
            };
            columns.push(array.rows().into_iter().map(run).collect());
        }
        let mut events = Vec::new();
        for event in &header.events {
            let array: Array1<f64> = npz.by_name(&format!("event:{event}")).ok()?;
            events.push(array.iter().map(|t| (!t.is_nan()).then_some(*t)).collect());
        }
        Some(Self { header, times: times.to_vec(), columns, events })
    }

    /// One line per replica and time.
    fn csv(&self) -> String {
        let quoted = |c: &String| if c.contains(',') { format!("\"{c}\"") } else { c.clone() };
        let names: Vec<String> = self.header.columns.iter().map(quoted).collect();
        let mut text = format!("replica,{},{}\n", self.header.clock.name(), names.join(","));
        for replica in 0..self.header.outcomes.len() {
            let length = self.columns.iter().map(|c| c[replica].len()).max().unwrap_or(0);
            for (t, time) in self.times.iter().enumerate().take(length) {
                let row: Vec<String> = self
                    .columns
                    .iter()
                    .map(|c| c[replica].get(t).map_or(String::new(), f64::to_string))
                    .collect();
                text += &format!("{replica},{time},{}\n", row.join(","));
            }
        }
        text
    }
}

/// The answers of a scan in the order of its grid, or why there is none, as they are kept beside its table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answers {
    /// Digest of all that they depend on.
    pub key: String,
    /// One per point of the grid.
    pub rows: Rows,
}

impl Answers {
    /// Reads what [`Answers::write`] wrote; `None` when it is not there or depends on something else.
    pub fn read(path: &Path, key: &str) -> Option<Self> {
        let answers: Self = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        (answers.key == key).then_some(answers)
    }

    /// Writes them.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, serde_json::to_string(self).expect("answers are plain data").as_bytes())
    }
}

/// Where results of other folders lie, by the digest of what they depend on.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<String, PathBuf>);

impl Known {
    /// Tables and answers in these folders, and in those of their points.
    pub fn in_folders(folders: &[PathBuf]) -> Self {
        #[derive(Deserialize)]
        struct Keyed {
            key: String,
        }
        let entries = |folder: &Path| -> Vec<PathBuf> {
            let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
            entries.flatten().map(|entry| entry.path()).collect()
        };
        let mut known = BTreeMap::new();
        for folder in folders {
            let points = entries(folder).into_iter().filter(|path| path.is_dir());
            for place in std::iter::once(folder.clone()).chain(points) {
                for path in entries(&place) {
                    let json = path.extension().is_some_and(|e| e == "json");
                    let text = json.then(|| std::fs::read_to_string(&path).ok()).flatten();
                    if let Some(Keyed { key }) = text.and_then(|text| serde_json::from_str(&text).ok()) {
                        known.insert(key, path);
                    }
                }
            }
        }
        Self(known)
    }

    /// The table of a run that depends on just this, if there is one and it is whole.
    pub fn table(&self, key: &str) -> Option<Table> {
        let path = self.0.get(key)?;
        Table::read(path.parent()?, path.file_stem()?.to_str()?, key)
    }

    /// The answers of a scan that depends on just this.
    pub fn answers(&self, key: &str) -> Option<Answers> {
        Answers::read(self.0.get(key)?, key)
    }
}

/// Writes a file so that it is either whole or absent.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".writing");
    let temporary = path.with_file_name(name);
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
