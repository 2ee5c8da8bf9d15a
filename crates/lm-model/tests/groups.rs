//! Folders of AutoAWQ, GPTQ and compressed-tensors: the weights match the published layouts.

use std::path::{Path, PathBuf};

use crate::common::{assert_close, largest_difference, logits_of};
use lm_model::{KvDtype, LoadOptions, LoadedModel, ModelFolder, WeightFormat};
use lm_tokenizer::TokenId;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

const FOLDERS: [&str; 10] = [
    "awq",
    "ct-float-8",
    "ct-float-8-tensor",
    "ct-int-8",
    "ct-packed-4",
    "ct-packed-4-sym",
    "ct-packed-8",
    "gptq-8",
    "gptq-sym",
    "gptq-v2",
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/groups").join(name)
}

fn load(path: &Path, quantization: Option<WeightFormat>) -> lm_model::Result<LoadedModel> {
    let options = LoadOptions { quantization, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    ModelFolder::open(path).unwrap().load(&options, &mut |_| {})
}

/// Logits of the golden's rows, and the reference's.
fn compare(name: &str, quantization: Option<WeightFormat>) -> [Vec<Vec<f32>>; 2] {
    let golden: Value =
        serde_json::from_slice(&std::fs::read(folder(name).join("golden.json")).unwrap()).unwrap();
    let ids: Vec<TokenId> = serde_json::from_value(golden["ids"].clone()).unwrap();
    let rows: Vec<usize> = serde_json::from_value(golden["rows"].clone()).unwrap();
    let bytes = std::fs::read(folder(name).join("golden.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let logits = tensors.tensor("logits").unwrap();
    let values: Vec<f32> =
        logits.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let expected = values.chunks(logits.shape()[1]).map(<[f32]>::to_vec).collect();
    let all = logits_of(&*load(&folder(name), quantization).unwrap().model, &ids);
    [rows.into_iter().map(|row| all[row].clone()).collect(), expected]
}

#[test]
fn weights_match_their_layouts() {
    for name in FOLDERS {
        let [got, expected] = compare(name, Some(WeightFormat::F32));
        assert_close(&got, &expected, name);
        // With the stored weights, activations are rounded to 8 bits; the logits' spread is 0.4.
        let [got, expected] = compare(name, None);
        let difference = largest_difference(&got, &expected);
        assert!(difference < 0.15, "{name} as stored: logits differ by {difference}");
    }
}

#[test]
fn integers_stay_small_in_memory() {
    let bytes = |name, format| load(&folder(name), format).unwrap().model.info().weight_bytes;
    for (name, most) in [
        ("gptq-sym", 6.5),
        ("ct-packed-4-sym", 6.5),
        ("awq", 7.5),
        ("ct-packed-4", 7.5),
        ("gptq-8", 11.0),
        ("ct-int-8", 11.0),
        ("ct-packed-8", 11.0),
    ] {
        let (stored, halves) = (bytes(name, None), bytes(name, Some(WeightFormat::F16)));
        // Embedding and head are halves in both.
        let shared = 2 * 2 * 320 * 64;
        // The matrices are small: their last tiles and blocks are mostly padding, and norms count too.
        let bits = 16.0 * (stored - shared) as f64 / (halves - shared) as f64;
        assert!(bits < most, "{name}: {bits} bits a weight");
    }
}

/// A copy with another config, and some bytes of a tensor changed.
fn changed(config: impl Fn(&mut Value), tensor: &str, change: impl Fn(&mut Vec<u8>)) -> tempfile::TempDir {
    let (from, to) = (folder("gptq-sym"), tempfile::tempdir().unwrap());
    let mut written: Value =
        serde_json::from_slice(&std::fs::read(from.join("config.json")).unwrap()).unwrap();
    config(&mut written["quantization_config"]);
    std::fs::write(to.path().join("config.json"), written.to_string()).unwrap();
    std::fs::copy(from.join("tokenizer.json"), to.path().join("tokenizer.json")).unwrap();
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let owned: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, view)| {
            let mut data = view.data().to_vec();
            if name == tensor {
                change(&mut data);
            }
            (name.to_owned(), view.dtype(), view.shape().to_vec(), data)
        })
        .collect();
    let views = owned.iter().map(|(name, dtype, shape, data)| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    std::fs::write(to.path().join("model.safetensors"), safetensors::serialize(views, None).unwrap())
        .unwrap();
    to
}

#[test]
fn unreadable_layouts_are_reported() {
    const LAYER: &str = "model.layers.0.self_attn.q_proj";
    let rejected = |config: &dyn Fn(&mut Value), part: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let copy = changed(config, &format!("{LAYER}.{part}"), change);
        load(copy.path(), None).err().unwrap().to_string()
    };
    let same = |_: &mut Value| {};
    let shuffled = |order: &mut Vec<u8>| order.swap(0, 4 * 40);
    let error = rejected(&same, "g_idx", &shuffled);
    assert!(error.contains("quantization_config.desc_act"), "{error}");
    let error = rejected(&|how| how["group_size"] = 64.into(), "", &|_| {});
    assert!(error.contains("`quantization_config.group_size` is 64"), "{error}");
    let error = rejected(&|how| how["bits"] = 8.into(), "", &|_| {});
    assert!(error.contains("q_proj") || error.contains("down_proj"), "{error}");
    let error = rejected(&|how| how["quant_method"] = "bitsandbytes".into(), "", &|_| {});
    assert!(error.contains("`quantization_config.quant_method` is bitsandbytes"), "{error}");
    let infinite = |scales: &mut Vec<u8>| scales[..2].copy_from_slice(&0x7c00_u16.to_le_bytes());
    let error = load(changed(same, &format!("{LAYER}.scales"), infinite).path(), None).err().unwrap();
    assert!(error.to_string().contains("q_proj"), "{error}");
}
