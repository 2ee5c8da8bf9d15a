//! Guarantees of a forward pass, on tiny random models of each architecture and on every device of this
//! build.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    Random, TinyModel, VOCAB, assert_close, assert_same, for_each_device, for_groups, forward, is_thorough,
    largest_difference, load, load_with, logits_of,
};
use lm_model::{
    AttentionKind, AttentionSpan, Batch, BatchProblem, CausalLm, Device, Embeddings, EncodedMedia, Error,
    KvDtype, LoadOptions, LogitRows, MediaSlice, PAGE_LEN, PageId, Position, PrefetchPlan, SequenceInput,
    WeightFormat, choose_prefetch_plan,
};
use lm_tokenizer::TokenId;
use safetensors::tensor::Dtype;

/// Runs a body with each architecture on each device, weights as stored and the cache in f32.
fn for_each_model(test: impl Fn(&dyn CausalLm)) {
    let folders = [TinyModel::qwen3(), TinyModel::llama()].map(|model| model.write());
    for_each_device(|device| folders.iter().for_each(|folder| test(&*load(folder.path(), device).model)));
}

/// Runs a body with each architecture, each form of its weights and each of its cache on each device; the
/// form has a name.
fn for_each_form(test: impl Fn(&dyn CausalLm, &str)) {
    for mut model in [TinyModel::qwen3(), TinyModel::llama()] {
        // Room for more than one chunk of attention.
        model.config["max_position_embeddings"] = 1024.into();
        let folders = [Dtype::F32, Dtype::BF16].map(|dtype| TinyModel { dtype, ..model.clone() }.write());
        for_each_device(|device| {
            for (folder, quantization) in
                [(0, None), (1, None), (1, Some(WeightFormat::Q8)), (1, Some(WeightFormat::Q4))]
            {
                for kv_dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
                    // On a GPU rounding may move a key over a border between two halves.
                    if device == Device::Gpu && kv_dtype != KvDtype::F32 {
                        continue;
                    }
                    // Weights of other formats are those of `goldens` and `quantized` there.
                    if !is_thorough(device) && quantization != Some(WeightFormat::Q4) {
                        continue;
                    }
                    let options = LoadOptions { device, quantization, kv_dtype, ..LoadOptions::default() };
                    let model = load_with(folders[folder].path(), &options).model;
                    let info = model.info();
                    let form = format!("{} {} on {device}, cache {kv_dtype}", info.architecture, info.format);
                    test(&*model, &form);
                }
            }
        });
    }
}

/// A pass takes a tenth of a second on a software Vulkan driver: there the tests run fewer.
fn is_slow(model: &dyn CausalLm) -> bool {
    model.info().device == Device::Gpu
}

/// More than the 256 slots of a chunk of attention; on a slow device more than a page.
fn long(model: &dyn CausalLm) -> usize {
    if is_slow(model) { 44 } else { 300 }
}

/// Runs `ids` in chunks, in pages out of order; returns the logits of every row.
fn in_pieces(model: &dyn CausalLm, ids: &[TokenId], pieces: &[usize]) -> Vec<Vec<f32>> {
    assert_eq!(pieces.iter().sum::<usize>(), ids.len());
    let mut free: Vec<PageId> = (0..20).collect();
    let table = pages(ids.len(), &mut free);
    let mut cache = model.new_cache(20).expect("twenty pages");
    let mut rows = Vec::new();
    for piece in pieces {
        let cached = rows.len();
        let mut input = SequenceInput::ids(&ids[cached..cached + piece], cached, table.clone());
        input.logits = LogitRows::All;
        rows.extend(forward(model, &mut cache, vec![input]).remove(0));
    }
    rows
}

/// Draws pages for `slots` slots from the pool, out of order.
fn pages(slots: usize, free: &mut Vec<PageId>) -> Vec<PageId> {
    (0..slots.div_ceil(PAGE_LEN)).map(|_| free.swap_remove(free.len() / 2)).collect()
}

#[test]
fn logits_are_spread_enough_for_tests() {
    for_each_model(|model| {
        let rows = logits_of(model, &Random(9).ids(40));
        let mean = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / (40 * VOCAB) as f32;
        let average = mean(&mut rows.iter().flatten().copied());
        let variance = mean(&mut rows.iter().flatten().map(|v| (v - average).powi(2)));
        assert!(variance > 1.0, "{}: variance {variance}", model.info().architecture);
    });
}

/// Prompts, continuations, a single decoded token and a draft of four, each with its own length.
#[test]
fn batched_sequences_give_their_own_logits() {
    for_each_form(|model, form| {
        let mut random = Random(2);
        let mut free: Vec<PageId> = (0..40).collect();
        let mut cache = model.new_cache(40).unwrap();
        let (most, cached) = (long(model), [0, 37, 0, 38, 0, 25, 0, long(model) - 1]);
        let prompts = [1, 75, 38, 42, 37, 50, 69, most].map(|len| random.ids(len));
        let tables: Vec<_> = prompts.iter().map(|prompt| pages(prompt.len(), &mut free)).collect();
        let started = (0..8)
            .filter(|&i| cached[i] > 0)
            .map(|i| SequenceInput::ids(&prompts[i][..cached[i]], 0, tables[i].clone()));
        forward(model, &mut cache, started.collect());
        let rest = (0..8).map(|i| {
            let mut input = SequenceInput::ids(&prompts[i][cached[i]..], cached[i], tables[i].clone());
            input.logits = LogitRows::All;
            input
        });
        let batched = forward(model, &mut cache, rest.collect());
        for i in 0..8 {
            let alone = logits_of(model, &prompts[i]);
            assert_same(model, &batched[i], &alone[cached[i]..], &format!("{form}: sequence {i}"));
        }
    });
}

#[test]
fn embedding_rows_equal_their_ids() {
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
fn image_rows_replace_token_rows() {
    for_each_model(|model| {
        let ids = Random(3).ids(37);
        let media =
            Arc::new(EncodedMedia { rows: model.embed(&ids[4..20]).unwrap(), ..EncodedMedia::default() });
        let slice = |row, range| MediaSlice { row, media: Arc::clone(&media), range };
        let mut shown = ids.clone();
        shown[6..20].fill(0);
        // The first two rows of the image are not shown, the others are in two calls.
        let calls = [(0..9, vec![slice(6, 2..5)]), (9..37, vec![slice(6, 11..16), slice(0, 5..11)])];
        let mut cache = model.new_cache(4).unwrap();
        let mut rows = Vec::new();
        for (call, media) in calls {
            let other = SequenceInput::ids(&ids[..3], 0, [3]);
            let input = SequenceInput::ids(&shown[call.clone()], call.start, [0, 1]);
            let input = SequenceInput { media, logits: LogitRows::All, ..input };
            rows.extend(forward(model, &mut cache, vec![other, input]).remove(1));
        }
        assert_same(model, &rows, &logits_of(model, &ids), "rows against ids");
        assert_ne!(rows, logits_of(model, &shown));
    });
}

#[test]
fn deep_layer_rows_are_added_at_any_chunk_start() {
    for_each_model(|model| {
        let ids = Random(5).ids(30);
        let embedded = |seed| model.embed(&Random(seed).ids(12)).unwrap();
        let logits = |deep: Vec<Embeddings>, cuts: &[usize]| {
            let media = Arc::new(EncodedMedia { rows: embedded(6), deep });
            let mut cache = model.new_cache(2).unwrap();
            let (mut rows, mut start) = (Vec::new(), 0);
            for &end in cuts {
                let mut input = SequenceInput::ids(&ids[start..end], start, [0, 1]);
                // The image has the rows 4 to 16 of the sequence.
                let shown = start.max(4)..end.min(16);
                if !shown.is_empty() {
                    let range = shown.start - 4..shown.end - 4;
                    input.media = vec![MediaSlice { row: shown.start - start, media: media.clone(), range }];
                }
                rows.extend(
                    forward(model, &mut cache, vec![SequenceInput { logits: LogitRows::All, ..input }])
                        .remove(0),
                );
                start = end;
            }
            rows
        };
        let whole = logits(vec![embedded(7), embedded(8)], &[30]);
        assert_same(model, &logits(vec![embedded(7), embedded(8)], &[7, 12, 30]), &whole, "in three calls");
        for deep in [vec![], vec![embedded(7)], vec![embedded(8), embedded(7)]] {
            let other = logits(deep, &[30]);
            assert_same(model, &other[..4], &whole[..4], "rows before the image");
            assert!(largest_difference(&other, &whole) > 0.02, "deeper rows hardly show");
        }
    });
}

#[test]
fn prefill_does_not_depend_on_chunks() {
    for_each_form(|model, form| {
        let mut random = Random(4);
        let ids = random.ids(long(model));
        let whole = logits_of(model, &ids);
        for _ in 0..if is_slow(model) { 2 } else { 4 } {
            let mut pieces = Vec::new();
            let mut left = ids.len();
            while left > 0 {
                // Small pieces as often as large ones.
                let most = [1, 8, 40, left][random.below(4)].min(left);
                pieces.push(1 + random.below(most));
                left -= pieces[pieces.len() - 1];
            }
            let rows = in_pieces(model, &ids, &pieces);
            assert_same(model, &rows, &whole, &format!("{form}: pieces {pieces:?}"));
        }
    });
}

#[test]
fn decode_logits_equal_prefill() {
    for_each_form(|model, form| {
        let ids = Random(11).ids(long(model));
        // On a slow device only the tokens around the border of the first page.
        let prefilled = if is_slow(model) { PAGE_LEN - 4 } else { 0 };
        let pieces = std::iter::repeat_n(1, ids.len() - prefilled);
        let pieces: Vec<_> = (prefilled > 0).then_some(prefilled).into_iter().chain(pieces).collect();
        let decoded = in_pieces(model, &ids, &pieces);
        assert_same(model, &decoded, &logits_of(model, &ids), form);
    });
}

#[test]
fn head_of_hidden_states_equals_the_forward_pass() {
    for_each_form(|model, form| {
        let ids = Random(13).ids(37);
        let mut input = SequenceInput::ids(&ids[..], 0, [0, 1]);
        input.logits = LogitRows::Rows(vec![3, 0, 36, 20, 21]);
        let run = || {
            let mut cache = model.new_cache(2).unwrap();
            let sequences = for_groups(&cache, vec![input.clone()]);
            model.hidden(&Batch { sequences }, &mut cache).unwrap()
        };
        let hidden = run();
        assert_eq!((hidden.rows(), hidden.hidden_size), (5, model.info().hidden_size));
        let expected = forward(model, &mut model.new_cache(2).unwrap(), vec![input.clone()]).remove(0);
        for piece in [1, 2, 5] {
            let pieces = hidden.values.chunks(piece * hidden.hidden_size);
            let logits = pieces.flat_map(|values| {
                let rows = Embeddings { values: values.to_vec(), hidden_size: hidden.hidden_size };
                let logits = model.head(rows).unwrap();
                logits.sequence(0).rows().map(<[f32]>::to_vec).collect::<Vec<_>>()
            });
            assert_same(model, &logits.collect::<Vec<_>>(), &expected, &format!("{form}, pieces of {piece}"));
        }
        assert_eq!(model.head(Embeddings { values: vec![], ..hidden }).unwrap().sequence(0).num_rows(), 0);
        let narrow = model.head(Embeddings { values: vec![0.0; 3], hidden_size: 3 });
        assert!(matches!(
            narrow,
            Err(Error::Batch { problem: BatchProblem::EmbeddingWidth { values: 3, hidden_size: 3, .. }, .. })
        ));
    });
}

#[test]
fn prefetch_plan_is_measured_within_the_limit_and_changes_no_logits() {
    let folder = TinyModel::qwen3().write();
    let model = load(folder.path(), Device::Cpu).model;
    let ids = Random(17).ids(5);
    let before = PrefetchPlan::current();
    assert_eq!(choose_prefetch_plan(&*model, Duration::ZERO).unwrap(), None);
    assert_eq!(PrefetchPlan::current(), before);
    let logits = PrefetchPlan::ALL.map(|plan| {
        plan.set();
        logits_of(&*model, &ids)
    });
    assert_eq!(logits[0], logits[1]);
    let measured =
        choose_prefetch_plan(&*model, Duration::from_secs(10)).unwrap().expect("time for all turns");
    assert_eq!(measured.plan, PrefetchPlan::current());
    assert!(measured.turns >= 4 && measured.seconds.iter().all(|&seconds| seconds > 0.0), "{measured:?}");
}

/// The pages stay in place: prompts, a decoded token, and both in one batch.
#[test]
fn forward_pass_copies_no_pages() {
    for_each_form(|model, form| {
        let ids = Random(12).ids(40);
        let mut cache = model.new_cache(8).unwrap();
        let before = cache.addresses();
        assert!(!before.is_empty());
        let mut copied = 0;
        for inputs in [
            vec![SequenceInput::ids(&ids[..39], 0, [0, 1])],
            vec![SequenceInput::ids(&ids[39..], 39, [0, 1])],
            vec![SequenceInput::ids(&ids[..1], 40, [0, 1]), SequenceInput::ids(&ids[..7], 0, [2])],
        ] {
            forward(model, &mut cache, inputs);
            copied += cache.addresses().iter().zip(&before).filter(|(now, before)| now != before).count();
        }
        assert_eq!(copied, 0, "{form}: arrays of pages that moved");
    });
}

#[test]
fn requested_rows_keep_their_order() {
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
fn invalid_batch_leaves_the_cache_unchanged() {
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
fn copied_page_is_independent() {
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
fn bidirectional_rows_see_each_other() {
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
fn positions_set_rope_and_slots_set_the_cache() {
    for_each_model(|model| {
        let ids = Random(10).ids(12);
        let whole = logits_of(model, &ids);
        let at = |first: u32| {
            let mut input = SequenceInput::ids(ids.as_slice(), 0, [0]);
            input.positions = (first..first + 12).map(Position::from).collect();
            input.logits = LogitRows::All;
            forward(model, &mut model.new_cache(1).unwrap(), vec![input]).remove(0)
        };
        // RoPE is relative: a common shift changes nothing, other distances do.
        assert!(largest_difference(&at(100), &whole) < 2e-3, "shifted");
        let mut spread = SequenceInput::ids(ids.as_slice(), 0, [0]);
        spread.positions = (0..12).map(|p| Position::from(3 * p)).collect();
        spread.logits = LogitRows::All;
        let spread = forward(model, &mut model.new_cache(1).unwrap(), vec![spread]).remove(0);
        assert!(largest_difference(&spread, &whole) > 0.02, "spread");
    });
}

#[test]
fn empty_batch_and_foreign_cache_are_errors() {
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
