//! Reads single tensors by name from a safetensors file, as `f32`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};

use ndarray::{Array1, Array2};
use serde::Deserialize;
use serde_json::Value;

use super::folder::Folder;
use crate::embedding::EmbeddingError;

const FILE_NAME: &str = "model.safetensors";
/// Maximum size of the header, which has about a hundred bytes per tensor.
const MAX_HEADER_BYTES: u64 = 16 << 20;

pub(super) struct Tensors<'a> {
    folder: &'a Folder,
    file: File,
    /// Offset of the tensor data.
    start: u64,
    /// Size of the tensor data in bytes.
    length: u64,
    entries: HashMap<String, Value>,
}

/// The header entry of a tensor; its offsets are relative to the start of the tensor data.
#[derive(Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// The number format.
#[derive(Clone, Copy)]
enum FloatType {
    F32,
    F16,
    BF16,
}

impl<'a> Tensors<'a> {
    pub(super) fn open(folder: &'a Folder) -> Result<Self, EmbeddingError> {
        let mut file = folder.open(FILE_NAME)?;
        let io_error = |source| folder.io_error(FILE_NAME, source);
        let size = file.metadata().map_err(io_error)?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => folder.wrong(FILE_NAME, "is too short for a safetensors file"),
            _ => io_error(source),
        })?;
        let header = u64::from_le_bytes(length);
        if header > MAX_HEADER_BYTES || header > size.saturating_sub(8) {
            return Err(folder.wrong(FILE_NAME, "is cut short, or no safetensors file"));
        }
        let mut list = Vec::new();
        Read::by_ref(&mut file).take(header).read_to_end(&mut list).map_err(io_error)?;
        let entries = serde_json::from_slice(&list)
            .map_err(|error| folder.wrong(FILE_NAME, format_args!("its list of tensors: {error}")))?;
        Ok(Self { folder, file, start: 8 + header, length: size.saturating_sub(8 + header), entries })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// A vector.
    pub(super) fn row(&mut self, name: &str, length: usize) -> Result<Array1<f32>, EmbeddingError> {
        self.numbers(name, &[length]).map(Array1::from_vec)
    }

    /// A matrix with this number of rows and columns.
    pub(super) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, EmbeddingError> {
        let numbers = self.numbers(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), numbers).map_err(|error| self.wrong(name, &error.to_string()))
    }

    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EmbeddingError> {
        let value = self.entries.get(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        let entry = TensorEntry::deserialize(value).map_err(|error| self.wrong(name, &error.to_string()))?;
        let number = FloatType::named(&entry.dtype)
            .ok_or_else(|| self.wrong(name, &format!("has `{}`, expected F32, F16 or BF16", entry.dtype)))?;
        if entry.shape != shape {
            return Err(self.wrong(name, &format!("has the shape {:?}, expected {shape:?}", entry.shape)));
        }
        let (from, to) = entry.data_offsets;
        let bytes = shape.iter().try_fold(number.bytes(), |bytes, side| bytes.checked_mul(*side));
        let bytes = bytes.filter(|bytes| to.checked_sub(from) == u64::try_from(*bytes).ok());
        let Some(bytes) = bytes else {
            return Err(self.wrong(name, "has offsets that do not fit its shape"));
        };
        // Checked before allocating: the claimed data must exist.
        if to > self.length {
            return Err(self.wrong(name, "lies beyond the end of the file, which is cut short"));
        }
        let mut raw = vec![0; bytes];
        let read =
            self.file.seek(SeekFrom::Start(self.start + from)).and_then(|_| self.file.read_exact(&mut raw));
        read.map_err(|source| self.folder.io_error(FILE_NAME, source))?;
        Ok(number.read(&raw))
    }

    fn wrong(&self, name: &str, what: &str) -> EmbeddingError {
        self.folder.wrong(FILE_NAME, format_args!("the tensor `{name}` {what}"))
    }
}

impl FloatType {
    fn named(dtype: &str) -> Option<Self> {
        match dtype {
            "F32" => Some(Self::F32),
            "F16" => Some(Self::F16),
            "BF16" => Some(Self::BF16),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    fn read(self, raw: &[u8]) -> Vec<f32> {
        let (fours, _) = raw.as_chunks();
        let (twos, _) = raw.as_chunks();
        match self {
            Self::F32 => fours.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            Self::F16 => twos.iter().map(|bytes| half(u16::from_le_bytes(*bytes))).collect(),
            Self::BF16 => {
                let wide = |bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
                twos.iter().map(wide).collect()
            }
        }
    }
}

/// Converts an IEEE 754 half-precision number: a sign bit, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let size = match exponent {
        // Subnormal: the fraction counts in steps of 2^-24.
        0 => f32::from(bits & 0x3ff) / 16_777_216.0,
        0x1f => f32::from_bits(0xff << 23 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    f32::from_bits(size.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn parses_half_precision_numbers() {
        for (bits, expected) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), expected, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
