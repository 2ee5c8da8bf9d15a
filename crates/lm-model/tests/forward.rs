//! What a forward pass promises, on tiny random models of each architecture and on every device of this build.

mod common;

use common::{
    Random, TinyModel, VOCAB, assert_close, assert_same, for_each_device, for_groups, forward,
    largest_difference, load_with, logits_of,
};
use lm_model::{
    AttentionKind, AttentionSpan, Batch, BatchProblem, CausalLm, Device, Error, KvDtype, LoadOptions,
    LogitRows, PAGE_LEN, PageId, SequenceInput, TokenId, WeightFormat,
};

/// Runs a body with each architecture on each device.
fn for_each_model(test: impl Fn(&dyn CausalLm)) {
    for_each_format(&[None], test);
}

/// Runs a body with each architecture on each device; quantised ones with a cache in f16 on CPU devices.
fn for_each_format(formats: &[Option<WeightFormat>], test: impl Fn(&dyn CausalLm)) {
    let folders = [TinyModel::qwen3(), TinyModel::llama()].map(|model| model.write());
    for_each_device(|device| {
        for (folder, &quantization) in
            folders.iter().flat_map(|folder| formats.iter().map(move |f| (folder, f)))
        {
            // On a GPU rounding may move a key over a border between two halves.
            let halves = quantization.is_some() && device != Device::Gpu;
            let kv_dtype = if halves { KvDtype::F16 } else { KvDtype::F32 };
            let options = LoadOptions { device, quantization, kv_dtype, ..LoadOptions::default() };
            test(&*load_with(folder.path(), &options).model);
        }
    });
}

const FORMATS: [Option<WeightFormat>; 3] = [None, Some(WeightFormat::Q8), Some(WeightFormat::Q4)];

/// Pages for `slots` slots, drawn from the far end of the pool and out of order.
fn pages(slots: usize, free: &mut Vec<PageId>) -> Vec<PageId> {
    (0..slots.div_ceil(PAGE_LEN)).map(|_| free.swap_remove(free.len() / 2)).collect()
}

#[test]
fn logits_spread_as_a_test_needs() {
    for_each_model(|model| {
        let rows = logits_of(model, &Random(9).ids(40));
        let mean = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / (40 * VOCAB) as f32;
        let average = mean(&mut rows.iter().flatten().copied());
        let variance = mean(&mut rows.iter().flatten().map(|v| (v - average).powi(2)));
        assert!(variance > 1.0, "{}: variance {variance}", model.info().architecture);
    });
}

#[test]
fn eight_sequences_in_one_batch_give_each_ones_own_logits() {
    for_each_format(&FORMATS, |model| {
        let mut random = Random(2);
        let mut free: Vec<PageId> = (0..40).collect();
        let mut cache = model.new_cache(40).unwrap();
        let prompts: Vec<Vec<TokenId>> =
            [1, 70, 33, 2, 32, 45, 64, 9].iter().map(|&len| random.ids(len + 5)).collect();
        let tables: Vec<_> = prompts.iter().map(|prompt| pages(prompt.len(), &mut free)).collect();
        // Half of them already hold a part, so that one batch has prompts and continuations.
        let cached = |i: usize| if i.is_multiple_of(2) { 0 } else { prompts[i].len() / 2 };
        let begun = (0..8)
            .filter(|i| i % 2 == 1)
            .map(|i| SequenceInput::ids(&prompts[i][..cached(i)], 0, tables[i].clone()))
            .collect();
        forward(model, &mut cache, begun);
        let rest = (0..8).map(|i| {
            let mut input = SequenceInput::ids(&prompts[i][cached(i)..], cached(i), tables[i].clone());
            input.logits = LogitRows::All;
            input
        });
        let batched = forward(model, &mut cache, rest.collect());
        for i in 0..8 {
            let alone = logits_of(model, &prompts[i]);
            let what = format!("{} sequence {i}", model.info().architecture);
            assert_same(model, &batched[i], &alone[cached(i)..], &what);
        }
    });
}

#[test]
fn embedding_rows_give_the_logits_of_their_ids() {
    for_each_model(|model| {
        let ids = Random(3).ids(37);
        let mut cache = model.new_cache(8).unwrap();
        let rows = model.embed(&ids).unwrap();
        assert_eq!(rows.rows(), ids.len());
        // Between two sequences of ids, so that the rows of the batch come from both kinds.
        let mut inputs = vec![
            SequenceInput::ids(&ids[..5], 0, [0]),
            SequenceInput::embeddings(rows, 0, [1, 2]),
            SequenceInput::ids(ids.as_slice(), 0, [3, 4]),
        ];
        for input in &mut inputs {
            input.logits = LogitRows::All;
        }
        let logits = forward(model, &mut cache, inputs);
        assert_same(model, &logits[1], &logits[2], "embeddings against ids");
        assert_same(model, &logits[0], &logits[2][..5], "the prefix");
    });
}

#[test]
fn prefill_at_once_in_pieces_and_token_by_token_agree() {
    for_each_format(&FORMATS, |model| {
        let ids = Random(4).ids(75);
        let whole = logits_of(model, &ids);
        for pieces in [vec![75], vec![31, 1, 1, 42], vec![32, 43], vec![3, 64, 8], vec![1; 75]] {
            let mut cache = model.new_cache(5).unwrap();
            let mut rows = Vec::new();
            let mut cached = 0;
            for piece in &pieces {
                let mut input = SequenceInput::ids(&ids[cached..cached + piece], cached, [4, 0, 2]);
                input.logits = LogitRows::All;
                rows.extend(forward(model, &mut cache, vec![input]).remove(0));
                cached += piece;
            }
            assert_same(model, &rows, &whole, &format!("pieces {pieces:?}"));
        }
    });
}

#[test]
fn the_rows_asked_for_come_in_their_order() {
    for_each_model(|model| {
        let ids = Random(5).ids(6);
        let all = logits_of(model, &ids);
        let cases = [
            (LogitRows::None, vec![]),
            (LogitRows::Last, vec![5]),
            (LogitRows::Rows(vec![4, 0, 4]), vec![4, 0, 4]),
            (LogitRows::Rows(vec![]), vec![]),
        ];
        let inputs = cases.iter().enumerate().map(|(page, (rows, _))| {
            let mut input = SequenceInput::ids(ids.as_slice(), 0, [page as PageId]);
            input.logits = rows.clone();
            input
        });
        let logits = forward(model, &mut model.new_cache(4).unwrap(), inputs.collect());
        for (logits, (asked, rows)) in logits.iter().zip(&cases) {
            let expected: Vec<_> = rows.iter().map(|&row: &usize| all[row].clone()).collect();
            assert_close(logits, &expected, &format!("{asked:?}"));
        }
    });
}

#[test]
fn a_batch_that_cannot_run_leaves_the_cache_as_it_was() {
    for_each_model(|model| {
        let ids = Random(6).ids(40);
        let mut cache = model.new_cache(4).unwrap();
        forward(model, &mut cache, vec![SequenceInput::ids(&ids[..39], 0, [0, 1])]);
        // The first sequence would overwrite the cached slots; the second stops the batch.
        let good = SequenceInput::ids(Random(7).ids(39), 0, [0, 1]);
        let bad = SequenceInput::ids([VOCAB as TokenId], 0, [2]);
        let error =
            model.forward(&Batch { sequences: for_groups(&cache, vec![good, bad]) }, &mut cache).unwrap_err();
        assert!(
            matches!(error, Error::Batch { sequence: 1, problem: BatchProblem::UnknownToken { row: 0, .. } }),
            "{error:?}"
        );
        let last = forward(model, &mut cache, vec![SequenceInput::ids(&ids[39..], 39, [0, 1])]);
        assert_close(&last[0], &logits_of(model, &ids)[39..], "after the failed batch");
    });
}

#[test]
fn a_copied_page_goes_on_by_itself() {
    for_each_model(|model| {
        let mut random = Random(8);
        let shared = random.ids(40);
        let mut cache = model.new_cache(4).unwrap();
        forward(model, &mut cache, vec![SequenceInput::ids(shared.as_slice(), 0, [3, 1])]);
        for group in 0..cache.layout().groups().len() as PageId {
            let groups = cache.layout().groups().len() as PageId;
            cache.copy_page(0, groups + group, 2 * groups + group);
        }
        let tails = [random.ids(3), random.ids(4)];
        let inputs = tails
            .iter()
            .zip([[3, 1], [3, 2]])
            .map(|(tail, table)| SequenceInput::ids(tail.as_slice(), 40, table));
        let logits = forward(model, &mut cache, inputs.collect());
        for (tail, logits) in tails.iter().zip(&logits) {
            let whole = logits_of(model, &[shared.as_slice(), tail].concat());
            assert_close(logits, &whole[whole.len() - 1..], "after a copied page");
        }
    });
}

#[test]
fn rows_of_a_bidirectional_span_see_each_other() {
    for_each_model(|model| {
        let ids = [5, 6, 7, 8, 9, 10];
        let mut changed = ids;
        changed[3] = 20;
        let rows_of = |ids: &[TokenId], kind: AttentionKind| {
            let mut input = SequenceInput::ids(ids, 0, [0]);
            input.spans = vec![AttentionSpan { rows: 1..4, kind }];
            input.logits = LogitRows::Rows(vec![0, 1]);
            forward(model, &mut model.new_cache(1).unwrap(), vec![input]).remove(0)
        };
        let causal = largest_difference(
            &rows_of(&ids, AttentionKind::Causal),
            &rows_of(&changed, AttentionKind::Causal),
        );
        assert_eq!(causal, 0.0, "a causal row saw a later one");
        let (before, after) =
            (rows_of(&ids, AttentionKind::Bidirectional), rows_of(&changed, AttentionKind::Bidirectional));
        assert_eq!(before[0], after[0], "the row before the span saw into it");
        assert_ne!(before[1], after[1], "the span's first row did not see its last");
    });
}

#[test]
fn positions_steer_rope_and_slots_the_cache() {
    for_each_model(|model| {
        let ids = Random(10).ids(12);
        let whole = logits_of(model, &ids);
        let at = |first: u32| {
            let mut input = SequenceInput::ids(ids.as_slice(), 0, [0]);
            input.positions = (first..first + 12).collect();
            input.logits = LogitRows::All;
            forward(model, &mut model.new_cache(1).unwrap(), vec![input]).remove(0)
        };
        // RoPE is relative: a common shift changes nothing, other distances do.
        assert!(largest_difference(&at(100), &whole) < 2e-3, "shifted");
        let mut spread = SequenceInput::ids(ids.as_slice(), 0, [0]);
        spread.positions = (0..12).map(|p| 3 * p).collect();
        spread.logits = LogitRows::All;
        let spread = forward(model, &mut model.new_cache(1).unwrap(), vec![spread]).remove(0);
        assert!(largest_difference(&spread, &whole) > 0.02, "spread");
    });
}

#[test]
fn an_empty_batch_and_a_foreign_cache() {
    for_each_model(|model| {
        let mut cache = model.new_cache(1).unwrap();
        assert_eq!(model.forward(&Batch::default(), &mut cache).unwrap().num_sequences(), 0);
        assert_eq!(model.embed(&[]).unwrap().rows(), 0);
        assert!(matches!(
            model.embed(&[0, 96]),
            Err(Error::Batch { problem: BatchProblem::UnknownToken { row: 1, .. }, .. })
        ));
        let batch = Batch { sequences: vec![SequenceInput::ids([1], 0, [0])] };
        let error = model.forward(&batch, &mut lm_model::KvPool::empty(1)).unwrap_err();
        assert!(matches!(error, Error::ForeignCache { got: 0, .. }), "{error:?}");
    });
}
