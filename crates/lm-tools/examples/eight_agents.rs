//! Eight agents with asynchronous tools on one engine and one thread of a tokio runtime. While the tools of
//! some agents wait, the replies of others are decoded, in one batch; a timeline shows it.
//!
//! `cargo run --release -p lm-tools --example eight_agents`

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lm_tools::{Agent, AgentEvent, Engine, EngineSettings, LoadOptions, ModelFolder, Toolset, Value, tool};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the weather for a given location.
#[tool]
async fn get_weather(
    /** The location to get the weather for. */
    location: String,
) -> Value {
    tokio::time::sleep(Duration::from_millis(15 * location.len() as u64)).await; // A slow service.
    serde_json::json!({"tool_name": "get_weather", "location": location, "temperature": 72, "unit": "F",
        "humidity": 50, "condition": "Sunny"})
}

const PLACES: [&str; 8] = ["Rome", "Oslo", "Paris", "Madrid", "Berlin", "Lisbon", "Amsterdam", "Copenhagen"];

/// Occupation of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its prompt waits or runs.
    Prompt,
    /// Its reply is decoded.
    Decoding,
    /// Its tools run.
    Tools,
    /// It has answered.
    Done,
}

/// Changes of the agents' phases, in order: agent, time since the start, phase.
pub(crate) struct Timeline {
    start: Instant,
    changes: Mutex<Vec<(usize, Duration, Phase)>>,
}

impl Timeline {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), changes: Mutex::default() })
    }

    /// Records a phase that differs from the previous one.
    fn enter(&self, agent: usize, phase: Phase) {
        let mut changes = self.changes.lock().expect("no panic while it is locked");
        if changes.iter().rev().find(|change| change.0 == agent).is_none_or(|change| change.2 != phase) {
            changes.push((agent, self.start.elapsed(), phase));
        }
    }

    pub(crate) fn changes(&self) -> Vec<(usize, Duration, Phase)> {
        self.changes.lock().expect("no panic while it is locked").clone()
    }

    /// The timeline as text: a row per agent, a column per 1/72 of the time.
    fn drawn(&self) -> String {
        const WIDTH: u128 = 72;
        let changes = self.changes();
        let end = changes.last().map_or(1, |change| change.1.as_micros().max(1));
        let row = |(agent, place): (usize, &&str)| {
            let of_agent: Vec<_> = changes.iter().filter(|change| change.0 == agent).collect();
            let at = |column: u128| {
                let now = end * column / WIDTH;
                match of_agent.iter().rev().find(|change| change.1.as_micros() <= now).map(|change| change.2)
                {
                    None | Some(Phase::Prompt) => '.',
                    Some(Phase::Decoding) => '#',
                    Some(Phase::Tools) => '~',
                    Some(Phase::Done) => ' ',
                }
            };
            format!("{place:>10} |{}|\n", (0..WIDTH).map(at).collect::<String>())
        };
        let rows: String = PLACES.iter().enumerate().map(row).collect();
        format!("{rows}{:>12}0{:>71} ms\n{:>12}. prompt   # decoding   ~ tool\n", "", end / 1000, "")
    }
}

/// Runs an agent to its answer: replies are streamed, calls run on the runtime, and no thread waits.
pub(crate) async fn run(
    index: usize,
    mut agent: Agent,
    question: String,
    timeline: Arc<Timeline>,
) -> Result<String> {
    timeline.enter(index, Phase::Prompt);
    let mut turn = agent.stream(question)?;
    while let Some(event) = turn.recv().await {
        match event? {
            AgentEvent::Text(_) | AgentEvent::ToolCallStarted { .. } => {
                timeline.enter(index, Phase::Decoding);
            }
            AgentEvent::ReplyFinished(reply) if !reply.tool_calls().is_empty() => {
                timeline.enter(index, Phase::Tools);
            }
            AgentEvent::ToolResult(_) => timeline.enter(index, Phase::Prompt),
            AgentEvent::Finished(reply) => {
                timeline.enter(index, Phase::Done);
                return Ok(reply.text());
            }
            _ => {}
        }
    }
    Err("the turn was cancelled".into())
}

/// Asks one agent for the weather in each place, all at the same time.
pub(crate) async fn ask_all(engine: &Engine, timeline: &Arc<Timeline>) -> Result<Vec<String>> {
    let runtime = tokio::runtime::Handle::current();
    let spawner = move |future| drop(runtime.spawn(future));
    let tools = Toolset::new().with_spawner(spawner).with(get_weather::tool())?;
    let agents = PLACES.iter().enumerate().map(|(index, place)| {
        let (agent, timeline) = (Agent::builder(engine, tools.clone()).build(), timeline.clone());
        async move { run(index, agent?, format!("How is the weather in {place}?"), timeline).await }
    });
    try_join_all(agents).await
}

pub(crate) fn main() -> Result<()> {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let timeline = Timeline::start();
    for answer in runtime.block_on(ask_all(&engine, &timeline))? {
        println!("{answer}");
    }
    println!("\n{}", timeline.drawn());
    Ok(())
}
