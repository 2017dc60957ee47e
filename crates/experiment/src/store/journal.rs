//! Journals: results one after the other in a file that only grows.
//!
//! Every process that computes for an experiment has a journal of its own in the folder `<name>.partial` and reads those of the
//! others, so that no two processes ever write to one file and nothing needs a lock. A journal may also lie elsewhere: all that
//! counts is the key of a record, which is a digest of everything that its result depends on. A record is
//!
//! ```text
//! didact-record 1 <kind> <key> <length of payload> <SHA-256 of "kind key length\n" and payload>\n
//! <payload>\n
//! ```
//!
//! A record that was cut short, or changed in any bit, does not exist; those behind it do.

use super::disk;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAGIC: &str = "didact-record 1 ";
/// The longest first line of a record.
const LONGEST_LINE: u64 = 512;
const EXTENSION: &str = "journal";

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// The table of a run.
    Table,
    /// Some replicas of a run.
    Part,
    /// The answer of a scan at one point.
    Answer,
}

impl RecordKind {
    fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Part => "part",
            Self::Answer => "answer",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Table, Self::Part, Self::Answer].into_iter().find(|kind| kind.word() == word)
    }
}

/// Where a record lies.
#[derive(Debug, Clone)]
struct Place {
    file: PathBuf,
    /// Beginning of the payload.
    offset: u64,
    length: u64,
    digest: String,
}

/// The first line of a record.
#[derive(Debug, PartialEq)]
struct FirstLine {
    kind: RecordKind,
    key: String,
    length: u64,
    digest: String,
}

impl FirstLine {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_prefix(MAGIC)?.strip_suffix('\n')?;
        let [kind, key, length, digest] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some(Self {
            kind: RecordKind::of(kind)?,
            key: key.into(),
            length: length.parse().ok()?,
            digest: digest.into(),
        })
    }
}

fn digest_of(kind: RecordKind, key: &str, payload: &[u8]) -> String {
    let what = format!("{} {key} {}\n", kind.word(), payload.len());
    disk::digest_of([what.as_bytes(), payload])
}

/// What the journals of a folder hold, by kind and key; places are in the order of the names of the files.
#[derive(Debug, Default)]
struct Index {
    places: BTreeMap<(RecordKind, String), Vec<Place>>,
    /// How far every file has been read.
    read: BTreeMap<PathBuf, u64>,
}

impl Index {
    /// Reads what was added to the journals of a folder since the last time.
    fn refresh(&mut self, folder: &Path) {
        for file in disk::entries(folder) {
            if file.extension().is_none_or(|e| e != EXTENSION) {
                continue;
            }
            let from = self.read.get(&file).copied().unwrap_or(0);
            if let Some(end) = disk::length(&file).filter(|length| *length > from) {
                // A journal that cannot be read has nothing to offer; what it held is computed again.
                let reached = self.add(&file, from, end).unwrap_or(from);
                self.read.insert(file, reached);
            }
        }
    }

    /// Adds the records of a file between two places; gives the end of the last one that is there whole.
    fn add(&mut self, file: &Path, from: u64, end: u64) -> io::Result<u64> {
        let mut reader = BufReader::new(disk::read_from(file, from)?);
        let (mut at, mut line) = (from, Vec::new());
        while at < end {
            line.clear();
            let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                break;
            }
            let Some(first) = FirstLine::parse(&line) else {
                // Damage, or the end of a record whose length was damaged: look for the next first line. The last line may
                // still be growing.
                if line.last() == Some(&b'\n') || read == LONGEST_LINE {
                    at += read;
                    continue;
                }
                break;
            };
            let offset = at + read;
            let Some(next) = offset.checked_add(first.length).and_then(|n| n.checked_add(1)) else {
                at = offset;
                continue;
            };
            if next > end {
                break;
            }
            let place =
                Place { file: file.to_path_buf(), offset, length: first.length, digest: first.digest };
            self.places.entry((first.kind, first.key)).or_default().push(place);
            reader.seek_relative((next - offset) as i64)?;
            at = next;
        }
        Ok(at)
    }
}

/// The payload at a place, if it is what its digest says.
fn payload(kind: RecordKind, key: &str, place: &Place) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader = disk::read_from(&place.file, place.offset).ok()?;
    reader.take(place.length).read_to_end(&mut bytes).ok()?;
    (digest_of(kind, key, &bytes) == place.digest).then_some(bytes)
}

/// The journals of a folder: those that are there, and one of this process's own once there is something to write.
#[derive(Debug)]
pub struct Journals {
    folder: PathBuf,
    index: Mutex<Index>,
    own: Mutex<Option<Own>>,
}

/// The journal that this process writes.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    file: File,
    length: u64,
}

/// A panic elsewhere leaves nothing half-changed behind these locks that a digest would not reveal.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journals {
    /// The journals in this folder, which need not exist.
    pub fn in_folder(folder: &Path) -> Self {
        let mut index = Index::default();
        index.refresh(folder);
        Self { folder: folder.to_path_buf(), index: Mutex::new(index), own: Mutex::default() }
    }

    /// Reads what other processes have added.
    pub fn refresh(&self) {
        locked(&self.index).refresh(&self.folder);
    }

    /// Whether there is a record of this key; whether it is whole shows when it is read.
    pub fn has(&self, kind: RecordKind, key: &str) -> bool {
        locked(&self.index).places.contains_key(&(kind, key.to_string()))
    }

    /// The payload of a record that is whole.
    pub fn read(&self, kind: RecordKind, key: &str) -> Option<Vec<u8>> {
        let places = locked(&self.index).places.get(&(kind, key.to_string())).cloned()?;
        places.iter().find_map(|place| payload(kind, key, place))
    }

    /// Keys of a kind that begin with these characters, in their order.
    pub fn keys_from(&self, kind: RecordKind, beginning: &str) -> Vec<String> {
        let index = locked(&self.index);
        let from = index.places.range((kind, beginning.to_string())..);
        let own = from.take_while(|((other, key), _)| *other == kind && key.starts_with(beginning));
        own.map(|((_, key), _)| key.clone()).collect()
    }

    /// How many records there are, and how many of them are damaged.
    pub fn count(&self) -> (usize, usize) {
        let index = locked(&self.index);
        let all = index.places.iter().flat_map(|((kind, key), places)| {
            places.iter().map(move |place| payload(*kind, key, place).is_some())
        });
        let (whole, damaged): (Vec<bool>, Vec<bool>) = all.partition(|whole| *whole);
        (whole.len() + damaged.len(), damaged.len())
    }

    /// Adds a record to the journal of this process.
    pub fn append(&self, kind: RecordKind, key: &str, payload: &[u8]) -> io::Result<()> {
        let digest = digest_of(kind, key, payload);
        let mut record = format!("{MAGIC}{} {key} {} {digest}\n", kind.word(), payload.len()).into_bytes();
        record.extend_from_slice(payload);
        record.push(b'\n');
        let mut own = locked(&self.own);
        if own.is_none() {
            *own = Some(self.create()?);
        }
        let Some(Own { path, file, length }) = own.as_mut() else { unreachable!("just made") };
        if let Err(error) = disk::write(file, path, &record) {
            // Half a record would hide those behind it; where it cannot be cut off, a new journal is begun.
            if disk::cut(file, path, *length).is_err() {
                *own = None;
            }
            return Err(error);
        }
        *length += record.len() as u64;
        Ok(())
    }

    /// Forces to the disk what was appended.
    pub fn sync(&self) -> io::Result<()> {
        match locked(&self.own).as_ref() {
            Some(own) => disk::sync(&own.file, &own.path),
            None => Ok(()),
        }
    }

    /// Begins a journal. Another process that has just finished may remove the folder at any moment.
    fn create(&self) -> io::Result<Own> {
        let path = self.folder.join(format!("{}.{EXTENSION}", disk::unique()));
        for _ in 0..100 {
            disk::create_folder(&self.folder)?;
            match disk::create_file(&path) {
                Err(error) if disk::is_gone(&error) => {}
                made => return made.map(|file| Own { path, file, length: 0 }),
            }
        }
        Err(io::Error::other("the folder is removed again and again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("didact-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// Three records in one file, and its path.
    fn three(folder: &Path) -> PathBuf {
        let journal = Journals::in_folder(folder);
        for (key, payload) in [("a", &b"first"[..]), ("b", b"line\nand didact-record 1 in it\n"), ("c", b"")]
        {
            journal.append(RecordKind::Table, key, payload).unwrap();
        }
        journal.sync().unwrap();
        disk::entries(folder).pop().unwrap()
    }

    #[test]
    fn records_come_back_by_kind_and_key_and_others_see_them_when_they_look_again() {
        let folder = folder("back");
        let reader = Journals::in_folder(&folder);
        three(&folder);
        assert_eq!(reader.read(RecordKind::Table, "a"), None);
        reader.refresh();
        assert_eq!(reader.read(RecordKind::Table, "a").unwrap(), b"first");
        assert_eq!(reader.read(RecordKind::Table, "b").unwrap(), b"line\nand didact-record 1 in it\n");
        assert_eq!(reader.read(RecordKind::Table, "c").unwrap(), b"");
        assert_eq!(reader.read(RecordKind::Answer, "a"), None);
        assert_eq!(reader.count(), (3, 0));
        // A second writer has a file of its own.
        reader.append(RecordKind::Answer, "a", b"x").unwrap();
        assert_eq!(disk::entries(&folder).len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn no_single_changed_bit_is_believed_and_it_costs_at_most_the_records_that_it_touches() {
        let folder = folder("bits");
        let path = three(&folder);
        let bytes = fs::read(&path).unwrap();
        let original = |key: &str| match key {
            "a" => b"first".to_vec(),
            "b" => b"line\nand didact-record 1 in it\n".to_vec(),
            _ => Vec::new(),
        };
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &changed).unwrap();
            let journal = Journals::in_folder(&folder);
            let found: Vec<Option<Vec<u8>>> =
                ["a", "b", "c"].iter().map(|key| journal.read(RecordKind::Table, key)).collect();
            for (key, found) in ["a", "b", "c"].iter().zip(&found) {
                assert!(found.as_ref().is_none_or(|f| *f == original(key)), "bit {bit}: {key}");
            }
            // The line behind a payload is no part of what a digest covers, so nothing may be lost at all.
            assert!(found.iter().flatten().count() >= 1, "bit {bit}: {found:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_journal_that_was_cut_anywhere_has_the_records_before_the_cut() {
        let folder = folder("cut");
        let path = three(&folder);
        let bytes = fs::read(&path).unwrap();
        let ends: Vec<usize> = (1..=3)
            .map(|n| {
                let starts: Vec<usize> =
                    (0..bytes.len()).filter(|i| bytes[*i..].starts_with(b"didact-record 1 table")).collect();
                starts.get(n).copied().unwrap_or(bytes.len())
            })
            .collect();
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let expected = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(Journals::in_folder(&folder).count(), (expected, 0), "{length}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
