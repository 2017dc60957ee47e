//! The cropped digits of SVHN (Y. Netzer et al., 2011), a MATLAB file of level 5: `X` of 32 × 32 × 3 × n bytes, first index fastest, and `y` of
//! n labels from 1 to 10, where 10 is the digit 0. Format: MathWorks, "MAT-File Format", elements `miMATRIX` and `miCOMPRESSED`.

use super::Images;
use std::io::Read;

const INT8: u32 = 1;
const UINT8: u32 = 2;
const DOUBLE: u32 = 9;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Most bytes of an element after unpacking: the largest part of SVHN has 1.6 GB.
const LARGEST: u64 = 2 << 30;

struct Array {
    name: String,
    lengths: Vec<usize>,
    kind: u32,
    data: Vec<u8>,
}

/// The next element: its type, its bytes, and what is behind it.
fn element(bytes: &[u8]) -> Result<(u32, &[u8], &[u8]), String> {
    let cut = || "it is cut off".to_string();
    let word = |at: usize| -> Result<u32, String> {
        Ok(u32::from_le_bytes(bytes.get(at..at + 4).ok_or_else(cut)?.try_into().map_err(|_| cut())?))
    };
    let first = word(0)?;
    if first >> 16 != 0 {
        // A small element: length and type share a word, and four bytes follow.
        let length = (first >> 16) as usize;
        let data = bytes.get(4..8).ok_or_else(cut)?;
        return Ok((first & 0xffff, data.get(..length).ok_or("a small element is too long")?, &bytes[8..]));
    }
    let length = word(4)? as usize;
    let data = bytes.get(8..).and_then(|rest| rest.get(..length)).ok_or_else(cut)?;
    // Only compressed elements are not filled up to a multiple of eight bytes.
    let whole = if first == COMPRESSED { length } else { length.next_multiple_of(8) };
    Ok((first, data, bytes.get(8 + whole..).unwrap_or_default()))
}

fn array(bytes: &[u8]) -> Result<Array, String> {
    let (_, _, rest) = element(bytes)?;
    let (_, lengths, rest) = element(rest)?;
    let (kind, name, rest) = element(rest)?;
    if kind != INT8 {
        return Err("an array has no name".into());
    }
    let (kind, data, _) = element(rest)?;
    let lengths = lengths.as_chunks::<4>().0.iter().map(|n| i32::from_le_bytes(*n).max(0) as usize).collect();
    Ok(Array { name: String::from_utf8_lossy(name).into(), lengths, kind, data: data.to_vec() })
}

/// Images and labels.
pub fn read(name: &str, bytes: &[u8]) -> Result<Images, String> {
    if !bytes.starts_with(b"MATLAB 5.0 MAT-file") || bytes.get(126..128) != Some(b"IM") {
        return Err(
            "it is no MATLAB file of level 5, little-endian (versions 7.3 are HDF5 and are not read)".into(),
        );
    }
    let mut rest = &bytes[128..];
    let mut arrays = Vec::new();
    while !rest.is_empty() {
        let (kind, data, behind) = element(rest)?;
        rest = behind;
        match kind {
            COMPRESSED => {
                let mut all = Vec::new();
                let read = flate2::read::ZlibDecoder::new(data).take(LARGEST).read_to_end(&mut all);
                read.map_err(|e| format!("its compression is damaged: {e}"))?;
                let (MATRIX, data, _) = element(&all)? else { continue };
                arrays.push(array(data)?);
            }
            MATRIX => arrays.push(array(data)?),
            _ => {}
        }
    }
    let find = |name: &str| {
        arrays.iter().find(|array| array.name == name).ok_or_else(|| format!("it has no array `{name}`"))
    };
    let (x, y) = (find("X")?, find("y")?);
    let [32, 32, 3, count] = x.lengths[..] else {
        return Err(format!("`X` has the lengths {:?}; [32, 32, 3, n] is read", x.lengths));
    };
    if x.kind != UINT8 || x.data.len() != 3072 * count {
        return Err(format!("`X` has {} bytes of type {} for {count} images", x.data.len(), x.kind));
    }
    let labels: Vec<u32> = match y.kind {
        UINT8 => y.data.iter().map(|label| u32::from(*label)).collect(),
        DOUBLE => y.data.as_chunks::<8>().0.iter().map(|label| f64::from_le_bytes(*label) as u32).collect(),
        kind => return Err(format!("`y` is of type {kind}; bytes and doubles are read")),
    };
    let digit = |label: u32| match label {
        10 => 0,
        // No label of SVHN: left beyond the classes, so that it is refused.
        0 => 11,
        label => label,
    };
    let labels = labels.into_iter().map(digit).collect();
    let mut pixels = Vec::with_capacity(x.data.len());
    for image in x.data.chunks_exact(3072) {
        for channel in 0..3 {
            for row in 0..32 {
                pixels.extend((0..32).map(|column| image[channel * 1024 + column * 32 + row]));
            }
        }
    }
    Images { name: name.into(), channels: 3, side: 32, classes: 10, pixels, labels }.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn padded(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn matrix(name: &str, lengths: &[i32], data: &[u8], packed: bool) -> Vec<u8> {
        let mut inner = padded(6, &[9, 0, 0, 0, 0, 0, 0, 0]);
        inner.extend(padded(5, &lengths.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>()));
        // A name of up to four letters is a small element.
        inner.extend((INT8 | (name.len() as u32) << 16).to_le_bytes());
        let mut letters = name.as_bytes().to_vec();
        letters.resize(4, 0);
        inner.extend(letters);
        inner.extend(padded(UINT8, data));
        let whole = padded(MATRIX, &inner);
        if !packed {
            return whole;
        }
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&whole).unwrap();
        let data = encoder.finish().unwrap();
        let mut bytes = COMPRESSED.to_le_bytes().to_vec();
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes
    }

    fn file(labels: &[u8], count: i32, packed: bool) -> Vec<u8> {
        let mut bytes = b"MATLAB 5.0 MAT-file, made".to_vec();
        bytes.resize(124, b' ');
        bytes.extend([0, 1, b'I', b'M']);
        let pixels: Vec<u8> = (0..3072 * count).map(|i| (i % 251) as u8).collect();
        bytes.extend(matrix("X", &[32, 32, 3, count], &pixels, packed));
        bytes.extend(matrix("y", &[count, 1], labels, packed));
        bytes
    }

    #[test]
    fn cropped_digits_are_read_and_damaged_files_refused() {
        for packed in [false, true] {
            let bytes = file(&[10, 1, 9], 3, packed);
            let images = read("made", &bytes).unwrap();
            assert_eq!(images.labels, [0, 1, 9]);
            // Row 1, column 0 of the first colour is the second byte of the file; column 1 begins at 32.
            assert_eq!(
                (images.image(0)[32], images.image(0)[1], images.image(1)[0]),
                (1, 32, (3072 % 251) as u8)
            );
            assert!(read("made", &bytes[..bytes.len() - 30]).is_err());
            assert!(read("made", &file(&[1, 2], 3, packed)).unwrap_err().contains("2 labels"));
            assert!(read("made", &file(&[11, 1, 1], 3, packed)).unwrap_err().contains("label 11"));
            assert!(read("made", &file(&[0, 1, 1], 3, packed)).unwrap_err().contains("label"));
        }
        assert!(read("made", b"\x89HDF").unwrap_err().contains("level 5"));
    }
}
