//! A safetensors file: parsing gives the locations of its tensors, and the memory footprint in each quantised
//! format, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_formats::FileBytes;
use lm_model::ModelFolder;

/// `quantization_config` of each quantised format that stores a weight in several tensors.
const FORMS: [&str; 6] = [
    r#"{"quant_method": "awq", "bits": 4, "group_size": 32}"#,
    r#"{"quant_method": "gptq", "bits": 8, "group_size": -1}"#,
    r#"{"quant_method": "mxfp4"}"#,
    r#"{"quant_method": "fp8", "weight_block_size": [2, 3]}"#,
    r#"{"quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"a": {"weights": {"num_bits": 4, "symmetric": false, "group_size": 32}}}}"#,
    r#"{"quant_method": "compressed-tensors", "format": "int-quantized",
        "config_groups": {"a": {"weights": {"strategy": "channel"}}}}"#,
];
const CONFIG: &str = r#"{"model_type": "llama", "vocab_size": 8, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "quantization_config": "#;

fuzz_target!(|bytes: &[u8]| {
    let file = ("model.safetensors".to_owned(), FileBytes::Owned(bytes.into()));
    let Ok(tensors) = ModelFolder::in_memory("fuzz", vec![file.clone()]).and_then(|model| model.tensors())
    else {
        return;
    };
    let total: usize = tensors.iter().map(|tensor| tensor.bytes).sum();
    assert!(total <= bytes.len(), "{total} bytes of tensors in a file of {}", bytes.len());
    for form in FORMS {
        let config =
            ("config.json".to_owned(), FileBytes::Owned(format!("{CONFIG}{form}}}").into_bytes().into()));
        let Ok(model) = ModelFolder::in_memory("fuzz", vec![config, file.clone()]) else { continue };
        assert!(model.config().is_ok(), "{form}");
        let _ = model.footprint();
    }
});
