//! Where results may lie: the journals of an experiment, its finished folder, and those of other experiments beside it.

use super::journal::{Journals, RecordKind};
use super::pack::{self, Pack};
use super::{Answers, Encoded, Provenance, disk, parts};
use crate::quantities::Answered;
use didact_model::Trajectory;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A result and whether it was computed for this experiment or for another one.
#[derive(Debug)]
pub struct Known<T> {
    /// The result.
    pub result: T,
    /// True when it comes from the folder of another experiment.
    pub taken_over: bool,
}

/// All places in which a result is looked for, by its key.
#[derive(Debug)]
pub struct Places {
    journals: Journals,
    own: Shelf,
    /// Where other experiments are; `None` when everything is computed anew.
    root: Option<PathBuf>,
    /// Names of the folders of this experiment, which are no others.
    name: String,
    others: OnceLock<(Vec<Shelf>, Vec<Journals>)>,
}

impl Places {
    /// The places of the experiment `name` below `root`.
    pub fn of(root: &Path, name: &str) -> Self {
        Self {
            journals: Journals::in_folder(&partial_folder(root, name)),
            own: Shelf::of(&root.join(name)),
            root: Some(root.to_path_buf()),
            name: name.into(),
            others: OnceLock::new(),
        }
    }

    /// A place to write to, in which nothing is found.
    pub fn empty(root: &Path, name: &str) -> Self {
        Self {
            journals: Journals::in_folder(&partial_folder(root, name)),
            own: Shelf::default(),
            root: None,
            name: name.into(),
            others: OnceLock::new(),
        }
    }

    /// The journals of the experiment.
    pub fn journals(&self) -> &Journals {
        &self.journals
    }

    /// Finished folders and journals of other experiments; they are looked through when something is missing.
    fn others(&self) -> &(Vec<Shelf>, Vec<Journals>) {
        self.others.get_or_init(|| {
            let Some(root) = &self.root else { return Default::default() };
            let (mut shelves, mut journals) = (Vec::new(), Vec::new());
            for path in disk::entries(root).into_iter().filter(|path| path.is_dir()) {
                let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                match name.strip_suffix(".partial") {
                    Some(own) if own == self.name => {}
                    Some(_) => journals.push(Journals::in_folder(&path)),
                    None if name == self.name => {}
                    None => shelves.extend(Provenance::read(&path).map(|p| Shelf::listed(&path, &p))),
                }
            }
            (shelves, journals)
        })
    }

    /// Whether there is a table of this key; whether it is whole shows when it is read.
    pub fn has_table(&self, key: &str) -> bool {
        let here = self.journals.has(RecordKind::Table, key) || self.own.tables.contains_key(key);
        here || {
            let (shelves, journals) = self.others();
            shelves.iter().any(|shelf| shelf.tables.contains_key(key))
                || journals.iter().any(|j| j.has(RecordKind::Table, key))
        }
    }

    /// The table of a run, if there is a whole one.
    pub fn table(&self, key: &str) -> Option<Known<Trajectory>> {
        let recorded = |journals: &Journals| {
            Encoded::of_payload(&journals.read(RecordKind::Table, key)?)?.trajectory(key)
        };
        if let Some(result) = recorded(&self.journals).or_else(|| self.own.table(key)) {
            return Some(Known { result, taken_over: false });
        }
        let (shelves, journals) = self.others();
        let result =
            shelves.iter().find_map(|shelf| shelf.table(key)).or_else(|| journals.iter().find_map(recorded));
        result.map(|result| Known { result, taken_over: true })
    }

    /// Which replicas of a run are kept in parts; damaged parts are not among them.
    pub fn parts(&self, key: &str) -> Vec<Range<u32>> {
        let keys = self.journals.keys_from(RecordKind::Part, &parts::beginning(key));
        let whole = |key: &String| self.journals.read(RecordKind::Part, key).is_some();
        keys.iter().filter(|key| whole(key)).filter_map(|key| parts::replicas_of(key)).collect()
    }

    /// One part of a run, if it is there whole.
    pub fn part(&self, key: &str, replicas: &Range<u32>) -> Option<Trajectory> {
        let key = parts::part_key(key, replicas);
        Encoded::of_payload(&self.journals.read(RecordKind::Part, &key)?)?.trajectory(&key)
    }

    /// The answers of a whole scan.
    pub fn answers(&self, key: &str) -> Option<Known<Answers>> {
        if let Some(result) = self.own.answers(key) {
            return Some(Known { result, taken_over: false });
        }
        let result = self.others().0.iter().find_map(|shelf| shelf.answers(key))?;
        Some(Known { result, taken_over: true })
    }

    /// The answer of a scan at one point, as the journals have it.
    pub fn answer(&self, key: &str) -> Option<Answered> {
        let recorded =
            |journals: &Journals| serde_json::from_slice(&journals.read(RecordKind::Answer, key)?).ok();
        recorded(&self.journals).or_else(|| self.others().1.iter().find_map(recorded))
    }
}

/// The folder of an experiment that is not whole yet.
pub fn partial_folder(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{name}.partial"))
}

/// Tables and answers in a finished folder, or in one that was damaged, by key. Every one of them has its own digest.
#[derive(Debug, Default)]
struct Shelf {
    tables: BTreeMap<String, TablePlace>,
    scans: BTreeMap<String, PathBuf>,
    packs: BTreeMap<String, Pack>,
}

/// Where a table lies, without its extensions.
#[derive(Debug)]
enum TablePlace {
    /// It has files of its own.
    Files(PathBuf),
    /// It is in the pack of this name.
    Packed(String, String),
}

impl Shelf {
    /// Of a folder, by its provenance, or by its files where that is damaged.
    fn of(folder: &Path) -> Self {
        match Provenance::read(folder) {
            Some(provenance) => Self::listed(folder, &provenance),
            None => Self::searched(folder),
        }
    }

    fn listed(folder: &Path, provenance: &Provenance) -> Self {
        let mut shelf = Self::default();
        for (key, place) in &provenance.tables {
            let place = match pack::packed_place(place) {
                Some((pack, table)) => {
                    if !shelf.packs.contains_key(pack) {
                        shelf.packs.insert(pack.into(), Pack::at(folder.join(pack)));
                    }
                    TablePlace::Packed(pack.into(), table.into())
                }
                None => TablePlace::Files(folder.join(place)),
            };
            shelf.tables.insert(key.clone(), place);
        }
        shelf.scans = provenance.scans.iter().map(|(key, file)| (key.clone(), folder.join(file))).collect();
        shelf
    }

    fn searched(folder: &Path) -> Self {
        #[derive(Deserialize)]
        struct Keyed {
            key: String,
        }
        let key_of = |bytes: Option<Vec<u8>>| Some(serde_json::from_slice::<Keyed>(&bytes?).ok()?.key);
        let mut shelf = Self::default();
        let here = disk::entries(folder);
        for path in &here {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !pack::is_pack(name) {
                continue;
            }
            let pack = Pack::at(path.clone());
            for table in pack.names().filter_map(|file| file.strip_suffix(".json")) {
                if let Some(key) = key_of(pack.read(&format!("{table}.json"))) {
                    shelf.tables.insert(key, TablePlace::Packed(name.into(), table.into()));
                }
            }
            shelf.packs.insert(name.into(), pack);
        }
        let points: Vec<PathBuf> =
            here.iter().filter(|path| path.is_dir()).flat_map(|path| disk::entries(path)).collect();
        for path in
            here.into_iter().chain(points).filter(|path| path.extension().is_some_and(|e| e == "json"))
        {
            if let Some(key) = key_of(disk::read(&path).ok()) {
                // A key is that of a table or of a scan: the other reading finds nothing.
                shelf.tables.insert(key.clone(), TablePlace::Files(path.with_extension("")));
                shelf.scans.insert(key, path);
            }
        }
        shelf
    }

    fn table(&self, key: &str) -> Option<Trajectory> {
        let place = self.tables.get(key)?;
        let with = |extension: &str| match place {
            TablePlace::Files(stem) => {
                let mut path = stem.clone().into_os_string();
                path.push(extension);
                disk::read(Path::new(&path)).ok()
            }
            TablePlace::Packed(pack, table) => self.packs.get(pack)?.read(&format!("{table}{extension}")),
        };
        Encoded::of_files(&with(".json")?, with(".npz")?)?.trajectory(key)
    }

    fn answers(&self, key: &str) -> Option<Answers> {
        Answers::of_file(&disk::read(self.scans.get(key)?).ok()?).filter(|answers| answers.key == key)
    }
}
