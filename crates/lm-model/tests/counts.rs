//! Parallel loops and page faults of forward passes: counts that do not depend on other programs on the
//! machine.

mod common;

use std::sync::Arc;

use common::{Random, TinyModel, load_with};
use lm_kernels::Pool;
use lm_kernels::host::profile::{self, Work};
use lm_model::{Batch, CausalLm, KvPool, LoadOptions, LogitRows, SequenceInput, WeightFormat};
use serde_json::json;

/// Layers of the model; large enough that each of their products is more than one task.
const LAYERS: usize = 2;
/// Rows of the prefill.
const ROWS: usize = 256;
/// Loops of the head: the last norm and rounding; its product is one task.
const HEAD_LOOPS: u64 = 2;
/// Page faults of a repeated prefill. The results of its ops are thousands of pages, which are faulted in
/// again unless their memory is reused.
const MOST_FAULTS: u64 = 400;

fn model() -> Arc<dyn CausalLm> {
    let mut config = TinyModel::qwen3().config;
    for (key, value) in [
        ("hidden_size", 512),
        ("intermediate_size", 1024),
        ("num_attention_heads", 8),
        ("head_dim", 64),
        ("num_hidden_layers", LAYERS),
        ("max_position_embeddings", 2 * ROWS),
    ] {
        config[key] = json!(value);
    }
    config["use_sliding_window"] = json!(false);
    let options = LoadOptions { quantization: Some(WeightFormat::Q8), ..LoadOptions::default() };
    load_with(TinyModel::from_config(config).write().path(), &options).model
}

/// Parallel loops, page faults and logits of a pass.
struct Pass {
    loops: u64,
    faults: Option<u64>,
    logits: Vec<f32>,
}

/// Runs `count` new rows after `cached`.
fn pass(model: &dyn CausalLm, cache: &mut KvPool, cached: usize, count: usize) -> Pass {
    let pages: Vec<_> = (0..(cached + count).div_ceil(lm_model::PAGE_LEN) as u32).collect();
    let mut input = SequenceInput::ids(Random(cached as u64 + 1).ids(count), cached, pages);
    input.logits = LogitRows::All;
    let batch = Batch { sequences: common::for_groups(cache, vec![input]) };
    let (loops, faults) = (Pool::global().loops(), page_faults());
    let logits = model.forward(&batch, cache).expect("a pass");
    let faults = page_faults().zip(faults).map(|(after, before)| after - before);
    let loops = Pool::global().loops() - loops;
    Pass { loops, faults, logits: logits.sequence(0).rows().flatten().copied().collect() }
}

/// Page faults of this process that read no file; `None` where the system does not count them.
fn page_faults() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

// One test: the pool and the page faults are those of the whole process.
#[test]
fn loop_and_page_fault_counts_are_bounded() {
    let model = model();
    let mut cache = model.new_cache(ROWS / lm_model::PAGE_LEN + 1).expect("pages");
    profile::start();
    let prefills: Vec<_> = (0..3).map(|_| pass(&*model, &mut cache, 0, ROWS)).collect();
    let step = pass(&*model, &mut cache, ROWS, 1);
    let profile = profile::stop();
    assert_eq!(profile.spans(Work::Between), 4);
    assert_eq!(profile.spans(Work::Attention), 4 * LAYERS as u64);

    // Queries, keys and values; attention; its output; gate and up; down.
    assert_eq!(step.loops, 5 * LAYERS as u64);
    // The same and rounding before each product, norm and rotation of queries and of keys, keys and values to
    // pages.
    for prefill in &prefills {
        assert_eq!(prefill.loops, (5 + 4 + 4 + 1) * LAYERS as u64 + HEAD_LOOPS);
    }
    assert!(prefills.iter().all(|pass| pass.logits == prefills[0].logits), "memory was used again");
    if let Some(faults) = prefills[2].faults {
        println!("page faults: {:?} of the first prefill, {faults} of the third", prefills[0].faults);
        assert!(faults < MOST_FAULTS, "{faults} page faults of a repeated prefill");
    }
}
