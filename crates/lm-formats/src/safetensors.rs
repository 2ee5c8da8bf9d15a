//! Validated reading of a safetensors header.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use safetensors::Dtype;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::{Error, Result};

/// Maximum length of a header that is parsed; the largest real ones have a few MB.
const MAX_HEADER_BYTES: u64 = 32 << 20;
/// Size of the length prefix of the header.
const LENGTH_BYTES: usize = 8;
/// Header key that is not a tensor: string metadata.
const METADATA: &str = "__metadata__";

/// One tensor of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetensorsTensor {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: Dtype,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// Byte range in the file.
    pub range: Range<usize>,
}

/// Reads the header of a safetensors file and returns its tensors in the order of their offsets; `file` is
/// the file's name in errors.
///
/// # Errors
/// [`Error::TensorFile`] when the header cannot be parsed, when the tensors leave a gap, overlap or do not
/// end at the end of the file, and when the bytes of a tensor do not match its shape and type.
///
/// # Examples
/// ```
/// let header = br#"{"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}"#;
/// let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
/// bytes.extend(header);
/// bytes.extend([0; 12]);
/// let tensors = lm_formats::safetensors_tensors("model.safetensors", &bytes)?;
/// assert_eq!((tensors[0].name.as_str(), &tensors[0].shape[..]), ("w", &[2, 3][..]));
/// # Ok::<(), lm_formats::Error>(())
/// ```
pub fn safetensors_tensors(file: &str, bytes: &[u8]) -> Result<Vec<SafetensorsTensor>> {
    let broken = |reason: String| Error::TensorFile { file: file.into(), reason };
    let announced = bytes
        .first_chunk::<LENGTH_BYTES>()
        .map(|length| u64::from_le_bytes(*length))
        .ok_or_else(|| broken(format!("{} bytes, not even the header's length", bytes.len())))?;
    let present = (bytes.len() - LENGTH_BYTES) as u64;
    if announced > present {
        return Err(broken(format!("the header should have {announced} bytes, {present} follow")));
    }
    if announced > MAX_HEADER_BYTES {
        return Err(broken(format!(
            "the header should have {announced} bytes, at most {MAX_HEADER_BYTES} are read"
        )));
    }
    let header = &bytes[LENGTH_BYTES..LENGTH_BYTES + announced as usize];
    let mut json = serde_json::Deserializer::from_slice(header);
    let described = json.deserialize_map(Tensors).and_then(|tensors| json.end().map(|()| tensors));
    let mut described = described.map_err(|error| broken(format!("its header cannot be read: {error}")))?;
    described.sort_unstable_by_key(|(_, tensor)| tensor.data_offsets);
    let (data, mut end) = (LENGTH_BYTES + header.len(), 0);
    let mut entries = Vec::with_capacity(described.len());
    for (name, tensor) in described {
        tensor
            .check(end, bytes.len() - data)
            .map_err(|problem| broken(format!("tensor {name} {problem}")))?;
        let Described { dtype, shape, data_offsets: [start, tensor_end] } = tensor;
        end = tensor_end;
        entries.push(SafetensorsTensor { name, dtype, shape, range: data + start..data + end });
    }
    match bytes.len() - data {
        len if len == end => Ok(entries),
        len => Err(broken(format!("its tensors have {end} bytes, {len} follow the header"))),
    }
}

/// Header entry of a tensor.
#[derive(Deserialize)]
struct Described {
    dtype: Dtype,
    shape: Vec<usize>,
    /// Offsets of its bytes, relative to the end of the header.
    data_offsets: [usize; 2],
}

impl Described {
    /// Checks that the tensor starts at the end of the previous one, and that its bytes match its shape and
    /// lie within the `room` of the file.
    fn check(&self, before: usize, room: usize) -> Result<(), String> {
        let [start, end] = self.data_offsets;
        if start != before {
            let what = if start < before { "shares bytes with the one before it" } else { "leaves a gap" };
            return Err(format!("{what}: it has the offset {start}, expected {before}"));
        }
        if end < start || end > room {
            return Err(format!("has the offsets {start} to {end}, the file has {room} bytes of tensors"));
        }
        let elements = self.shape.iter().try_fold(1_usize, |product, &len| product.checked_mul(len));
        let bits = elements.and_then(|elements| elements.checked_mul(self.dtype.bitsize()));
        match bits.map(|bits| (bits / 8, bits % 8)) {
            Some((bytes, 0)) if bytes == end - start => Ok(()),
            _ => Err(format!(
                "has {} bytes, which are not {} {:?}",
                end - start,
                self.dtype,
                Shape(&self.shape)
            )),
        }
    }
}

/// Shape for messages, shortened to the number of dimensions if there are many.
struct Shape<'a>(&'a [usize]);

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        match self.0.len() {
            ..=MOST => self.0.fmt(f),
            len => write!(f, "in {len} dimensions"),
        }
    }
}

/// Deserialises the tensors of a header; a duplicate name is an error.
struct Tensors;

impl<'de> Visitor<'de> for Tensors {
    type Value = Vec<(String, Described)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut tensors) = (HashSet::new(), Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                map.next_value::<HashMap<String, String>>()?;
                continue;
            }
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format!("tensor {name} is described twice")));
            }
            let tensor =
                map.next_value().map_err(|error| A::Error::custom(format!("tensor {name}: {error}")))?;
            tensors.push((name, tensor));
        }
        Ok(tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    fn check(bytes: &[u8], expected: &str) {
        let error = safetensors_tensors("f", bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }

    const TWO: &str = r#"{"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}"#;

    #[test]
    fn tensors_are_in_byte_order() {
        let entries = safetensors_tensors("f", &file(TWO, 12)).unwrap();
        let start = LENGTH_BYTES + TWO.len();
        let got: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.range.clone())).collect();
        assert_eq!(got, [("a", start..start + 8), ("b", start + 8..start + 12)]);
    }

    #[test]
    fn invalid_files_are_rejected_by_name() {
        check(b"", "0 bytes");
        check(&u64::MAX.to_le_bytes(), "18446744073709551615 bytes, 0 follow");
        check(&file(TWO, 11), "tensor b has the offsets 8 to 12, the file has 11 bytes of tensors");
        check(&file(TWO, 13), "its tensors have 12 bytes, 13 follow the header");
        check(&file("[]", 0), "header");
        check(&file("{\"a\":", 0), "header");
        check(
            &file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, 4),
            "tensor a has 4 bytes, which are not F32 [2]",
        );
        check(&file(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, 8), "tensor a leaves a gap");
        let shared = r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
        check(
            &file(shared, 4),
            "tensor b shares bytes with the one before it: it has the offset 2, expected 3",
        );
        check(
            &file(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#, 0),
            "tensor a has 0 bytes, which are not F32 [4294967296, 4294967296]",
        );
        let tensor = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        check(&file(&format!(r#"{{"a":{tensor},"a":{tensor}}}"#), 4), "tensor a is described twice");
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = file(TWO, 12);
        for len in 0..bytes.len() {
            assert!(
                matches!(safetensors_tensors("f", &bytes[..len]), Err(Error::TensorFile { .. })),
                "{len}"
            );
        }
    }
}
