//! Zip archives without compression: `.npz` files are such archives, and so are the packs of tables of a large sweep.
//!
//! Files have no time stamps, so that the same contents give the same bytes. The layout is that of PKWARE's APPNOTE; the names of the
//! fields below are its own.

use std::collections::BTreeSet;
use std::io;

const LOCAL_ENTRY: [u8; 4] = *b"PK\x03\x04";
const CENTRAL_ENTRY: [u8; 4] = *b"PK\x01\x02";
const END_OF_DIRECTORY: [u8; 4] = *b"PK\x05\x06";
/// Bytes of a local entry before its name.
pub(crate) const LOCAL_LENGTH: usize = 30;
const CENTRAL_LENGTH: usize = 46;
/// Bytes at the end of an archive that say where its directory is.
pub(crate) const END_LENGTH: usize = 22;
/// 1 January 1980, the first day that a zip archive knows.
const DATE: u16 = 0x21;
/// A regular file that its owner may write and all may read, in the upper half as Unix has it.
const ATTRIBUTES: u32 = 0o100_644 << 16;
/// Set for a name that is not ASCII.
const NAME_IS_UTF8: u16 = 1 << 11;

/// Collects files and gives the bytes of the archive.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    names: BTreeSet<String>,
}

impl Writer {
    /// Adds a file. A name is used once.
    pub(crate) fn add(&mut self, name: &str, data: &[u8]) -> io::Result<()> {
        if self.names.contains(name) {
            return Err(io::Error::other(format!("two files are named `{name}`")));
        }
        // Both kinds of entry share the fields from the needed version to the length of the extra field.
        let flags = if name.is_ascii() { 0 } else { NAME_IS_UTF8 };
        let length = small(data.len())?;
        let mut shared = Vec::with_capacity(26);
        for word in [10, flags, 0, 0, DATE] {
            shared.extend_from_slice(&u16::to_le_bytes(word));
        }
        for word in [crc32fast::hash(data), length, length] {
            shared.extend_from_slice(&word.to_le_bytes());
        }
        let name_length = u16::try_from(name.len()).map_err(|_| io::Error::other("the name is too long"))?;
        shared.extend_from_slice(&name_length.to_le_bytes());
        shared.extend_from_slice(&0_u16.to_le_bytes());

        let offset = small(self.bytes.len())?;
        self.bytes.extend_from_slice(&LOCAL_ENTRY);
        self.bytes.extend_from_slice(&shared);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(data);

        self.directory.extend_from_slice(&CENTRAL_ENTRY);
        // Made under Unix (3) by version 1.0 of the format.
        self.directory.extend_from_slice(&[10, 3]);
        self.directory.extend_from_slice(&shared);
        // No comment, first disk, no internal attributes.
        self.directory.extend_from_slice(&[0; 6]);
        self.directory.extend_from_slice(&ATTRIBUTES.to_le_bytes());
        self.directory.extend_from_slice(&offset.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.names.insert(name.into());
        Ok(())
    }

    /// Files so far.
    pub(crate) fn files(&self) -> usize {
        self.names.len()
    }

    /// Bytes of the contents so far, with their names.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        let count = u16::try_from(self.names.len()).map_err(|_| io::Error::other("too many files"))?;
        let (start, length) = (small(self.bytes.len())?, small(self.directory.len())?);
        self.bytes.append(&mut self.directory);
        self.bytes.extend_from_slice(&END_OF_DIRECTORY);
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&start.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
        Ok(self.bytes)
    }
}

/// Lengths and offsets of this version of zip have 32 bits.
fn small(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::Error::other("a table of more than 4 GB does not fit its file"))
}

/// Where the directory of an archive is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryPlace {
    /// Its first byte.
    pub(crate) start: usize,
    count: u16,
}

/// Reads the last [`END_LENGTH`] bytes of an archive.
pub(crate) fn directory_place(end: &[u8]) -> Option<DirectoryPlace> {
    let whole = end.len() == END_LENGTH && end[..4] == END_OF_DIRECTORY;
    whole.then_some(())?;
    Some(DirectoryPlace { start: word32(end, 16)? as usize, count: word16(end, 10)? })
}

/// A file as the directory lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// First byte of its local entry.
    pub(crate) place: usize,
    /// Bytes of its contents.
    pub(crate) length: usize,
    /// Checksum of its contents.
    pub(crate) crc: u32,
}

/// The entries of a directory, whose bytes begin with it; `None` if it is not one that [`Writer`] writes.
pub(crate) fn entries(directory: &[u8], place: DirectoryPlace) -> Option<Vec<Entry<'_>>> {
    let mut at = 0;
    let mut files = Vec::new();
    for _ in 0..place.count {
        let entry = directory.get(at..)?;
        let (method, crc, length) = (word16(entry, 10)?, word32(entry, 16)?, word32(entry, 24)?);
        if entry[..4] != CENTRAL_ENTRY || method != 0 {
            return None;
        }
        let name_length = word16(entry, 28)? as usize;
        let others = word16(entry, 30)? as usize + word16(entry, 32)? as usize;
        let name = std::str::from_utf8(entry.get(CENTRAL_LENGTH..CENTRAL_LENGTH + name_length)?).ok()?;
        files.push(Entry { name, place: word32(entry, 42)? as usize, length: length as usize, crc });
        at += CENTRAL_LENGTH + name_length + others;
    }
    Some(files)
}

/// What the first [`LOCAL_LENGTH`] bytes of a local entry say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalEntry {
    /// Bytes of its name, which follows.
    pub(crate) name: usize,
    /// Bytes from the beginning of the entry to its contents.
    pub(crate) contents: usize,
    /// Bytes of its contents.
    pub(crate) length: usize,
}

/// Reads the beginning of a local entry.
pub(crate) fn local_entry(bytes: &[u8]) -> Option<LocalEntry> {
    let (name, extra) = (word16(bytes, 26)? as usize, word16(bytes, 28)? as usize);
    let stored = bytes[..4] == LOCAL_ENTRY && word16(bytes, 8)? == 0;
    stored.then_some(())?;
    Some(LocalEntry { name, contents: LOCAL_LENGTH + name + extra, length: word32(bytes, 22)? as usize })
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
