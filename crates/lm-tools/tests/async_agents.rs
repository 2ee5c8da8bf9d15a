//! Agents on one thread of an async runtime: tools overlap with each other and with decoding, and nothing
//! blocks the thread.

use crate::common;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lm_session::testing::scripted_engine;
use lm_template::PromptTemplate;
use lm_tools::{
    Agent, Conversation, ConversationConfig, ConversationEvent, Engine, State, Toolset, TurnOptions, tool,
};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Barrier, Notify};

#[allow(dead_code)] // `main`, which prints.
#[path = "../examples/eight_agents.rs"]
mod eight_agents;

use eight_agents::{Phase, Timeline, ask_all};

const CALL: &str = "<tool_call>\n{\"name\": \"wait\", \"arguments\": {}}\n</tool_call>";

/// Runtimes with one thread: the caller's, or one worker.
fn runtimes() -> [Runtime; 2] {
    let one_worker = Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let this_thread = Builder::new_current_thread().enable_time().build();
    [one_worker.expect("a runtime"), this_thread.expect("a runtime")]
}

/// Runs a future on the runtime's own thread; one that hangs is a failure.
fn run<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> T {
    let limited = async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs") };
    runtime.block_on(async { tokio::spawn(limited).await }).expect("no panic")
}

/// The embedded model's chat template, for an engine whose replies are given.
fn config() -> ConversationConfig {
    let (_, source) =
        lm_pocket::FILES.iter().find(|(name, _)| *name == "chat_template.jinja").expect("a template");
    let template = PromptTemplate::new(std::str::from_utf8(source).expect("text")).expect("it compiles");
    ConversationConfig { template: Some(template), ..ConversationConfig::default() }
}

async fn answer(engine: Engine, tools: Toolset) -> String {
    let mut agent = Agent::builder(&engine, tools).config(config()).build().expect("an agent");
    agent.run_async("Wait.").await.expect("an answer").text()
}

fn on_this_runtime() -> Toolset {
    let runtime = Handle::current();
    Toolset::new().with_spawner(move |future| drop(runtime.spawn(future)))
}

#[test]
fn eight_agents_answer_on_one_thread() {
    for runtime in runtimes() {
        let timeline = Timeline::start();
        let on_runtime = timeline.clone();
        let answers = run(&runtime, async move { ask_all(common::engine(), &on_runtime).await });
        let answers = answers.expect("eight answers");
        assert_eq!(answers.len(), 8);
        assert_eq!(answers[2], common::PARIS_SENTENCE);
        let changes = timeline.changes();
        for index in 0..8 {
            let of_agent = changes.iter().filter(|change| change.0 == index);
            let phases: Vec<Phase> = of_agent.map(|change| change.2).collect();
            use Phase::{Decoding, Done, Prompt, Tools};
            assert_eq!(phases, [Prompt, Decoding, Tools, Prompt, Decoding, Done], "agent {index}");
        }
    }
}

/// Waits until the calls of all eight agents run.
#[tool]
async fn wait(all: State<Barrier>) -> String {
    all.wait().await;
    "met".to_owned()
}

#[test]
fn tools_of_eight_agents_run_concurrently() {
    for runtime in runtimes() {
        let answers = run(&runtime, async {
            let tools = on_this_runtime().with_state(Barrier::new(8)).with(wait::tool()).expect("a tool");
            let agents = (0..8).map(|_| {
                let engine = scripted_engine([CALL, "Done."]);
                tokio::spawn(answer(engine, tools.clone()))
            });
            futures_util::future::join_all(agents.collect::<Vec<_>>()).await
        });
        for answer in answers {
            assert_eq!(answer.expect("no panic"), "Done.");
        }
    }
}

/// Signals between a tool and another conversation.
#[derive(Default)]
struct Signals {
    tool_runs: Notify,
    token_came: Notify,
}

/// Waits for a token of another conversation, which is asked only when this runs.
#[tool]
async fn wait_for_a_token(signals: State<Arc<Signals>>) -> String {
    signals.tool_runs.notify_one();
    signals.token_came.notified().await;
    "a token came".to_owned()
}

#[test]
fn waiting_tool_does_not_block_other_conversations() {
    let call = CALL.replace("wait", "wait_for_a_token");
    for runtime in runtimes() {
        let call = call.clone();
        let answer = run(&runtime, async move {
            // The replies in the order in which they begin: the call, the other conversation's, the answer.
            let engine = scripted_engine([call, "word ".repeat(50), "Done.".to_owned()]);
            let signals = Arc::new(Signals::default());
            let tools = on_this_runtime().with_state(signals.clone()).with(wait_for_a_token::tool());
            let tools = tools.expect("a tool");
            let mut other = Conversation::new(&engine, config()).expect("a conversation");
            let waiting = tokio::spawn(answer(engine, tools));
            signals.tool_runs.notified().await;
            let mut turn = other.stream("Talk.", TurnOptions::default()).expect("a turn").into_stream();
            let mut words = String::new();
            while let Some(event) = turn.next().await {
                if let ConversationEvent::Text(text) = event.expect("an event") {
                    words += &text;
                    signals.token_came.notify_one();
                }
            }
            assert_eq!(words.trim_end().split(' ').count(), 50);
            waiting.await.expect("no panic")
        });
        assert_eq!(answer, "Done.");
    }
}
