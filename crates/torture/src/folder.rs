//! Folders of results: what is in them, whether they are alike, and how they are damaged.

use didact_experiment::store::FolderState;
use didact_math::random::Stream;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// All files below a folder by their path in it.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

fn fault(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Paths of all files below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut all, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(&here).map_err(|e| fault(&here, &e))? {
            let path = entry.map_err(|e| fault(&here, &e))?.path();
            if path.is_dir() { open.push(path) } else { all.push(path) }
        }
    }
    all.sort();
    Ok(all)
}

/// What a finished folder holds. Of the provenance, how long it took and with how many threads is left out, and the digest
/// that covers them.
pub(crate) fn contents(folder: &Path) -> Result<Contents, String> {
    let mut all = Contents::new();
    for path in files(folder)? {
        let mut bytes = std::fs::read(&path).map_err(|e| fault(&path, &e))?;
        let name = path.strip_prefix(folder).map_err(|e| e.to_string())?.display().to_string();
        if name == "provenance.json" {
            let mut value: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
            let fields = value.as_object_mut().ok_or("the provenance is no table")?;
            for key in ["wall-seconds", "threads", "seal"] {
                fields.remove(key).ok_or_else(|| format!("the provenance has no `{key}`"))?;
            }
            bytes = value.to_string().into_bytes();
        }
        all.insert(name, bytes);
    }
    Ok(all)
}

/// The finished folder below `out`, beside which nothing else may stand.
pub(crate) fn only_folder(out: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(out).map_err(|e| fault(out, &e))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    match (paths.pop(), paths.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => Err("there is no folder".into()),
        (Some(path), false) => {
            paths.push(path);
            Err(format!("there is more than the finished folder: {paths:?}"))
        }
    }
}

/// An error unless the folder below `out` is whole, alone, and has just these contents.
pub(crate) fn compare(out: &Path, expected: &Contents) -> Result<(), String> {
    let folder = only_folder(out)?;
    match FolderState::of(&folder) {
        FolderState::Whole(_) => {}
        other => return Err(format!("the folder is not whole: {other:?}")),
    }
    let found = contents(&folder)?;
    if found.keys().ne(expected.keys()) {
        let (found, expected): (Vec<_>, Vec<_>) = (found.keys().collect(), expected.keys().collect());
        return Err(format!("the folder has the files {found:?}, not {expected:?}"));
    }
    match found.iter().find(|(name, bytes)| expected[*name] != **bytes) {
        Some((name, _)) => Err(format!("{name} has other bytes than in the undisturbed run")),
        None => Ok(()),
    }
}

/// Changes a bit of some file below a folder, cuts it short, empties or removes it. False if there is no file.
pub(crate) fn damage(folder: &Path, stream: &mut Stream) -> Result<bool, String> {
    let files = files(folder)?;
    if files.is_empty() {
        return Ok(false);
    }
    let path = &files[stream.below(files.len() as u64) as usize];
    let mut bytes = std::fs::read(path).map_err(|e| fault(path, &e))?;
    let done = match stream.below(4) {
        0 => std::fs::remove_file(path),
        kind if bytes.is_empty() || kind == 1 => {
            let length = stream.below(bytes.len() as u64 + 1) as usize;
            std::fs::write(path, &bytes[..length])
        }
        _ => {
            let bit = stream.below(8 * bytes.len() as u64);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
            std::fs::write(path, bytes)
        }
    };
    done.map_err(|e| fault(path, &e))?;
    Ok(true)
}

/// Gives every file below a folder some date between 1970 and 2150.
pub(crate) fn misdate(folder: &Path, stream: &mut Stream) -> Result<(), String> {
    for path in files(folder)? {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(stream.below(180 * 365 * 86_400));
        let file = std::fs::OpenOptions::new().append(true).open(&path).map_err(|e| fault(&path, &e))?;
        file.set_modified(date).map_err(|e| fault(&path, &e))?;
    }
    Ok(())
}
