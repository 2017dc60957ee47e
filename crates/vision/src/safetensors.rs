//! Arrays of single precision in a file of the format safetensors, which PyTorch and others read: a length of eight bytes, a header in JSON
//! with name, type, shape and place of every array, then the numbers, little-endian.
//! The format is described at <https://huggingface.co/docs/safetensors>.

use didact_model::files::read_bounded;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

/// Largest file that is read.
const LARGEST: u64 = 8 << 30;

/// One array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its lengths.
    pub shape: Vec<usize>,
    /// Its numbers, last index fastest.
    pub values: Vec<f32>,
}

/// Arrays, and words about them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arrays {
    /// In the order of the file.
    pub arrays: Vec<Array>,
    /// Free text by key.
    pub about: Map<String, Value>,
}

impl Arrays {
    /// The numbers of an array.
    pub fn get(&self, name: &str) -> Result<&Array, String> {
        self.arrays
            .iter()
            .find(|array| array.name == name)
            .ok_or_else(|| format!("there is no array `{name}`"))
    }

    /// Adds an array.
    pub fn push(&mut self, name: impl Into<String>, shape: &[usize], values: &[f64]) {
        let values = values.iter().map(|v| *v as f32).collect();
        self.arrays.push(Array { name: name.into(), shape: shape.to_vec(), values });
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = Map::new();
        if !self.about.is_empty() {
            header.insert("__metadata__".into(), Value::Object(self.about.clone()));
        }
        let mut place = 0;
        for array in &self.arrays {
            let end = place + 4 * array.values.len();
            header.insert(
                array.name.clone(),
                json!({ "dtype": "F32", "shape": array.shape, "data_offsets": [place, end] }),
            );
            place = end;
        }
        let mut text = Value::Object(header).to_string();
        // Numbers begin at a multiple of eight bytes.
        text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes.reserve(place);
        self.arrays.iter().flat_map(|array| &array.values).for_each(|v| bytes.extend(v.to_le_bytes()));
        bytes
    }

    /// Of the bytes of a file; what is wrong with them otherwise.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is shorter than eight bytes")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|e| e.to_string())?;
        let (header, data) = rest.split_at_checked(length).ok_or("its header is cut off")?;
        let header: Map<String, Value> =
            serde_json::from_slice(header).map_err(|e| format!("its header is no JSON: {e}"))?;
        let mut all = Self::default();
        for (name, entry) in header {
            if name == "__metadata__" {
                all.about = entry.as_object().cloned().ok_or("its metadata are no table")?;
                continue;
            }
            if entry["dtype"] != "F32" {
                return Err(format!("array `{name}` is of type {}; only F32 is read", entry["dtype"]));
            }
            let numbers = |key: &str| -> Option<Vec<usize>> {
                entry[key]
                    .as_array()?
                    .iter()
                    .map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok()))
                    .collect()
            };
            let (shape, place) =
                numbers("shape").zip(numbers("data_offsets")).ok_or("an array has no place")?;
            let [start, end] = place[..] else { return Err(format!("array `{name}` has no place")) };
            let values = data.get(start..end).ok_or_else(|| format!("array `{name}` is cut off"))?;
            let length = shape.iter().try_fold(4_usize, |all, n| all.checked_mul(*n));
            if length != Some(values.len()) {
                return Err(format!("array `{name}` does not fill its shape {shape:?}"));
            }
            let values = values.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            all.arrays.push(Array { name, shape, values });
        }
        Ok(all)
    }

    /// Writes a file whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        write_whole(path, &self.to_bytes())
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = read_bounded(path, LARGEST)?;
        Self::of_bytes(&bytes)
            .map_err(|why| format!("`{}` is no whole file of arrays: {why}", path.display()))
    }
}

/// Writes a file under another name, waits until it is on disk and renames it, so that nobody ever sees a part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let why = |e: std::io::Error| format!("cannot write `{}`: {e}", path.display());
    let partial = path.with_extension("partial");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(why)?;
    }
    let mut file = std::fs::File::create(&partial).map_err(why)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(why)?;
    std::fs::rename(&partial, path).map_err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_and_damage_is_named() {
        let mut arrays = Arrays::default();
        arrays.push("a", &[2, 2], &[1.0, -2.5, 0.0, 1e-30]);
        arrays.push("b.c", &[], &[7.0]);
        arrays.about.insert("epoch".into(), "3".into());
        let bytes = arrays.to_bytes();
        assert_eq!(Arrays::of_bytes(&bytes).unwrap(), arrays);
        assert!(Arrays::of_bytes(&bytes[..5]).unwrap_err().contains("eight bytes"));
        assert!(Arrays::of_bytes(&bytes[..40]).unwrap_err().contains("cut off"));
        assert!(Arrays::of_bytes(&bytes[..bytes.len() - 1]).unwrap_err().contains("`b.c` is cut off"));
    }
}
