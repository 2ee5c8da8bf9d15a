//! Random turns, cancellations, forks and restored histories of 64 conversations on one engine: afterwards
//! each of them replies as a fresh one with the same history does, memory has not grown, and the engine's
//! threads end.
//!
//! `LM_SOAK_SECONDS` sets the duration; 5 by default.

use std::time::{Duration, Instant};

use lm_conversation::{
    Conversation, ConversationConfig, Engine, EngineSettings, Error, LoadOptions, Message, ModelFolder,
    OnCancel, Preface, Role, SamplerParams, SessionConfig, TurnOptions, Value,
};

const THREADS: usize = 4;
const CONVERSATIONS: usize = 16;
/// Tokens of the pool: less than all conversations have, so that they evict each other.
const POOL: usize = 4096;
const CONTEXT: usize = 512;
const QUESTIONS: [&str; 6] =
    ["Hi.", "What is 3 times 5?", "Tell me a story.", "Why?", "How is the weather in Paris?", "Go on."];

/// Small pseudo-random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

fn engine() -> Engine {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let settings = EngineSettings {
        max_context: Some(CONTEXT),
        kv_cache_tokens: Some(POOL),
        max_running_requests: 3,
        ..EngineSettings::default()
    };
    Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).expect("the embedded model")
}

fn conversation(engine: &Engine) -> Conversation {
    let session = SessionConfig { max_output_tokens: Some(8), ..SessionConfig::default() };
    let preface = Preface { messages: vec![Message::system("You are brief.")], ..Preface::default() };
    let config = ConversationConfig { session, preface, ..ConversationConfig::default() };
    Conversation::new(engine, config).expect("a conversation")
}

/// Options that cancel nothing, or keep what was written.
fn options(random: &mut Random) -> TurnOptions {
    let on_cancel = if random.below(2) == 0 { OnCancel::Rollback } else { OnCancel::KeepPartial };
    let sampler = SamplerParams { temperature: random.below(2) as f32, ..SamplerParams::default() };
    TurnOptions { on_cancel, sampler: Some(sampler), ..TurnOptions::default() }
}

/// Errors that the script causes on purpose.
fn expected(error: Error) {
    let known = matches!(
        error,
        Error::Cancelled
            | Error::Session(
                lm_session::Error::PromptTooLong { .. }
                    | lm_session::Error::CacheFull { .. }
                    | lm_session::Error::Busy { .. }
            )
    );
    assert!(known, "{error}");
}

/// One random operation on one of the conversations.
fn act(conversations: &mut [Conversation], engine: &Engine, random: &mut Random) {
    let index = random.below(conversations.len());
    let question = QUESTIONS[random.below(QUESTIONS.len())];
    let options = options(random);
    let history = conversations[index].history();
    // Within the context there is room for a reply.
    if history.len() >= 12 {
        conversations[index].reset();
    }
    let chosen = &mut conversations[index];
    match random.below(9) {
        0..=3 => drop(chosen.send_with(question, options).map_err(expected)),
        4 => match chosen.stream(question, options) {
            Ok(turn) => {
                let cancel = turn.canceller();
                for event in turn {
                    cancel.cancel();
                    drop(event.map_err(expected));
                }
            }
            Err(error) => expected(error),
        },
        5 => {
            let read = random.below(6);
            match chosen.stream(question, options) {
                Ok(turn) => turn.take(read).for_each(|event| drop(event.map_err(expected))),
                Err(error) => expected(error),
            }
        }
        6 => {
            let fork = chosen.fork().expect("the engine runs");
            let other = random.below(conversations.len());
            conversations[other] = fork;
        }
        7 => {
            // The history before a random question, written to JSON and read again by a new conversation.
            let questions: Vec<_> = (0..history.len()).filter(|&at| history[at].role == Role::User).collect();
            let kept = questions.get(random.below(questions.len().max(1))).copied().unwrap_or(0);
            let saved: Vec<Value> = history[..kept].iter().map(Message::to_json).collect();
            let read = saved.into_iter().map(|message| Message::from_json(message).expect("a message"));
            let mut restored = conversation(engine);
            restored.set_history(read.collect());
            *chosen = restored;
        }
        _ => {
            let too_long = chosen.send("word ".repeat(CONTEXT)).expect_err("it exceeds the context");
            expected(too_long);
        }
    }
}

/// Resident memory in bytes; `None` if the system does not report it.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

/// Asserts that memory has grown by at most 5 %, besides what the allocator keeps for threads that were
/// started meanwhile.
fn assert_flat(before: usize, after: usize) {
    let allowed = before as f64 * 1.05 + (8 << 20) as f64;
    assert!(after as f64 <= allowed, "memory grew from {before} to {after} bytes");
}

/// Names of this process's threads that belong to an engine.
fn engine_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("lm-engine") || name.starts_with("lm-sampl")).collect()
}

fn run(engine: &Engine, conversations: &mut [Vec<Conversation>], seed: u64, until: Instant) -> usize {
    std::thread::scope(|scope| {
        let running: Vec<_> = conversations
            .iter_mut()
            .enumerate()
            .map(|(number, own)| {
                scope.spawn(move || {
                    let mut random = Random(seed + number as u64);
                    let mut actions = 0;
                    while Instant::now() < until {
                        act(own, engine, &mut random);
                        actions += 1;
                    }
                    actions
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

fn greedy() -> TurnOptions {
    TurnOptions { sampler: Some(SamplerParams::default()), ..TurnOptions::default() }
}

#[test]
fn random_turns_match_fresh_replies_in_flat_memory() {
    let seconds = std::env::var("LM_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let half = Duration::from_secs_f64(seconds / 2.0);
    let engine = engine();
    let mut conversations: Vec<Vec<Conversation>> =
        (0..THREADS).map(|_| (0..CONVERSATIONS).map(|_| conversation(&engine)).collect()).collect();
    let mut actions = run(&engine, &mut conversations, 1, Instant::now() + half);
    let before = resident();
    actions += run(&engine, &mut conversations, 100, Instant::now() + half);
    let after = resident();
    println!("{actions} actions, {before:?} and then {after:?} bytes resident");
    if let (Some(before), Some(after)) = (before, after) {
        assert_flat(before, after);
    }

    let fresh_engine = self::engine();
    for own in conversations.iter_mut().flatten() {
        let history = own.history();
        let mut fresh = conversation(&fresh_engine);
        fresh.set_history(history.clone());
        let (reply, expected) = (own.send_with("And now?", greedy()), fresh.send_with("And now?", greedy()));
        match (reply, expected) {
            (Ok(reply), Ok(expected)) => assert_eq!(reply.message, expected.message, "{history:?}"),
            (reply, expected) => panic!("{reply:?}, {expected:?}"),
        }
    }

    let before = resident();
    for _ in 0..1000 {
        let turn = TurnOptions { max_output_tokens: Some(1), ..greedy() };
        conversation(&engine).send_with("Hi.", turn).expect("a reply");
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        println!("{before} bytes before 1,000 conversations, {after} after");
        assert_flat(before, after);
    }

    engine.shutdown();
    fresh_engine.shutdown();
    // A thread that was joined is listed until the system has taken it apart.
    let until = Instant::now() + Duration::from_secs(10);
    while !engine_threads().is_empty() && Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(engine_threads(), Vec::<String>::new());
}
