//! Selection of a model's files in a repository.

use std::collections::BTreeMap;

use crate::{Error, ModelName, RepoPath, Result};

/// Names of the files that a model is read from, besides its weights.
const TEXTS: [&str; 13] = [
    "adapter_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "config_sentence_transformers.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "modules.json",
    "quantize_config.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
];
/// Folder of additional chat templates.
const TEMPLATES: &str = "additional_chat_templates";
/// Formats of an `mmproj` file in the order of preference: towers run in bf16.
const PROJECTOR_FORMATS: [&str; 4] = ["BF16", "F16", "Q8_0", "F32"];
/// Prefixes of licence files.
const TERMS: [&str; 4] = ["LICENCE", "LICENSE", "NOTICE", "USE_POLICY"];

/// A GGUF model in a repository: a file, or all parts of a split one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufChoice {
    /// The file, or the first part.
    pub file: RepoPath,
    /// All files in order, including the first one.
    pub parts: Vec<RepoPath>,
}

/// The weights of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// `model.safetensors`, its shards, or an adapter's.
    Safetensors(Vec<RepoPath>),
    Gguf(GgufChoice),
}

impl Weights {
    /// Selects the weights among `files` that `name` refers to.
    pub(crate) fn select(name: &ModelName, files: &[RepoPath]) -> Result<Self> {
        let choices = gguf_choices(files);
        if let Some(wanted) = &name.file {
            let mut meant: Vec<_> = choices.iter().filter(|choice| choice.is(wanted)).cloned().collect();
            return match (meant.pop(), meant.is_empty()) {
                (Some(only), true) => Ok(Self::Gguf(only)),
                _ => {
                    let name = name.repo.to_string();
                    Err(Error::NoSuchFile { name, wanted: wanted.clone(), choices })
                }
            };
        }
        let tensors: Vec<_> = files.iter().filter(|path| is_model_safetensors(path)).cloned().collect();
        match (tensors.is_empty(), choices.as_slice()) {
            (false, _) => Ok(Self::Safetensors(tensors)),
            (true, [only]) => Ok(Self::Gguf(only.clone())),
            (true, []) => Err(Error::NoWeights { repo: name.repo.to_string() }),
            (true, _) => Err(Error::SeveralModels { name: name.repo.to_string(), choices }),
        }
    }

    /// The weights and all files that belong to them.
    pub(crate) fn with_texts(&self, files: &[RepoPath]) -> Vec<RepoPath> {
        let (mut chosen, needs_config) = match self {
            Self::Safetensors(files) => (files.clone(), true),
            Self::Gguf(choice) => {
                (choice.parts.iter().chain(choice.projector(files)).cloned().collect(), false)
            }
        };
        // A GGUF file contains configuration, vocabulary and chat template itself.
        let belongs = |path: &&RepoPath| is_card_or_terms(path) || (needs_config && is_text(path));
        chosen.extend(files.iter().filter(belongs).cloned());
        chosen
    }
}

impl GgufChoice {
    /// The vision tower (`mmproj`) beside the model; of several, the one in the preferred format.
    fn projector<'a>(&self, files: &'a [RepoPath]) -> Option<&'a RepoPath> {
        let beside = files.iter().filter(|path| path.is_projector() && path.folder() == self.file.folder());
        beside.min_by_key(|path| {
            PROJECTOR_FORMATS
                .iter()
                .position(|format| ends_with_word(stem(path), format))
                .unwrap_or(usize::MAX)
        })
    }

    /// Returns true if `wanted` matches this model: its path, its file name, or the end of its name.
    fn is(&self, wanted: &str) -> bool {
        if self.parts.iter().any(|part| [part.as_str(), part.file_name()].contains(&wanted)) {
            return true;
        }
        let stem = split_part(&self.file).map_or_else(|| stem(&self.file), |(stem, ..)| stem);
        ends_with_word(stem.rsplit('/').next().unwrap_or(stem), wanted)
    }
}

/// Returns true if a name ends with a word, in capitals or not: `m-Q4_K_M` with `q4_k_m`.
fn ends_with_word(name: &str, word: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let rest = name.strip_suffix(&word.to_ascii_lowercase());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['-', '.', '_']))
}

/// Lists the complete GGUF models among `files`, sorted by path. Multimodal projectors (`mmproj`) and
/// importance matrices (`imatrix`) are not models.
pub(crate) fn gguf_choices(files: &[RepoPath]) -> Vec<GgufChoice> {
    let mut choices = Vec::new();
    let mut split: BTreeMap<(&str, usize), BTreeMap<usize, &RepoPath>> = BTreeMap::new();
    for path in files.iter().filter(|path| is_gguf(path)) {
        match split_part(path) {
            Some((stem, index, count)) => {
                split.entry((stem, count)).or_default().insert(index, path);
            }
            None => choices.push(GgufChoice { file: path.clone(), parts: vec![path.clone()] }),
        }
    }
    for ((_, count), parts) in split {
        if parts.len() == count && parts.keys().copied().eq(1..=count) {
            let parts: Vec<_> = parts.into_values().cloned().collect();
            choices.push(GgufChoice { file: parts[0].clone(), parts });
        }
    }
    choices.sort_by(|a, b| a.file.cmp(&b.file));
    choices
}

fn is_gguf(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    name.ends_with(".gguf") && !path.is_projector() && !name.contains("imatrix")
}

fn stem(path: &RepoPath) -> &str {
    path.as_str().rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem)
}

/// Parses `STEM-00002-of-00005.gguf`: the stem, the part's number and the number of parts.
fn split_part(path: &RepoPath) -> Option<(&str, usize, usize)> {
    let (rest, count) = stem(path).rsplit_once("-of-")?;
    let (stem, index) = rest.rsplit_once('-')?;
    let number = |digits: &str| {
        let five = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
        five.then(|| digits.parse().ok()).flatten()
    };
    Some((stem, number(index)?, number(count)?))
}

/// Returns true for the names of loadable weights, not for copies in other formats besides them.
fn is_model_safetensors(path: &RepoPath) -> bool {
    let name = path.as_str();
    if ["model.safetensors", "adapter_model.safetensors"].contains(&name) {
        return true;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let shard = name.strip_prefix("model-").and_then(|name| name.strip_suffix(".safetensors"));
    shard
        .and_then(|numbers| numbers.split_once("-of-"))
        .is_some_and(|(index, count)| is_number(index) && is_number(count))
}

fn is_text(path: &RepoPath) -> bool {
    TEXTS.contains(&path.as_str())
        || (path.folder() == TEMPLATES && path.file_name().ends_with(".jinja"))
        || is_of_module(path)
}

/// Returns true for a file of a module of sentence-transformers: `1_Pooling/config.json`.
fn is_of_module(path: &RepoPath) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_module = path.folder().split_once('_').is_some_and(|(index, name)| {
        is_number(index) && !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    is_module && ["config.json", "model.safetensors"].contains(&path.file_name())
}

fn is_card_or_terms(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_uppercase();
    path.folder().is_empty() && (name == "README.MD" || TERMS.iter().any(|terms| name.starts_with(terms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> Vec<RepoPath> {
        texts.iter().map(|text| RepoPath::parse(text).expect(text)).collect()
    }

    fn select(name: &str, files: &[&str]) -> Result<Vec<String>> {
        let files = paths(files);
        let weights = Weights::select(&name.parse()?, &files)?;
        let mut chosen: Vec<_> = weights.with_texts(&files).iter().map(RepoPath::to_string).collect();
        chosen.sort();
        Ok(chosen)
    }

    const SAFETENSORS: &[&str] = &[
        ".gitattributes",
        "LICENSE",
        "README.md",
        "additional_chat_templates/rag.jinja",
        "chat_template.jinja",
        "config.json",
        "consolidated.safetensors",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "onnx/model.onnx",
        "original/consolidated.00.pth",
        "original/params.json",
        "pytorch_model.bin",
        "runs/events.out",
        "tokenizer.json",
        "tokenizer.model",
    ];
    const GGUF: &[&str] = &[
        "BF16/m-BF16-00001-of-00002.gguf",
        "BF16/m-BF16-00002-of-00002.gguf",
        "README.md",
        "config.json",
        "m-Q4_K_M.gguf",
        "m-Q4_K_S.gguf",
        "m-Q8_0-00001-of-00003.gguf",
        "mmproj-F16.gguf",
    ];

    #[test]
    fn only_loadable_files_are_selected() {
        assert_eq!(
            select("a/b", SAFETENSORS).expect("a model"),
            [
                "LICENSE",
                "README.md",
                "additional_chat_templates/rag.jinja",
                "chat_template.jinja",
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "tokenizer.json",
            ]
        );
    }

    #[test]
    fn gguf_model_is_chosen_by_path_name_or_quantisation() {
        for (wanted, expected) in [
            ("m-Q4_K_M.gguf", &["README.md", "m-Q4_K_M.gguf", "mmproj-F16.gguf"][..]),
            ("q4_k_m", &["README.md", "m-Q4_K_M.gguf", "mmproj-F16.gguf"]),
            ("BF16", &["BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf", "README.md"]),
            (
                "BF16/m-BF16-00001-of-00002.gguf",
                &["BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf", "README.md"],
            ),
        ] {
            assert_eq!(select(&format!("a/b:{wanted}"), GGUF).expect(wanted), expected, "{wanted}");
        }
        for wanted in ["_M", "Q8_0", "Q4", "mmproj-F16.gguf", "x.gguf"] {
            let error = select(&format!("a/b:{wanted}"), GGUF).expect_err(wanted);
            assert!(matches!(error, Error::NoSuchFile { .. }), "{wanted}: {error}");
        }
    }

    #[test]
    fn ambiguous_choice_is_an_error() {
        match select("a/b", GGUF) {
            Err(Error::SeveralModels { choices, .. }) => assert_eq!(choices.len(), 3),
            other => panic!("{other:?}"),
        }
        assert_eq!(select("a/b", &["x.gguf", "mmproj-x.gguf"]).expect("one"), ["mmproj-x.gguf", "x.gguf"]);
        assert_eq!(select("a/b", &["x.gguf", "x.imatrix.gguf"]).expect("one"), ["x.gguf"]);
        assert!(matches!(select("a/b", &["pytorch_model.bin"]), Err(Error::NoWeights { .. })));
        let tensors = select("a/b", &["x.gguf", "model.safetensors", "config.json"]).expect("tensors");
        assert_eq!(tensors, ["config.json", "model.safetensors"]);
    }

    #[test]
    fn modules_of_sentence_transformers_come_with_the_model() {
        let expected = [
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "config_sentence_transformers.json",
            "model.safetensors",
            "modules.json",
            "sentence_bert_config.json",
        ];
        let others = ["2_Dense/pytorch_model.bin", "onnx/model.safetensors", "1_x/y/config.json"];
        assert_eq!(select("a/b", &[&expected[..], &others].concat()).expect("a model"), expected);
    }

    #[test]
    fn gguf_model_comes_with_one_vision_tower() {
        for (towers, expected) in [
            (&["mmproj-F32.gguf", "mmproj-bf16.gguf", "mmproj-F16.gguf"][..], "mmproj-bf16.gguf"),
            (&["x-mmproj-Q8_0.gguf", "x-mmproj-f16.gguf"], "x-mmproj-f16.gguf"),
            (&["mmproj-a.gguf", "mmproj-Q8_0.gguf"], "mmproj-Q8_0.gguf"),
        ] {
            let files = [towers, &["x.gguf"]].concat();
            assert_eq!(select("a/b", &files).expect("one"), [expected, "x.gguf"]);
        }
        let elsewhere = select("a/b", &["q4/x.gguf", "mmproj-F16.gguf"]).expect("one");
        assert_eq!(elsewhere, ["q4/x.gguf"]);
    }
}
