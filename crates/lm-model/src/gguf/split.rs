//! Models split into shards: `NAME-00001-of-00003.gguf`.

use super::model::Part;
use super::{GgufMetadata, GgufProblem};
use crate::model_folder::ModelFiles;
use crate::{Error, Result};

/// Maximum number of shards.
const MAX_PARTS: usize = 1024;

/// Returns all shards of a file's model, in order; the file alone if it is not split.
pub(super) fn all_parts(files: &dyn ModelFiles, given: Part) -> Result<Vec<Part>> {
    let count = given.file.metadata().size("split.count")?.unwrap_or(1);
    if count <= 1 {
        return Ok(vec![given]);
    }
    let wrong = |name: &str, reason: String| Error::Gguf {
        file: name.to_owned(),
        problem: GgufProblem::Split { reason },
    };
    if count > MAX_PARTS {
        return Err(wrong(&given.name, format!("it is one of {count}, at most {MAX_PARTS} are read")));
    }
    let names = part_names(&given.name, count).ok_or_else(|| {
        wrong(&given.name, format!("it is one of {count}, and is not called NAME-00001-of-{count:05}.gguf"))
    })?;
    let mut parts = Vec::new();
    for name in names {
        parts.push(Part::read(files, &name)?);
    }
    for (index, part) in parts.iter().enumerate() {
        let metadata = part.file.metadata();
        let number = metadata.required("split.no", GgufMetadata::size)?;
        let of = metadata.required("split.count", GgufMetadata::size)?;
        if (number, of) != (index, count) {
            return Err(wrong(
                &part.name,
                format!("it says it is number {number} (from 0) of {of}, expected {index} of {count}"),
            ));
        }
    }
    let tensors: usize = parts.iter().map(|part| part.file.tensors().len()).sum();
    match parts[0].file.metadata().size("split.tensors.count")? {
        Some(expected) if expected != tensors => {
            Err(wrong(&parts[0].name, format!("all parts have {tensors} tensors, expected {expected}")))
        }
        _ => Ok(parts),
    }
}

/// Derives the names of all shards from one of them.
fn part_names(name: &str, count: usize) -> Option<Vec<String>> {
    let stem = part_stem(name, count)?;
    Some((1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}.gguf")).collect())
}

/// Returns `NAME` of `NAME-00002-of-00003.gguf`.
fn part_stem(name: &str, count: usize) -> Option<&str> {
    let stem = name.strip_suffix(".gguf")?.strip_suffix(&format!("-of-{count:05}"))?;
    let (stem, number) = stem.rsplit_once('-')?;
    (number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(stem)
}

/// Returns true if a file of this name is a shard other than the first.
pub(crate) fn is_later_part(name: &str) -> bool {
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
    fn parts_are_named_by_number() {
        let names = part_names("m-q4-00002-of-00002.gguf", 2).unwrap();
        assert_eq!(names, ["m-q4-00001-of-00002.gguf", "m-q4-00002-of-00002.gguf"]);
        for name in ["m.gguf", "m-2-of-00002.gguf", "m-00002-of-00003.gguf", "m-00002-of-00002"] {
            assert_eq!(part_names(name, 2), None, "{name}");
        }
        assert!(is_later_part("m-00002-of-00002.gguf"));
        assert!(!is_later_part("m-00001-of-00002.gguf") && !is_later_part("one-of-us.gguf"));
    }
}
