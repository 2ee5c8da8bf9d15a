//! Pre-tokenizers of byte-level BPE, which split a text before its bytes merge.
//!
//! A GGUF file only has the name of one (`tokenizer.ggml.pre`); the patterns are those of the models'
//! `tokenizer.json`.

use lm_formats::{Error, GgufMetadata, Result};

pub(super) const KEY: &str = "tokenizer.ggml.pre";
/// Name of llama.cpp's behaviour for files without a name.
const DEFAULT: &str = "default";

/// Pre-tokenizer, by its name in files.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    pub(super) name: &'static str,
    /// Regular expressions in Oniguruma's syntax; each splits the pieces of the previous ones: matches and
    /// the gaps between them are pieces.
    pub(super) patterns: &'static [&'static str],
    pub(super) ignore_merges: IgnoreMerges,
    pub(super) verified: Verified,
}

/// BPE option `ignore_merges`: encoding of a piece that is spelled like a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IgnoreMerges {
    /// Result of its merges.
    No,
    /// The token itself, whether or not merges lead to it.
    Yes,
}

/// Reference that a row was verified against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verified {
    /// Ids of a published tokenizer of one of the names, for test texts and random text
    /// (`LM_SHARED/tokenizers`).
    Tokenizer,
    /// Ids of transformers 5.23 for such a GGUF file (`testdata/tokenizers/gguf.json`).
    Transformers,
    /// Ids of llama.cpp (`testdata/tokenizers/llama_cpp.json`).
    LlamaCpp,
    /// No reference: written from llama.cpp's source.
    No,
}

pub(super) const DIGIT: &str = r"\p{N}";
const NUMBERS: &str = r"\p{N}{1,3}";
const LINE_END: &str = r"[\r\n]";
pub(super) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// [`GPT2`] with runs of white space left to the gaps.
const GPT2_GAPS: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const BAILING: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const MINICPM5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SEED_CODER: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3_CJK: &str = "[一-龥\u{3040}-ゟ゠-ヿ]+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const DEEPSEEK_CJK: &str = "[一-龥ࠀ-一가-\u{D7FF}]+";

/// All known pre-tokenizers, by name.
pub(super) const ALL: &[PreTokenizer] = &[
    row("a.x-4.0", &[GPT2], IgnoreMerges::No, Verified::No),
    row("bailingmoe", &[BAILING], IgnoreMerges::No, Verified::No),
    row("bailingmoe2", &[BAILING], IgnoreMerges::No, Verified::No),
    row("chatglm-bpe", &[LLAMA3], IgnoreMerges::No, Verified::No),
    row("codeshell", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("command-r", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("dbrx", &[LLAMA3], IgnoreMerges::No, Verified::Transformers),
    row(
        "deepseek-coder",
        &[LINE_END, r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK, DIGIT],
        IgnoreMerges::No,
        Verified::No,
    ),
    row("deepseek-r1-qwen", &[QWEN2], IgnoreMerges::No, Verified::Transformers),
    row("deepseek-v3", &[NUMBERS, DEEPSEEK3_CJK, DEEPSEEK3], IgnoreMerges::No, Verified::No),
    row(
        DEFAULT,
        &[r"[\p{P}\$\+<=>\^~\|]+", GPT2_GAPS, r"\p{N}+", "[0-9][0-9][0-9]"],
        IgnoreMerges::No,
        Verified::LlamaCpp,
    ),
    row("exaone", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("exaone4", &[GPT2], IgnoreMerges::No, Verified::No),
    row("f2llmv2", &[QWEN2], IgnoreMerges::No, Verified::Transformers),
    row("falcon", &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"], IgnoreMerges::No, Verified::No),
    row("falcon-h1", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("falcon3", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("gigachat", &[GPT2], IgnoreMerges::No, Verified::No),
    row("glm4", &[LLAMA3], IgnoreMerges::Yes, Verified::No),
    row("glm5", &[LLAMA3], IgnoreMerges::Yes, Verified::No),
    row("gpt-2", &[GPT2], IgnoreMerges::No, Verified::Tokenizer),
    row("gpt-4o", &[GPT4O], IgnoreMerges::No, Verified::Transformers),
    row("granite-docling", &[GPT2], IgnoreMerges::No, Verified::No),
    row("grok-2", &[QWEN2], IgnoreMerges::No, Verified::No),
    row("hunyuan", &[QWEN2], IgnoreMerges::No, Verified::No),
    row("hunyuan-dense", &[NUMBERS, DEEPSEEK3_CJK, DEEPSEEK3], IgnoreMerges::No, Verified::No),
    row("hy_v4", &[NUMBERS, DEEPSEEK3_CJK, DEEPSEEK3], IgnoreMerges::No, Verified::No),
    row("jais", &[GPT2], IgnoreMerges::No, Verified::No),
    row("jina-v5-nano", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("joyai-llm", &[NUMBERS, DEEPSEEK3_CJK, DEEPSEEK3], IgnoreMerges::No, Verified::No),
    row("kanana2", &[GPT4O], IgnoreMerges::No, Verified::Transformers),
    row("kormo", &[QWEN2], IgnoreMerges::No, Verified::Transformers),
    row("lfm2", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("llada-moe", &[BAILING], IgnoreMerges::No, Verified::No),
    row("llama-bpe", &[LLAMA3], IgnoreMerges::Yes, Verified::Tokenizer),
    row("llama-v3", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("llama3", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("llama4", &[GPT4O], IgnoreMerges::No, Verified::Transformers),
    row("megrez", &[QWEN2], IgnoreMerges::No, Verified::Transformers),
    row("mellum", &[GPT2], IgnoreMerges::No, Verified::No),
    row("mellum2", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("midm-2.0", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("minerva-7b", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("minicpm5", &[NUMBERS, MINICPM5], IgnoreMerges::Yes, Verified::No),
    row("minimax-m2", &[GPT4O], IgnoreMerges::No, Verified::Transformers),
    row("mpt", &[GPT2], IgnoreMerges::No, Verified::No),
    row("olmo", &[GPT2], IgnoreMerges::No, Verified::No),
    row("phi-2", &[GPT2], IgnoreMerges::No, Verified::No),
    row("pixtral", &[LLAMA3], IgnoreMerges::Yes, Verified::Transformers),
    row("qwen2", &[QWEN2], IgnoreMerges::No, Verified::Tokenizer),
    row("qwen35", &[QWEN35], IgnoreMerges::No, Verified::Transformers),
    row("refact", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("seed-coder", &[SEED_CODER], IgnoreMerges::No, Verified::No),
    row("smaug-bpe", &[LLAMA3], IgnoreMerges::No, Verified::Transformers),
    row("smollm", &[DIGIT, GPT2], IgnoreMerges::No, Verified::Tokenizer),
    row("solar-open", &[QWEN2], IgnoreMerges::No, Verified::No),
    row("stablelm2", &[QWEN2], IgnoreMerges::No, Verified::No),
    row("starcoder", &[DIGIT, GPT2], IgnoreMerges::No, Verified::No),
    row("talkie", &[GPT4O], IgnoreMerges::No, Verified::Transformers),
    row("tekken", &[TEKKEN], IgnoreMerges::Yes, Verified::Transformers),
    row("trillion", &[GPT2], IgnoreMerges::No, Verified::No),
];

const fn row(
    name: &'static str,
    patterns: &'static [&'static str],
    ignore_merges: IgnoreMerges,
    verified: Verified,
) -> PreTokenizer {
    PreTokenizer { name, patterns, ignore_merges, verified }
}

/// Returns the row that a file names, or the default one.
///
/// # Errors
/// When the name is unknown.
pub(super) fn find(metadata: &GgufMetadata) -> Result<&'static PreTokenizer> {
    let name = metadata.str(KEY)?.unwrap_or(DEFAULT);
    if name == DEFAULT {
        let file = metadata.file();
        tracing::warn!(
            file,
            "{KEY} names no pre-tokenizer: the default one may cut other words than the model's own"
        );
    }
    ALL.iter().find(|row| row.name == name).ok_or_else(|| Error::UnsupportedValue {
        file: metadata.file().to_owned(),
        key: KEY.into(),
        value: name.to_owned(),
        known: ALL.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the best verified row with these patterns and this `ignore_merges`; the first of several.
pub(super) fn find_patterns(patterns: &[&str], ignore_merges: IgnoreMerges) -> Option<&'static PreTokenizer> {
    let alike = |row: &&PreTokenizer| row.patterns == patterns && row.ignore_merges == ignore_merges;
    ALL.iter().filter(alike).min_by_key(|row| row.verified)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(verified: Verified) -> Vec<&'static str> {
        ALL.iter().filter(|row| row.verified == verified).map(|row| row.name).collect()
    }

    fn file(path: &str) -> String {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn rows_are_sorted_and_named_once() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
    }

    /// `tests/tokenizers` compares these rows with the ids in this file.
    #[test]
    fn verified_rows_match_transformers_ids() {
        let goldens: serde_json::Value =
            serde_json::from_str(&file("testdata/tokenizers/gguf.json")).unwrap();
        let mut known: Vec<&str> =
            goldens["pre_tokenizers"].as_object().unwrap().keys().map(String::as_str).collect();
        // These rows are verified by published tokenizers.
        known.retain(|name| !names(Verified::Tokenizer).contains(name));
        known.sort_unstable();
        assert_eq!(names(Verified::Transformers), known);
    }

    #[test]
    fn unverified_rows_are_documented() {
        let listed = names(Verified::No).join("`, `");
        assert!(
            file("docs/compatibility.md").replace('\n', " ").contains(&format!("`{listed}`")),
            "`{listed}`"
        );
    }
}
