//! Two GGUF files of llama.cpp's converter, text model and `mmproj`: results of transformers, and mismatched
//! files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lm_formats::{FileBytes, GgufEntries, GgufEntry, GgufFile, GgufHeader, GgufNewTensor};
use lm_media::ImageSize;
use lm_model::{Device, Error, ImageOptions, LoadOptions, LoadedModel, ModelFolder, WeightFormat};

use crate::common::{for_each_device, is_thorough};
use crate::vision::golden::Golden;

/// Folders of `testdata/vision/mmproj`.
fn names() -> BTreeSet<String> {
    let folders = std::fs::read_dir(Golden::folder("mmproj")).unwrap();
    folders.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn model(name: &str) -> PathBuf {
    Golden::folder(&format!("mmproj/{name}/model.gguf"))
}

fn projector(name: &str) -> PathBuf {
    Golden::folder(&format!("mmproj/{name}/mmproj-{name}.gguf"))
}

/// Text model and a changed `mmproj` file, found beside it.
fn found(name: &str, bytes: Vec<u8>) -> ModelFolder {
    let read = |bytes: Vec<u8>| FileBytes::Owned(bytes.into());
    let text = read(std::fs::read(model(name)).unwrap());
    let files = vec![("model.gguf".to_owned(), text), ("mmproj.gguf".to_owned(), read(bytes))];
    ModelFolder::in_memory(name, files).unwrap()
}

/// The same, named.
fn named(name: &str, bytes: Vec<u8>) -> Result<LoadedModel, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.gguf");
    std::fs::write(&path, bytes).unwrap();
    loaded(&ModelFolder::open_with_projector(model(name), path)?)
}

fn loaded(folder: &ModelFolder) -> Result<LoadedModel, Error> {
    folder.load(&LoadOptions::default(), &mut |_| {})
}

/// Name and value of a key of a new file.
type Key<'a> = (&'a str, GgufEntry);

/// A file with some of its keys and `more`, and with other names of tensors.
fn changed(
    name: &str,
    keys: impl Fn(&str) -> bool,
    more: Vec<Key<'_>>,
    tensor: impl Fn(&str) -> String,
) -> Vec<u8> {
    let bytes = std::fs::read(projector(name)).unwrap();
    let file = GgufFile::read("mmproj.gguf", FileBytes::Owned(bytes.clone().into())).unwrap();
    let mut entries = GgufEntries::default();
    for (key, _) in file.metadata().keys().filter(|(key, _)| keys(key)) {
        let (ty, raw) = file.metadata().raw(key).unwrap().unwrap();
        entries.put(key, GgufEntry::Copied(ty, raw.to_vec()));
    }
    more.into_iter().for_each(|(key, value)| entries.put(key, value));
    let new = |old: &lm_formats::GgufTensor| GgufNewTensor {
        name: tensor(&old.name),
        ty: old.ty,
        shape: old.shape.clone(),
    };
    let tensors: Vec<_> = file.tensors().iter().map(new).collect();
    let GgufHeader { bytes: mut out, tensors, len } = GgufHeader::new(&entries, &tensors).unwrap();
    for (old, new) in file.tensors().iter().zip(&tensors) {
        out.resize(new.range.start, 0);
        out.extend(&bytes[old.range.clone()]);
    }
    assert_eq!(out.len(), len);
    out
}

/// A file with one key of another value.
fn with_key(name: &str, key: &str, value: GgufEntry) -> Vec<u8> {
    changed(name, |old| old != key, vec![(key, value)], str::to_owned)
}

#[test]
fn llama_cpp_files_equal_transformers() {
    assert!(names().len() >= 10, "{:?}", names());
    for_each_device(|device| {
        // On a GPU in software one file: the prompts above compare the encoders.
        let files = if is_thorough(device) { usize::MAX } else { 1 };
        for name in names().into_iter().take(files) {
            let mut golden = Golden::of_mmproj(&name);
            golden.narrow_logits(ModelFolder::open(&golden.path).unwrap().config().unwrap().vocab_size);
            if name.starts_with("gemma4") {
                golden.options.token_budget = Some(70); // Files do not have the image processor's.
            }
            super::check(&golden, device);
        }
    });
}

/// Our files have the settings of the text model that the projector and llama.cpp need.
#[test]
fn converted_files_match_llama_cpp_projectors() {
    let key = |path: &std::path::Path, key: &str| {
        let bytes = FileBytes::Owned(std::fs::read(path).unwrap().into());
        let file = GgufFile::read("model.gguf", bytes).unwrap();
        let architecture = file.metadata().str("general.architecture").unwrap().unwrap().to_owned();
        let raw = file.metadata().raw(&format!("{architecture}.{key}")).unwrap();
        (architecture, raw.map(|(_, bytes)| bytes.to_vec()))
    };
    for name in ["qwen2-vl-tiny", "qwen2_5-vl-tiny", "qwen3-vl-tiny"] {
        let folder = tempfile::tempdir().unwrap();
        let written = folder.path().join("model.gguf");
        let converted = ModelFolder::open(Golden::folder(name)).unwrap();
        converted.convert_to_gguf(&written, WeightFormat::F32, &mut |_| {}).unwrap();
        for own in ["rope.dimension_sections", "n_deepstack_layers"] {
            assert_eq!(key(&written, own), key(&model(name), own), "{name}: {own}");
        }
        std::fs::copy(projector(name), folder.path().join("mmproj.gguf")).unwrap();
        let mut golden = Golden::of_mmproj(name);
        golden.path = folder.path().to_owned();
        super::check(&golden, Device::Cpu);
    }
}

/// The tiny model has 320 tokens.
#[test]
fn special_ids_without_a_token_are_omitted() {
    for (id, is_written) in [(319, true), (320, false)] {
        let folder = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(Golden::folder("qwen2-vl-tiny")).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        let path = folder.path().join("config.json");
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config["bos_token_id"] = id.into();
        std::fs::write(&path, config.to_string()).unwrap();
        let written = folder.path().join("model.gguf");
        let model = ModelFolder::open(folder.path()).unwrap();
        model.convert_to_gguf(&written, WeightFormat::F32, &mut |_| {}).unwrap();
        let bytes = FileBytes::Owned(std::fs::read(&written).unwrap().into());
        let file = GgufFile::read("model.gguf", bytes).unwrap();
        let found = file.metadata().raw("tokenizer.ggml.bos_token_id").unwrap();
        assert_eq!(found.is_some(), is_written, "{id}");
    }
}

#[test]
fn named_file_equals_a_file_beside_the_model() {
    let name = "smolvlm-tiny";
    let golden = Golden::of_mmproj(name);
    let rows = |folder: &ModelFolder| {
        assert!(folder.reads_images().unwrap());
        let vision = loaded(folder).unwrap().vision.unwrap();
        vision.encode(&golden.images[0], &ImageOptions::default()).unwrap().rows.values
    };
    let folder = ModelFolder::open(model(name)).unwrap();
    assert_eq!(folder.projector_file(), Some("mmproj-smolvlm-tiny.gguf"));
    let beside = rows(&folder);
    assert_eq!(beside, rows(&ModelFolder::open_with_projector(model(name), projector(name)).unwrap()));
    golden.assert_close("pictures.0.rows", &beside);
}

#[test]
fn foreign_file_is_an_error_only_if_named() {
    let width = "clip.vision.projection_dim";
    let wide = || with_key("smolvlm-tiny", width, GgufEntry::Size(48));
    let error = named("smolvlm-tiny", wide()).err().unwrap().to_string();
    assert_eq!(
        error,
        "other.gguf: `clip.vision.projection_dim` is 48, expected 32, the width of the text model"
    );
    let alone = found("smolvlm-tiny", wide());
    assert!(!alone.reads_images().unwrap() && loaded(&alone).unwrap().vision.is_none());

    let other = std::fs::read(projector("gemma3-tiny")).unwrap();
    let error = named("smolvlm-tiny", other.clone()).err().unwrap().to_string();
    assert!(error.contains("`clip.projector_type` is gemma3") && error.contains("llama"), "{error}");
    assert!(loaded(&found("smolvlm-tiny", other)).unwrap().vision.is_none());

    let unknown = || with_key("smolvlm-tiny", "clip.projector_type", GgufEntry::Text("seeing".into()));
    let error = named("smolvlm-tiny", unknown()).err().unwrap().to_string();
    assert!(error.contains("is seeing, supported: gemma3, ") && error.contains("idefics3"), "{error}");
    assert!(loaded(&found("smolvlm-tiny", unknown())).unwrap().vision.is_none());
}

#[test]
fn named_file_without_projector_is_rejected() {
    let error = ModelFolder::open_with_projector(model("smolvlm-tiny"), model("gemma3-tiny")).unwrap_err();
    assert!(error.to_string().contains("`general.architecture` is gemma3, supported: clip"), "{error}");
    let folder = Golden::folder("smolvlm-tiny");
    let error = ModelFolder::open_with_projector(folder, projector("smolvlm-tiny")).unwrap_err();
    assert!(matches!(error, Error::ProjectorWithoutGguf { .. }), "{error}");
    assert!(ModelFolder::open_with_projector(model("smolvlm-tiny"), "none.gguf").is_err());
}

#[test]
fn several_files_need_a_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(model("smolvlm-tiny"), folder.path().join("m.gguf")).unwrap();
    for name in ["mmproj-f16.gguf", "mmproj-f32.gguf"] {
        std::fs::copy(projector("smolvlm-tiny"), folder.path().join(name)).unwrap();
    }
    assert!(!ModelFolder::open(folder.path()).unwrap().reads_images().unwrap());
    std::fs::remove_file(folder.path().join("mmproj-f32.gguf")).unwrap();
    assert!(ModelFolder::open(folder.path()).unwrap().reads_images().unwrap());
}

#[test]
fn unknown_keys_and_tensors_are_errors() {
    let file = with_key("smolvlm-tiny", "clip.vision.feature_layer", GgufEntry::Ints(vec![1]));
    let error = loaded(&found("smolvlm-tiny", file)).err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().starts_with("mmproj.gguf"), "{error}");
    assert!(cause.contains("clip.vision.feature_layer"), "{cause}");
    let rename = |name: &str| name.replace("v.blk.1.ln1", "v.blk.1.ls1");
    let error =
        loaded(&found("smolvlm-tiny", changed("smolvlm-tiny", |_| true, Vec::new(), rename))).err().unwrap();
    assert!(
        matches!(&error, Error::UnexpectedTensor { tensor, .. } if tensor.starts_with("v.blk.1.ls1")),
        "{error}"
    );
}

#[test]
fn swapped_feed_forward_names_are_resolved_by_shape() {
    for name in ["smolvlm-tiny", "qwen2-vl-tiny", "qwen2_5-vl-tiny"] {
        let swapped = |name: &str| match (name.contains("ffn_up"), name.contains("ffn_down")) {
            (true, _) => name.replace("ffn_up", "ffn_down"),
            (_, true) => name.replace("ffn_down", "ffn_up"),
            _ => name.to_owned(),
        };
        let folder = found(name, changed(name, |_| true, Vec::new(), swapped));
        let golden = Golden::of_mmproj(name);
        let vision = loaded(&folder).unwrap().vision.unwrap();
        let media = vision.encode(&golden.images[0], &ImageOptions::default()).unwrap();
        golden.assert_close("pictures.0.rows", &media.rows.values);
    }
}

/// Rows of images under the limits of published models, counted by transformers' image processors.
#[test]
fn missing_limits_default_to_published_models() {
    let (small, large) = (ImageSize::new(30, 20), ImageSize::new(1100, 500));
    for (name, size, rows) in
        [("lfm2-vl-tiny", large, 742), ("qwen2-vl-tiny", small, 54), ("qwen3-vl-tiny", small, 1080)]
    {
        let file = changed(name, |key| !key.ends_with("_pixels"), Vec::new(), str::to_owned);
        let vision = loaded(&found(name, file)).unwrap().vision.unwrap();
        let layout = vision.layout(size, &ImageOptions::default()).unwrap();
        assert_eq!(layout.rows(), rows, "{name}");
    }
}

#[test]
fn invalid_numbers_are_errors_with_file_and_key() {
    let cases = [
        ("smolvlm-tiny", "clip.vision.patch_size", 0, "`clip.vision.patch_size` is 0"),
        ("smolvlm-tiny", "clip.vision.block_count", 1 << 30, "`clip.vision.block_count` is 1073741824"),
        ("smolvlm-tiny", "clip.vision.block_count", 3, "no tensor model.vision_model.encoder.layers.2."),
        ("smolvlm-tiny", "clip.vision.attention.head_count", 5, "`clip.vision.attention.head_count` is 5"),
        ("gemma3-tiny", "clip.vision.projector.scale_factor", 0, "`clip.vision.projector.scale_factor` is 0"),
        ("qwen2_5-vl-tiny", "clip.vision.n_wa_pattern", 0, "`clip.vision.n_wa_pattern` is 0"),
        ("qwen2_5-vl-tiny", "clip.vision.window_size", 3, "window_size` is 3"),
    ];
    for (name, key, value, expected) in cases {
        let file = with_key(name, key, GgufEntry::Size(value));
        let error = loaded(&found(name, file)).err().unwrap().to_string();
        assert!(error.contains("mmproj.gguf") && error.contains(expected), "{error}");
    }
}

/// Every number of every file replaced by others, and every key omitted: an error or a model, never a panic.
#[test]
fn changed_numbers_never_panic() {
    for name in names() {
        let bytes = std::fs::read(projector(&name)).unwrap();
        let file = GgufFile::read("mmproj.gguf", FileBytes::Owned(bytes.into())).unwrap();
        let keys: Vec<_> = file.metadata().keys().filter(|(key, _)| key.starts_with("clip.")).collect();
        for (key, ty) in keys {
            for value in [0, 1, 7, u32::MAX] {
                if ty == lm_formats::GgufValueType::U32 {
                    drop(loaded(&found(&name, with_key(&name, key, GgufEntry::Size(value)))));
                }
            }
            drop(loaded(&found(&name, changed(&name, |old| old != key, Vec::new(), str::to_owned))));
        }
    }
}

/// Blocks of 32 numbers: a step as a half, then a byte for each number.
fn q8_0(floats: &[u8]) -> Vec<u8> {
    let values: Vec<f32> =
        floats.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let block = |values: &[f32]| {
        let step = half::f16::from_f32(values.iter().fold(0.0_f32, |most, x| most.max(x.abs())) / 127.0);
        let bytes = values.iter().map(|x| (x / step.to_f32()).round() as i8 as u8);
        step.to_le_bytes().into_iter().chain(bytes).collect::<Vec<u8>>()
    };
    values.chunks_exact(32).flat_map(block).collect()
}

#[test]
fn quantised_tower_rows_are_close() {
    let name = "qwen3-vl-tiny";
    let bytes = std::fs::read(projector(name)).unwrap();
    let file = GgufFile::read("mmproj.gguf", FileBytes::Owned(bytes.clone().into())).unwrap();
    let mut entries = GgufEntries::default();
    for (key, _) in file.metadata().keys() {
        let (ty, raw) = file.metadata().raw(key).unwrap().unwrap();
        entries.put(key, GgufEntry::Copied(ty, raw.to_vec()));
    }
    let is_in_blocks = |name: &str| ["mm.0.weight", "mm.2.weight"].contains(&name);
    let block_type = lm_formats::GgufTensorType::from_name("Q8_0").unwrap();
    let new = |old: &lm_formats::GgufTensor| GgufNewTensor {
        name: old.name.clone(),
        ty: if is_in_blocks(&old.name) { block_type } else { old.ty },
        shape: old.shape.clone(),
    };
    let tensors: Vec<_> = file.tensors().iter().map(new).collect();
    let GgufHeader { bytes: mut out, tensors, .. } = GgufHeader::new(&entries, &tensors).unwrap();
    for (old, new) in file.tensors().iter().zip(&tensors) {
        out.resize(new.range.start, 0);
        let stored = &bytes[old.range.clone()];
        out.extend(if is_in_blocks(&old.name) { q8_0(stored) } else { stored.to_vec() });
    }
    let golden = Golden::of_mmproj(name);
    let vision = loaded(&found(name, out)).unwrap().vision.unwrap();
    let rows = vision.encode(&golden.images[0], &ImageOptions::default()).unwrap().rows.values;
    let expected = &golden.folder.tensors["pictures.0.rows"];
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    assert_eq!(rows.len(), expected.len());
    assert!(rows.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.03 * largest));
}

#[test]
fn footprint_includes_the_tower() {
    for name in names() {
        let folder = ModelFolder::open(model(&name)).unwrap();
        let (said, is) = (
            folder.footprint().unwrap().weight_bytes(None),
            crate::vision::load(&Golden::folder(&format!("mmproj/{name}")), Device::Cpu)
                .model
                .info()
                .weight_bytes,
        );
        assert!(said.abs_diff(is) <= is / 50, "{name}: {said}, it is {is}");
    }
}
