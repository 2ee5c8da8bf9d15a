//! Models split into shards: `NAME-00001-of-00003.gguf`.

use super::model::Shard;
use super::{GgufMetadata, GgufProblem};
use crate::model_folder::ModelFiles;
use crate::{Error, Result};

/// Maximum number of shards.
const MAX_SHARDS: usize = 1024;

/// Returns all shards of a file's model, in order; the file alone if it is not split.
pub(super) fn all_shards(files: &dyn ModelFiles, given: Shard) -> Result<Vec<Shard>> {
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
        shards.push(Shard::read(files, &name)?);
    }
    for (index, shard) in shards.iter().enumerate() {
        let metadata = shard.file.metadata();
        let number = metadata.required("split.no", GgufMetadata::size)?;
        let of = metadata.required("split.count", GgufMetadata::size)?;
        if (number, of) != (index, count) {
            return Err(wrong(
                &shard.name,
                format!("it says it is number {number} (from 0) of {of}, expected {index} of {count}"),
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

/// Returns true if a file of this name is a shard other than the first.
pub(crate) fn is_later_shard(name: &str) -> bool {
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
