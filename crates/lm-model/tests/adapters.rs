//! LoRA adapters: compared with PEFT, several in one batch, and rejected if they do not match the model.

use crate::common;
use std::path::{Path, PathBuf};

use crate::common::{assert_close, assert_same, for_each_device, forward};
use lm_model::{
    Adapter, CausalLm, Device, Error, KvDtype, LoadOptions, LoadedModel, LogitRows, ModelFolder, PAGE_LEN,
    PageId, SequenceInput, WeightFormat,
};
use lm_tokenizer::TokenId;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

const ADAPTERS: [&str; 4] =
    ["llama-tiny-all", "llama-tiny-attention", "llama-tiny-bias-some", "phi-tiny-mlp"];

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn options(device: Device, adapters: &[&str]) -> LoadOptions {
    let adapters = adapters.iter().map(|name| testdata("adapters").join(name)).collect();
    LoadOptions { device, adapters, kv_dtype: KvDtype::F32, ..LoadOptions::default() }
}

fn load(base: &str, options: &LoadOptions) -> lm_model::Result<lm_model::LoadedModel> {
    ModelFolder::open(testdata("models").join(base)).unwrap().load(options, &mut |_| {})
}

/// A sequence with its own pages that requests all of its logits.
fn sequence(ids: &[TokenId], first_page: PageId, adapter: Option<&Adapter>) -> SequenceInput {
    let pages = ids.len().div_ceil(PAGE_LEN) as PageId;
    let input = SequenceInput::ids(ids, 0, (first_page..first_page + pages).collect::<Vec<_>>());
    SequenceInput { adapter: adapter.cloned(), logits: LogitRows::All, ..input }
}

fn alone(model: &dyn CausalLm, ids: &[TokenId], adapter: Option<&Adapter>) -> Vec<Vec<f32>> {
    forward(model, &mut model.new_cache(4).unwrap(), vec![sequence(ids, 0, adapter)]).remove(0)
}

/// Token ids, and the reference's logits of each row.
type Prompt = (Vec<TokenId>, Vec<Vec<f32>>);

/// Base model and prompts of an adapter.
fn golden(name: &str) -> (String, Vec<Prompt>) {
    let folder = testdata("adapters").join(name);
    let golden: Value = serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
    let bytes = std::fs::read(folder.join("golden.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let prompt = |(index, prompt): (usize, &Value)| {
        let ids = serde_json::from_value(prompt["ids"].clone()).unwrap();
        let logits = tensors.tensor(&format!("prompts.{index}.logits")).unwrap();
        let values = logits.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        let values: Vec<f32> = values.collect();
        (ids, values.chunks(logits.shape()[1]).map(<[f32]>::to_vec).collect())
    };
    let prompts = golden["prompts"].as_array().unwrap().iter().enumerate().map(prompt).collect();
    (golden["base"].as_str().unwrap().to_owned(), prompts)
}

#[test]
fn logits_equal_peft() {
    for_each_device(|device| {
        for name in ADAPTERS {
            let (base, prompts) = golden(name);
            let loaded = load(&base, &options(device, &[name])).unwrap();
            assert_eq!(loaded.adapters[0].info().name, name);
            for (ids, expected) in prompts {
                let got = alone(&*loaded.model, &ids, Some(&loaded.adapters[0]));
                assert_close(&got, &expected, &format!("{name} on {device}, {} tokens", ids.len()));
            }
        }
    });
}

#[test]
fn sequences_of_different_adapters_share_a_batch() {
    for_each_device(|device| {
        for quantization in [None, Some(WeightFormat::Q4)] {
            let options = LoadOptions { quantization, ..options(device, &ADAPTERS[..2]) };
            let LoadedModel { model, adapters, .. } = load("llama-tiny", &options).unwrap();
            let (_, prompts) = golden(ADAPTERS[0]);
            let ids = |index: usize| &prompts[index % 3].0[..];
            let adapters = [Some(&adapters[1]), None, Some(&adapters[0]), Some(&adapters[0]), None];
            let batch =
                (0..).zip(adapters).map(|(index, adapter)| sequence(ids(index as usize), index * 2, adapter));
            let together = forward(&*model, &mut model.new_cache(10).unwrap(), batch.collect());
            for (index, adapter) in adapters.into_iter().enumerate() {
                let alone = alone(&*model, ids(index), adapter);
                assert_same(&*model, &together[index], &alone, &format!("sequence {index} on {device}"));
            }
            let without = load("llama-tiny", &LoadOptions { adapters: Vec::new(), ..options }).unwrap().model;
            let plain = common::logits_of(&*without, ids(1));
            assert_same(&*model, &together[1], &plain, "a sequence without adapter beside others");
        }
    });
}

#[test]
fn chunked_prefill_gives_the_same_logits() {
    let LoadedModel { model, adapters, .. } =
        load("llama-tiny", &options(Device::Cpu, &ADAPTERS[..1])).unwrap();
    let (_, prompts) = golden(ADAPTERS[0]);
    let (ids, whole) = (&prompts[2].0, alone(&*model, &prompts[2].0, Some(&adapters[0])));
    let mut cache = model.new_cache(2).unwrap();
    let mut pieces = Vec::new();
    for (at, piece) in (0..).step_by(7).zip(ids.chunks(7)) {
        let mut input = SequenceInput::ids(piece, at, [0, 1]);
        (input.adapter, input.logits) = (Some(adapters[0].clone()), LogitRows::All);
        pieces.extend(forward(&*model, &mut cache, vec![input]).remove(0));
    }
    assert_same(&*model, &pieces, &whole, "in pieces of 7");
}

#[test]
fn adapter_of_another_model_is_rejected() {
    let other = load("llama-tiny-bias", &options(Device::Cpu, &ADAPTERS[2..3])).unwrap().adapters;
    let LoadedModel { model, adapter_loader, .. } = load("llama-tiny", &LoadOptions::default()).unwrap();
    let run = |adapter| {
        let sequences = vec![sequence(&[1, 2], 0, Some(adapter))];
        model.forward(&lm_model::Batch { sequences }, &mut model.new_cache(1).unwrap())
    };
    let error = run(&other[0]).unwrap_err();
    assert!(error.to_string().contains("sequence 0"), "{error}");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let expected = format!("adapter {} was loaded for another model", ADAPTERS[2]);
    assert_eq!(source.as_deref(), Some(expected.as_str()));
    let error = adapter_loader.unwrap().load(&testdata("adapters").join(ADAPTERS[2])).unwrap_err();
    assert!(matches!(error, Error::Format(lm_formats::Error::TensorShape { .. })), "{error}");
}

#[test]
fn adapter_loaded_later_equals_one_loaded_with_the_model() {
    for_each_device(|device| {
        let (_, prompts) = golden(ADAPTERS[0]);
        let with = load("llama-tiny", &options(device, &ADAPTERS[..1])).unwrap();
        let LoadedModel { model, adapter_loader, adapters, .. } =
            load("llama-tiny", &options(device, &[])).unwrap();
        assert!(adapters.is_empty());
        let later = adapter_loader.unwrap().load(&testdata("adapters").join(ADAPTERS[0])).unwrap();
        assert_eq!(later.info(), with.adapters[0].info());
        for (ids, _) in prompts {
            let expected = alone(&*with.model, &ids, Some(&with.adapters[0]));
            assert_same(&*model, &alone(&*model, &ids, Some(&later)), &expected, "loaded later");
            // It may also run on another copy of the model.
            assert_same(&*model, &alone(&*with.model, &ids, Some(&later)), &expected, "another copy");
        }
    });
}

/// A copy of an adapter's folder with one tensor replaced, or another config.
fn changed(tensor: Option<(&str, &str, [usize; 2])>, config: impl Fn(&mut Value)) -> tempfile::TempDir {
    let (folder, copy) = (testdata("adapters/llama-tiny-all"), tempfile::tempdir().unwrap());
    let mut written: Value =
        serde_json::from_slice(&std::fs::read(folder.join("adapter_config.json")).unwrap()).unwrap();
    config(&mut written);
    std::fs::write(copy.path().join("adapter_config.json"), written.to_string()).unwrap();
    let bytes = std::fs::read(folder.join("adapter_model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let zeros = vec![0; tensor.map_or(0, |(_, _, [rows, cols])| rows * cols * 4)];
    let views = tensors.iter().map(|(name, view)| match tensor {
        Some((replaced, by, shape)) if replaced == name => {
            (by.to_owned(), TensorView::new(Dtype::F32, shape.to_vec(), &zeros).unwrap())
        }
        _ => (name.to_owned(), view),
    });
    let bytes = safetensors::serialize(views, None).unwrap();
    std::fs::write(copy.path().join("adapter_model.safetensors"), bytes).unwrap();
    copy
}

#[test]
fn mismatched_adapter_is_rejected_before_weights_load() {
    const QUERY_A: &str = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    let rejected = |folder: &Path| -> Error {
        let options = LoadOptions { adapters: vec![folder.to_owned()], ..LoadOptions::default() };
        let mut began = false;
        let model = ModelFolder::open(testdata("models/llama-tiny")).unwrap();
        let error = model.load(&options, &mut |progress| began |= progress.done_bytes > 0).err().unwrap();
        assert!(!began, "{error}: after weights were loaded");
        error
    };
    for (tensor, expected) in [
        ((QUERY_A, QUERY_A, [4, 63]), "[4, 63]"),
        ((QUERY_A, QUERY_A, [3, 64]), "[3, 64]"),
        ((QUERY_A, "base_model.model.lm_head.lora_A.weight", [4, 64]), "q_proj.lora_A.weight"),
        (
            (QUERY_A, "base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight", [4, 64]),
            "q_proj.lora_A",
        ),
    ] {
        let error = rejected(changed(Some(tensor), |_| {}).path()).to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }
    let error = rejected(changed(None, |config| config["use_dora"] = true.into()).path()).to_string();
    assert!(error.ends_with("`use_dora` is true, supported: absent"), "{error}");
    let error = rejected(changed(None, |config| config["r"] = 0.into()).path()).to_string();
    assert!(error.contains("`r` is 0"), "{error}");
    assert!(matches!(rejected(&testdata("adapters")), Error::Format(lm_formats::Error::MissingFile { .. })));
    assert!(matches!(rejected(&testdata("no-such-folder")), Error::Format(lm_formats::Error::Io { .. })));
}
