//! Images and audio in prompts: the input of the model, and the keys in caches.

use crate::support;
use std::ops::Range;
use std::slice::from_ref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{generate, prompt, random_model, tokens};
use lm_media::{Image, ImageSize};
use lm_model::testing::{FakeAudio, FakeVision, HookedLm};
use lm_model::{
    AttentionKind, Batch, EncodedMedia, ImageOptions, Input, MediaLayout, MediaPiece, MediaPositions,
    MediaRows, Position, VisionEncoder,
};
use lm_session::testing::{audio_file, image_file, loaded, tokenizer};
use lm_session::{
    CancelHandle, Engine, EngineSettings, Error, GenerateParams, LoadedModel, Media, MediaKind, PromptPiece,
    SaveOptions, Session, SessionConfig, TokenId,
};

fn engine_with(vision: Arc<dyn VisionEncoder>, settings: EngineSettings) -> Engine {
    Engine::new(LoadedModel { vision: Some(vision), ..loaded(random_model()) }, settings).unwrap()
}

/// Encoders of both kinds.
#[derive(Clone, Default)]
struct Fakes {
    vision: Arc<FakeVision>,
    audio: Arc<FakeAudio>,
}

impl Fakes {
    fn encodings(&self) -> usize {
        self.vision.encodings() + self.audio.encodings()
    }
}

/// An engine that reads images and audio.
fn fake() -> (Engine, Fakes) {
    let fakes = Fakes::default();
    let (vision, audio) = (fakes.vision.clone(), fakes.audio.clone());
    let loaded = LoadedModel { vision: Some(vision), audio: Some(audio), ..loaded(random_model()) };
    (Engine::new(loaded, EngineSettings::default()).unwrap(), fakes)
}

fn session(engine: &Engine) -> Session {
    engine.session(SessionConfig::default()).unwrap()
}

fn image(engine: &Engine, seed: u8) -> Arc<Media> {
    engine.image(image_file(3, 2, seed), &ImageOptions::default()).unwrap()
}

fn audio(engine: &Engine, seed: i16) -> Arc<Media> {
    engine.audio(audio_file(4001, seed)).unwrap()
}

/// Media of one size, of each kind.
const MEDIA: [fn(&Engine, u8) -> Arc<Media>; 2] =
    [image, |engine: &Engine, seed: u8| audio(engine, seed.into())];

/// Ids of text and of media, in turn: `len` tokens of text, then each media item and `len` tokens.
fn ids(media: &[&Arc<Media>], len: usize) -> Vec<TokenId> {
    let mut ids = prompt(1, len);
    for (index, item) in media.iter().enumerate() {
        for piece in item.pieces() {
            match piece {
                PromptPiece::Text(text) => ids.extend(tokenizer().encode(text).unwrap()),
                PromptPiece::Rows(rows) => ids.extend(rows),
            }
        }
        ids.extend(prompt(index as u32 + 2, len));
    }
    ids
}

/// The greedy reply to a prompt in a session.
fn reply(session: &mut Session, ids: &[TokenId], media: &[Arc<Media>]) -> Vec<TokenId> {
    let generation = session.submit(lm_session::Prompt { ids, media }, tokens(6)).unwrap();
    support::ids(generation).unwrap()
}

#[test]
fn media_of_equal_size_are_distinguished() {
    for item in MEDIA {
        let (engine, fakes) = fake();
        let (a, b) = (item(&engine, 1), item(&engine, 2));
        let media = [a.clone(), b.clone()];
        let (ab, ba) = (ids(&[&a, &b], 40), ids(&[&b, &a], 40));
        assert_eq!(ab.len(), ba.len());
        let one = reply(&mut session(&engine), &ab, &media);
        let other = reply(&mut session(&engine), &ba, &media);
        assert_ne!(one, other);
        // In one session, in a fork, and again: by its own pages and by those of others.
        let mut third = session(&engine);
        assert_eq!(reply(&mut third, &ab, &media), one);
        assert_eq!(reply(&mut third, &ba, &media), other);
        let mut fork = third.fork().unwrap();
        assert_eq!(reply(&mut fork, &ab, &media), one);
        assert_eq!(reply(&mut third, &ba, &media), other);
        assert_eq!(fakes.encodings(), 2, "each was encoded once");
        assert_eq!(engine.activity().encoded_media, 2);
        assert!(engine.activity().media_cache_bytes > 0);
        // A new engine has the same replies.
        let (fresh, _) = fake();
        let media = [item(&fresh, 1), item(&fresh, 2)];
        assert_eq!(reply(&mut session(&fresh), &ba, &media), other);
    }
}

#[test]
fn cache_distinguishes_pixels_and_samples() {
    for item in MEDIA {
        let (engine, fakes) = fake();
        let (a, b, again) = (item(&engine, 1), item(&engine, 3), item(&engine, 1));
        assert!(Arc::ptr_eq(&a, &again), "it is not decoded again");
        let common = 40;
        let run = |item: &Arc<Media>| {
            let ids = ids(&[item], common);
            let prompt = lm_session::Prompt { ids: &ids, media: from_ref(item) };
            (session(&engine).sync(prompt, &CancelHandle::new()).unwrap().cached_tokens, ids.len())
        };
        assert_eq!(run(&a).0, 0);
        assert_eq!(run(&b).0, 32, "only the page before the media item is common");
        let (cached, len) = run(&again);
        assert_eq!(cached, (len - 1) / 32 * 32, "all whole pages");
        assert_eq!(fakes.encodings(), 2);
    }
}

#[test]
fn rewind_stops_before_a_partial_media_item() {
    for item in MEDIA {
        let (engine, _) = fake();
        let (a, b) = (item(&engine, 1), item(&engine, 2));
        let (with_a, with_b) = (ids(&[&a], 10), ids(&[&b], 10));
        let expected = reply(&mut session(&engine), &with_b, from_ref(&b));
        let mut other = session(&engine);
        reply(&mut other, &with_a, from_ref(&a));
        let row = with_a.iter().position(|id| id >> 31 == 1).unwrap();
        let end = with_a.iter().rposition(|id| id >> 31 == 1).unwrap() + 1;
        assert_eq!(other.rewind(end), end, "no row is cut off");
        assert_eq!(other.tokens(), with_a[..end]);
        assert_eq!(other.rewind(row + 1), row, "the first piece has several rows");
        assert_eq!(other.tokens(), with_a[..row]);
        assert!(other.media().is_empty());
        let rest = lm_session::Prompt { ids: &with_b[row..], media: &[b] };
        other.prefill(rest).unwrap();
        assert_eq!(generate(&mut other, 6).unwrap(), expected);
    }
}

#[test]
fn session_continues_with_its_media() {
    for item in MEDIA {
        let (engine, fakes) = fake();
        let a = item(&engine, 1);
        let ids = ids(&[&a], 10);
        let mut first = session(&engine);
        first.prefill(lm_session::Prompt { ids: &ids, media: from_ref(&a) }).unwrap();
        let (mut second, held) = (first.fork().unwrap(), first.tokens());
        assert_eq!(held, ids);
        let expected = generate(&mut first, 6).unwrap();
        assert_eq!(reply(&mut second, &held, &[]), expected, "the fork knows the media item");
        let score = first.score_after(&ids, &expected, 0, &CancelHandle::new()).unwrap();
        assert_eq!(score.tokens.len(), 6);
        assert_eq!(fakes.encodings(), 1);
        // Another session does not.
        let error = session(&engine).submit(&held, GenerateParams::default()).unwrap_err();
        let place = ids.iter().position(|id| id >> 31 == 1).unwrap();
        assert!(matches!(error, Error::UnknownMedia { position } if position == place), "{error}");
        // A part of a piece is rejected as well.
        let cut = lm_session::Prompt { ids: &ids[..=place], media: &[a] };
        assert!(matches!(session(&engine).prefill(cut), Err(Error::UnknownMedia { .. })));
        assert!(matches!(engine.embed(&held, &Default::default()), Err(Error::UnknownMedia { .. })));
    }
}

#[test]
fn saved_media_pages_need_no_encoding() {
    for item in MEDIA {
        let (engine, _) = fake();
        let (a, b) = (item(&engine, 1), item(&engine, 2));
        let (with_a, with_b) = (ids(&[&a], 40), ids(&[&b], 40));
        let expected_b = reply(&mut session(&engine), &with_b, &[b]);
        let mut first = session(&engine);
        first.prefill(lm_session::Prompt { ids: &with_a, media: from_ref(&a) }).unwrap();
        let (saved, _) = first.save(SaveOptions { cache: Some(1 << 24) }).unwrap();
        let expected = generate(&mut first, 6).unwrap();

        let (restarted, fakes) = fake();
        let mut restored = restarted.restore(&saved).unwrap();
        assert_eq!(restored.tokens(), with_a);
        assert!(
            matches!(restored.prefill(&[1]), Err(Error::UnknownMedia { .. })),
            "the media item is not saved"
        );
        let a = item(&restarted, 1);
        assert_eq!(reply(&mut restored, &with_a, from_ref(&a)), expected);
        assert_eq!(fakes.encodings(), 0);
        let b = item(&restarted, 2);
        assert_eq!(reply(&mut restored, &with_b, &[b]), expected_b);
        // Without pages the media item is encoded again.
        let (without, fakes) = fake();
        let mut restored = without.restore(&lm_session::SavedSession { cache: None, ..saved }).unwrap();
        let a = item(&without, 1);
        assert_eq!(reply(&mut restored, &with_a, &[a]), expected);
        assert_eq!(fakes.encodings(), 1);
    }
}

/// An encoder of [`FakeVision`]'s rows with a layout of its own.
struct Laid {
    rows: Vec<MediaRows>,
    inner: FakeVision,
    /// Waits for the second channel after a message in the first.
    gate: Option<Mutex<(Sender<()>, Receiver<()>)>>,
}

impl Laid {
    fn new(rows: impl Into<Vec<MediaRows>>) -> Self {
        Self { rows: rows.into(), inner: FakeVision::default(), gate: None }
    }
}

impl VisionEncoder for Laid {
    fn placeholder(&self) -> &str {
        self.inner.placeholder()
    }

    fn token(&self) -> &str {
        self.inner.token()
    }

    fn layout(&self, _: ImageSize, _: &ImageOptions) -> lm_model::Result<MediaLayout> {
        Ok(MediaLayout { pieces: self.rows.iter().copied().map(MediaPiece::Rows).collect() })
    }

    fn encode(&self, image: &Image, _: &ImageOptions) -> lm_model::Result<EncodedMedia> {
        if let Some(gate) = &self.gate {
            let gate = gate.lock().unwrap();
            let _ = gate.0.send(());
            let _ = gate.1.recv();
        }
        let rows: usize = self.rows.iter().map(|rows| rows.count).sum();
        // The fake has two rows before a grid of one row.
        let options = ImageOptions { token_budget: Some(rows - 2) };
        self.inner.encode(image, &options)
    }
}

const fn bidirectional(count: usize) -> MediaRows {
    MediaRows { count, attention: AttentionKind::Bidirectional, positions: MediaPositions::Sequential }
}

const fn grid(rows: usize, columns: usize) -> MediaRows {
    let positions = MediaPositions::Grid { rows, columns };
    MediaRows { count: rows * columns, attention: AttentionKind::Causal, positions }
}

type Seen = Arc<Mutex<Vec<(Range<usize>, Vec<Position>, Vec<Range<usize>>, Vec<TokenId>)>>>;

/// Adds the places, positions, spans and ids of each call to `seen`.
fn recorder(seen: &Seen) -> impl Fn(&Batch) -> lm_model::Result<()> + Send + Sync + use<> {
    let seen = seen.clone();
    move |batch: &Batch| {
        for input in &batch.sequences {
            let Input::Ids(ids) = &input.input else { panic!("ids") };
            let (places, spans) = (
                input.cached_len..input.cached_len + ids.len(),
                input.spans.iter().map(|span| span.rows.clone()).collect(),
            );
            seen.lock().unwrap().push((places, input.positions.clone(), spans, ids.clone()));
        }
        Ok(())
    }
}

/// An engine of one sequence, and the places, positions, spans and ids of its calls.
fn observed(vision: Laid, settings: EngineSettings) -> (Engine, Seen) {
    let seen = Seen::default();
    let model = HookedLm::new(Arc::new(random_model())).before_pass(recorder(&seen));
    let loaded = LoadedModel { vision: Some(Arc::new(vision)), ..loaded(model) };
    (Engine::new(loaded, settings).unwrap(), seen)
}

#[test]
fn step_never_splits_bidirectional_rows() {
    for chunk in [3, 16, 30, 512] {
        let settings = EngineSettings { prefill_chunk: chunk, ..EngineSettings::default() };
        let (engine, seen) = observed(Laid::new([bidirectional(20), bidirectional(7)]), settings);
        let a = image(&engine, 1);
        let ids = ids(&[&a, &a], 10);
        let media = [a];
        let expected = reply(&mut session(&fake_of_one_chunk()), &ids, &media);
        assert_eq!(reply(&mut session(&engine), &ids, &media), expected, "chunk {chunk}");
        let seen = seen.lock().unwrap();
        for span in [10..30, 30..37, 47..67, 67..74] {
            let within =
                |(places, ..): &&(Range<usize>, _, _, _)| places.start < span.end && span.start < places.end;
            let calls: Vec<_> = seen.iter().filter(within).collect();
            let [(places, _, spans, _)] = &calls[..] else {
                panic!("{span:?} was split by {chunk}: {calls:?}")
            };
            let own = span.start - places.start..span.end - places.start;
            assert!(spans.contains(&own), "{own:?} of {spans:?}");
        }
        let placeholder = engine.media_tokens()[0].row_id;
        let run: Vec<TokenId> = seen.iter().flat_map(|(_, _, _, ids)| ids.clone()).collect();
        assert_eq!(run[10..37], [placeholder; 27]);
        assert!(run.iter().all(|id| id >> 31 == 0), "the model gets ids of its vocabulary");
    }
}

/// An engine whose chunks hold the prompts of these tests.
fn fake_of_one_chunk() -> Engine {
    let settings = EngineSettings { prefill_chunk: 4096, ..EngineSettings::default() };
    engine_with(Arc::new(Laid::new([bidirectional(20), bidirectional(7)])), settings)
}

#[test]
fn grid_positions_equal_mrope_in_every_chunk() {
    let position = |temporal, height, width| Position { temporal, height, width };
    let mut expected: Vec<Position> = (0..2).map(Position::from).collect();
    for start in [2, 2 + 3 + 2] {
        expected.extend(
            [0, 1].map(|row| [0, 1, 2].map(|column| position(start, start + row, start + column))).concat(),
        );
        expected.extend([start + 3, start + 4].map(Position::from));
    }
    for chunk in [1, 2, 5, 512] {
        let settings = EngineSettings { prefill_chunk: chunk, ..EngineSettings::default() };
        let (engine, seen) = observed(Laid::new([grid(2, 3)]), settings);
        let a = image(&engine, 1);
        let ids = ids(&[&a, &a], 2);
        assert_eq!(ids.len(), expected.len());
        let reply = reply(&mut session(&engine), &ids, &[a]);
        let seen = seen.lock().unwrap();
        let found: Vec<Position> = seen.iter().flat_map(|(_, positions, ..)| positions.clone()).collect();
        assert_eq!(found[..expected.len()], expected, "chunk {chunk}");
        let decoded: Vec<Position> = (12..12 + reply.len() as u32 - 1).map(Position::from).collect();
        assert_eq!(
            found[expected.len()..],
            decoded,
            "tokens of the reply continue after the image's positions"
        );
    }
}

#[test]
fn media_rows_are_in_place_in_every_chunk() {
    for item in MEDIA {
        for prefill_chunk in [1, 2, 3, 5, 512] {
            // Places in the prompt, and the rows of the media that the model gets there.
            let seen: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
            let record = {
                let seen = seen.clone();
                move |batch: &Batch| {
                    for input in &batch.sequences {
                        let rows = input.media.iter().flat_map(|slice| slice.rows().zip(slice.range.clone()));
                        let placed = rows.map(|(row, of_medium)| (input.cached_len + row, of_medium));
                        seen.lock().unwrap().extend(placed);
                    }
                    Ok(())
                }
            };
            let model = HookedLm::new(Arc::new(random_model())).before_pass(record);
            let Fakes { vision, audio } = Fakes::default();
            let loaded = LoadedModel { vision: Some(vision), audio: Some(audio), ..loaded(model) };
            let settings = EngineSettings { prefill_chunk, ..EngineSettings::default() };
            let engine = Engine::new(loaded, settings).unwrap();
            let media = [1, 2].map(|seed| item(&engine, seed));
            let ids = ids(&media.each_ref(), 3);
            reply(&mut session(&engine), &ids, &media);
            let places = (0..ids.len()).filter(|&place| ids[place] >> 31 == 1);
            let rows = media.iter().flat_map(|item| 0..item.rows());
            let expected: Vec<(usize, usize)> = places.zip(rows).collect();
            assert_eq!(*seen.lock().unwrap(), expected, "chunks of {prefill_chunk}");
        }
    }
}

#[test]
fn uncached_encoding_serves_all_waiting_requests() {
    // A request keeps it until its last row has run.
    for prefill_chunk in [1, 2, 3, 512] {
        let vision = Arc::new(FakeVision::default());
        let settings = EngineSettings { media_cache_bytes: 0, prefill_chunk, ..EngineSettings::default() };
        let engine = engine_with(vision.clone(), settings);
        let a = image(&engine, 1);
        let ids = ids(&[&a], 3);
        let first = reply(&mut session(&engine), &ids, from_ref(&a));
        assert_eq!(reply(&mut session(&engine), &ids, &[a]), first);
        assert_eq!(vision.encodings(), 2, "chunks of {prefill_chunk}");
        assert_eq!(engine.activity().media_cache_bytes, 0);
    }
}

#[test]
fn least_recently_used_encoding_is_dropped() {
    let run = |vision: &Arc<FakeVision>, media_cache_bytes, order: &[u8]| {
        let settings = EngineSettings { media_cache_bytes, ..EngineSettings::default() };
        let engine = engine_with(vision.clone(), settings);
        for (place, seed) in order.iter().enumerate() {
            let a = image(&engine, *seed);
            // The prompts have no common prefix, so that earlier pages are useless.
            let ids = ids(&[&a], place + 1);
            reply(&mut session(&engine), &ids[place..], &[a]);
        }
        engine.activity().media_cache_bytes
    };
    let one = run(&Arc::default(), 1 << 20, &[1]);
    let vision = Arc::default();
    assert_eq!(run(&vision, 2 * one, &[1, 2, 1, 3, 1, 3]), 2 * one);
    assert_eq!(vision.encodings(), 3, "the second image was dropped for the third");
}

#[test]
fn image_options_are_part_of_its_identity() {
    let (engine, fakes) = fake();
    let file = image_file(3, 2, 1);
    let [a, b] = [None, Some(5)]
        .map(|token_budget| engine.image(file.clone(), &ImageOptions { token_budget }).unwrap());
    assert_ne!(a.rows(), b.rows());
    let ids = ids(&[&a, &b], 5);
    reply(&mut session(&engine), &ids, &[a, b]);
    assert_eq!(fakes.encodings(), 2);
}

#[test]
fn evicted_rows_are_encoded_again() {
    // Room for one prompt, not for two.
    let settings = EngineSettings {
        kv_cache_tokens: Some(128),
        max_context: Some(128),
        media_cache_bytes: 0,
        ..EngineSettings::default()
    };
    let vision = Arc::new(FakeVision::default());
    let engine = engine_with(vision.clone(), settings);
    let (a, b) = (image(&engine, 1), image(&engine, 2));
    let (with_a, with_b) = (ids(&[&a], 45), ids(&[&b], 45));
    let (mut one, mut other) = (session(&engine), session(&engine));
    let first = reply(&mut one, &with_a, from_ref(&a));
    reply(&mut other, &with_b, &[b]);
    assert_eq!(vision.encodings(), 2);
    assert_eq!(reply(&mut one, &with_a, &[a]), first);
    assert_eq!(vision.encodings(), 3, "its pages were evicted");
}

#[test]
fn preempted_requests_keep_their_images() {
    let settings = EngineSettings { kv_cache_tokens: Some(256), ..EngineSettings::default() };
    let engine = engine_with(Arc::new(FakeVision::default()), settings);
    let images: Vec<_> = (0..4).map(|seed| image(&engine, seed)).collect();
    let run = |engine: &Engine, index: usize| {
        let (mut session, media) = (support::endless(engine), [images[index].clone()]);
        let ids = ids(&[&media[0]], 40);
        let generation = session.submit(lm_session::Prompt { ids: &ids, media: &media }, tokens(60)).unwrap();
        support::ids(generation).unwrap()
    };
    let (roomy, _) = fake();
    let expected: Vec<_> = (0..4).map(|index| run(&roomy, index)).collect();
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|index| {
                scope.spawn({
                    let (run, engine) = (&run, &engine);
                    move || run(engine, index)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(found, expected);
    assert!(engine.cache_stats().unwrap().evicted_pages > 0, "the pool was too small for all");
}

#[test]
fn request_is_cancelled_during_encoding() {
    let ((arrive, arrived), (open, opened)) = (channel(), channel());
    let vision = Laid { gate: Some(Mutex::new((arrive, opened))), ..Laid::new([grid(2, 3)]) };
    let engine = engine_with(Arc::new(vision), EngineSettings::default());
    let a = image(&engine, 1);
    let ids = ids(&[&a], 10);
    let mut waiting = session(&engine);
    let media = [a];
    let generation = waiting.submit(lm_session::Prompt { ids: &ids, media: &media }, tokens(3)).unwrap();
    arrived.recv().unwrap();
    assert_eq!(generate_text(&engine), 5, "another request runs meanwhile");
    generation.canceller().cancel();
    assert_eq!(support::last(generation).reason, lm_session::FinishReason::Cancelled);
    // The encoding serves the next request.
    drop(open);
    assert_eq!(reply(&mut waiting, &ids, &media).len(), 6);
    assert_eq!(engine.activity().encoded_media, 1);
}

#[test]
fn image_of_cancelled_requests_is_not_encoded() {
    let ((arrive, arrived), (open, opened)) = (channel(), channel());
    let vision = Laid { gate: Some(Mutex::new((arrive, opened))), ..Laid::new([grid(2, 3)]) };
    let engine = engine_with(Arc::new(vision), EngineSettings::default());
    let deadline = Some(std::time::Instant::now() + std::time::Duration::from_secs(60));
    let start = |seed| {
        let a = image(&engine, seed);
        let ids = ids(&[&a], 10);
        let params = GenerateParams { deadline, ..tokens(3) };
        // A request ends with its session.
        let mut session = support::endless(&engine);
        let generation = session.submit(lm_session::Prompt { ids: &ids, media: &[a] }, params).unwrap();
        (session, generation)
    };
    let first = start(1);
    arrived.recv().unwrap();
    // Two requests wait for the third image: the one that asked for it is cancelled.
    let [dead, asked, other] = [2, 3, 3].map(start);
    assert_eq!(generate_text(&engine), 5, "the others have started");
    for (_session, generation) in [dead, asked] {
        generation.canceller().cancel();
        assert_eq!(support::last(generation).reason, lm_session::FinishReason::Cancelled);
    }
    assert_eq!(generate_text(&engine), 5, "they have ended");
    drop(open);
    for (_session, generation) in [first, other] {
        assert_eq!(support::last(generation).reason, lm_session::FinishReason::MaxOutputTokens);
    }
    assert_eq!(engine.activity().encoded_media, 2, "not the second one");
}

/// Number of tokens of a request without images.
fn generate_text(engine: &Engine) -> usize {
    let mut session = support::endless(engine);
    session.prefill(&prompt(9, 12)).unwrap();
    generate(&mut session, 5).unwrap().len()
}

/// An encoder that panics for images whose first blue is 0, fails for 1 and returns too few rows for 2.
struct Failing;

impl VisionEncoder for Failing {
    fn placeholder(&self) -> &str {
        "<tool_response>"
    }

    fn token(&self) -> &str {
        "<tool_response>"
    }

    fn layout(&self, size: ImageSize, options: &ImageOptions) -> lm_model::Result<MediaLayout> {
        FakeVision::default().layout(size, options)
    }

    fn encode(&self, image: &Image, options: &ImageOptions) -> lm_model::Result<EncodedMedia> {
        let last_row = &image.rgb()[image.rgb().len() - image.size().width * 3..];
        match last_row[2] {
            0 => panic!("no such image"),
            1 => Err(lm_model::Error::from(lm_media::Error::UnknownFormat { start: vec![1] })),
            2 => Ok(EncodedMedia::default()),
            _ => FakeVision::default().encode(image, options),
        }
    }
}

#[test]
fn encoder_failure_fails_only_its_request() {
    let engine = engine_with(Arc::new(Failing), EngineSettings::default());
    let error = |seed: u8| {
        let a = image(&engine, seed);
        let ids = ids(&[&a], 3);
        session(&engine).prefill(lm_session::Prompt { ids: &ids, media: &[a] }).err()
    };
    assert!(matches!(error(0), Some(Error::WorkerPanicked { message }) if message == "no such image"));
    assert!(matches!(error(1), Some(Error::Model(_))));
    assert!(matches!(error(2), Some(Error::MediaRows { kind: MediaKind::Image, expected: 8, found: 0 })));
    assert!(error(3).is_none());
    assert_eq!(generate_text(&engine), 5);
}

#[test]
fn image_and_audio_have_their_own_tokens() {
    let (engine, fakes) = fake();
    let (a, b) = (image(&engine, 1), audio(&engine, 1));
    assert_eq!([a.kind(), b.kind()], MediaKind::ALL);
    let media = [a.clone(), b.clone()];
    let (ab, ba) = (ids(&[&a, &b], 10), ids(&[&b, &a], 10));
    let [one, other] = [&ab, &ba].map(|ids| reply(&mut session(&engine), ids, &media));
    assert_ne!(one, other);
    assert_eq!((fakes.vision.encodings(), fakes.audio.encodings()), (1, 1));
    // The model gets the token of each kind.
    let seen = Seen::default();
    let model = HookedLm::new(Arc::new(random_model())).before_pass(recorder(&seen));
    let Fakes { vision, audio } = fakes;
    let loaded = LoadedModel { vision: Some(vision), audio: Some(audio), ..loaded(model) };
    let engine = Engine::new(loaded, EngineSettings::default()).unwrap();
    assert_eq!(reply(&mut session(&engine), &ab, &media), one);
    let run: Vec<TokenId> = seen.lock().unwrap().iter().flat_map(|(_, _, _, ids)| ids.clone()).collect();
    let tokens = engine.media_tokens();
    for (item, tokens) in media.iter().zip(tokens) {
        let rows = run.iter().filter(|&&id| id == tokens.row_id).count();
        assert_eq!((tokens.kind, rows), (item.kind(), item.rows()));
    }
    let rows: Vec<TokenId> = run.into_iter().filter(|id| tokens.iter().any(|t| t.row_id == *id)).collect();
    assert!(rows.is_sorted_by_key(|id| *id == tokens[1].row_id), "the image is first");
}

#[test]
fn filters_records_and_logprobs_see_placeholders() {
    let (engine, _) = fake();
    let a = image(&engine, 1);
    let ids = ids(&[&a], 5);
    let file = tempfile::NamedTempFile::new().unwrap();
    engine.record(file.reopen().unwrap()).unwrap();
    let sampler = lm_session::SamplerParams {
        repetition_penalty: 1.3,
        dry_multiplier: 0.8,
        frequency_penalty: 0.1,
        ..lm_session::SamplerParams::default()
    };
    let params = GenerateParams { sampler: Some(sampler), prompt_logprobs: Some(2), ..tokens(5) };
    let media = [a];
    let mut session = session(&engine);
    let events: Vec<_> = session
        .submit(lm_session::Prompt { ids: &ids, media: &media }, params)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let scored = events.iter().find_map(|event| match event {
        lm_session::SessionEvent::PromptLogprobs(scored) => Some(scored.len()),
        _ => None,
    });
    assert_eq!(scored, Some(ids.len() - 1));
    engine.stop_recording();
    let mut record = lm_session::RecordReader::new(std::io::BufReader::new(file.reopen().unwrap())).unwrap();
    let request = record.next().unwrap().unwrap();
    assert_eq!(request.prompt, ids);
    let replayed = engine.replay(&request, &CancelHandle::new());
    assert!(matches!(replayed, Err(Error::UnknownMedia { .. })), "the image is not in the record");
}
