//! Quantise-on-load: the packed form is kept, and the forward pass uses it.

use std::path::{Path, PathBuf};

use crate::common::{
    Random, Tensor, TinyModel, for_each_device, largest_difference, load, load_with, logits_of,
};
use lm_kernels::{PackedMatrix, Source};
use lm_model::{Device, KvDtype, LoadOptions, ModelFolder, ModelInfo, WeightFormat};

fn options(device: Device, format: WeightFormat) -> LoadOptions {
    LoadOptions { device, quantization: Some(format), kv_dtype: KvDtype::F32, ..LoadOptions::default() }
}

/// The model's tensors after a quantisation, written as f32.
fn rounded(model: &TinyModel, format: WeightFormat) -> TinyModel {
    let mut model = model.clone();
    for tensor in model.tensors.values_mut() {
        let &[rows, cols] = tensor.shape.as_slice() else { continue };
        let packed =
            PackedMatrix::pack(format, rows, cols, Source::F32(&tensor.values)).expect("it can be packed");
        for (row, values) in tensor.values.chunks_exact_mut(cols).enumerate() {
            packed.dequantize_row(row, values);
        }
    }
    model
}

/// The quantised model computes with the quantised weights: its logits are closer to those of the same
/// weights in f32 than to those of the weights before quantisation.
#[test]
fn computation_uses_the_quantised_weights() {
    for model in [TinyModel::qwen3(), TinyModel::llama()] {
        let exact = model.write();
        for format in [WeightFormat::Q8, WeightFormat::Q4] {
            let rounded = rounded(&model, format).write();
            for_each_device(|device| {
                let ids = Random(1).ids(24);
                let quantised = load_with(exact.path(), &options(device, format));
                assert_eq!(quantised.model.info().format, format);
                let got = logits_of(&*quantised.model, &ids);
                let from_rounded =
                    largest_difference(&got, &logits_of(&*load(rounded.path(), device).model, &ids));
                let from_exact =
                    largest_difference(&got, &logits_of(&*load(exact.path(), device).model, &ids));
                let what = format!(
                    "{device} {format}: {from_rounded} from rounded, {from_exact} from exact weights"
                );
                assert!(from_rounded < from_exact, "{what}");
                println!("{what}");
            });
        }
    }
}

#[test]
fn eight_bit_logits_are_close() {
    let dir = TinyModel::qwen3().write();
    assert_close_in_eight_bits(dir.path());
}

/// LayerNorm before blocks without a gate, and before parallel ones.
#[test]
fn eight_bit_logits_of_other_blocks_are_close() {
    for name in ["starcoder2-tiny-plain", "stablelm-tiny-parallel"] {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
        assert_close_in_eight_bits(&models.join(name));
    }
}

fn assert_close_in_eight_bits(dir: &Path) {
    for_each_device(|device| {
        let ids = Random(2).ids(24);
        let exact = logits_of(&*load(dir, device).model, &ids);
        let quantised = logits_of(&*load_with(dir, &options(device, WeightFormat::Q8)).model, &ids);
        let norm = |rows: &[Vec<f32>]| rows.iter().flatten().map(|v| v * v).sum::<f32>().sqrt();
        let difference: Vec<Vec<f32>> = exact
            .iter()
            .zip(&quantised)
            .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect())
            .collect();
        let relative = norm(&difference) / norm(&exact);
        assert!(relative > 0.0 && relative < 0.1, "{device}: relative error {relative}");
    });
}

/// Every matrix counts with its packed size once (a tied embedding too), every vector with four bytes an
/// element.
#[test]
fn weight_bytes_equal_the_packed_size() {
    for model in [TinyModel::qwen3(), TinyModel::llama()] {
        let dir = model.write();
        for format in
            [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4]
        {
            let bytes = |tensor: &Tensor| match *tensor.shape {
                [rows, cols] => {
                    PackedMatrix::pack(format, rows, cols, Source::F32(&tensor.values)).unwrap().bytes()
                }
                _ => 4 * tensor.values.len(),
            };
            let expected: usize = model.tensors.values().map(bytes).sum();
            let loaded = load_with(dir.path(), &options(Device::Cpu, format));
            assert_eq!(loaded.model.info().weight_bytes, expected as u64, "{format}");
            let parameters: usize = model.tensors.values().map(|tensor| tensor.values.len()).sum();
            assert_eq!(loaded.model.info().parameters, parameters as u64);
        }
    }
}

/// A converted folder is bit-identical to quantising the original on load.
#[test]
fn converted_folder_gives_the_same_logits() {
    let tiny = [TinyModel::qwen3(), TinyModel::llama()].map(|model| model.write());
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    // Layers with parameters that are neither vectors nor quantised.
    let states = ["lfm2-tiny", "qwen3_5-tiny"].map(|name| goldens.join(name));
    for original in tiny.iter().map(|folder| folder.path()).chain(states.iter().map(PathBuf::as_path)) {
        for format in [WeightFormat::Q8, WeightFormat::Q4] {
            let parent = tempfile::tempdir().expect("a temporary folder");
            let converted = parent.path().join("converted");
            let folder = ModelFolder::open(original).expect("the original is there");
            folder.convert(&converted, format, &mut |_| {}).expect("it can be converted");
            assert_eq!(
                std::fs::read_dir(parent.path()).expect("is there").count(),
                1,
                "nothing else is left"
            );
            for_each_device(|device| {
                let ids = Random(3).ids(24);
                let on_load = load_with(original, &options(device, format));
                let before = LoadOptions { quantization: None, ..options(device, format) };
                let loaded = load_with(&converted, &before);
                // The checksum is that of the file's bytes.
                let checksum = on_load.model.info().checksum;
                assert_ne!(loaded.model.info().checksum, checksum);
                assert_eq!(&ModelInfo { checksum, ..loaded.model.info().clone() }, on_load.model.info());
                assert_eq!(
                    logits_of(&*loaded.model, &ids),
                    logits_of(&*on_load.model, &ids),
                    "{} on {device} as {format}",
                    original.display()
                );
            });
        }
    }
}

#[test]
fn failed_conversion_leaves_no_files() {
    let mut model = TinyModel::qwen3();
    let name = "model.layers.1.mlp.up_proj.weight";
    model.tensors.get_mut(name).expect("a tensor of qwen3").values[5] = f32::NAN;
    let original = model.write();
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = ModelFolder::open(original.path()).expect("the original is there");
    let convert = |to: &str, format| {
        let error = folder.convert(parent.path().join(to), format, &mut |_| {}).expect_err("is rejected");
        error.to_string()
    };
    assert!(convert("out", WeightFormat::Q4).contains(name));
    assert!(convert("out", WeightFormat::F16).contains("q8, q4"));
    assert_eq!(std::fs::read_dir(parent.path()).expect("is there").count(), 0);
    std::fs::write(parent.path().join("file"), "mine").expect("can be written");
    assert!(convert("file", WeightFormat::Q8).contains("cannot be written"));
    assert_eq!(std::fs::read(parent.path().join("file")).expect("is still there"), b"mine");
}

#[test]
fn converted_folder_has_card_and_licence() {
    let original = TinyModel::qwen3().write();
    let texts = [
        ("README.md", "---\nlicense: mit\n---\n# Model\n"),
        ("LICENSE-MODEL", "Permission is granted\n"),
        ("Notice.txt", "Made by us\n"),
        ("LICENCE", "Of the tokenizer\n"),
        ("USE_POLICY.md", "For good\n"),
        ("generation_config.json", "{\"temperature\": 0.5}"),
    ];
    for (name, text) in texts {
        std::fs::write(original.path().join(name), text).expect("can be written");
    }
    std::fs::create_dir(original.path().join("NOTICE")).expect("can be created");
    std::fs::write(original.path().join("notes.txt"), "mine").expect("can be written");
    let parent = tempfile::tempdir().expect("a temporary folder");
    let converted = parent.path().join("converted");
    let folder = ModelFolder::open(original.path()).expect("the original is there");
    folder.convert(&converted, WeightFormat::Q8, &mut |_| {}).expect("it can be converted");
    assert!(!converted.join("NOTICE").exists() && !converted.join("notes.txt").exists());
    for (name, text) in texts {
        assert_eq!(std::fs::read_to_string(converted.join(name)).expect("was copied"), text);
    }
    let licence = ModelFolder::open(&converted).expect("was written").licence().expect("can be read");
    assert_eq!(licence.as_deref(), Some("mit"));
}

#[test]
fn converted_folder_is_checked() {
    let original = TinyModel::qwen3().write();
    let parent = tempfile::tempdir().expect("a temporary folder");
    let converted = parent.path().join("converted");
    let folder = ModelFolder::open(original.path()).expect("the original is there");
    folder.convert(&converted, WeightFormat::Q4, &mut |_| {}).expect("it can be converted");
    let folder = ModelFolder::open(&converted).expect("was written");
    let load = |options: &LoadOptions| folder.load(options, &mut |_| {}).err().map(|error| error.to_string());
    let other = load(&options(Device::Cpu, WeightFormat::Q8)).expect("is rejected");
    assert_eq!(
        other,
        "the weights are quantised already: they are stored in q4 and cannot be loaded or written in q8"
    );
    let again =
        folder.convert(parent.path().join("again"), WeightFormat::Q4, &mut |_| {}).expect_err("is rejected");
    assert!(again.to_string().contains("stored in q4"), "{again}");
    // Declared as the other format, the quants have the wrong shape.
    let config = std::fs::read_to_string(converted.join("config.json")).expect("was written");
    std::fs::write(converted.join("config.json"), config.replace("\"q4\"", "\"q8\""))
        .expect("can be written");
    assert!(load(&LoadOptions::default()).expect("is rejected").contains("has shape"));
}
