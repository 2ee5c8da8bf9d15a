//! Comparison with the ids of transformers: `testdata/tokenizers/ids.json`.

use std::collections::HashMap;

use lm_conversation::{ContentTokens, GenerationPrompt, Map, RenderedPrompt, TokenId, Value};
use serde::Deserialize;
use tokenizers::AddedToken;

use crate::shared::{self, json};
use crate::tokens::support::{Published, render, root, tokenizer};

#[derive(Deserialize)]
struct Ids {
    /// Added tokens by tokenizer.
    added_tokens: HashMap<String, Vec<AddedToken>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    tokenizer: String,
    template: String,
    conversation: String,
    ids: Vec<TokenId>,
}

#[derive(Deserialize)]
struct Conversation {
    name: String,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Value,
    add_generation_prompt: bool,
    #[serde(default)]
    kwargs: Map<String, Value>,
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(json(root().join("testdata/tokenizers").join(name))).expect("our own file")
}

#[test]
fn ids_equal_transformers() {
    let Some(shared) = shared::path("") else { return };
    let Ids { added_tokens, cases } = read("ids.json");
    let conversations: Vec<Conversation> = read("conversations.json");
    let templates: HashMap<String, _> =
        Published::all(&shared).into_iter().map(|template| (template.id.clone(), template)).collect();
    let mut wrong = Vec::new();
    for (name, added) in &added_tokens {
        let tokenizer = tokenizer(&shared, name, added);
        for case in cases.iter().filter(|case| case.tokenizer == *name) {
            let conversation =
                conversations.iter().find(|known| known.name == case.conversation).expect("is there");
            let generation = if conversation.add_generation_prompt {
                GenerationPrompt::Add
            } else {
                GenerationPrompt::Omit
            };
            let template = templates[&case.template].compile();
            let Conversation { messages, tools, kwargs, .. } = conversation;
            let prompt =
                render(&template, messages, tools, generation, kwargs).expect("transformers renders it");
            let RenderedPrompt { ids, .. } =
                RenderedPrompt::new(&prompt.into(), &tokenizer, ContentTokens::Plain)
                    .expect("any text has ids");
            if ids != case.ids {
                let at = ids.iter().zip(&case.ids).take_while(|(ours, theirs)| ours == theirs).count();
                let text = |ids: &[TokenId]| {
                    tokenizer.decode(&ids[at..(at + 8).min(ids.len())], lm_tokenizer::SpecialTokens::Keep)
                };
                wrong.push(format!(
                    "{name} {} {:?} from id {at}: {:?}, transformers {:?}",
                    case.template,
                    case.conversation,
                    text(&ids),
                    text(&case.ids)
                ));
            }
        }
    }
    println!("{} prompts, {} ids", cases.len(), cases.iter().map(|case| case.ids.len()).sum::<usize>());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
