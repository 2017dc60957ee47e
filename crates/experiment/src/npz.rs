//! Arrays of numbers as NumPy's `.npz`: a zip archive without compression of `.npy` files.
//!
//! Only what a table needs is here: arrays of little-endian `f64` in row-major order. Files have no time stamps, so that the
//! same arrays give the same bytes. The layout of `.npy` is described in NumPy's documentation (`numpy.lib.format`), the archive in
//! `zip.rs`.

use crate::zip;
use std::io;

/// Every `.npy` header fills a multiple of this many bytes, so that the data behind it is aligned.
const HEADER_DIVISOR: usize = 64;

/// Collects arrays and gives the bytes of the archive.
#[derive(Debug, Default)]
pub(crate) struct Writer(zip::Writer);

impl Writer {
    /// Adds an array of this shape; `values` has its rows one after another.
    pub(crate) fn add(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = f64>,
    ) -> io::Result<()> {
        let mut data = npy_header(shape);
        let start = data.len();
        for value in values {
            data.extend_from_slice(&value.to_le_bytes());
        }
        let expected = shape.iter().product::<usize>() * size_of::<f64>();
        if data.len() - start != expected {
            return Err(io::Error::other(format!("array `{name}` does not fill its shape {shape:?}")));
        }
        self.0.add(&format!("{name}.npy"), &data)
    }

    /// The whole archive.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

/// Magic string, version 1.0, length, and a Python dictionary padded with spaces.
fn npy_header(shape: &[usize]) -> Vec<u8> {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}{comma})}}", lengths.join(", "));
    let prefix = MAGIC.len() + 4;
    let unpadded = prefix + text.len() + 1;
    text.push_str(&" ".repeat(HEADER_DIVISOR - unpadded % HEADER_DIVISOR));
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(text.len() as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// Its lengths.
    pub(crate) shape: Vec<usize>,
    /// Its rows one after another.
    pub(crate) values: Vec<f64>,
}

/// Finds arrays in the bytes of an archive.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    files: Vec<zip::Entry<'a>>,
}

impl<'a> Reader<'a> {
    /// Reads the directory; `None` if these are not the bytes of a whole archive as [`Writer`] writes it.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let place = zip::directory_place(&bytes[bytes.len().checked_sub(zip::END_LENGTH)?..])?;
        let files = zip::entries(bytes.get(place.start..)?, place)?;
        Some(Self { bytes, files })
    }

    /// Names of the arrays, in the order of the file.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.files.iter().filter_map(|entry| entry.name.strip_suffix(".npy"))
    }

    /// The array of this name; `None` if there is none or its bytes are damaged.
    pub(crate) fn array(&self, name: &str) -> Option<Array> {
        let entry = self.files.iter().find(|entry| entry.name.strip_suffix(".npy") == Some(name))?;
        let from = self.bytes.get(entry.place..)?;
        let start = zip::local_entry(from)?.contents;
        let file = from.get(start..start + entry.length)?;
        if crc32fast::hash(file) != entry.crc {
            return None;
        }
        let (text, data) = file.strip_prefix(MAGIC)?.strip_prefix(&[1, 0])?.split_at_checked(2)?;
        let (text, data) = data.split_at_checked(usize::from(u16::from_le_bytes([text[0], text[1]])))?;
        let shape = std::str::from_utf8(text).ok()?.trim_end();
        let shape = shape.strip_prefix("{'descr': '<f8', 'fortran_order': False, 'shape': (")?;
        // NumPy has a comma and a blank before the brace.
        let lengths = shape
            .strip_suffix(")}")
            .or_else(|| shape.strip_suffix("), }"))?
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty());
        let shape: Vec<usize> = lengths.map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let (chunks, rest) = data.as_chunks::<8>();
        let values: Vec<f64> = chunks.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect();
        (rest.is_empty() && shape.iter().product::<usize>() == values.len())
            .then_some(Array { shape, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::default();
        writer.add("times", &[2], [0.0, 1.5]).unwrap();
        writer.add("Δ", &[2, 2], [1.0, 2.0, 3.0, f64::NAN]).unwrap();
        writer.add("none", &[0, 2], []).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn arrays_come_back_with_their_shapes() {
        let bytes = sample();
        let reader = Reader::new(&bytes).unwrap();
        assert_eq!(reader.array("times").unwrap(), Array { shape: vec![2], values: vec![0.0, 1.5] });
        let delta = reader.array("Δ").unwrap();
        assert_eq!((delta.shape, &delta.values[..3]), (vec![2, 2], &[1.0, 2.0, 3.0][..]));
        assert!(delta.values[3].is_nan());
        assert_eq!(reader.array("none").unwrap().shape, [0, 2]);
        assert_eq!(reader.array("other"), None);
    }

    /// The bytes that `ndarray-npy` 0.10 wrote for the same array, as earlier versions of didact kept them.
    #[test]
    fn the_bytes_are_those_of_earlier_versions() {
        let mut writer = Writer::default();
        writer.add("times", &[1], [0.5]).unwrap();
        let mut npy =
            b"\x93NUMPY\x01\0\x76\0{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}".to_vec();
        npy.resize(127, b' ');
        npy.push(b'\n');
        npy.extend_from_slice(&0.5_f64.to_le_bytes());
        let crc = crc32fast::hash(&npy).to_le_bytes();
        let mut expected = b"PK\x03\x04\x0a\0\0\0\0\0\0\0\x21\0".to_vec();
        expected.extend_from_slice(&crc);
        expected.extend_from_slice(b"\x88\0\0\0\x88\0\0\0\x09\0\0\0times.npy");
        expected.extend_from_slice(&npy);
        expected.extend_from_slice(b"PK\x01\x02\x0a\x03\x0a\0\0\0\0\0\0\0\x21\0");
        expected.extend_from_slice(&crc);
        expected
            .extend_from_slice(b"\x88\0\0\0\x88\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\xa4\x81\0\0\0\0times.npy");
        expected.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x37\0\0\0\xaf\0\0\0\0\0");
        assert_eq!(writer.finish().unwrap(), expected);
    }

    #[test]
    fn damaged_files_are_not_read() {
        let bytes = sample();
        assert!(Reader::new(&bytes[..bytes.len() - 1]).is_none(), "cut short");
        let mut flipped = bytes.clone();
        let place = bytes.windows(8).position(|w| w == 1.5_f64.to_le_bytes()).unwrap();
        flipped[place] ^= 1;
        let reader = Reader::new(&flipped).unwrap();
        assert_eq!(reader.array("times"), None, "its checksum differs");
        assert!(reader.array("Δ").is_some());
    }

    #[test]
    fn an_array_must_fill_its_shape_and_have_a_name_of_its_own() {
        let mut writer = Writer::default();
        assert!(writer.add("a", &[2], [1.0]).is_err());
        writer.add("a", &[1], [1.0]).unwrap();
        assert!(writer.add("a", &[1], [1.0]).is_err());
    }
}
