//! Reading files that a user names: regular files of a bounded size, and nothing that could wait or go on for ever.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a regular file of at most so many bytes. Devices, pipes, sockets and folders are refused without being opened,
/// since opening a pipe waits for a writer.
pub fn open_bounded(path: &Path, most: u64) -> Result<File, String> {
    let about = std::fs::metadata(path).map_err(|e| in_words(&e))?;
    check(&about, most)?;
    let file = File::open(path).map_err(|e| in_words(&e))?;
    // The name may stand for another file by now.
    check(&file.metadata().map_err(|e| in_words(&e))?, most)?;
    Ok(file)
}

/// The bytes of a regular file of at most so many of them.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to see that a file grew since its size was asked for.
    let read = open_bounded(path, most)?.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|e| in_words(&e))?;
    if bytes.len() as u64 > most { Err(too_large(bytes.len() as u64, most)) } else { Ok(bytes) }
}

fn check(about: &std::fs::Metadata, most: u64) -> Result<(), String> {
    if about.is_dir() {
        return Err("it is a folder".into());
    }
    if !about.is_file() {
        return Err("it is no regular file; devices and pipes are not read".into());
    }
    if about.len() > most { Err(too_large(about.len(), most)) } else { Ok(()) }
}

fn too_large(size: u64, most: u64) -> String {
    format!("it has {size} bytes; at most {most} are read")
}

/// What the system says, without its number.
fn in_words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "it may not be read".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let file = std::env::temp_dir().join(format!("didact-files-{}", std::process::id()));
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert!(read_bounded(&file, 4).unwrap_err().contains("5 bytes; at most 4"));
        std::fs::remove_file(&file).unwrap();
        assert!(read_bounded(&file, 4).unwrap_err().contains("no such file"));
        assert!(read_bounded(&std::env::temp_dir(), 4).unwrap_err().contains("folder"));
        #[cfg(unix)]
        assert!(read_bounded(Path::new("/dev/zero"), 4).unwrap_err().contains("devices"));
    }
}
