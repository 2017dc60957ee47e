//! IDX, plain or by gzip: MNIST, Fashion-MNIST, EMNIST (Y. LeCun's format: two zeros, a type, the number of axes, their lengths as
//! big-endian words of 32 bits, then bytes).

use super::{Images, unpacked};

/// Largest file after unpacking.
const LARGEST: usize = 1 << 30;

/// The lengths of the axes and the bytes.
fn parts(bytes: Vec<u8>, axes: usize) -> Result<(Vec<usize>, Vec<u8>), String> {
    let mut bytes = unpacked(bytes, LARGEST)?;
    if !bytes.starts_with(&[0, 0, 8, axes as u8]) {
        let begin = &bytes[..bytes.len().min(4)];
        return Err(format!(
            "it begins with {begin:02x?}; bytes along {axes} axes begin with [00, 00, 08, {axes:02}]"
        ));
    }
    let head = 4 + 4 * axes;
    if bytes.len() < head {
        return Err(format!("it has {} bytes, and its header {head}", bytes.len()));
    }
    let lengths: Vec<usize> =
        bytes[4..head].as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word) as usize).collect();
    let expected = lengths.iter().try_fold(1_usize, |all, n| all.checked_mul(*n)).unwrap_or(usize::MAX);
    let data = bytes.split_off(head);
    if data.len() != expected {
        return Err(format!(
            "it has {} bytes of data; its lengths {lengths:?} ask for {expected}",
            data.len()
        ));
    }
    Ok((lengths, data))
}

/// Images of one file and labels of another. EMNIST counts letters from 1 (`first_label`) and lies on its side (`transposed`).
pub fn read(
    name: &str,
    (images, labels): (Vec<u8>, Vec<u8>),
    (classes, first_label, transposed): (usize, u8, bool),
) -> Result<Images, String> {
    let (lengths, mut pixels) = parts(images, 3).map_err(|e| format!("images: {e}"))?;
    let (_, labels) = parts(labels, 1).map_err(|e| format!("labels: {e}"))?;
    let side = lengths[1];
    if lengths[2] != side {
        return Err(format!("images: {} by {} pixels; square ones are read", lengths[1], lengths[2]));
    }
    if transposed {
        for image in pixels.chunks_exact_mut(side * side) {
            for y in 0..side {
                for x in 0..y {
                    image.swap(y * side + x, x * side + y);
                }
            }
        }
    }
    let labels = labels.into_iter().map(|label| u32::from(label.wrapping_sub(first_label))).collect();
    Images { name: name.into(), channels: 1, side, classes, pixels, labels }.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(lengths: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, lengths.len() as u8];
        lengths.iter().for_each(|n| bytes.extend(n.to_be_bytes()));
        bytes.extend(data);
        bytes
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_packed_files_are_read_and_damaged_ones_refused() {
        let (images, labels) = (file(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]), file(&[2], &[1, 2]));
        let read = |images: &[u8], labels: &[u8], how| read("made", (images.to_vec(), labels.to_vec()), how);
        let plain = read(&images, &labels, (2, 1, false)).unwrap();
        assert_eq!((plain.image(1), plain.labels.as_slice()), (&[5, 6, 7, 8][..], &[0, 1][..]));
        assert_eq!(read(&packed(&images), &packed(&labels), (2, 1, false)).unwrap(), plain);
        assert_eq!(read(&images, &labels, (2, 1, true)).unwrap().image(0), [1, 3, 2, 4]);
        let why = |images: &[u8], labels: &[u8]| read(images, labels, (2, 1, false)).unwrap_err();
        assert!(why(&images[..15], &labels).contains("header 16"));
        assert!(why(&images[..20], &labels).contains("ask for 8"));
        assert!(why(&packed(&images)[..20], &labels).contains("cut off"));
        assert!(why(&labels, &labels).contains("3 axes"));
        assert!(why(&images, &file(&[1], &[1])).contains("1 labels for 8 bytes"));
        assert!(why(&images, &file(&[2], &[1, 0])).contains("label 255"));
        assert!(why(&file(&[1, 2, 4], &[0; 8]), &labels).contains("square"));
    }
}
