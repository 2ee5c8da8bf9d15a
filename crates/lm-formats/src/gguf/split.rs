//! Models split into shards: `NAME-00001-of-00003.gguf`.

use super::{GgufFile, GgufMetadata, GgufProblem};
use crate::{Error, FileBytes, ModelFiles, Result, read_required};

/// Maximum number of shards.
const MAX_SHARDS: usize = 1024;

/// One GGUF file of a model, which may be split into several.
#[derive(Clone, Debug)]
pub struct GgufShard {
    /// File name, as shown in messages.
    pub name: String,
    /// Bytes of the file.
    pub bytes: FileBytes,
    /// Its header.
    pub file: GgufFile,
}

impl GgufShard {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// When the file is missing; also those of [`GgufFile::read`].
    pub fn read(files: &dyn ModelFiles, name: &str) -> Result<Self> {
        let bytes = read_required(files, name)?;
        let file = GgufFile::read(name, bytes.clone())?;
        Ok(Self { name: name.to_owned(), bytes, file })
    }

    /// Reads the headers of all shards of the model that `name` is a file of, in order; of that file alone if
    /// it is not split.
    ///
    /// # Errors
    /// As [`GgufShard::read`], and [`GgufProblem::Split`] when the files do not form one complete model.
    pub fn read_all(files: &dyn ModelFiles, name: &str) -> Result<Vec<Self>> {
        all_shards(files, Self::read(files, name)?)
    }
}

fn all_shards(files: &dyn ModelFiles, given: GgufShard) -> Result<Vec<GgufShard>> {
    let count = given.file.metadata().size("split.count")?.unwrap_or(1);
    if count <= 1 {
        return Ok(vec![given]);
    }
    let wrong = |name: &str, reason: String| Error::Gguf {
        file: name.to_owned(),
        problem: GgufProblem::Split { reason },
    };
    if count > MAX_SHARDS {
        return Err(wrong(&given.name, format!("it is one of {count}, at most {MAX_SHARDS} are read")));
    }
    let names = shard_names(&given.name, count).ok_or_else(|| {
        wrong(&given.name, format!("it is one of {count}, and is not called NAME-00001-of-{count:05}.gguf"))
    })?;
    let mut shards = Vec::new();
    for name in names {
        shards.push(GgufShard::read(files, &name)?);
    }
    for (index, shard) in shards.iter().enumerate() {
        let metadata = shard.file.metadata();
        let number = metadata.required("split.no", GgufMetadata::size)?;
        let of = metadata.required("split.count", GgufMetadata::size)?;
        if (number, of) != (index, count) {
            return Err(wrong(
                &shard.name,
                format!("`split.no` is {number} of {of}, expected {index} of {count}"),
            ));
        }
    }
    let tensors: usize = shards.iter().map(|shard| shard.file.tensors().len()).sum();
    match shards[0].file.metadata().size("split.tensors.count")? {
        Some(expected) if expected != tensors => {
            Err(wrong(&shards[0].name, format!("all parts have {tensors} tensors, expected {expected}")))
        }
        _ => Ok(shards),
    }
}

/// Derives the names of all shards from one of them.
fn shard_names(name: &str, count: usize) -> Option<Vec<String>> {
    let stem = shard_stem(name, count)?;
    Some((1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}.gguf")).collect())
}

/// Returns `NAME` of `NAME-00002-of-00003.gguf`.
fn shard_stem(name: &str, count: usize) -> Option<&str> {
    let stem = name.strip_suffix(".gguf")?.strip_suffix(&format!("-of-{count:05}"))?;
    let (stem, number) = stem.rsplit_once('-')?;
    (number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(stem)
}

/// Returns true if a file of this name is a shard after the first.
pub fn is_later_shard(name: &str) -> bool {
    let parse = || {
        let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (_, number) = rest.rsplit_once('-')?;
        Some((number.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    parse().is_some_and(|(number, _)| number > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_by_number() {
        let names = shard_names("m-q4-00002-of-00002.gguf", 2).unwrap();
        assert_eq!(names, ["m-q4-00001-of-00002.gguf", "m-q4-00002-of-00002.gguf"]);
        for name in ["m.gguf", "m-2-of-00002.gguf", "m-00002-of-00003.gguf", "m-00002-of-00002"] {
            assert_eq!(shard_names(name, 2), None, "{name}");
        }
        assert!(is_later_shard("m-00002-of-00002.gguf"));
        assert!(!is_later_shard("m-00001-of-00002.gguf") && !is_later_shard("one-of-us.gguf"));
    }
}
