//! A step of several rows of a sequence, the later ones draft tokens, gives each row the bits that it has in
//! a step of its own: the tiny models of every architecture.

use std::path::Path;

use crate::common::{Random, forward, load_with};
use lm_model::{
    CausalLm, Device, KvDtype, LoadOptions, LogitRows, PAGE_LEN, PageId, SequenceInput, WeightFormat,
};
use lm_tokenizer::TokenId;

/// Tokens of a sequence.
const TOKENS: usize = 70;
/// Tokens of its prompt.
const PROMPT: usize = 19;

/// Bits of the logits of each row after the prompt. A step runs the next token and up to `drafts` more, and
/// keeps a random number of them: the others run again, after draft tokens that were wrong.
fn decoded(model: &dyn CausalLm, ids: &[TokenId], drafts: usize) -> Vec<Vec<u32>> {
    let mut random = Random(5);
    let pages: Vec<PageId> = (0..ids.len().div_ceil(PAGE_LEN) as PageId).collect();
    let mut cache = model.new_cache(pages.len()).unwrap();
    forward(model, &mut cache, vec![SequenceInput::ids(&ids[..PROMPT], 0, pages.clone())]);
    let mut bits: Vec<Vec<u32>> = Vec::new();
    while PROMPT + bits.len() < ids.len() {
        let cached = PROMPT + bits.len();
        let right = 1 + random.below(drafts + 1);
        let mut rows = ids[cached..ids.len().min(cached + 1 + drafts)].to_vec();
        let kept = right.min(rows.len());
        rows[kept..].iter_mut().for_each(|id| *id = (*id + 1) % 96);
        let mut input = SequenceInput::ids(rows, cached, pages.clone());
        (input.final_len, input.logits) = (cached + 1, LogitRows::All);
        let logits = forward(model, &mut cache, vec![input]).remove(0);
        bits.extend(logits[..kept].iter().map(|row| row.iter().map(|x| x.to_bits()).collect()));
    }
    bits
}

#[test]
fn draft_rows_equal_single_steps() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let mut folders: Vec<_> = std::fs::read_dir(models).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("config.json").exists());
    folders.sort();
    let mut compared = 0;
    for (index, folder) in folders.iter().enumerate() {
        // One form of the weights and of the cache each, so that all are met.
        let quantization = [None, Some(WeightFormat::Q8), Some(WeightFormat::Q4)][index % 3];
        let kv_dtype = [KvDtype::F16, KvDtype::Q8][index % 2];
        let options = LoadOptions { device: Device::Cpu, quantization, kv_dtype, ..LoadOptions::default() };
        let model = load_with(folder, &options).model;
        let recurrent = model.new_cache(1).unwrap().layout().layers().iter().any(|layer| {
            matches!(layer, lm_model::LayerCache::State { .. }) // Its state cannot be rolled back.
        });
        if recurrent || model.info().context_len < TOKENS {
            continue;
        }
        let ids = Random(index as u64).ids(TOKENS);
        assert!(decoded(&*model, &ids, 4) == decoded(&*model, &ids, 0), "{}", folder.display());
        compared += 1;
    }
    assert!(compared >= 40, "{compared} models");
}
