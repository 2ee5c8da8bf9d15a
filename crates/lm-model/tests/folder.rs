//! Parts of a model folder, in each form of storage.

use crate::common;
use std::fs;
use std::path::PathBuf;

use crate::common::{TinyModel, assert_close, for_each_device, load, logits_of};
use lm_model::{AttentionShape, Device, LoadOptions, LoadPhase, ModelFolder};
use lm_tokenizer::{SpecialTokens, TextSegment, TokenKind};
use safetensors::tensor::Dtype;
use serde_json::json;

fn pocket() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models/pocket/model")
}

#[test]
fn sharded_and_single_file_models_are_equal() {
    let model = TinyModel::llama();
    let (whole, sharded) = (model.write(), model.write_sharded());
    let [whole, sharded] =
        [&whole, &sharded].map(|dir| logits_of(&*load(dir.path(), Device::Cpu).model, &[1, 2, 3]));
    assert_eq!(whole, sharded);
}

#[test]
fn embedded_files_equal_the_folder() {
    const NAMES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];
    let dir = TinyModel::qwen3().write();
    let files = NAMES.map(|name| (name, &*fs::read(dir.path().join(name)).unwrap().leak()));
    let folder = ModelFolder::embedded("tiny", Box::leak(Box::new(files)));
    let loaded = folder.load(&LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(loaded.name, "tiny");
    let on_disk = common::load_with(dir.path(), &LoadOptions::default());
    assert_eq!(logits_of(&*loaded.model, &[1, 2, 3]), logits_of(&*on_disk.model, &[1, 2, 3]));
}

#[test]
fn half_precision_is_loaded_as_stored() {
    for_each_device(|device| {
        for dtype in [Dtype::F16, Dtype::BF16] {
            let half = TinyModel { dtype, ..TinyModel::qwen3() };
            // The same values in f32, so that only the storage differs.
            let mut single = half.clone();
            single.dtype = Dtype::F32;
            for tensor in single.tensors.values_mut() {
                for value in &mut tensor.values {
                    *value = match dtype {
                        Dtype::F16 => half::f16::from_f32(*value).to_f32(),
                        _ => half::bf16::from_f32(*value).to_f32(),
                    };
                }
            }
            let [half, single] = [half, single].map(|model| load(model.write().path(), device));
            let ids = [5, 9, 60, 2, 2, 31];
            assert_close(
                &logits_of(&*half.model, &ids),
                &logits_of(&*single.model, &ids),
                &dtype.to_string(),
            );
            if device != Device::Gpu {
                assert!(half.model.info().weight_bytes < single.model.info().weight_bytes * 6 / 10);
            }
        }
    });
}

#[test]
fn automatic_device_is_a_real_one() {
    let loaded = load(TinyModel::llama().write().path(), Device::Auto);
    let device = loaded.model.info().device;
    assert_eq!(device, Device::Auto.resolved());
    assert!(matches!(device, Device::Cpu | Device::Gpu) && Device::available().contains(&device), "{device}");
    let other = load(TinyModel::llama().write().path(), device);
    assert_eq!(logits_of(&*loaded.model, &[1; 5]), logits_of(&*other.model, &[1; 5]));
}

#[test]
fn old_and_new_rope_keys_are_equivalent() {
    let newer = TinyModel::llama();
    let mut older = newer.clone();
    let mut parameters = older.config.as_object_mut().unwrap().remove("rope_parameters").unwrap();
    let theta = parameters.as_object_mut().unwrap().remove("rope_theta").unwrap();
    older.config["rope_theta"] = theta;
    older.config["rope_scaling"] = parameters;
    let [newer, older] =
        [newer, older].map(|model| logits_of(&*load(model.write().path(), Device::Cpu).model, &[1; 40]));
    assert_eq!(newer, older);
}

/// As in transformers: the older key takes precedence, and unknown RoPE parameters are ignored.
#[test]
fn rope_scaling_has_priority_over_rope_parameters() {
    let plain = TinyModel::llama();
    let mut both = plain.clone();
    let parameters = both.config["rope_parameters"].clone();
    both.config["rope_scaling"] = parameters;
    both.config["rope_scaling"]["attn_factor"] = json!(0.8782488562869419);
    both.config["rope_scaling"]["finetuned"] = json!(true);
    both.config["rope_parameters"] = json!({"rope_type": "linear", "factor": 3.0, "rope_theta": 77.0});
    let [plain, both] =
        [plain, both].map(|model| logits_of(&*load(model.write().path(), Device::Cpu).model, &[1; 40]));
    assert_eq!(plain, both);
}

#[test]
fn info_lists_attention_windows() {
    let loaded = load(TinyModel::qwen3().write().path(), Device::Cpu);
    let shapes = [None, Some(7), Some(7)].map(|window| AttentionShape { query_width: 4 * 12, window });
    assert_eq!(loaded.model.info().attention, shapes);
}

#[test]
fn layer_types_equal_max_window_layers() {
    let by_number = TinyModel::qwen3();
    let mut by_type = by_number.clone();
    by_type.config["layer_types"] = json!(["full_attention", "sliding_attention", "sliding_attention"]);
    by_type.config["max_window_layers"] = json!(3);
    let mut full = by_number.clone();
    full.config["use_sliding_window"] = json!(false);
    full.config["sliding_window"] = json!(0); // As config classes write it that have no window.
    let ids: Vec<_> = (0..30).collect();
    let [by_number, by_type, full] = [by_number, by_type, full]
        .map(|model| logits_of(&*load(model.write().path(), Device::Cpu).model, &ids));
    assert_eq!(by_number, by_type);
    assert_eq!(by_number[..7], full[..7], "rows inside the window");
    assert_ne!(by_number[7..], full[7..], "rows past the window");
}

#[test]
fn progress_rises_to_the_total() {
    let dir = TinyModel::llama().write();
    let mut steps = Vec::new();
    let folder = ModelFolder::open(dir.path()).unwrap();
    folder.load(&LoadOptions::default(), &mut |progress| steps.push(progress)).unwrap();
    assert_eq!(steps[0].phase, LoadPhase::Opening);
    let weights: Vec<_> = steps.iter().filter(|step| step.phase == LoadPhase::Weights).collect();
    assert_eq!(weights.len(), TinyModel::llama().tensors.len());
    assert!(weights.is_sorted_by(|a, b| a.done_bytes < b.done_bytes));
    let tensor_bytes: usize = folder.tensors().unwrap().iter().map(|tensor| tensor.bytes).sum();
    let last = steps.last().unwrap();
    assert_eq!(
        (last.phase, last.done_bytes, last.total_bytes),
        (LoadPhase::Done, tensor_bytes as u64, tensor_bytes as u64)
    );
    assert_eq!(weights.last().unwrap().done_bytes, tensor_bytes as u64);
}

#[test]
fn loading_twice_gives_the_same_bits() {
    let dir = TinyModel::qwen3().write();
    let run = || logits_of(&*load(dir.path(), Device::Cpu).model, &[4, 8, 15, 16, 23, 42]);
    assert_eq!(run(), run());
}

#[test]
fn first_file_with_end_ids_is_used() {
    let dir = TinyModel::llama().write();
    let end_ids = || ModelFolder::open(dir.path()).unwrap().tokenizer().unwrap().end_ids().to_vec();
    assert_eq!(end_ids(), [3, 4], "config.json");
    fs::write(dir.path().join("generation_config.json"), r#"{"temperature": 0.6, "top_k": 20}"#).unwrap();
    assert_eq!(end_ids(), [3, 4], "a generation config without ids");
    fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id": 7, "top_p": 0.5}"#).unwrap();
    assert_eq!(end_ids(), [7]);
    let config = ModelFolder::open(dir.path()).unwrap().generation_config().unwrap();
    assert_eq!((config.top_p, config.top_k, config.do_sample), (Some(0.5), None, None));
    assert!(config.is_recommended, "greedy, as in transformers");

    let mut model = TinyModel::llama();
    model.config.as_object_mut().unwrap().remove("eos_token_id");
    let dir = model.write();
    let special = r#"{"eos_token": {"content": "<|im_end|>", "lstrip": false}}"#;
    fs::write(dir.path().join("tokenizer_config.json"), special).unwrap();
    let tokenizer = ModelFolder::open(dir.path()).unwrap().tokenizer().unwrap();
    assert_eq!(tokenizer.end_ids(), [tokenizer.token_id("<|im_end|>").unwrap()]);
}

#[test]
fn chat_template_files_are_loaded() {
    let dir = TinyModel::qwen3().write();
    let names = || {
        let source = ModelFolder::open(dir.path()).unwrap().chat_template().unwrap();
        source.map(|source| source.files.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
    };
    assert_eq!(names(), None);
    let more = dir.path().join("additional_chat_templates");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("rag.jinja"), "{{ documents }}").unwrap();
    fs::write(more.join("README.md"), "").unwrap();
    fs::write(dir.path().join("tokenizer_config.json"), "{}").unwrap();
    fs::write(dir.path().join("chat_template.jinja"), "{{ messages }}").unwrap();
    let expected = ["chat_template.jinja", "tokenizer_config.json", "additional_chat_templates/rag.jinja"];
    assert_eq!(names().unwrap(), expected);
}

#[test]
fn pocket_model_generates() {
    for_each_device(|device| {
        let loaded = load(&pocket(), device);
        let info = loaded.model.info();
        assert_eq!((info.architecture.as_str(), info.num_layers, info.hidden_size), ("qwen3", 6, 256));
        assert_eq!(loaded.tokenizer.end_ids(), [2039, 2037]);
        assert!(loaded.chat_template.is_some());
        let tokenizer = &loaded.tokenizer;
        let mut ids = tokenizer
            .encode_segments(&[
                TextSegment::Template("<|im_start|>user\n"),
                TextSegment::Content("Hello!"),
                TextSegment::Template("<|im_end|>\n<|im_start|>assistant\n"),
            ])
            .unwrap();
        let prompt = ids.len();
        while ids.len() < prompt + 40 && !tokenizer.end_ids().contains(&ids[ids.len() - 1]) {
            let row = logits_of(&*loaded.model, &ids).pop().unwrap();
            ids.push((0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32);
        }
        let reply = tokenizer.decode(&ids[prompt..], SpecialTokens::Skip);
        assert_eq!(tokenizer.token_kind(ids[ids.len() - 1]), TokenKind::Special, "{reply:?} did not end");
        assert!(reply.len() > 5 && reply.is_ascii(), "{reply:?}");
        println!("{device}: {reply}");
    });
}
