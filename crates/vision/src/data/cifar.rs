//! CIFAR-10 in its binary version (A. Krizhevsky, 2009): records of a label and 3 × 32 × 32 bytes, colour by colour.

use super::Images;

/// Bytes of a record.
pub const RECORD: usize = 1 + 3 * 32 * 32;

/// The images of several files, in their order.
pub fn read(name: &str, files: &[Vec<u8>]) -> Result<Images, String> {
    let mut all = Images { name: name.into(), channels: 3, side: 32, classes: 10, ..Images::default() };
    for (number, bytes) in files.iter().enumerate() {
        if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD) {
            return Err(format!(
                "file {} has {} bytes, no whole number of records of {RECORD}",
                number + 1,
                bytes.len()
            ));
        }
        for record in bytes.chunks_exact(RECORD) {
            all.labels.push(u32::from(record[0]));
            all.pixels.extend_from_slice(&record[1..]);
        }
    }
    all.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_cut_or_wrong_ones_refused() {
        let mut record = vec![7_u8; RECORD];
        record[RECORD - 1] = 9;
        let images = read("made", &[record.repeat(2), record.clone()]).unwrap();
        assert_eq!((images.len(), images.labels[2], images.image(1)[3071]), (3, 7, 9));
        assert!(read("made", &[record[1..].to_vec()]).unwrap_err().contains("3072 bytes"));
        record[0] = 10;
        assert!(read("made", &[record]).unwrap_err().contains("label 10"));
    }
}
