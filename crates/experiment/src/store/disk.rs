//! The one way in which results come to the disk and back.
//!
//! A file is written under a name that nobody else uses and renamed when it is whole and synced. The temporary name is new: what
//! stands there already, a link that somebody planted too, is never opened. [`Faults`] lets a test of reliability break every
//! single operation.

use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One operation that changes the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A folder is made.
    CreateFolder,
    /// A file is made.
    CreateFile,
    /// Bytes are written; when this fails, half of them have arrived.
    Write,
    /// Bytes are forced to the disk.
    Sync,
    /// A file is cut to a length.
    Cut,
    /// A file or folder gets another name.
    Rename,
    /// A file or folder is removed.
    Remove,
}

/// What a test of reliability breaks on purpose. Every method of the default breaks nothing.
pub trait Faults: Send + Sync {
    /// Called before a change of the disk; an error is taken for the error of the system.
    fn change(&self, _: Change, _: &Path) -> io::Result<()> {
        Ok(())
    }
    /// How many of the bytes that are asked for the next read gives; an error is taken for the error of the system.
    fn read(&self, asked: usize) -> io::Result<usize> {
        Ok(asked)
    }
    /// How far the clock has jumped.
    fn clock_jump(&self) -> Duration {
        Duration::ZERO
    }
    /// Called at the beginning of a job (`run <name>`, `scan <name>`), within the boundary that catches a panic.
    fn job(&self, _: &str) {}
}

static FAULTS: OnceLock<Box<dyn Faults>> = OnceLock::new();

/// From now on these faults are met by the whole process. Only a test of reliability has a reason to call it, once.
pub fn break_on_purpose(faults: Box<dyn Faults>) {
    assert!(FAULTS.set(faults).is_ok(), "a process has one set of faults");
}

fn faults(change: Change, path: &Path) -> io::Result<()> {
    FAULTS.get().map_or(Ok(()), |faults| faults.change(change, path))
}

/// A job begins: a test of reliability may let it panic.
pub(crate) fn job_begins(name: &str) {
    if let Some(faults) = FAULTS.get() {
        faults.job(name);
    }
}

/// A clock that measures how long a run takes. Nothing else in a folder depends on a clock.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        let jump = FAULTS.get().map_or(Duration::ZERO, |faults| faults.clock_jump());
        self.0.elapsed().saturating_add(jump).as_secs_f64()
    }
}

/// SHA-256 in hex digits.
pub fn digest(bytes: &[u8]) -> String {
    digest_of([bytes])
}

/// SHA-256 of pieces one after the other, in hex digits.
pub(crate) fn digest_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    pieces.into_iter().for_each(|piece| hash.update(piece));
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A word that no other process and no other call has: process, count, and 64 random bits for file systems that several
/// machines share. It does not depend on a clock.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let random = RandomState::new().build_hasher().finish();
    format!("{:x}-{:x}-{random:016x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    faults(Change::CreateFolder, path)?;
    fs::create_dir_all(path)
}

/// Makes a folder in one that is there; it may be there already.
pub(crate) fn create_folder_in(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    faults(Change::CreateFolder, path)?;
    match fs::create_dir(path) {
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes a file that was not there before; nothing that stands at the path is opened or followed.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    faults(Change::CreateFile, path)?;
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes bytes where the file stands.
pub(crate) fn write(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Err(error) = faults(Change::Write, path) {
        file.write_all(&bytes[..bytes.len() / 2])?;
        return Err(error);
    }
    file.write_all(bytes)
}

/// Forces a file to the disk.
pub(crate) fn sync(file: &File, path: &Path) -> io::Result<()> {
    faults(Change::Sync, path)?;
    file.sync_all()
}

/// Cuts a file to this length and goes on writing there.
pub(crate) fn cut(file: &mut File, path: &Path, length: u64) -> io::Result<()> {
    faults(Change::Cut, path)?;
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    Ok(())
}

/// Gives a file or folder another name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    faults(Change::Rename, to)?;
    fs::rename(from, to)
}

/// Removes a file.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    faults(Change::Remove, path)?;
    fs::remove_file(path)
}

/// Removes a folder and all that is in it; one that is not there, or that others fill at the same time, is no error.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    faults(Change::Remove, path)?;
    match fs::remove_dir_all(path) {
        Err(error) if is_gone(&error) || is_occupied(&error) => Ok(()),
        other => other,
    }
}

/// Whether an operation failed because its file or folder is not there (any more).
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Whether a folder could not take a name, or be removed, because of what is there.
pub(crate) fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// Writes a file that was not there before and forces it to the disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_file(path)?;
    write(&mut file, path, bytes)?;
    sync(&file, path)
}

/// Writes a file so that it is either whole or as it was before.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.writing", unique()));
    let written = write_new(&temporary, bytes).and_then(|()| rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell; a temporary file that stays is in nobody's way.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a file that must not be there yet, whole or not at all: the first of several processes succeeds, the others get an error
/// of the kind "already exists". A second name for a file is made in one step on every file system that machines share.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.writing", unique()));
    let published = write_new(&temporary, bytes).and_then(|()| {
        faults(Change::Rename, path)?;
        fs::hard_link(&temporary, path)
    });
    let _ = fs::remove_file(&temporary);
    published
}

/// Forces the names in a folder to the disk, where the system can.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { sync(&File::open(path)?, path) } else { Ok(()) }
}

/// A regular file, open for reading; a device, a pipe or a folder is refused, and so is a link unless `links` may be followed.
fn open(path: &Path, links: bool) -> io::Result<(File, u64)> {
    let about = if links { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((File::open(path)?, about.len()))
}

/// The bytes of a file that belongs to a folder of results; a link is not followed.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (file, length) = open(path, false)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    Checked(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Digest of a file that the user names, which may be a link.
pub(crate) fn digest_of_file(path: &Path) -> io::Result<String> {
    let (file, _) = open(path, true)?;
    let (mut file, mut hash, mut piece) = (Checked(file), Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(length) => hash.update(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file of results from some place on; a link is not followed.
pub(crate) fn read_from(path: &Path, offset: u64) -> io::Result<impl Read + Seek> {
    let (mut file, _) = open(path, false)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(Checked(file))
}

/// Length of a regular file; `None` for anything else.
pub(crate) fn length(path: &Path) -> Option<u64> {
    let about = fs::symlink_metadata(path).ok()?;
    about.is_file().then_some(about.len())
}

/// What is in a folder, by name; nothing if it cannot be read.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A file whose reads a test may shorten.
struct Checked(File);

impl Read for Checked {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = match FAULTS.get() {
            Some(faults) if !bytes.is_empty() => faults.read(bytes.len())?.min(bytes.len()),
            _ => bytes.len(),
        };
        self.0.read(&mut bytes[..length])
    }
}

impl Seek for Checked {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.0.seek(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("didact-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn names_are_never_used_twice() {
        let names: std::collections::BTreeSet<String> = (0..1000).map(|_| unique()).collect();
        assert_eq!(names.len(), 1000);
    }

    #[test]
    #[cfg(unix)]
    fn planted_links_are_neither_written_through_nor_read() {
        let folder = folder("links");
        let (victim, link) = (folder.join("victim"), folder.join("link"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(write_new(&link, b"spoiled").is_err(), "a name that is taken is not opened");
        assert!(read(&link).is_err());
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_file(), "the link itself is replaced");
        assert_eq!(entries(&folder).len(), 2, "no temporary file stays");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = folder("regular");
        assert!(read(&folder).is_err());
        assert!(digest_of_file(Path::new("/dev/zero")).is_err());
        fs::write(folder.join("a"), "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_of_file(&folder.join("a")).unwrap(), expected);
        assert_eq!(digest(b"abc"), expected);
        fs::remove_dir_all(folder).unwrap();
    }
}
