//! Parallel loops and page faults of forward passes: counts, which no other program on the machine changes.

mod common;

use common::{Random, TinyModel, load_with};
use lm_kernels::Pool;
use lm_kernels::host::profile::{self, Work};
use lm_model::{Batch, CausalLm, Device, KvPool, LoadOptions, SequenceInput, WeightFormat};
use serde_json::json;

/// Layers of the model; large enough that each of their products is more than one task.
const LAYERS: usize = 2;
/// Rows of the prefill.
const ROWS: usize = 256;

fn model() -> std::sync::Arc<dyn CausalLm> {
    let mut config = TinyModel::qwen3().config;
    for (key, value) in [
        ("hidden_size", 512),
        ("intermediate_size", 1024),
        ("num_attention_heads", 8),
        ("head_dim", 64),
        ("num_hidden_layers", LAYERS),
    ] {
        config[key] = json!(value);
    }
    config["use_sliding_window"] = json!(false);
    let options = LoadOptions { quantization: Some(WeightFormat::Q8), ..LoadOptions::default() };
    load_with(TinyModel::from_config(config).write().path(), &options).model
}

/// Runs `count` new rows after `cached`; returns the parallel loops and the page faults of the pass.
fn pass(model: &dyn CausalLm, cache: &mut KvPool, cached: usize, count: usize) -> (u64, Option<u64>) {
    let pages = (0..(cached + count).div_ceil(lm_model::PAGE_LEN) as u32).collect();
    let input = SequenceInput::ids(&Random(cached as u64 + 1).ids(count), cached, pages);
    let batch = Batch { sequences: common::for_groups(cache, vec![input]) };
    let (loops, faults) = (Pool::global().loops(), page_faults());
    model.forward(&batch, cache).expect("a pass");
    let faults = page_faults().zip(faults).map(|(after, before)| after - before);
    (Pool::global().loops() - loops, faults)
}

/// Page faults of this process that read no file; `None` where the system does not count them.
fn page_faults() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

// One test: the pool and the page faults are those of the whole process.
#[test]
fn loops_and_page_faults_are_few() {
    let model = model();
    let mut cache = model.new_cache(ROWS / lm_model::PAGE_LEN + 1).expect("pages");
    profile::start();
    let passes: Vec<_> = (0..3).map(|_| pass(&*model, &mut cache, 0, ROWS)).collect();
    let step = pass(&*model, &mut cache, ROWS, 1);
    let profile = profile::stop();
    println!("prefill (loops, page faults): {passes:?}, step: {step:?}");
    assert_eq!(profile.spans(Work::Between), 4);
    assert_eq!(profile.spans(Work::Attention), 4 * LAYERS as u64);
}
