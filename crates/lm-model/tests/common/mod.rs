//! Tiny random models as folders, and the loop over devices.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lm_model::{
    Batch, CacheGroup, CausalLm, Device, KvDtype, KvPool, LoadOptions, LoadedModel, LogitRows, ModelFolder,
    SequenceInput,
};
use lm_tokenizer::TokenId;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Vocabulary size of a tiny model.
pub const VOCAB: usize = 96;

/// Model folder to write: change a part, then write it.
#[derive(Clone)]
pub struct TinyModel {
    pub config: Value,
    pub tensors: BTreeMap<String, Tensor>,
    pub dtype: Dtype,
}

#[derive(Clone)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

impl TinyModel {
    /// Qwen3 with GQA, sliding windows on its upper layers, tied embeddings, and a `head_dim` other than
    /// hidden / heads.
    pub fn qwen3() -> Self {
        Self::from_config(json!({
            "model_type": "qwen3", "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
            "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
            "tie_word_embeddings": true, "attention_bias": false, "use_sliding_window": true, "sliding_window": 7,
            "max_window_layers": 1, "eos_token_id": 3,
        }))
    }

    /// Llama with biases, a separate head, Llama 3 scaling, keys as transformers 5 writes them.
    pub fn llama() -> Self {
        Self::from_config(json!({
            "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 40, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 5, "num_key_value_heads": 1,
            "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "hidden_act": "silu",
            "rope_parameters": {
                "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
            },
            "tie_word_embeddings": false, "attention_bias": true, "mlp_bias": true, "eos_token_id": [3, 4],
        }))
    }

    pub fn from_config(config: Value) -> Self {
        let mut random = Random(1);
        let tensors = shapes(&config)
            .into_iter()
            .map(|(name, shape)| {
                let mean = if name.contains("norm") { 1.0 } else { 0.0 };
                let values = (0..shape.iter().product()).map(|_| mean + 0.3 * random.normal()).collect();
                (name, Tensor { shape, values })
            })
            .collect();
        Self { config, tensors, dtype: Dtype::F32 }
    }

    /// Writes config, tokenizer and one safetensors file.
    pub fn write(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        self.write_without_tensors(dir.path());
        self.write_tensors(&dir.path().join("model.safetensors"), |_| true);
        dir
    }

    /// Writes the tensors in two files and their index.
    pub fn write_sharded(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        self.write_without_tensors(dir.path());
        let first = |name: &str| name.contains("layers.0");
        self.write_tensors(&dir.path().join("a.safetensors"), first);
        self.write_tensors(&dir.path().join("b.safetensors"), |name| !first(name));
        let file = |name: &String| if first(name) { "a.safetensors" } else { "b.safetensors" };
        let map: BTreeMap<_, _> = self.tensors.keys().map(|name| (name, file(name))).collect();
        let index = json!({"metadata": {"total_size": 1}, "weight_map": map});
        std::fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
        dir
    }

    pub fn write_without_tensors(&self, dir: &Path) {
        std::fs::write(dir.join("config.json"), self.config.to_string()).unwrap();
        std::fs::write(dir.join("tokenizer.json"), lm_model::testing::tokenizer_json()).unwrap();
    }

    pub fn write_tensors(&self, path: &Path, wanted: impl Fn(&str) -> bool) {
        let bytes: Vec<_> = self
            .tensors
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, tensor)| (name, &tensor.shape, encode(&tensor.values, self.dtype)))
            .collect();
        let views = bytes.iter().map(|(name, shape, bytes)| {
            (name.as_str(), TensorView::new(self.dtype, shape.to_vec(), bytes).unwrap())
        });
        std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
    }
}

fn encode(values: &[f32], dtype: Dtype) -> Vec<u8> {
    match dtype {
        Dtype::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect(),
        Dtype::BF16 => values.iter().flat_map(|v| half::bf16::from_f32(*v).to_le_bytes()).collect(),
        Dtype::F64 => values.iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect(),
        other => panic!("{other} is not written here"),
    }
}

/// Names and shapes as transformers writes them.
fn shapes(config: &Value) -> Vec<(String, Vec<usize>)> {
    let size = |key: &str| config[key].as_u64().map(|v| v as usize);
    let flag = |key: &str| config[key].as_bool().unwrap_or(false);
    let (hidden, inner, heads) =
        (size("hidden_size"), size("intermediate_size"), size("num_attention_heads"));
    let (hidden, inner, heads) = (hidden.unwrap(), inner.unwrap(), heads.unwrap());
    let head_dim = size("head_dim").unwrap_or(hidden / heads);
    let (queries, keys) = (heads * head_dim, size("num_key_value_heads").unwrap_or(heads) * head_dim);
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![size("vocab_size").unwrap(), hidden]),
        ("model.norm.weight".to_owned(), vec![hidden]),
    ];
    if !flag("tie_word_embeddings") {
        shapes.push(("lm_head.weight".to_owned(), vec![size("vocab_size").unwrap(), hidden]));
    }
    for layer in 0..size("num_hidden_layers").unwrap() {
        let mut add = |name: &str, shape: &[usize]| {
            shapes.push((format!("model.layers.{layer}.{name}"), shape.to_vec()))
        };
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            add(&format!("{norm}.weight"), &[hidden]);
        }
        if config["model_type"] == "qwen3" {
            for norm in ["q_norm", "k_norm"] {
                add(&format!("self_attn.{norm}.weight"), &[head_dim]);
            }
        }
        for (name, out, inputs, bias) in [
            ("self_attn.q_proj", queries, hidden, "attention_bias"),
            ("self_attn.k_proj", keys, hidden, "attention_bias"),
            ("self_attn.v_proj", keys, hidden, "attention_bias"),
            ("self_attn.o_proj", hidden, queries, "attention_bias"),
            ("mlp.gate_proj", inner, hidden, "mlp_bias"),
            ("mlp.up_proj", inner, hidden, "mlp_bias"),
            ("mlp.down_proj", hidden, inner, "mlp_bias"),
        ] {
            add(&format!("{name}.weight"), &[out, inputs]);
            if flag(bias) {
                add(&format!("{name}.bias"), &[out]);
            }
        }
    }
    shapes
}

/// A small fixed generator: the tests need numbers without a pattern, not good randomness.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.next() as f32 / (1_u64 << 31) as f32).sum::<f32>() - 6.0
    }

    pub fn ids(&mut self, len: usize) -> Vec<TokenId> {
        (0..len).map(|_| self.below(VOCAB) as TokenId).collect()
    }
}

/// Devices of this build, or those named by `LM_TEST_DEVICES` (`cpu`, `ndarray`, `gpu`, comma-separated). A
/// device that the machine lacks is skipped with a printed line.
pub fn devices() -> Vec<Device> {
    let named = std::env::var("LM_TEST_DEVICES").ok();
    let is_named = |device: &Device| {
        named.as_ref().is_none_or(|names| names.split(',').any(|name| name == device.to_string()))
    };
    let usable = |device: &Device| match device.burn() {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: {device}: {error}");
            false
        }
    };
    Device::available().iter().copied().filter(is_named).filter(usable).collect()
}

/// Returns true if all checkpoints are compared in all ways. Not on a GPU, which may be a driver in software
/// that takes minutes for each, unless `LM_GOLDENS=all`.
pub fn is_thorough(device: Device) -> bool {
    device != Device::Gpu || std::env::var("LM_GOLDENS").is_ok_and(|value| value == "all")
}

/// Number of compared greedy tokens: all if the comparison [is thorough](is_thorough), else the first four.
pub fn first(greedy: &[TokenId], device: Device) -> &[TokenId] {
    if is_thorough(device) { greedy } else { &greedy[..greedy.len().min(4)] }
}

/// Lets one test at a time use a GPU: threads that wait for its queue spin, and a driver in software needs
/// the cores.
pub fn alone(device: Device) -> Option<MutexGuard<'static, ()>> {
    static GPU: Mutex<()> = Mutex::new(());
    (device == Device::Gpu).then(|| GPU.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a test body on each of the [`devices`].
pub fn for_each_device(test: impl Fn(Device)) {
    for device in devices() {
        let _alone = alone(device);
        test(device);
    }
}

/// Runs a test body on the [`devices`] where comparisons [are thorough](is_thorough), for tests of files:
/// other tests compare a GPU's weights.
pub fn for_each_thorough_device(test: impl Fn(Device)) {
    for_each_device(|device| match is_thorough(device) {
        true => test(device),
        false => println!("skipped: {device}: without `LM_GOLDENS=all` it runs what other tests load"),
    });
}

/// Loads with an f32 cache, so that a tolerance covers the arithmetic alone.
pub fn load(dir: &Path, device: Device) -> LoadedModel {
    let options = LoadOptions { device, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    load_with(dir, &options)
}

pub fn load_with(dir: &Path, options: &LoadOptions) -> LoadedModel {
    ModelFolder::open(dir).unwrap().load(options, &mut |_| {}).unwrap()
}

/// Converts inputs made for a cache of one group: a block table for each group of `cache`. Page `p` becomes
/// one page in each, and groups that share a space have separate pages in it.
pub fn for_groups(cache: &KvPool, mut sequences: Vec<SequenceInput>) -> Vec<SequenceInput> {
    let groups = cache.layout().groups();
    let alike =
        |groups: &[CacheGroup], space| groups.iter().filter(|group| group.space == space).count() as u32;
    for sequence in &mut sequences {
        let table = &sequence.block_tables[0];
        let of_group = |group: usize| {
            let space = groups[group].space;
            let (all, before) = (alike(groups, space), alike(&groups[..group], space));
            table.iter().map(|page| page * all + before).collect()
        };
        sequence.block_tables = (0..groups.len()).map(of_group).collect();
    }
    sequences
}

/// Runs one forward pass over inputs made for a cache of one group; returns the logits of each sequence's
/// requested rows.
pub fn forward(
    model: &dyn CausalLm,
    cache: &mut KvPool,
    sequences: Vec<SequenceInput>,
) -> Vec<Vec<Vec<f32>>> {
    let count = sequences.len();
    let sequences = for_groups(cache, sequences);
    let logits = model.forward(&Batch { sequences }, cache).unwrap();
    assert_eq!(logits.num_sequences(), count);
    (0..count).map(|i| logits.sequence(i).rows().map(<[f32]>::to_vec).collect()).collect()
}

/// Logits of every row of `ids`, run at once in a new cache.
pub fn logits_of(model: &dyn CausalLm, ids: &[TokenId]) -> Vec<Vec<f32>> {
    let pages = ids.len().div_ceil(lm_model::PAGE_LEN);
    let mut cache = model.new_cache(pages).unwrap();
    let mut input = SequenceInput::ids(ids, 0, (0..pages as u32).collect::<Vec<_>>());
    input.logits = LogitRows::All;
    forward(model, &mut cache, vec![input]).remove(0)
}

/// Maximum difference of two lists of rows.
pub fn largest_difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len(), "numbers of rows");
    let pairs = a.iter().zip(b).flat_map(|(a, b)| {
        assert_eq!(a.len(), b.len(), "widths");
        a.iter().zip(b)
    });
    // `max` would ignore a NaN.
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, |most, d| if d <= most || most.is_nan() { most } else { d })
}

pub fn assert_close(a: &[Vec<f32>], b: &[Vec<f32>], what: &str) {
    let difference = largest_difference(a, b);
    assert!(difference <= 2e-4, "{what}: logits differ by {difference}");
}

/// Asserts that rows computed in another way are the same: bit-identical on CPU devices, within rounding on a
/// GPU.
pub fn assert_same(model: &dyn CausalLm, a: &[Vec<f32>], b: &[Vec<f32>], what: &str) {
    if model.info().device == Device::Gpu {
        return assert_close(a, b, what);
    }
    assert_eq!(a.len(), b.len(), "{what}: numbers of rows");
    for (row, (a, b)) in a.iter().zip(b).enumerate() {
        let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert!(bits(a) == bits(b), "{what}: the bits of row {row} differ");
    }
}
