//! The search tool and the agent of the LangChain article, on the embedded model: a tool that searches a few
//! stored pages in place of the web, and the built-in prompt of agents with its placeholders.
//!
//! `cargo run --release -p lm-tools --example langchain_agent`

use lm_tools::{Agent, ChatPrompt, Engine, EngineSettings, LoadOptions, ModelFolder, Toolset, tool};
use serde::Serialize;

/// A page that was found, with the keys of Tavily's results.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    title: &'static str,
    url: &'static str,
    content: &'static str,
    score: f64,
}

const PAGES: [(&str, &str, &str); 3] = [
    ("Eiffel Tower", "https://example.org/eiffel", "The Eiffel Tower in Paris is 330 metres high."),
    ("Mont Blanc", "https://example.org/mont-blanc", "Mont Blanc is 4,806 metres high."),
    ("Rust", "https://example.org/rust", "Rust is a language for fast and reliable programs."),
];

/// Search the web for a query.
///
/// Args:
///     query: The search query
#[tool]
pub(crate) fn search(query: String) -> Vec<Found> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let score = |text: &str| {
        let text = text.to_lowercase();
        words.iter().filter(|word| text.contains(*word)).count() as f64 / words.len().max(1) as f64
    };
    let found = PAGES.map(|(title, url, content)| Found { title, url, content, score: score(content) });
    let mut found: Vec<_> = found.into_iter().filter(|page| page.score > 0.0).collect();
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let tools = Toolset::new().with(search::tool())?;
    let prompt = ChatPrompt::tool_calling_agent();
    println!("{:?}", prompt.variables());
    let mut agent = Agent::builder(&engine, tools).prompt(prompt).build()?;
    let reply = agent.run("Search the web for the Eiffel Tower.")?;
    for step in &reply.steps {
        println!("{:?} -> {}", step.arguments(), step.result.content.text());
    }
    println!("{}", reply.text());
    Ok(())
}
