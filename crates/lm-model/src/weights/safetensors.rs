//! The header of a safetensors file, read with distrust.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use safetensors::SafeTensors;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::{Error, Result};

/// Longest header that is parsed; the largest real ones have a few MB.
const MAX_HEADER_BYTES: u64 = 32 << 20;
/// The header's own length stands in front of it.
const LENGTH_BYTES: usize = 8;

/// One tensor of a file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: safetensors::Dtype,
    pub(super) shape: Vec<usize>,
    /// Where its bytes stand in the file.
    pub(super) range: Range<usize>,
}

/// The tensors of a file in the order of their bytes. They cover the file to its end, without gaps or overlaps, and each
/// one's bytes fit its shape and type.
pub(super) fn read_header(file: &str, bytes: &[u8]) -> Result<Vec<Entry>> {
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
    if let Some(name) = repeated_name(header) {
        return Err(broken(format!("tensor {name} is described twice")));
    }
    let metadata = match SafeTensors::read_metadata(bytes) {
        Ok((_, metadata)) => metadata,
        Err(safetensors::SafeTensorError::MetadataIncompleteBuffer) => {
            return Err(broken("its length is not the one that its header describes".into()));
        }
        Err(error) => return Err(broken(error.to_string())),
    };
    let data = LENGTH_BYTES + header.len();
    let entry = |name: String| {
        let info = metadata.info(&name)?;
        let range = data + info.data_offsets.0..data + info.data_offsets.1;
        Some(Entry { dtype: info.dtype, shape: info.shape.clone(), range, name })
    };
    Ok(metadata.offset_keys().into_iter().filter_map(entry).collect())
}

/// A name that the header has twice: the parser would keep the last one without a word.
fn repeated_name(header: &[u8]) -> Option<String> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of tensors")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut seen, mut repeated) = (HashSet::new(), None);
            while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                if seen.contains(&name) {
                    repeated = Some(name);
                } else {
                    seen.insert(name);
                }
            }
            Ok(repeated)
        }
    }

    serde_json::Deserializer::from_slice(header).deserialize_map(Names).ok().flatten()
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
        let error = read_header("f", bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }

    const TWO: &str = r#"{"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}"#;

    #[test]
    fn tensors_come_in_the_order_of_their_bytes() {
        let entries = read_header("f", &file(TWO, 12)).unwrap();
        let start = LENGTH_BYTES + TWO.len();
        let got: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.range.clone())).collect();
        assert_eq!(got, [("a", start..start + 8), ("b", start + 8..start + 12)]);
    }

    #[test]
    fn files_that_lie_are_refused_by_name() {
        check(b"", "0 bytes");
        check(&u64::MAX.to_le_bytes(), "18446744073709551615 bytes, 0 follow");
        check(&file(TWO, 11), "not the one that its header describes");
        check(&file(TWO, 13), "not the one that its header describes");
        check(&file("[]", 0), "header");
        check(&file("{\"a\":", 0), "header");
        check(&file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, 4), "shape");
        check(&file(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, 8), "offset");
        check(
            &file(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#, 0),
            "overflow",
        );
        let tensor = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        check(&file(&format!(r#"{{"a":{tensor},"a":{tensor}}}"#), 4), "tensor a is described twice");
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = file(TWO, 12);
        for len in 0..bytes.len() {
            assert!(matches!(read_header("f", &bytes[..len]), Err(Error::TensorFile { .. })), "{len}");
        }
    }
}
