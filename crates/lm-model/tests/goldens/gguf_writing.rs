//! GGUF files written from the tiny checkpoints, compared with the files of llama.cpp's converter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use lm_formats::{FileBytes, GgufFile, GgufMetadata, GgufTensor, GgufValueType, parse_json};
use lm_model::{ALL_ARCHITECTURES, ModelFolder, WeightFormat};
use lm_tokenizer::TokenId;
use serde_json::{Map, Value, json};

use crate::goldens::gguf::{difference, load, logits};
use crate::goldens::root;

/// Keys of llama.cpp's files that differ in ours, and why; the empty name applies to any checkpoint.
///
/// - `general.name`: theirs is in title case, ours is the folder's name; `general.size_label`, `basename` and
///   `finetune`, parts of file names, are theirs alone.
/// - `tokenizer.ggml.token_type`: theirs treats any added token in `<|…|>` as a control token, ours those
///   that the tokenizer marks as special.
/// - `tokenizer.ggml.tokens`: with Cohere, Cohere 2, Gemma, Gemma 2 and 3n, and OLMoE, transformers adds the
///   special tokens of its own tokenizer class; with Gemma 3 the converter omits embedding rows without a
///   token; ours pads them as for other models.
/// - Falcon: theirs have a context of 2,048 tokens, which the config does not say.
/// - Granite 4, Nemotron-H: where there are no positions, theirs have a context of 2^20 tokens and the width
///   of a rotation.
/// - Hunyuan: theirs have the `eod_token_id` of the config class, which the checkpoint leaves out.
/// - Qwen 3.5 and Qwen3-Next: theirs have the multi-token-prediction layer, and an interval over which
///   `recurrent_layers` takes precedence.
const THEIRS: &[(&str, &str)] = &[
    ("", "general.basename"),
    ("", "general.finetune"),
    ("", "general.name"),
    ("", "general.size_label"),
    ("", "split.count"),
    ("", "split.no"),
    ("", "split.tensors.count"),
    ("", "tokenizer.ggml.token_type"),
    ("cohere-tiny", "tokenizer.ggml.tokens"),
    ("cohere-tiny-bias", "tokenizer.ggml.tokens"),
    ("cohere-tiny-norms", "tokenizer.ggml.tokens"),
    ("cohere2-tiny", "tokenizer.ggml.tokens"),
    ("falcon-tiny", "falcon.context_length"),
    ("falcon-tiny-groups", "falcon.context_length"),
    ("gemma-tiny", "tokenizer.ggml.tokens"),
    ("gemma2-tiny", "tokenizer.ggml.tokens"),
    ("gemma3-tiny", "tokenizer.ggml.tokens"),
    ("gemma3n-tiny", "gemma3n.activation_sparsity_scale"),
    ("gemma3n-tiny", "tokenizer.ggml.tokens"),
    ("gemma4-tiny", "tokenizer.ggml.tokens"),
    ("gemma4-tiny-experts", "tokenizer.ggml.tokens"),
    ("gemma4-tiny-keys", "tokenizer.ggml.tokens"),
    ("granite-hybrid-tiny", "granitehybrid.context_length"),
    ("granite-hybrid-tiny", "granitehybrid.rope.dimension_count"),
    ("granite-hybrid-tiny-experts", "granitehybrid.context_length"),
    ("granite-hybrid-tiny-experts", "granitehybrid.rope.dimension_count"),
    ("hunyuan-v1-dense-tiny", "tokenizer.ggml.eos_token_id"),
    ("hunyuan-v1-dense-tiny", "tokenizer.ggml.eot_token_id"),
    ("olmoe-tiny", "tokenizer.ggml.tokens"),
    ("qwen3-next-tiny", "qwen3next.full_attention_interval"),
    ("nemotron-h-tiny", "nemotron_h.context_length"),
    ("nemotron-h-tiny", "nemotron_h.rope.dimension_count"),
    ("qwen3_5-tiny-vision", "qwen35.attention.recurrent_layers"),
    ("qwen3_5-tiny-vision", "qwen35.block_count"),
    ("qwen3_5-tiny-vision", "qwen35.full_attention_interval"),
    ("qwen3_5-tiny-vision", "qwen35.nextn_predict_layers"),
];
/// Tensors of llama.cpp's files that differ in ours, and why.
///
/// - `rope_freqs`: theirs are computed in 32 bits, and compared within [`ROUNDING`].
/// - `altup_router`: ours stays F32 like the other small matrices of Gemma 3n that are not quantised.
/// - `token_embd`, `per_layer_token_embd` of Gemma: theirs omit, or add, rows without a token.
/// - `output` of the Gemma 4 with experts: theirs omits a separate head, as no published Gemma has one.
/// - `exp_probs_b` of the ERNIE 4.5 with experts: theirs is a matrix of one row.
/// - `blk.2` of the Qwen 3.5: the multi-token-prediction layer.
const THEIR_TENSORS: &[(&str, &str)] = &[
    ("ernie4_5-moe-tiny", "exp_probs_b.bias"),
    ("gemma3-tiny", "token_embd.weight"),
    ("gemma3n-tiny", "altup_router.weight"),
    ("gemma3n-tiny", "per_layer_token_embd.weight"),
    ("gemma4-tiny", "token_embd.weight"),
    ("gemma4-tiny-experts", "output.weight"),
    ("gemma4-tiny-experts", "token_embd.weight"),
    ("gemma4-tiny-keys", "token_embd.weight"),
    ("qwen3_5-tiny-vision", "blk.2."),
];
/// Keys of ours that theirs have for some architectures only, without the architecture prefix: they contain
/// the default, or a value that llama.cpp derives from the name of the pre-tokenizer (`add_bos_token`).
/// Theirs have one end-of-sequence id (`eos_token_id`), ours all. Where Gemma 4's `final_logit_softcapping`
/// is missing, llama.cpp takes 30.
const OURS: &[&str] = &[
    "attention.key_length",
    "attention.value_length",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.eot_token_id",
    "vocab_size",
];
/// Divisors of Llama 3's frequencies.
const ROPE_FREQS: &str = "rope_freqs.weight";
/// Tolerance of logits where frequencies are rounded to 32 bits.
const LOGITS: f32 = 2e-5;
/// Relative tolerance of the divisors.
const ROUNDING: f32 = 1e-6;
/// Settings without a GGUF key: files imply the values of all published checkpoints.
const IMPLIED: &[(&str, &str)] = &[
    ("falcon-tiny-groups", r#"{"rope_theta": 10000.0}"#),
    ("gemma2-tiny", r#"{"query_pre_attn_scalar": 16, "rope_theta": 10000.0}"#),
    ("gemma3-tiny", r#"{"query_pre_attn_scalar": 16, "sliding_window_pattern": 6}"#),
    ("gpt-oss-tiny", r#"{"swiglu_limit": 7.0}"#),
    (
        "gpt-oss-tiny-bf16",
        r#"{
            "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0,
                "truncate": false, "original_max_position_embeddings": 32
            }
        }"#,
    ),
    ("olmoe-tiny", r#"{"rms_norm_eps": 1e-5}"#),
    ("qwen2-tiny-yarn", r#"{"use_sliding_window": false}"#),
    ("starcoder2-tiny", r#"{"sliding_window": null}"#),
];

/// Checkpoints that are read and not written: Bamba, whose files are read as Granite 4, the head order of a
/// delta net with more value heads than key heads, the parameters of xIELU, which files have among their
/// settings.
const REFUSED: &[&str] = &["apertus-tiny-bias", "bamba-tiny", "qwen3_5-moe-tiny", "qwen3_5-tiny"];

/// A file, or its shards.
struct Gguf {
    metadata: GgufMetadata,
    tensors: BTreeMap<String, (GgufTensor, Vec<u8>)>,
}

impl Gguf {
    fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let (mut metadata, mut tensors) = (None, BTreeMap::new());
        for path in paths {
            let bytes = fs::read(path)?;
            let file = GgufFile::read("file", FileBytes::Owned(bytes.clone().into()))?;
            let with_bytes = |tensor: &GgufTensor| {
                (tensor.name.clone(), (tensor.clone(), bytes[tensor.range.clone()].to_vec()))
            };
            tensors.extend(file.tensors().iter().map(with_bytes));
            metadata.get_or_insert(file.metadata().clone());
        }
        Ok(Self { metadata: metadata.context("no file")?, tensors })
    }

    /// Formats a value with its type.
    fn value(&self, key: &str) -> anyhow::Result<String> {
        let ty = self.metadata.keys().find(|entry| entry.0 == key).map(|entry| entry.1);
        let metadata = &self.metadata;
        Ok(match ty {
            Some(GgufValueType::Array) => {
                match (metadata.strings(key), metadata.ints(key), metadata.floats(key)) {
                    (Ok(Some(texts)), _, _) => format!("{:?}", texts.collect::<Result<Vec<_>, _>>()?),
                    (_, Ok(Some(ints)), _) => format!("{ints:?}"),
                    (_, _, Ok(floats)) => format!("{floats:?}"),
                    _ => metadata.bools(key).map(|bools| format!("{bools:?}"))?,
                }
            }
            Some(GgufValueType::String) => format!("{:?}", metadata.str(key)?),
            ty => format!("{ty:?} {:?}", metadata.value(key)?),
        })
    }

    fn keys(&self) -> BTreeSet<String> {
        self.metadata.keys().map(|(key, _)| key.to_owned()).collect()
    }
}

fn checkpoint(name: &str) -> PathBuf {
    root().join("testdata/models").join(name)
}

/// Writes a checkpoint, with some settings changed, to a file in the folder.
fn convert(name: &str, changes: &str, format: WeightFormat, out: &Path) -> anyhow::Result<PathBuf> {
    let copy = out.join(name);
    fs::create_dir(&copy)?;
    for entry in checkpoint(name).read_dir()? {
        let entry = entry?;
        fs::copy(entry.path(), copy.join(entry.file_name()))?;
    }
    let mut config: Map<String, Value> = parse_json("config.json", &fs::read(copy.join("config.json"))?)?;
    config.extend(serde_json::from_str::<Map<String, Value>>(changes)?);
    fs::write(copy.join("config.json"), json!(config).to_string())?;
    let path = out.join(format!("{name}-{format}.gguf"));
    ModelFolder::open(&copy)?.convert_to_gguf(&path, format, &mut |_| {})?;
    Ok(path)
}

/// Files in testdata/gguf: checkpoint, format, paths of all shards.
fn files_of_llama_cpp() -> anyhow::Result<Vec<(String, WeightFormat, Vec<PathBuf>)>> {
    let mut files: BTreeMap<(String, String), Vec<PathBuf>> = BTreeMap::new();
    for entry in root().join("testdata/gguf").read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A word after the format marks other settings, or omitted keys: such files are for reading only.
        let Some(stem) = name.strip_suffix(".gguf").filter(|stem| !stem.contains('.')) else { continue };
        let stem = stem.split_once("-00").map_or(stem, |(stem, _)| stem);
        if let Some((checkpoint, format)) = stem.rsplit_once('-') {
            files.entry((checkpoint.to_owned(), format.to_owned())).or_default().push(path);
        }
    }
    let parse =
        |((checkpoint, format), paths): ((String, String), _)| Ok((checkpoint, format.parse()?, paths));
    files.into_iter().map(parse).collect()
}

/// Compares the tensors' names, types, shapes and bytes, and the keys, types and values of the metadata.
#[test]
fn files_equal_llama_cpp() -> anyhow::Result<()> {
    let out = tempfile::tempdir()?;
    let mut differ = Vec::new();
    let files = files_of_llama_cpp()?;
    ensure!(files.len() >= 14, "{} files", files.len());
    for (name, format, paths) in files {
        let changes = IMPLIED.iter().find(|row| row.0 == name).map_or("{}", |row| row.1);
        let folder = out.path().join(format!("{name}-{format}"));
        fs::create_dir(&folder)?;
        match convert(&name, changes, format, &folder) {
            Ok(path) => compare(&name, &Gguf::read(&[path])?, &Gguf::read(&paths)?, &mut |what| {
                differ.push(format!("{name} {format}: {what}"));
            })?,
            Err(_) if REFUSED.contains(&name.as_str()) => {}
            Err(error) => differ.push(format!("{name} {format}: {error:#}")),
        }
    }
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    Ok(())
}

/// Returns true if 32-bit floats are equal within the tolerance.
fn close(a: &[u8], b: &[u8]) -> bool {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let (a, b) = (floats(a), floats(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= ROUNDING * b.abs())
}

fn compare(
    checkpoint: &str,
    ours: &Gguf,
    theirs: &Gguf,
    differ: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let architecture = theirs.metadata.architecture()?;
    let known =
        |key: &str| THEIRS.iter().any(|row| row.1 == key && (row.0.is_empty() || row.0 == checkpoint));
    for key in theirs.keys().iter().filter(|key| !known(key)) {
        if !ours.metadata.contains(key) {
            differ(format!("{key} is missing"));
        } else if ours.value(key)? != theirs.value(key)? {
            differ(format!("{key} is {:.100}, not {:.100}", ours.value(key)?, theirs.value(key)?));
        }
    }
    for key in ours.keys().difference(&theirs.keys()) {
        let own = key.strip_prefix(&format!("{architecture}.")).unwrap_or(key);
        if !OURS.contains(&own) {
            differ(format!("{key} is ours alone"));
        }
    }
    for (name, (tensor, bytes)) in &theirs.tensors {
        let Some((own, own_bytes)) = ours.tensors.get(name) else {
            if THEIR_TENSORS.iter().any(|row| row.0 == checkpoint && name.starts_with(row.1)) {
                continue;
            }
            differ(format!("tensor {name} is missing"));
            continue;
        };
        let rows_alike = own_bytes.starts_with(bytes) || bytes.starts_with(own_bytes);
        let known = THEIR_TENSORS.iter().any(|row| row.0 == checkpoint && name.contains(row.1));
        if name == ROPE_FREQS && close(own_bytes, bytes) || known && (rows_alike || own.ty != tensor.ty) {
            continue;
        }
        if (own.ty, &own.shape) != (tensor.ty, &tensor.shape) {
            differ(format!("{name} is {} {:?}, not {} {:?}", own.ty, own.shape, tensor.ty, tensor.shape));
        } else if own_bytes != bytes {
            let at = own_bytes.iter().zip(bytes).position(|(a, b)| a != b);
            differ(format!("{name}: byte {at:?} of {} differs", bytes.len()));
        }
    }
    let known = |name: &str| THEIR_TENSORS.contains(&(checkpoint, name));
    for name in ours.tensors.keys().filter(|name| !theirs.tensors.contains_key(*name) && !known(name)) {
        differ(format!("tensor {name} is ours alone"));
    }
    Ok(())
}

/// Checkpoints with settings that files cannot represent, and which: the tiny ones have values that no
/// published one of the architecture has.
const REFUSED_SETTINGS: &[(&str, &str)] = &[
    ("apertus-tiny", "tensor model.layers.0.mlp.act_fn.alpha_p"),
    ("apertus-tiny-bias", "tensor model.layers.0.mlp.act_fn.alpha_p"),
    ("apertus-tiny-relu2", "`xielu.alpha_p` is absent"),
    ("cohere-tiny-yarn", "layer 0, activation is Gelu;"),
    ("cohere2-tiny-bias", "layer 0, bias is Present;"),
    ("cohere2-tiny-list", "layer 0, window is Full;"),
    ("deepseek-v3-tiny", "attention_factor is 1.037"),
    ("deepseek-v3-tiny-halves", "pairing is HalfSplit"),
    ("ernie4_5-tiny-yarn", "layer 0, activation is Relu;"),
    ("exaone4-tiny-list", "layer 0, activation is Gelu;"),
    ("falcon-tiny-one-norm", "layer 0, activation is Fixed(Relu);"),
    ("falcon-tiny-serial", "layer 0, activation is Fixed(GeluTanh);"),
    ("gemma-tiny-bias", "layer 0, activation is Relu;"),
    ("gpt2-tiny-by-layer", "layer 0, activation is Fixed(Relu);"),
    ("gpt2-tiny-unscaled", "layer 0, scale is 1.0;"),
    ("phi-tiny-norms", "tensor model.layers.0.self_attn.q_layernorm.bias"),
    ("ernie4_5-moe-tiny-some", "layer 1, norm is SumAtLeast(0.6);"),
    ("bamba-tiny", "`model_type` is bamba"),
    ("bamba-tiny-bias", "`model_type` is bamba"),
    ("bamba-tiny-groups", "`model_type` is bamba"),
    ("gemma2-tiny", "layer 0, scale is 0.20412414"),
    ("gemma2-tiny-erf", "layer 0, scale is 0.2236068"),
    ("gemma2-tiny-plain", "logit_soft_cap is None"),
    ("gemma3-tiny", "layer 0, scale is 0.20412414"),
    ("gemma3-tiny-vision", "layer 0, rope is Some(1)"),
    ("gemma3-tiny-yarn", "layer 0, scale is 0.18257418"),
    ("gemma3n-tiny-nested", "streams, correction_scale is Unused"),
    ("glm-tiny", "`model_type` is glm"),
    ("glm-tiny-plain", "`model_type` is glm"),
    ("glm-tiny-whole", "`model_type` is glm"),
    ("glm4-moe-lite-tiny-types", "layer 1, mlp is Gated"),
    ("glm4-tiny-whole", "layer 0, activation is GeluTanh;"),
    ("gpt-oss-tiny", "layer 0, limit is 1.5;"),
    ("gpt-oss-tiny-bf16", "layer 0, alpha is 1.3;"),
    ("gpt-oss-tiny-odd", "layer 0, window is Full"),
    ("granite-tiny-relu", "layer 0, activation is Relu;"),
    ("hunyuan-v1-dense-tiny-dynamic", "context_len is 120;"),
    ("lfm2-tiny-bias", "layer 1, bias is Present;"),
    ("lfm2-tiny-short", "layer 0, bias is Present;"),
    ("lfm2-moe-tiny-all", "layer 0, norm is None;"),
    ("llama-tiny-dynamic", "context_len is 120;"),
    ("llama-tiny-relu2", "layer 0, activation is ReluSquared;"),
    ("llama-tiny-vision", "layer 0, activation is GeluTanh;"),
    ("ministral3-tiny-window", "layer 0, window is Sliding(11)"),
    ("mistral-tiny", "layer 0, window is Sliding(9)"),
    ("mistral-tiny-quick", "layer 0, window is Sliding(21)"),
    ("mistral-tiny-vision", "layer 0, activation is GeluTanh;"),
    ("mixtral-tiny-one", "layer 0, activation is Gelu;"),
    ("mixtral-tiny-window", "layer 0, window is Sliding(12)"),
    ("nemotron-h-tiny-bias", "layer 0, activation is Fixed(Silu);"),
    ("olmo2-tiny-yarn", "layer 0, activation is Gelu;"),
    ("olmoe-tiny-bias", "layer 0, activation is Relu;"),
    ("qwen2-moe-tiny-mixed", "layer 0, window is Sliding(9)"),
    ("qwen2-moe-tiny-one", "layer 0, activation is Gelu;"),
    ("phi-tiny-gqa", "layer 0, activation is Fixed(Relu);"),
    ("phi-tiny-whole", "layer 0, activation is Fixed(Gelu);"),
    ("qwen2-tiny-list", "layer 0, window is Sliding(12)"),
    ("qwen2-tiny-yarn", "layer 2, window is Sliding(7)"),
    ("qwen3-moe-tiny-mixed", "layer 0, window is Sliding(9)"),
    ("qwen3-moe-tiny-odd", "layer 0, mlp is Gated"),
    ("qwen3-next-tiny-mixed", "layer 0, norm is None;"),
    ("qwen3-tiny-window", "layer 1, window is Sliding(5)"),
    ("qwen3_5-moe-tiny", "layer 0, order is Grouped;"),
    ("qwen3_5-tiny", "layer 0, order is Grouped;"),
    ("seed-oss-tiny-yarn", "layer 0, activation is Relu;"),
    ("smollm3-tiny-list", "layer 0, rope is None;"),
    ("smollm3-tiny-window", "layer 1, window is Sliding(6)"),
    ("stablelm-tiny-whole", "layer 0, activation is Gelu;"),
    ("starcoder2-tiny", "layer 0, window is Sliding(19)"),
    ("starcoder2-tiny-relu2", "layer 0, activation is Fixed(ReluSquared);"),
];

/// The files represent the model: the same logits in 32 bits.
#[test]
fn written_files_equal_their_folders() -> anyhow::Result<()> {
    let out = tempfile::tempdir()?;
    let prompt: Vec<TokenId> = (0..40).map(|i| i * 37 % 284).collect();
    let mut differ = Vec::new();
    for name in ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.goldens) {
        let rejected = REFUSED_SETTINGS.iter().find(|row| row.0 == *name).map(|row| row.1);
        match (convert(name, "{}", WeightFormat::F32, out.path()), rejected) {
            (Ok(path), None) => {
                let [folder, file] =
                    [checkpoint(name), path].map(|path| load(&path, Some(WeightFormat::F32)));
                let difference = difference(&logits(&*file?, &prompt)?, &logits(&*folder?, &prompt)?);
                println!("{name}: {difference:e}");
                if difference > LOGITS {
                    differ.push(format!("{name}: logits differ by {difference:e}"));
                }
            }
            (Err(error), Some(what)) if format!("{error:#}").contains(what) => {}
            (Err(error), _) => differ.push(format!("{name}: {error:#}")),
            (Ok(_), Some(what)) => differ.push(format!("{name}: {what} is written")),
        }
    }
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    Ok(())
}
