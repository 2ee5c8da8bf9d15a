//! Guarantees of each cache kind: windows release pages, states have snapshots, prefixes are found by other
//! sessions.

use crate::support::{
    FULL, NEAR, STATE, endless, engine_of, generate, kinds, last_logits, pages_held, prompt, random_model,
};
use lm_model::{LayerCache, PAGE_LEN};
use lm_session::testing::loaded;
use lm_session::{CancelHandle, EngineSettings, GenerateParams, PrefixCache, TokenId};

/// Continuation of `ids` by a fresh engine.
fn alone(layers: &[LayerCache], ids: &[TokenId], count: usize) -> Vec<TokenId> {
    let engine = engine_of(layers, EngineSettings::default());
    let mut session = endless(&engine);
    session.prefill(ids).unwrap();
    generate(&mut session, count).unwrap()
}

#[test]
fn new_session_reuses_the_prefix_of_others() {
    let (system, ask) = (prompt(1, 100), [prompt(1, 100), prompt(2, 40)].concat());
    for layers in kinds() {
        let engine = engine_of(&layers, EngineSettings::default());
        let mut first = endless(&engine);
        assert_eq!(first.prefill(&system).unwrap().cached_tokens, 0);
        drop(first);
        assert_eq!(pages_held(&engine), 0);
        assert!(engine.cache_stats().unwrap().reusable_pages > 0);

        let mut second = endless(&engine);
        let stats = second.prefill(&ask).unwrap();
        assert_eq!((stats.cached_tokens, stats.prefilled_tokens), (96, 44), "{layers:?}");
        let params = GenerateParams { max_output_tokens: Some(5), ..GenerateParams::default() };
        let (_, finished) = second.generate(params).into_text().unwrap();
        assert_eq!(finished.usage.cached_tokens, 96);
        assert_eq!(second.tokens()[ask.len()..], alone(&layers, &ask, 5));
    }
}

#[test]
fn isolated_session_reuses_only_its_prefixes() {
    let settings = EngineSettings { prefix_cache: PrefixCache::Session, ..EngineSettings::default() };
    for layers in kinds() {
        let engine = engine_of(&layers, settings.clone());
        let mut first = endless(&engine);
        first.prefill(&prompt(1, 100)).unwrap();
        let mut fork = first.fork().unwrap();
        assert_eq!(endless(&engine).prefill(&prompt(1, 100)).unwrap().cached_tokens, 0);
        assert_eq!(first.rewind(98) / PAGE_LEN, 3);
        assert!(
            fork.sync(&[prompt(1, 97), vec![7]].concat(), &CancelHandle::new()).unwrap().cached_tokens >= 96
        );
        drop((first, fork));
        assert_eq!(pages_held(&engine), 0);
        assert_eq!(engine.cache_stats().unwrap().reusable_pages, 0, "{layers:?}: nothing can find them");
    }
}

#[test]
fn rewind_returns_the_largest_resumable_position() {
    let ids = prompt(3, 150);
    // Truncation into the middle of a page: full caches reach it, windows have the page before it, states the
    // last snapshot.
    for (layers, reached) in [
        (vec![FULL], 140),
        (vec![FULL, NEAR], 140),
        (vec![FULL, STATE], 128),
        (vec![STATE, NEAR, STATE], 128),
    ] {
        let engine = engine_of(&layers, EngineSettings::default());
        let mut session = endless(&engine);
        session.prefill(&ids).unwrap();
        assert_eq!(session.rewind(140), reached, "{layers:?}");
        assert_eq!(session.tokens(), &ids[..reached]);
        let rest = [&ids[reached..145], &[9]].concat();
        assert_eq!(session.prefill(&rest).unwrap().cached_tokens, reached);
        assert_eq!(generate(&mut session, 5).unwrap(), alone(&layers, &[&ids[..145], &[9]].concat(), 5));
        assert_eq!(session.rewind(usize::MAX), 151, "nothing to go back to");
    }
}

#[test]
fn windows_release_pages_out_of_sight() {
    // Pages of a sequence that needs 40 slots and writes one, and pages of all of its tokens.
    for (layers, most) in [(vec![NEAR], 3), (vec![NEAR, NEAR, NEAR, FULL], 3 * 3 + 32), (vec![STATE], 2)] {
        let engine = engine_of(&layers, EngineSettings { prefill_chunk: 16, ..EngineSettings::default() });
        let mut session = endless(&engine);
        session.prefill(&prompt(4, 100)).unwrap();
        let params = GenerateParams { max_output_tokens: Some(900), ..GenerateParams::default() };
        let mut held = 0;
        for event in session.generate(params) {
            event.unwrap();
            held = held.max(pages_held(&engine));
        }
        assert!((1..=most).contains(&held), "{held} pages held, at most {most} are needed: {layers:?}");
        drop(session);
        assert_eq!(pages_held(&engine), 0);
    }
}

#[test]
fn forks_of_every_cache_kind_are_independent() {
    let ids = prompt(5, PAGE_LEN * 2 + 5);
    for layers in kinds() {
        let engine = engine_of(&layers, EngineSettings::default());
        let mut one = endless(&engine);
        one.prefill(&ids).unwrap();
        let before = pages_held(&engine);
        let mut two = one.fork().unwrap();
        assert_eq!(pages_held(&engine), before, "a fork takes no page");
        two.prefill(&[7]).unwrap();
        one.prefill(&[8]).unwrap();
        let expected = |last| alone(&layers, &[&ids[..], &[last]].concat(), 3);
        assert_eq!(generate(&mut one, 3).unwrap(), expected(8));
        assert_eq!(generate(&mut two, 3).unwrap(), expected(7));
    }
}

#[test]
fn cached_prefix_equals_a_prefill() {
    let (system, ask) = (prompt(1, 100), [prompt(1, 100), prompt(2, 40)].concat());
    for layers in kinds() {
        let loaded = || loaded(random_model().with_layers(layers.iter().copied()));
        let (found, fresh) = (last_logits(loaded(), &[&system, &ask]), last_logits(loaded(), &[&ask]));
        assert_eq!((found.0, fresh.0), (96, 0), "{layers:?}");
        assert_eq!(found.1, fresh.1, "{layers:?}");
    }
}
