//! Invalid tower settings, folders without a tower, and progress and cache of a load.

use std::path::Path;

use lm_media::{Image, ImageSize};
use lm_model::{Error, FileBytes, ImageOptions, LoadOptions, LoadPhase, ModelFolder, WeightFormat};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use crate::golden_folder::loaded;
use crate::vision::golden::Golden;

fn with_setting(folder: &str, file: &str, pointer: &str, value: Value) -> ModelFolder {
    Golden::read(folder).folder.with_setting(file, pointer, &value)
}

#[test]
fn invalid_tower_settings_are_errors() {
    let cases = [
        ("gemma3-tiny", "config.json", "/vision_config/patch_size", json!(0), "1 to 256"),
        ("gemma3-tiny", "config.json", "/vision_config/hidden_size", json!(1_u64 << 40), "1 to 131072"),
        ("gemma3-tiny", "config.json", "/vision_config/num_hidden_layers", json!(1 << 30), "1 to 1024"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/num_hidden_layers",
            json!(3),
            "no tensor vision_tower",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/num_attention_heads", json!(5), "a divisor of"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/image_size",
            json!(43),
            "a multiple of patch_size = 7",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/image_size", json!(1 << 20), "1 to 4096"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/intermediate_size",
            json!(41),
            "[40, 24], expected [41, 24]",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/layer_norm_eps", json!(-1.0), "between 0 and 1"),
        ("gemma3-tiny", "config.json", "/vision_config/hidden_act", json!("swishy"), "gelu_pytorch_tanh"),
        ("gemma3-tiny", "config.json", "/vision_config/num_channels", json!(1), "supported: 3"),
        ("gemma3-tiny", "config.json", "/vision_config", json!(3), "an object"),
        ("gemma3-tiny", "config.json", "/mm_tokens_per_image", json!(5), "the square of a divisor of 6"),
        ("gemma3-tiny", "config.json", "/mm_tokens_per_image", json!(0), "the square of a divisor of 6"),
        ("gemma3-tiny", "preprocessor_config.json", "/do_pan_and_scan", json!(true), "supported: false"),
        (
            "gemma3-tiny",
            "preprocessor_config.json",
            "/size",
            json!({"height": 9, "width": 9}),
            "\"height\":42",
        ),
        ("gemma3-tiny", "preprocessor_config.json", "/resample", json!(3), "`resample` is 3, supported: 2"),
        ("gemma4-tiny", "config.json", "/vision_config/head_dim", json!(6), "a multiple of 4"),
        ("gemma4-tiny", "config.json", "/vision_config/num_key_value_heads", json!(3), "a divisor of"),
        ("gemma4-tiny", "config.json", "/vision_config/rope_parameters/rope_type", json!("default"), "axial"),
        ("gemma4-tiny", "config.json", "/vision_config/rope_parameters/rope_theta", json!(0.0), "from 1 on"),
        (
            "gemma4-tiny",
            "config.json",
            "/vision_config/position_embedding_size",
            json!(79),
            "expected [158, 24]",
        ),
        (
            "gemma4-tiny",
            "processor_config.json",
            "/image_processor/max_soft_tokens",
            json!(71),
            "one of [70,",
        ),
        ("smolvlm-tiny", "config.json", "/scale_factor", json!(0), "1 to 64"),
        ("smolvlm-tiny", "preprocessor_config.json", "/rescale_factor", json!(0.5), "supported: 0.0039"),
        ("smolvlm-tiny", "preprocessor_config.json", "/image_mean", json!([0.5]), "preprocessor_config.json"),
        ("smolvlm-tiny", "config.json", "/vision_config/image_size", json!(3), "at least patch_size = 4"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/num_heads", json!(5), "a divisor of a fourth"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/depth", json!(0), "1 to 1024"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/mlp_ratio", json!(1e300), "1 to 131072"),
        ("qwen2-vl-tiny", "config.json", "/rope_scaling/mrope_section", json!([1, 1, 1]), "add up to 4"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/window_size", json!(7), "a token of 8 pixels"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/out_hidden_size", json!(31), "hidden_size = 32"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/in_channels", json!(1), "supported: 3"),
        ("qwen3-vl-tiny", "config.json", "/vision_config/num_position_embeddings", json!(0), "1 to 1024"),
        (
            "qwen3-vl-tiny",
            "config.json",
            "/vision_config/num_position_embeddings",
            json!(49),
            "expected [49, 16]",
        ),
        (
            "qwen3-vl-tiny",
            "config.json",
            "/vision_config/deepstack_visual_indexes",
            json!([0, 3]),
            "less than depth = 3",
        ),
        ("qwen3-vl-tiny", "config.json", "/vision_config/spatial_merge_size", json!(0), "1 to 16"),
        ("qwen3-vl-tiny", "preprocessor_config.json", "/patch_size", json!(5), "supported: 4"),
        ("qwen3-vl-tiny", "preprocessor_config.json", "/resample", json!(2), "supported: 3"),
        ("lfm2-vl-tiny", "config.json", "/vision_config/num_patches", json!(24), "a square"),
        ("lfm2-vl-tiny", "config.json", "/downsample_factor", json!(0), "1 to 64"),
        (
            "lfm2-vl-tiny",
            "processor_config.json",
            "/image_processor/encoder_patch_size",
            json!(5),
            "supported: 4",
        ),
    ];
    for (folder, file, pointer, value, expected) in cases {
        let error = loaded(&with_setting(folder, file, pointer, value.clone())).err();
        let error = error.unwrap_or_else(|| panic!("{folder} {pointer}: {value} loads"));
        assert!(error.to_string().contains(expected), "{folder} {pointer}: {value}: {error}");
    }
}

#[test]
fn clipped_projection_with_an_empty_range_is_an_error() {
    let path = Golden::read("gemma4-tiny-bf16").path;
    let name = "model.vision_tower.encoder.layers.0.mlp.up_proj.output_max";
    let mut files: Vec<(String, FileBytes)> = ["config.json", "processor_config.json", "tokenizer.json"]
        .map(|file| (file.to_owned(), FileBytes::Owned(std::fs::read(path.join(file)).unwrap().into())))
        .into();
    let stored = std::fs::read(path.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&stored).unwrap();
    for value in [f32::NAN, -100.0] {
        let bytes = half::bf16::from_f32(value).to_le_bytes();
        let changed = TensorView::new(Dtype::BF16, Vec::new(), &bytes).unwrap();
        let views = tensors
            .iter()
            .map(|(tensor, view)| (tensor, if tensor == name { changed.clone() } else { view }));
        let weights = safetensors::serialize(views, None).unwrap();
        files.retain(|(file, _)| file != "model.safetensors");
        files.push(("model.safetensors".to_owned(), FileBytes::Owned(weights.into())));
        let error = loaded(&ModelFolder::in_memory("clipped", files.clone()).unwrap()).err().unwrap();
        assert!(matches!(&error, Error::TensorValue { tensor, .. } if tensor == name), "{error}");
    }
}

/// Settings of the preprocessing are checked with the first image.
#[test]
fn invalid_preprocessing_is_an_image_error() {
    let longest = "/max_image_size/longest_edge";
    for value in [0, 5, 1_usize << 40] {
        let folder = with_setting("smolvlm-tiny", "preprocessor_config.json", longest, json!(value));
        let vision = loaded(&folder).unwrap().vision.unwrap();
        let size = ImageSize::new(30, 20);
        assert!(matches!(vision.layout(size, &ImageOptions::default()), Err(Error::Media(_))), "{value}");
        let image = Image::from_rgb(size, vec![7; 30 * 20 * 3]).unwrap();
        assert!(matches!(vision.encode(&image, &ImageOptions::default()), Err(Error::Media(_))), "{value}");
    }
}

#[test]
fn unknown_or_empty_vision_part_gives_a_text_model() {
    let unknown = with_setting("smolvlm-tiny", "config.json", "/model_type", json!("seeing"));
    assert!(loaded(&unknown).unwrap().vision.is_none());
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/gemma3-tiny-vision");
    assert!(loaded(&ModelFolder::open(tiny).unwrap()).unwrap().vision.is_none());
}

#[test]
fn quantised_decoder_keeps_a_float_tower() {
    for golden in Golden::all() {
        let folder = ModelFolder::open(&golden.path).unwrap();
        let footprint = folder.footprint().unwrap();
        let rows = |format| {
            let options = LoadOptions { quantization: format, ..LoadOptions::default() };
            let loaded = folder.load(&options, &mut |_| {}).unwrap();
            let (said, is) = (footprint.weight_bytes(format), loaded.model.info().weight_bytes);
            assert!(said.abs_diff(is) <= is / 50, "{} {format:?}: {said}, it is {is}", golden.name());
            let encoder = loaded.vision.unwrap();
            encoder.encode(&golden.images[0], &ImageOptions::default()).unwrap().rows
        };
        assert_eq!(rows(None), rows(Some(WeightFormat::Q8)), "{}", golden.name());
    }
}

#[test]
fn pack_cache_keeps_the_tower() {
    let cache = tempfile::tempdir().unwrap();
    let options = LoadOptions {
        quantization: Some(WeightFormat::Q8),
        pack_cache: Some(cache.path().to_owned()),
        ..LoadOptions::default()
    };
    for _ in 0..2 {
        let folder = ModelFolder::open(Golden::read("smolvlm-tiny").path).unwrap();
        assert!(folder.load(&options, &mut |_| {}).unwrap().vision.is_some());
    }
}

#[test]
fn progress_includes_the_tower() {
    let folder = ModelFolder::open(Golden::read("gemma3-tiny").path).unwrap();
    let mut reports = Vec::new();
    folder.load(&LoadOptions::default(), &mut |report| reports.push(report)).unwrap();
    let weights: Vec<_> = reports.iter().filter(|report| report.phase == LoadPhase::Weights).collect();
    assert!(weights.is_sorted_by_key(|report| report.done_bytes));
    assert!(weights.iter().all(|report| report.total_bytes == weights[0].total_bytes));
    let last = weights.last().unwrap();
    assert_eq!(last.done_bytes, last.total_bytes);
}
