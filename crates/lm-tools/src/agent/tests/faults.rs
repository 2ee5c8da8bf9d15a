//! Turns under faults: each call has one result, in order, and runs at most once.

use super::*;
use crate::testing::{self, ScriptedReply};
use lm_conversation::GenerationPrompt;
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{Engine, EngineSettings};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

/// Course of a call: the tool that it names, which behaves so.
const COURSES: [&str; 13] = [
    "plain", "panics", "hangs", "big", "refuses", "unknown", "wrong", "cancels", "denied", "asked",
    "stopped", "replaced", "external",
];

#[derive(Clone, Debug)]
struct Case {
    /// Indices of courses: calls of each round.
    rounds: Vec<Vec<usize>>,
    limits: AgentLimits,
    max_parallel: usize,
    /// Number of events that are read before the turn is ended, without pieces of text.
    read: Option<usize>,
    /// The turn is ended by its agent, and dropped later.
    is_replaced: bool,
    is_async: bool,
    on_cancel: OnCancel,
}

fn case() -> impl Strategy<Value = Case> {
    let rounds = prop::collection::vec(prop::collection::vec(0..COURSES.len(), 1..4), 1..4);
    let max_calls = prop::option::weighted(0.3, 0..5_usize);
    let at_limit = prop_oneof![Just(AtLimit::Stop), Just(AtLimit::Answer)];
    let on_cancel = prop_oneof![Just(OnCancel::Rollback), Just(OnCancel::KeepPartial)];
    let read = prop::option::weighted(0.5, 0..20_usize);
    let reader = (read, any::<bool>(), any::<bool>());
    (rounds, 0..4_usize, max_calls, at_limit, 1..4_usize, reader, on_cancel).prop_map(
        |(
            rounds,
            max_rounds,
            max_calls,
            at_limit,
            max_parallel,
            (read, is_replaced, is_async),
            on_cancel,
        )| {
            let limits = AgentLimits { max_rounds, max_calls, at_limit, ..AgentLimits::default() };
            Case { rounds, limits, max_parallel, read, is_replaced, is_async, on_cancel }
        },
    )
}

/// Number of times that each call ran.
type Runs = Arc<Mutex<BTreeMap<i64, usize>>>;

fn tools(runs: &Runs, cancel: &CancelHandle, max_parallel: usize) -> Toolset {
    let limits = CallLimits {
        timeout: Some(Duration::from_millis(15)),
        cancel_grace: Some(Duration::from_millis(5)),
        max_parallel,
        max_result_bytes: 100,
        ..CallLimits::default()
    };
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    COURSES.iter().filter(|name| **name != "unknown").fold(
        Toolset::new().with_limits(limits),
        |tools, &name| {
            let (runs, cancel) = (runs.clone(), cancel.clone());
            let spec = crate::ToolSpec::new(name, "Behaves so.", schema.clone());
            if name == "external" {
                return tools.with_external(spec).expect("names differ");
            }
            let run = move |arguments: crate::Map<String, crate::Value>, _| {
                let number = arguments["n"].as_i64().expect("arguments are valid");
                *runs.lock().expect("no panic").entry(number).or_default() += 1;
                let cancel = cancel.clone();
                async move {
                    match name {
                        "panics" => panic!("no figures today"),
                        "hangs" => std::future::pending().await,
                        "big" => Ok("x".repeat(10_000_000).into()),
                        "refuses" => Err(crate::ToolError::failed("no")),
                        "cancels" => {
                            cancel.cancel();
                            Ok("cancelled".into())
                        }
                        _ => Ok(number.into()),
                    }
                }
            };
            tools.with_async_fn(spec, run).expect("names differ")
        },
    )
}

struct Faults;

impl Hook for Faults {
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        match request.call.name.as_str() {
            "denied" => Decision::Deny("not allowed".to_owned()),
            "asked" => Decision::Ask,
            "stopped" => Decision::Stop("enough".to_owned()),
            _ => Decision::Run,
        }
    }

    fn after_call(&self, step: &AgentStep) -> AfterCall {
        if step.call.name == "replaced" { AfterCall::Replace(json!("replaced")) } else { AfterCall::Keep }
    }
}

/// Checks that each call of a history has one result, by its id, after it and in order. Returns their number.
fn check(history: &[Message]) -> usize {
    let mut ids = HashSet::new();
    let mut messages = history.iter().peekable();
    while let Some(message) = messages.next() {
        assert_ne!(message.role, Role::Tool, "a result without a call: {history:?}");
        for call in &message.tool_calls {
            assert!(ids.insert(call.id.clone()) && call.id.is_some(), "{history:?}");
            let result = messages.next_if(|next| next.role == Role::Tool).expect("a result");
            assert_eq!((&result.tool_call_id, result.name.as_ref()), (&call.id, Some(&call.name)));
        }
    }
    ids.len()
}

/// Reads a turn, or a part of it; requests for approval are answered in turn.
fn read(turn: &mut AgentTurn, case: &Case) -> Option<Result<AgentReply>> {
    let mut left = case.read.unwrap_or(usize::MAX);
    let mut asked = 0;
    while left > 0 {
        let event = if case.is_async { futures_executor::block_on(turn.recv()) } else { turn.next() };
        match event? {
            Ok(AgentEvent::Finished(reply)) => return Some(Ok(reply)),
            Ok(AgentEvent::Approval(request)) => {
                asked += 1;
                match asked % 4 {
                    0 => request.allow(),
                    1 => request.deny("no"),
                    2 => request.allow_with(request.call.arguments.clone()),
                    _ => {}
                }
            }
            // One of many.
            Ok(AgentEvent::ToolCallArguments { .. } | AgentEvent::Text(_) | AgentEvent::Conversation(_)) => {
                continue;
            }
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        left -= 1;
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_call_has_one_result(case in case()) {
        let mut number = 0;
        let replies = case.rounds.iter().map(|round| {
            round.iter().fold(ScriptedReply::text(""), |reply, &course| {
                number += 1;
                let n = if COURSES[course] == "wrong" { json!("one") } else { json!(number) };
                reply.and_call(COURSES[course], json!({"n": n}))
            })
        });
        let replies: Vec<_> = replies.chain([ScriptedReply::text("Done.")]).collect();
        let (runs, cancel) = (Runs::default(), CancelHandle::new());
        let config = ConversationConfig { constrain_calls: ConstrainCalls::No, ..ConversationConfig::default() };
        // A limit may forbid the script's next call.
        let mut agent = Agent::builder(&testing::lenient_engine(replies), tools(&runs, &cancel, case.max_parallel))
            .config(config)
            .hook(Faults)
            .build()
            .expect("an agent");
        let mut input = vec![Message::user("Go on.")];
        let mut steps = Vec::new();
        let ended = loop {
            let options = TurnOptions { cancel: cancel.clone(), on_cancel: case.on_cancel, ..TurnOptions::default() };
            let mut turn = agent.turn(input).options(options).limits(case.limits).start().expect("a turn");
            let ended = read(&mut turn, &case);
            if case.is_replaced {
                let history = agent.conversation_mut().history();
                drop(turn);
                prop_assert_eq!(agent.conversation().history(), history, "a turn that has ended changes nothing");
            } else {
                drop(turn);
            }
            let Some(Ok(reply)) = &ended else { break ended };
            steps.extend(reply.steps.clone());
            let StopReason::ExternalCalls { calls } = &reply.stop else { break ended };
            input = calls.iter().rev().map(|call| Message::tool(call.id.as_deref(), &*call.name, json!("done"))).collect();
        };

        let history = agent.conversation().history();
        let calls = check(&history);
        prop_assert!(runs.lock().expect("no panic").values().all(|&count| count == 1), "a call ran twice");
        match ended {
            Some(Ok(reply)) => {
                let pairs = |call: &ToolCall, result: &Message| (call.id.clone(), result.clone());
                let mut steps: Vec<_> = steps.iter().map(|step| pairs(&step.call, &step.result)).collect();
                let of_history = history.iter().filter(|message| message.role == Role::Tool);
                let mut of_history: Vec<_> = of_history.map(|message| (message.tool_call_id.clone(), message.clone())).collect();
                if history.iter().flat_map(|message| &message.tool_calls).any(|call| call.name == "external") {
                    // Their results come after the others of their round.
                    steps.sort_by_key(|(id, _)| id.clone());
                    of_history.sort_by_key(|(id, _)| id.clone());
                }
                prop_assert_eq!(steps, of_history);
                prop_assert!(reply.stop == StopReason::Answered || calls > 0);
            }
            Some(Err(error)) => prop_assert!(matches!(error, Error::Cancelled), "{error:?}"),
            None => {}
        }
        let ran = runs.lock().expect("no panic").len();
        prop_assert!(ran <= calls, "{ran} calls ran, the history has {calls}");

        // A conversation can continue from the history.
        agent.conversation().render("Hi!", GenerationPrompt::Add).expect("it renders");
        let mut next = Agent::builder(&testing::scripted_engine([ScriptedReply::text("Hello!")]), agent.tools().clone())
            .build()
            .expect("an agent");
        next.conversation_mut().set_history(history);
        prop_assert_eq!(next.run("Hi!").expect("an answer").text(), "Hello!");
    }
}

#[test]
fn competing_turns_leave_complete_rounds() {
    let script = (0..40).flat_map(|_| [said("multiply", 3, 5), "Done.".to_owned()]);
    let model = FakeLm::scripted(&tokenizer(), script).with_context_len(65_536); // All 40 turns may be complete.
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
    let config = ConversationConfig { template: Some(template()), ..ConversationConfig::default() };
    let mut agent = Agent::builder(&engine, multiplication()).config(config).build().expect("an agent");
    let readers: Vec<_> = (0..40)
        .map(|number| {
            let turn = agent.stream(format!("Turn {number}.")).expect("a turn");
            let reader = std::thread::spawn(move || turn.into_reply().map(|reply| reply.text()));
            std::thread::sleep(Duration::from_millis(number % 7));
            reader
        })
        .collect();
    let ended: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("no panic")).collect();
    for reply in &ended {
        assert!(matches!(reply, Ok(_) | Err(Error::Cancelled)), "{reply:?}");
    }
    assert!(ended[39].is_ok(), "nothing ends the last one");
    check(&agent.conversation().history());
    agent.run("Hi!").expect("an answer");
}
