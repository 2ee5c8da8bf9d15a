//! No dense copy of a quantised weight remains or is created: the process grows by little more than the
//! packed bytes, during loading too.
//!
//! The load is measured in a separate process: memory that writing the model left in the allocator would be
//! reused and hide growth.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{TinyModel, load_with};
use lm_model::{Device, LoadOptions, WeightFormat};
use safetensors::tensor::Dtype;
use serde_json::json;

const TEST: &str = "memory::quantised_load_keeps_only_packed_bytes";
/// Environment variable with the model folder, set in the measuring process.
const FOLDER: &str = "LM_MODEL_MEMORY_TEST_FOLDER";
const SLACK: usize = 4 << 20;

#[test]
fn quantised_load_keeps_only_packed_bytes() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return measure(Path::new(&folder));
    }
    if anonymous_bytes().is_none() {
        println!("skipped: this system does not report a process's anonymous memory");
        return;
    }
    let dir = large_model().write();
    let program = std::env::current_exe().expect("a running test has a path");
    let output =
        Command::new(program).args([TEST, "--exact", "--nocapture"]).env(FOLDER, dir.path()).output();
    let output = output.expect("the test can run itself");
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the measuring process failed");
}

fn measure(folder: &Path) {
    let options =
        LoadOptions { device: Device::Cpu, quantization: Some(WeightFormat::Q4), ..LoadOptions::default() };
    // Threads and tables that a first load creates and keeps are not measured.
    drop(load_with(TinyModel::qwen3().write().path(), &options));
    // Reset the peak memory counter, where the system allows it.
    let counted_anew = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = anonymous_bytes().expect("it was reported before");
    let before_with_files = status_bytes("VmRSS:").expect("it was reported before");
    let loaded = load_with(folder, &options);
    let grown = anonymous_bytes().expect("it was reported before").saturating_sub(before);
    let info = loaded.model.info();
    let (packed, dense) = (info.weight_bytes as usize, info.parameters as usize * 2);
    println!("{} parameters, {packed} bytes packed, the process grew by {grown}", info.parameters);
    assert!(dense > packed + 3 * SLACK, "the model is too small to measure");
    assert!(grown + SLACK >= packed, "the measure does not see the weights");
    assert!(grown <= packed + SLACK, "more than the packed bytes remains");
    // The file's pages count too; they are released as they are packed.
    let most = status_bytes("VmHWM:").expect("it was reported before").saturating_sub(before_with_files);
    println!("at most it had grown by {most}, its files' pages included");
    // Half of the dense size leaves room for the current piece, partial pages, and the program's own pages.
    assert!(!counted_anew || most <= packed + dense / 2, "the source was held beside the packed bytes");
}

/// Anonymous memory in use in bytes, where the system reports it.
fn anonymous_bytes() -> Option<usize> {
    status_bytes("RssAnon:")
}

/// A line of the process's status, in bytes.
fn status_bytes(key: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

/// A model of about 16 million weights in bf16.
fn large_model() -> TinyModel {
    let mut model = TinyModel::qwen3();
    for (key, size) in
        [("hidden_size", 768), ("intermediate_size", 1536), ("head_dim", 128), ("num_attention_heads", 6)]
    {
        model.config[key] = json!(size);
    }
    TinyModel { dtype: Dtype::BF16, ..TinyModel::from_config(model.config) }
}
