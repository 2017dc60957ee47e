//! Tables: a trajectory as bytes, and the answers of scans.
//!
//! `<name>.npz` holds, for NumPy, `times` (T), one array (replicas x T) per column under the column's name (NaN after a replica
//! has ended), and `event:<name>` (replicas; NaN is censored). `<name>.json` says the rest: engine, clock, columns, outcomes, work
//! of the integrator, notes, the key (a digest of all that the run depends on) and a digest of header and arrays, without which
//! neither is believed. In a journal header and arrays are one payload.

use super::disk;
use crate::npz;
use crate::quantities::Rows;
use didact_model::trajectory::{Passages, RecordedColumn};
use didact_model::{Clock, Outcome, Statistics, Trajectory};
use serde::{Deserialize, Serialize};
use std::io;

/// What the arrays do not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Header {
    engine: String,
    clock: Clock,
    columns: Vec<String>,
    events: Vec<String>,
    outcomes: Vec<Outcome>,
    statistics: Vec<Statistics>,
    notes: Vec<String>,
    /// Saved values of every curve, column by column, where they are not those up to the last number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lengths: Option<Vec<usize>>,
    /// Digest of all that the run depends on.
    key: String,
    /// Digest of the header without it and of the arrays.
    digest: String,
}

impl Header {
    fn digest_with(&self, arrays: &[u8]) -> String {
        let blank = Self { digest: String::new(), ..self.clone() };
        let text = serde_json::to_string(&blank).expect("a header is plain data");
        disk::digest_of([text.as_bytes(), b"\n", arrays])
    }
}

/// A table as bytes: its header, and its arrays as `.npz`.
pub(crate) struct Encoded {
    header: Header,
    npz: Vec<u8>,
}

/// The length of a curve that ends with its last number.
fn length_to_last_number(curve: &[f64]) -> usize {
    curve.iter().rposition(|v| !v.is_nan()).map_or(0, |last| last + 1)
}

impl Encoded {
    /// `key` is the digest of all that the trajectory depends on.
    pub(crate) fn new(trajectory: &Trajectory, key: &str) -> io::Result<Self> {
        let length = trajectory.times.len();
        let mut npz = npz::Writer::default();
        npz.add("times", &[length], trajectory.times.iter().copied())?;
        for RecordedColumn { name, curves } in &trajectory.columns {
            let padded = |curve: &Vec<f64>| -> Vec<f64> {
                (0..length).map(|time| curve.get(time).copied().unwrap_or(f64::NAN)).collect()
            };
            npz.add(name, &[curves.len(), length], curves.iter().flat_map(padded))?;
        }
        for Passages { name, times } in &trajectory.events {
            let values = times.iter().map(|p| p.unwrap_or(f64::NAN));
            npz.add(&format!("event:{name}"), &[times.len()], values)?;
        }
        let npz = npz.finish()?;
        let curves = || trajectory.columns.iter().flat_map(|c| &c.curves);
        let odd = curves().any(|curve| length_to_last_number(curve) != curve.len());
        let mut header = Header {
            engine: trajectory.engine.clone(),
            clock: trajectory.clock,
            columns: trajectory.column_names().map(String::from).collect(),
            events: trajectory.events.iter().map(|e| e.name.clone()).collect(),
            outcomes: trajectory.outcomes.clone(),
            statistics: trajectory.statistics.clone(),
            notes: trajectory.notes.clone(),
            lengths: odd.then(|| curves().map(Vec::len).collect()),
            key: key.into(),
            digest: String::new(),
        };
        header.digest = header.digest_with(&npz);
        Ok(Self { header, npz })
    }

    /// The payload of a record in a journal.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&self.header).expect("a header is plain data");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.npz);
        bytes
    }

    /// Of the payload of a record.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<Self> {
        let end = payload.iter().position(|b| *b == b'\n')?;
        Self::of_files(&payload[..end], payload[end + 1..].to_vec())
    }

    /// Of the bytes of `<name>.json` and `<name>.npz`.
    pub(crate) fn of_files(header: &[u8], npz: Vec<u8>) -> Option<Self> {
        let header: Header = serde_json::from_slice(header).ok()?;
        (header.digest == header.digest_with(&npz)).then_some(Self { header, npz })
    }

    /// Bytes of `<name>.json`.
    pub(crate) fn header_file(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(&self.header).expect("a header is plain data")
    }

    /// Bytes of `<name>.npz`.
    pub(crate) fn npz_file(&self) -> &[u8] {
        &self.npz
    }

    /// The trajectory; `None` when it is of a run that depended on something else, or header and arrays do not fit.
    pub(crate) fn trajectory(self, key: &str) -> Option<Trajectory> {
        let Self { header, npz } = self;
        if header.key != key {
            return None;
        }
        let npz = npz::Reader::new(&npz)?;
        let times = npz.array("times")?.values;
        let mut lengths = header.lengths.iter().flatten().copied();
        let mut columns = Vec::new();
        for name in header.columns {
            let array = npz.array(&name)?;
            let [replicas, length] = array.shape[..] else { return None };
            let curve = |replica: usize| {
                let row = &array.values[replica * length..(replica + 1) * length];
                let length = lengths.next().unwrap_or_else(|| length_to_last_number(row));
                row.get(..length).map(<[f64]>::to_vec)
            };
            columns.push(RecordedColumn { name, curves: (0..replicas).map(curve).collect::<Option<_>>()? });
        }
        let mut events = Vec::new();
        for name in header.events {
            let passages = npz.array(&format!("event:{name}"))?.values;
            let times = passages.iter().map(|t| (!t.is_nan()).then_some(*t)).collect();
            events.push(Passages { name, times });
        }
        Some(Trajectory {
            engine: header.engine,
            clock: header.clock,
            times,
            columns,
            events,
            outcomes: header.outcomes,
            statistics: header.statistics,
            notes: header.notes,
        })
    }
}

/// Bytes of `<name>.csv`: one line per replica and time.
pub(crate) fn csv(trajectory: &Trajectory) -> String {
    let quoted = |c: &str| if c.contains(',') { format!("\"{c}\"") } else { c.to_string() };
    let names: Vec<String> = trajectory.column_names().map(quoted).collect();
    let mut text = format!("replica,{},{}\n", trajectory.clock.name(), names.join(","));
    for replica in 0..trajectory.replicas() {
        let curves: Vec<&Vec<f64>> = trajectory.columns.iter().map(|c| &c.curves[replica]).collect();
        let length = curves.iter().map(|curve| curve.len()).max().unwrap_or(0);
        for (t, time) in trajectory.times.iter().enumerate().take(length) {
            let row: Vec<String> =
                curves.iter().map(|curve| curve.get(t).map_or(String::new(), f64::to_string)).collect();
            text += &format!("{replica},{time},{}\n", row.join(","));
        }
    }
    text
}

/// The answers of a scan in the order of its grid, or why there is none, as they are kept beside its table
/// (`scan-<name>.json`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answers {
    /// Digest of all that they depend on.
    pub key: String,
    /// One per point of the grid.
    pub rows: Rows,
    /// Digest of key and rows.
    digest: String,
}

impl Answers {
    /// Rows that depend on what the key says.
    pub fn new(key: String, rows: Rows) -> Self {
        let digest = Self::digest_of(&key, &rows);
        Self { key, rows, digest }
    }

    fn digest_of(key: &str, rows: &Rows) -> String {
        let text = serde_json::to_string(rows).expect("answers are plain data");
        disk::digest_of([key.as_bytes(), b"\n", text.as_bytes()])
    }

    /// Of the bytes of a file; `None` if they are damaged.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        let answers: Self = serde_json::from_slice(bytes).ok()?;
        (answers.digest == Self::digest_of(&answers.key, &answers.rows)).then_some(answers)
    }

    /// Bytes of the file.
    pub fn file(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("answers are plain data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(curves: Vec<Vec<f64>>) -> Trajectory {
        Trajectory {
            engine: "ode".into(),
            clock: Clock::default(),
            times: vec![0.0, 0.1, 0.2],
            columns: vec![RecordedColumn { name: "loss".into(), curves }],
            events: vec![Passages { name: "escape".into(), times: vec![Some(0.05), None] }],
            outcomes: vec![Outcome::Completed, Outcome::Diverged { at: 0.15 }],
            statistics: Vec::new(),
            notes: vec!["a note\nof two lines".into()],
        }
    }

    fn back(table: &Trajectory) -> Option<Trajectory> {
        Encoded::of_payload(&Encoded::new(table, "key").unwrap().payload())?.trajectory("key")
    }

    #[test]
    fn a_table_comes_back_whole_and_for_its_key_alone() {
        let table = table(vec![vec![1.0, 0.5, 0.25], vec![1.0]]);
        assert_eq!(back(&table).unwrap(), table);
        let encoded = || Encoded::new(&table, "key").unwrap();
        assert_eq!(encoded().trajectory("other"), None);
        assert!(!String::from_utf8(encoded().header_file()).unwrap().contains("lengths"));
    }

    /// A number that is not one at the last saved time was lost once when a table was read back, and its line of the CSV with it.
    #[test]
    fn curves_keep_their_lengths_when_their_last_value_is_no_number() {
        let table = table(vec![vec![1.0, f64::NAN, f64::NAN], vec![1.0, f64::NAN]]);
        assert_eq!(csv(&back(&table).unwrap()), csv(&table));
    }

    #[test]
    fn no_changed_bit_of_header_or_arrays_is_believed() {
        let table = table(vec![vec![1.0, 0.5, 0.25], vec![1.0]]);
        let encoded = Encoded::new(&table, "key").unwrap();
        let (header, npz) = (encoded.header_file(), encoded.npz_file().to_vec());
        let read = |header: &[u8], npz: &[u8]| {
            Encoded::of_files(header, npz.to_vec()).and_then(|encoded| encoded.trajectory("key"))
        };
        assert_eq!(read(&header, &npz).unwrap(), table);
        for bit in 0..header.len() * 8 {
            let mut changed = header.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // Blanks between the words of the header say nothing.
            assert!(read(&changed, &npz).is_none_or(|found| found == table), "bit {bit} of the header");
        }
        for bit in 0..npz.len() * 8 {
            let mut changed = npz.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&header, &changed), None, "bit {bit} of the arrays");
        }
    }
}
