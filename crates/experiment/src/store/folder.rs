//! Finished folders: put together out of sight, renamed in one step, checked by their digests, healed file by file.

use super::disk;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file that makes a folder whole.
pub const PROVENANCE: &str = "provenance.json";

/// Where the files of a finished folder came from, and their digests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Provenance {
    /// Always true: a folder has this file when all else is there.
    pub complete: bool,
    /// Version of didact.
    pub didact: String,
    /// Fingerprint of the sources that compute results.
    pub build: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Name and engine of every run.
    pub runs: Vec<Value>,
    /// Points of the sweep.
    pub points: usize,
    /// `quick`, `normal` or `full`.
    pub size: String,
    /// What failed, and points of scans outside of the domain of their quantity.
    pub failures: Vec<String>,
    /// How many of these are failed jobs, which the next run tries again.
    pub failed_jobs: usize,
    /// Threads that it was computed with.
    pub threads: usize,
    /// Seconds that it took.
    pub wall_seconds: f64,
    /// Processor and system.
    pub target: String,
    /// By key: the table `<place>.npz`, `.csv` and `.json`.
    pub tables: BTreeMap<String, String>,
    /// By key: the file with the answers of a scan.
    pub scans: BTreeMap<String, String>,
    /// SHA-256 of every other file of the folder.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of this file without it.
    pub seal: String,
}

impl Provenance {
    fn digest(&self) -> String {
        let blank = Self { seal: String::new(), ..self.clone() };
        disk::digest(&serde_json::to_vec(&blank).expect("plain data"))
    }

    /// Reads the file of a folder; `None` if it is not there or not as it was written.
    pub fn read(folder: &Path) -> Option<Self> {
        Self::of_bytes(&disk::read(&folder.join(PROVENANCE)).ok()?)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let provenance: Self = serde_json::from_slice(bytes).ok()?;
        (provenance.complete && provenance.seal == provenance.digest()).then_some(provenance)
    }
}

/// A file of a finished folder that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its path in the folder.
    pub file: String,
    /// What is wrong with it.
    pub what: Fault,
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not there, or cannot be read.
    Missing,
    /// Its bytes are others than those that were written.
    Changed,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Fault::Missing => "is missing",
            Fault::Changed => "was changed",
        };
        write!(out, "{} {what}", self.file)
    }
}

/// What stands under the name of a finished folder.
#[derive(Debug)]
pub enum FolderState {
    /// Nothing.
    Absent,
    /// All files, as they were written.
    Whole(Box<Provenance>),
    /// Files that are missing or changed.
    Damaged(Vec<Damage>),
}

impl FolderState {
    /// Compares every file of a folder with its digest.
    pub fn of(folder: &Path) -> Self {
        if !folder.is_dir() {
            return Self::Absent;
        }
        let Some(provenance) = Provenance::read(folder) else {
            let there = disk::length(&folder.join(PROVENANCE)).is_some();
            let what = if there { Fault::Changed } else { Fault::Missing };
            return Self::Damaged(vec![Damage { file: PROVENANCE.into(), what }]);
        };
        let fault = |(file, expected): (&String, &String)| {
            let what = match disk::read(&inside(folder, file)?) {
                Ok(bytes) if disk::digest(&bytes) == *expected => return None,
                Ok(_) => Fault::Changed,
                Err(_) => Fault::Missing,
            };
            Some(Damage { file: file.clone(), what })
        };
        let damage: Vec<Damage> = provenance.files.iter().filter_map(fault).collect();
        if damage.is_empty() { Self::Whole(Box::new(provenance)) } else { Self::Damaged(damage) }
    }
}

/// The path of a file of a folder; `None` for one that leads out of it.
fn inside(folder: &Path, file: &str) -> Option<PathBuf> {
    let plain = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| folder.join(file))
}

/// A folder that is put together where nobody looks; removed again unless it is installed.
#[derive(Debug)]
pub(crate) struct Assembly {
    path: PathBuf,
    files: Mutex<BTreeMap<String, String>>,
}

/// How a folder came to stand under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installed {
    /// It was put there, or the files that differed were.
    Here,
    /// Another process was quicker; what it left is whole.
    ByAnother,
}

impl Assembly {
    /// An empty folder below `place`, which is made if it is not there.
    pub(crate) fn new(place: &Path) -> io::Result<Self> {
        let path = place.join(format!("{}.whole", disk::unique()));
        disk::create_folder(place)?;
        disk::create_folder_in(&path)?;
        Ok(Self { path, files: Mutex::default() })
    }

    /// Adds a file.
    pub(crate) fn add(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path.join(file);
        if let Some(parent) = path.parent().filter(|parent| *parent != self.path) {
            // One level: a folder that another process removed must not come back with half of its files.
            disk::create_folder_in(parent)?;
        }
        disk::write_new(&path, bytes)?;
        self.files().insert(file.into(), disk::digest(bytes));
        Ok(())
    }

    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the provenance and gives the folder its name. What stands there already stays when it is whole, lacks nothing and need
    /// not be computed anew; else every file that differs is replaced, and files that do not belong to the experiment stay.
    /// An error of the kind "not found" says that another process removed files meanwhile: put it together again.
    pub(crate) fn install(
        self,
        name: &Path,
        mut provenance: Provenance,
        anew: bool,
    ) -> io::Result<Installed> {
        provenance.files = self.files().clone();
        provenance.seal = provenance.digest();
        let text = serde_json::to_vec_pretty(&provenance).expect("plain data");
        disk::write_new(&self.path.join(PROVENANCE), &text)?;
        disk::sync_folder(&self.path)?;
        match disk::rename(&self.path, name) {
            Ok(()) => {}
            Err(error) if disk::is_occupied(&error) => {
                let found = FolderState::of(name);
                if !anew && matches!(&found, FolderState::Whole(found) if found.failed_jobs == 0) {
                    return Ok(Installed::ByAnother);
                }
                self.replace(name, &provenance.files)?;
            }
            Err(error) => return Err(error),
        }
        if let Some(root) = name.parent().filter(|root| !root.as_os_str().is_empty()) {
            disk::sync_folder(root)?;
        }
        // Another process may have been removing what was put together, file by file, while it got its name.
        match FolderState::of(name) {
            FolderState::Whole(_) => Ok(Installed::Here),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Replaces what differs file by file, the provenance last: a folder that is left between has wrong digests and is healed
    /// by the next run.
    fn replace(&self, name: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
        let before = Provenance::read(name).map(|provenance| provenance.files).unwrap_or_default();
        for file in before.keys().filter(|file| !files.contains_key(*file)) {
            if let Some(path) = inside(name, file) {
                match disk::remove_file(&path) {
                    Err(error) if !disk::is_gone(&error) => return Err(error),
                    _ => {}
                }
            }
        }
        for (file, digest) in files {
            let target = name.join(file);
            if disk::read(&target).is_ok_and(|bytes| disk::digest(&bytes) == *digest) {
                continue;
            }
            if let Some(parent) = target.parent() {
                disk::create_folder(parent)?;
            }
            disk::rename(&self.path.join(file), &target)?;
        }
        disk::rename(&self.path.join(PROVENANCE), &name.join(PROVENANCE))?;
        disk::sync_folder(name)
    }
}

impl Drop for Assembly {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; what cannot be removed goes with the folder that it lies in.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A provenance of nothing, for tests.
#[cfg(test)]
pub(crate) fn sample_provenance() -> Provenance {
    Provenance {
        complete: true,
        didact: "0".into(),
        build: "b".into(),
        seed: 1,
        runs: Vec::new(),
        points: 1,
        size: "normal".into(),
        failures: Vec::new(),
        failed_jobs: 0,
        threads: 1,
        wall_seconds: 0.1,
        target: "t".into(),
        tables: BTreeMap::new(),
        scans: BTreeMap::new(),
        files: BTreeMap::new(),
        seal: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("didact-folder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        root
    }

    fn install(root: &Path, text: &str, anew: bool) -> Installed {
        let assembly = Assembly::new(&root.join("it.partial")).unwrap();
        assembly.add("a.txt", text.as_bytes()).unwrap();
        assembly.add("point-0000/b.txt", b"b").unwrap();
        assembly.install(&root.join("it"), sample_provenance(), anew).unwrap()
    }

    fn damage(folder: &Path) -> Vec<String> {
        match FolderState::of(folder) {
            FolderState::Absent => vec!["absent".into()],
            FolderState::Whole(_) => Vec::new(),
            FolderState::Damaged(list) => list.iter().map(Damage::to_string).collect(),
        }
    }

    #[test]
    fn a_whole_folder_stays_and_a_damaged_one_is_healed_with_the_files_of_others_left_alone() {
        let root = root("heal");
        let folder = root.join("it");
        assert_eq!(damage(&folder), ["absent"]);
        assert_eq!(install(&root, "first", false), Installed::Here);
        assert_eq!(install(&root, "second", false), Installed::ByAnother);
        assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"first");
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        assert!(damage(&folder).is_empty(), "a file of the user is no damage");
        fs::write(folder.join("a.txt"), "First").unwrap();
        fs::remove_file(folder.join("point-0000/b.txt")).unwrap();
        assert_eq!(damage(&folder), ["a.txt was changed", "point-0000/b.txt is missing"]);
        assert_eq!(install(&root, "second", false), Installed::Here);
        assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"second");
        assert!(damage(&folder).is_empty());
        assert_eq!(install(&root, "third", true), Installed::Here);
        assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"third");
        assert_eq!(fs::read(folder.join("notes.txt")).unwrap(), b"mine");
        assert_eq!(
            disk::entries(&root.join("it.partial")).len(),
            0,
            "nothing is left of what was put together"
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn no_changed_bit_of_the_provenance_is_believed() {
        let root = root("seal");
        let folder = root.join("it");
        install(&root, "first", false);
        let bytes = fs::read(folder.join(PROVENANCE)).unwrap();
        let whole = Provenance::of_bytes(&bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // Blanks between the words say nothing.
            assert!(Provenance::of_bytes(&changed).is_none_or(|read| read == whole), "bit {bit}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_provenance_that_names_files_elsewhere_does_not_lead_there() {
        assert_eq!(inside(Path::new("run"), "../secret"), None);
        assert_eq!(inside(Path::new("run"), "/etc/passwd"), None);
        assert_eq!(inside(Path::new("run"), "point-0000/a.csv"), Some(PathBuf::from("run/point-0000/a.csv")));
    }
}
