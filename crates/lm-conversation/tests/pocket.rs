//! End-to-end comparison of the pocket model with transformers: text, ids and the documented turns of
//! `testdata/templates/pocket.json`.

use std::path::{Path, PathBuf};

use lm_conversation::{Conversation, ConversationConfig, GenerationPrompt};
use lm_model::{LoadOptions, ModelFolder};
use lm_session::{Engine, EngineSettings};
use lm_template::{Map, Message, Preface, ToolSpec, Value};
use lm_tokenizer::TokenId;
use serde::Deserialize;

/// The only intended difference: a tool's list becomes JSON text here, while the template alone would take it
/// for the parts of a message.
const LIST_RESULT: &str = "a list as a result";

#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    add_generation_prompt: bool,
    extra_context: Map<String, Value>,
    text: String,
    ids: Vec<TokenId>,
    /// The assistant's next message in a documented flow.
    expected: Option<Message>,
}

impl Case {
    fn all() -> anyhow::Result<Vec<Self>> {
        Ok(serde_json::from_slice(&std::fs::read(root().join("testdata/templates/pocket.json"))?)?)
    }

    fn conversation(&self, engine: &Engine) -> anyhow::Result<Conversation> {
        let (tools, extra_context) = (self.tools.clone(), self.extra_context.clone());
        let preface = Preface { tools, extra_context, ..Preface::default() };
        Ok(Conversation::new(engine, ConversationConfig::default().with_preface(preface))?)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn engine() -> anyhow::Result<Engine> {
    let folder = ModelFolder::open(root().join("models/pocket/model"))?;
    Ok(Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?)
}

#[test]
fn rendered_prompts_equal_the_reference() -> anyhow::Result<()> {
    let engine = engine()?;
    for case in Case::all()?.into_iter().filter(|case| case.name != LIST_RESULT) {
        let generation =
            if case.add_generation_prompt { GenerationPrompt::Add } else { GenerationPrompt::Omit };
        let rendered = case.conversation(&engine)?.render(case.messages.clone(), generation)?;
        assert_eq!(rendered.text, case.text, "{}", case.name);
        assert_eq!(rendered.ids, case.ids, "{}", case.name);
    }
    Ok(())
}

#[test]
fn documented_turns_match_word_for_word() -> anyhow::Result<()> {
    let engine = engine()?;
    let mut turns = 0;
    for case in Case::all()? {
        let Some(expected) = &case.expected else { continue };
        let reply = case.conversation(&engine)?.send(case.messages.clone())?.message;
        let calls = |message: &Message| -> Vec<_> {
            message.tool_calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
        };
        assert_eq!(reply.content.text(), expected.content.text(), "{}", case.name);
        assert_eq!(calls(&reply), calls(expected), "{}", case.name);
        turns += 1;
    }
    assert_eq!(turns, 25);
    Ok(())
}
