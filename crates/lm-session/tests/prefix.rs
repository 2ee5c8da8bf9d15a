//! Model-based test of sessions against a plain list of tokens: whatever was cached, shared, found, evicted
//! or rewound, and for every cache kind, the next tokens are those of the list.

use crate::support;
use crate::support::{FULL, engine_of, kinds, pages_held, prompt, random_engine, random_model};
use lm_model::{Batch, CausalLm, KvPool, LayerCache, NO_PAGE, PAGE_LEN, PageId, SequenceInput};
use lm_session::{
    CancelHandle, EngineSettings, GenerateParams, PrefixCache, Session, SessionConfig, SessionEvent,
};
use proptest::prelude::*;

const SESSIONS: usize = 3;
const CONTEXT: usize = 160;

#[derive(Clone, Debug)]
enum Operation {
    Prefill(usize, Vec<u32>),
    /// Keeps some tokens and appends others.
    Sync(usize, usize, Vec<u32>),
    Rewind(usize, usize),
    /// Session, maximum number of tokens to sample, and number of tokens to read.
    Generate(usize, usize, usize),
    Fork(usize, usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let session = 0..SESSIONS;
    let new = (0u32..4, 0usize..50).prop_map(|(seed, len)| prompt(seed, len));
    prop_oneof![
        (session.clone(), new.clone()).prop_map(|(session, ids)| Operation::Prefill(session, ids)),
        (session.clone(), 0usize..100, new)
            .prop_map(|(session, keep, ids)| Operation::Sync(session, keep, ids)),
        (session.clone(), 0usize..100).prop_map(|(session, len)| Operation::Rewind(session, len)),
        (session.clone(), 0usize..6, 0usize..6)
            .prop_map(|(session, max, read)| Operation::Generate(session, max, read)),
        (session.clone(), session).prop_map(|(from, to)| Operation::Fork(from, to)),
    ]
}

/// Block tables for a forward pass over all tokens.
fn block_tables(cache: &KvPool, slots: usize) -> Vec<Vec<PageId>> {
    let mut next = vec![0..; cache.layout().num_spaces()];
    let table = |group: &lm_model::CacheGroup| {
        let mut table = vec![NO_PAGE; slots.div_ceil(PAGE_LEN)];
        group.retention.written(0, slots).for_each(|index| table[index] = next[group.space].next().unwrap());
        table
    };
    cache.layout().groups().iter().map(table).collect()
}

/// Greedy continuation of `ids`, each token by a forward pass over all tokens.
fn continuation(layers: &[LayerCache], mut ids: Vec<u32>, count: usize) -> Vec<u32> {
    let model = random_model().with_layers(layers.iter().copied());
    let start = ids.len();
    for _ in 0..count {
        let mut cache = model.new_cache(CONTEXT.div_ceil(PAGE_LEN)).unwrap();
        let block_tables = block_tables(&cache, ids.len());
        let input = SequenceInput { block_tables, ..SequenceInput::ids(ids.clone(), 0, []) };
        let batch = Batch { sequences: vec![input] };
        let logits = model.forward(&batch, &mut cache).unwrap();
        let row = logits.sequence(0).row(0);
        let best = (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        ids.push(best as u32);
    }
    ids.split_off(start)
}

fn apply(layers: &[LayerCache], sessions: &mut [Session], lists: &mut [Vec<u32>], operation: Operation) {
    match operation {
        Operation::Prefill(session, ids) => {
            let whole = [&lists[session][..], &ids].concat();
            check_prefill(sessions[session].prefill(&ids), &mut lists[session], whole);
        }
        Operation::Sync(session, keep, ids) => {
            let keep = keep.min(lists[session].len());
            let whole = [&lists[session][..keep], &ids].concat();
            check_prefill(sessions[session].sync(&whole, &CancelHandle::new()), &mut lists[session], whole);
        }
        Operation::Rewind(session, len) => {
            let reached = sessions[session].rewind(len);
            assert!(reached <= len.min(lists[session].len()));
            lists[session].truncate(reached);
        }
        Operation::Generate(session, max, read) => {
            let list = &mut lists[session];
            if list.is_empty() {
                return;
            }
            let max = max.min(CONTEXT - list.len());
            let expected = continuation(layers, list.clone(), max);
            // The model is random: skip generations that reach an end token.
            let ends = sessions[session].engine().tokenizer().end_ids().to_vec();
            if expected.iter().any(|id| ends.contains(id)) {
                return;
            }
            let params = GenerateParams { max_output_tokens: Some(max), ..GenerateParams::default() };
            let mut generation = sessions[session].generate(params);
            let after_prefill =
                generation.by_ref().filter(|event| !matches!(event, Ok(SessionEvent::Prefill(_))));
            let got = support::ids(after_prefill.take(read)).unwrap();
            drop(generation);
            assert_eq!(got, expected[..read.min(max)]);
            list.extend(got);
        }
        Operation::Fork(from, to) => {
            sessions[to] = sessions[from].fork().unwrap();
            lists[to] = lists[from].clone();
        }
    }
}

fn check_prefill(result: lm_session::Result<lm_session::PrefillStats>, list: &mut Vec<u32>, whole: Vec<u32>) {
    if whole.is_empty() || whole.len() > CONTEXT {
        assert!(result.is_err());
    } else {
        let stats = result.unwrap();
        // Evicted tokens may run twice, but never fewer run than are missing.
        assert!(stats.cached_tokens + stats.prefilled_tokens >= whole.len());
        *list = whole;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn session_behaves_as_a_token_list(
        layers in prop::sample::select(kinds()),
        prefix_cache in prop::sample::select(&[PrefixCache::Engine, PrefixCache::Session]),
        operations in prop::collection::vec(operation(), 1..25),
    ) {
        // Six pages: one full context and one page, so three sessions evict each other's pages.
        let settings = EngineSettings {
            max_context: Some(CONTEXT),
            kv_cache_tokens: Some(CONTEXT + PAGE_LEN),
            prefill_chunk: 20,
            prefix_cache,
            ..EngineSettings::default()
        };
        let engine = engine_of(&layers, settings);
        let mut sessions: Vec<_> = (0..SESSIONS).map(|_| engine.session(SessionConfig::default()).unwrap()).collect();
        let mut lists = vec![Vec::new(); SESSIONS];
        for operation in operations {
            apply(&layers, &mut sessions, &mut lists, operation);
            for (session, list) in sessions.iter().zip(&lists) {
                prop_assert_eq!(&session.tokens(), list);
            }
        }
        drop(sessions);
        let stats = engine.cache_stats().unwrap();
        prop_assert_eq!(stats.free_pages, stats.total_pages);
        prop_assert!(prefix_cache == PrefixCache::Engine || stats.reusable_pages == 0, "{:?}", stats);
    }
}

#[test]
fn prompt_chunks_give_the_same_session() {
    let ids = prompt(3, 100);
    let expected = continuation(&[FULL], ids.clone(), 6);
    for piece in [1, 7, 32, 100] {
        let engine = random_engine(EngineSettings { prefill_chunk: 13, ..EngineSettings::default() });
        let mut session = engine.session(SessionConfig::default()).unwrap();
        for piece in ids.chunks(piece) {
            session.prefill(piece).unwrap();
        }
        assert_eq!(support::generate(&mut session, 6).unwrap(), expected, "pieces of {piece}");
    }
}

#[test]
fn sync_runs_only_differing_tokens() {
    let engine = random_engine(EngineSettings::default());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let none = CancelHandle::new();
    let ids = prompt(1, 90);
    session.sync(&ids, &none).unwrap();
    for (next, cached, prefilled) in [
        (ids.clone(), 90, 0),
        (ids[..50].to_vec(), 49, 1),
        ([&ids[..40], &[0, 1, 2]].concat(), 40, 3),
        (vec![255], 0, 1),
    ] {
        let stats = session.sync(&next, &none).unwrap();
        assert_eq!((stats.cached_tokens, stats.prefilled_tokens), (cached, prefilled));
        assert_eq!(session.tokens(), next);
    }
}

#[test]
fn forks_share_pages_until_they_write() {
    let engine = random_engine(EngineSettings::default());
    let mut one = engine.session(SessionConfig::default()).unwrap();
    one.prefill(&prompt(1, PAGE_LEN * 2 + 5)).unwrap();
    assert_eq!(pages_held(&engine), 3);
    let mut two = one.fork().unwrap();
    assert_eq!(pages_held(&engine), 3);
    let stats = two.prefill(&[7]).unwrap();
    assert_eq!((stats.cached_tokens, pages_held(&engine)), (PAGE_LEN * 2 + 5, 4));
    one.prefill(&[8]).unwrap();
    let expected = |last| continuation(&[FULL], [prompt(1, PAGE_LEN * 2 + 5), vec![last]].concat(), 3);
    assert_eq!(support::generate(&mut one, 3).unwrap(), expected(8));
    assert_eq!(support::generate(&mut two, 3).unwrap(), expected(7));
}
