//! Packs: the table files of many points of a sweep in a few zip archives, `tables-1.zip`, `tables-2.zip`, …
//!
//! A sweep of 10 000 points has 30 000 table files, and clusters count files. From [`PACKED_FROM`] tables on they stand in archives
//! under the names that they would have in the folder, so that `unzip` gives what a small sweep has. Order and size decide what is
//! in which archive, never who computed it. A table has its own digest, which is compared when it is read: of a damaged pack only the
//! tables that are damaged are computed again.

use super::disk;
use super::folder::Assembly;
use crate::zip;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// So many tables of a sweep are packed; fewer have files of their own.
pub(crate) const PACKED_FROM: usize = 128;
/// Files of one archive: the format counts them with 16 bits.
const MOST_FILES: usize = 60_000;
/// Bytes of one archive, which is put together in memory; one table may need more.
const MOST_BYTES: usize = 256 << 20;

const BEGINNING: &str = "tables-";
const END: &str = ".zip";

/// Writes packs, one after the other.
pub(crate) struct PackWriter<'a> {
    assembly: &'a Assembly,
    archive: zip::Writer,
    number: usize,
    limits: (usize, usize),
}

impl<'a> PackWriter<'a> {
    pub(crate) fn new(assembly: &'a Assembly) -> Self {
        Self { assembly, archive: zip::Writer::default(), number: 1, limits: (MOST_FILES, MOST_BYTES) }
    }

    /// Adds the files of a table, given by the path of the table and an extension each; gives the place of the table in the folder.
    pub(crate) fn add(&mut self, table: &str, files: &[(&str, &[u8])]) -> io::Result<String> {
        let (most_files, most_bytes) = self.limits;
        let length: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let full =
            self.archive.files() + files.len() > most_files || self.archive.length() + length > most_bytes;
        if full && self.archive.files() > 0 {
            self.close()?;
        }
        for (extension, bytes) in files {
            self.archive.add(&format!("{table}.{extension}"), bytes)?;
        }
        Ok(format!("{BEGINNING}{}{END}/{table}", self.number))
    }

    /// Writes the archive that is open, and begins the next.
    fn close(&mut self) -> io::Result<()> {
        let archive = std::mem::take(&mut self.archive).finish()?;
        self.assembly.add(&format!("{BEGINNING}{}{END}", self.number), &archive)?;
        self.number += 1;
        Ok(())
    }

    /// Writes the last archive.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.archive.files() > 0 { self.close() } else { Ok(()) }
    }
}

/// Name of the pack, and of the table in it, of a place that [`PackWriter::add`] gave; `None` for a table with files of its own.
pub(crate) fn packed_place(place: &str) -> Option<(&str, &str)> {
    let (pack, table) = place.split_once('/')?;
    is_pack(pack).then_some((pack, table))
}

/// Whether a file of a folder is a pack.
pub(crate) fn is_pack(file: &str) -> bool {
    let number = file.strip_prefix(BEGINNING).and_then(|rest| rest.strip_suffix(END));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// A pack in a folder, whose directory is read when something of it is wanted.
#[derive(Debug)]
pub(crate) struct Pack {
    path: PathBuf,
    /// Beginning of the contents and their length, by name.
    files: OnceLock<BTreeMap<String, (u64, u64)>>,
}

impl Pack {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, files: OnceLock::new() }
    }

    /// Names of its files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files().keys().map(String::as_str)
    }

    /// A file of it, which may be damaged.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let &(from, length) = self.files().get(name)?;
        let mut bytes = Vec::new();
        disk::read_from(&self.path, from).ok()?.take(length).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == length).then_some(bytes)
    }

    /// What the local entries say, which stand before the contents of every file. A pack whose directory is damaged, or that was cut, has
    /// the tables before the damage this way; with its directory it has those behind damage as well.
    fn files(&self) -> &BTreeMap<String, (u64, u64)> {
        self.files.get_or_init(|| {
            let mut files = walked(&self.path).unwrap_or_default();
            files.extend(listed(&self.path).unwrap_or_default());
            files
        })
    }
}

/// Files by the directory of the archive.
fn listed(path: &Path) -> Option<BTreeMap<String, (u64, u64)>> {
    let length = disk::length(path)?;
    let mut bytes = Vec::new();
    let from = length.checked_sub(zip::END_LENGTH as u64)?;
    disk::read_from(path, from).ok()?.read_to_end(&mut bytes).ok()?;
    let place = zip::directory_place(&bytes)?;
    bytes.clear();
    let room = length.checked_sub(place.start as u64)?;
    disk::read_from(path, place.start as u64).ok()?.take(room).read_to_end(&mut bytes).ok()?;
    // Local entries have no extra fields here, so that the name alone says where the contents begin.
    let files = zip::entries(&bytes, place)?.into_iter().map(|entry| {
        let contents = entry.place + zip::LOCAL_LENGTH + entry.name.len();
        (entry.name.to_string(), (contents as u64, entry.length as u64))
    });
    Some(files.collect())
}

/// Files by their local entries, from the first on.
fn walked(path: &Path) -> Option<BTreeMap<String, (u64, u64)>> {
    let mut reader = io::BufReader::new(disk::read_from(path, 0).ok()?);
    let (mut files, mut at) = (BTreeMap::new(), 0_u64);
    let (mut head, mut name) = ([0; zip::LOCAL_LENGTH], Vec::new());
    while reader.read_exact(&mut head).is_ok() {
        let Some(entry) = zip::local_entry(&head) else { break };
        name.resize(entry.name, 0);
        let Ok(()) = reader.read_exact(&mut name) else { break };
        let Ok(text) = std::str::from_utf8(&name) else { break };
        files.insert(text.to_string(), (at + entry.contents as u64, entry.length as u64));
        let behind = entry.contents - zip::LOCAL_LENGTH - entry.name + entry.length;
        let Ok(()) = reader.seek_relative(behind as i64) else { break };
        at += (entry.contents + entry.length) as u64;
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("didact-pack-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        root
    }

    /// Writes tables of these lengths; gives their places and the folder of the packs.
    fn packs(root: &Path, limits: (usize, usize), lengths: &[usize]) -> (Vec<String>, PathBuf) {
        let assembly = Assembly::new(&root.join("it.partial")).unwrap();
        let mut writer = PackWriter { limits, ..PackWriter::new(&assembly) };
        let places = lengths.iter().enumerate().map(|(index, length)| {
            let bytes = vec![index as u8 + 1; *length];
            let files: [(&str, &[u8]); 2] = [("npz", &bytes), ("json", b"{}")];
            writer.add(&format!("point-{index:04}/sgd"), &files).unwrap()
        });
        let places = places.collect();
        writer.finish().unwrap();
        let folder = root.join("it");
        assembly.install(&folder, super::super::folder::sample_provenance(), true).unwrap();
        (places, folder)
    }

    fn table(folder: &Path, place: &str) -> Option<Vec<u8>> {
        let (pack, table) = packed_place(place)?;
        Pack::at(folder.join(pack)).read(&format!("{table}.npz"))
    }

    #[test]
    fn tables_come_back_from_as_many_packs_as_it_takes() {
        let root = root("back");
        // Six files fit, or 1000 bytes; the third table is too large for any archive and has one of its own.
        let lengths = [10, 20, 3000, 5, 5, 5, 5];
        let (places, folder) = packs(&root, (6, 1000), &lengths);
        let numbers: Vec<&str> = places.iter().map(|place| packed_place(place).unwrap().0).collect();
        let expected = [1, 1, 2, 3, 3, 3, 4].map(|number| format!("tables-{number}.zip"));
        assert_eq!(numbers, expected);
        for (index, (place, length)) in places.iter().zip(lengths).enumerate() {
            assert_eq!(table(&folder, place).unwrap(), vec![index as u8 + 1; length]);
        }
        assert_eq!(table(&folder, "tables-1.zip/point-0009/sgd"), None);
        assert_eq!(table(&folder, "tables-9.zip/point-0000/sgd"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_changed_byte_or_a_cut_costs_no_table_but_those_that_it_touches() {
        let root = root("damage");
        let (places, folder) = packs(&root, (MOST_FILES, MOST_BYTES), &[40, 50, 60]);
        let path = folder.join("tables-1.zip");
        let bytes = fs::read(&path).unwrap();
        let whole: Vec<Vec<u8>> = places.iter().map(|place| table(&folder, place).unwrap()).collect();
        let there =
            || places.iter().zip(&whole).filter(|(p, w)| table(&folder, p).as_ref() == Some(*w)).count();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            assert!(there() >= 2, "byte {at}: {} tables", there());
        }
        // A cut takes the directory away; what stands before it is still found.
        let begins =
            |index: usize| bytes.windows(14).position(|w| w == format!("point-{index:04}/sgd").as_bytes());
        fs::write(&path, &bytes[..begins(2).unwrap()]).unwrap();
        assert_eq!(there(), 2);
        fs::write(&path, b"").unwrap();
        assert_eq!(there(), 0);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn only_names_that_are_written_here_are_taken_for_packs() {
        assert_eq!(packed_place("tables-12.zip/point-0000/sgd"), Some(("tables-12.zip", "point-0000/sgd")));
        for other in
            ["sgd", "point-0000/sgd", "tables-.zip/a", "tables-x.zip/a", "../tables-1.zip/a", "tables-1.zip"]
        {
            assert_eq!(packed_place(other), None, "{other}");
        }
    }
}
