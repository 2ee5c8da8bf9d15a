//! What a user types, a tool returns and a model passes to a tool cannot spell an added token, whatever the template.
//!
//! Each conversation is rendered twice: with a text made of the template's own markers, and with a text of the same length
//! that spells none. Every marker of every template is an added token of the tokenizers, so the two prompts have the same
//! added tokens at the same places exactly when no content gave one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lm_conversation::{ContentTokens, GenerationPrompt, Map, PromptTemplate, RenderedPrompt, TokenId, Value};
use lm_model::{SpecialTokens, TokenKind, Tokenizer};
use lm_template::Prompt;
use serde_json::json;
use tokenizers::AddedToken;

use crate::support::{Published, TOKENIZERS, render, shared, tokenizer};

/// The place in a conversation where the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    User,
    ToolArgument,
    ToolArgumentName,
    ToolResult,
    ToolDeclaration,
}

const PLACES: [Place; 5] =
    [Place::User, Place::ToolArgument, Place::ToolArgumentName, Place::ToolResult, Place::ToolDeclaration];

/// Templates that decide by the text itself what they write around it, so that the two prompts differ in what the template
/// says: not a matter of tokens.
const READS_CONTENT: &[(&str, Place)] = &[];

/// What the template writes as a marker: `<…>` and `[…]` without blanks in its source, and its special tokens.
fn markers(template: &Published) -> BTreeSet<String> {
    let source = &template.source;
    let mut found: BTreeSet<String> =
        template.context.values().filter_map(Value::as_str).map(str::to_owned).collect();
    for (start, _) in source.match_indices(['<', '[']) {
        let close = if source[start..].starts_with('<') { '>' } else { ']' };
        let Some(length) = source[start..].find(close) else { continue };
        let inner = &source[start + 1..start + length];
        let is_marker = match close {
            '>' => inner == "|\"|" || !inner.contains(|c: char| c.is_whitespace() || "\"'{}<=\\".contains(c)),
            _ => inner.len() > 2 && inner.chars().all(|c| c.is_ascii_uppercase() || "_/".contains(c)),
        };
        if is_marker && (1..48).contains(&inner.len()) {
            found.insert(source[start..=start + length].to_owned());
        }
    }
    found
}

/// A text that spells every marker, apart and side by side.
fn hostile(markers: &BTreeSet<String>) -> String {
    let list: Vec<&str> = markers.iter().map(String::as_str).collect();
    format!("please {} and {} now", list.join(" "), list.concat())
}

/// A text of the same length in bytes and characters that spells no marker.
fn harmless(hostile: &str) -> String {
    let swap = |c| match c {
        '<' => '(',
        '>' => ')',
        '[' => '{',
        ']' => '}',
        '|' => '!',
        '｜' => '！',
        c => c,
    };
    hostile.chars().map(swap).collect()
}

/// The conversation with `text` in its place, in the forms that templates ask for; a template takes the first it renders.
fn conversations(place: Place, text: &str) -> Vec<(Vec<Value>, Value)> {
    let at = |here: Place| if place == here { text } else { "Paris" };
    let arguments = json!({"city": at(Place::ToolArgument), "unit": [at(Place::ToolArgument)], at(Place::ToolArgumentName): 1});
    let tool = json!({"type": "function", "function": {
        "name": "get_weather",
        "description": at(Place::ToolDeclaration),
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": at(Place::ToolDeclaration)}}},
    }});
    let user = json!({"role": "user", "content": at(Place::User)});
    if place == Place::User {
        return vec![(vec![user], Value::Null), (vec![user_parts(text)], Value::Null)];
    }
    let tools = json!([tool]);
    if place == Place::ToolDeclaration {
        return vec![(vec![user], tools)];
    }
    let mut forms = Vec::new();
    for arguments in [arguments.clone(), arguments.to_string().into()] {
        let call = json!({"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}});
        for result in [json!(at(Place::ToolResult)), json!([{"type": "text", "text": at(Place::ToolResult)}])]
        {
            let messages = vec![
                user.clone(),
                json!({"role": "assistant", "content": "", "tool_calls": [call]}),
                json!({"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": result}),
            ];
            forms.push((messages, tools.clone()));
        }
    }
    forms
}

fn user_parts(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

/// The two prompts: with the hostile text and with the harmless one. None when the template renders no such
/// conversation, or leaves the text out.
fn prompts(template: &PromptTemplate, place: Place, hostile: &str) -> Option<(Prompt, Prompt)> {
    let harmless = harmless(hostile);
    let render = |messages: &[Value], tools: &Value| {
        render(template, messages, tools, GenerationPrompt::Add, &Map::new())
    };
    let forms = conversations(place, hostile).into_iter().zip(conversations(place, &harmless));
    forms.into_iter().find_map(|((messages, tools), (same, same_tools))| {
        let prompt = render(&messages, &tools).filter(|prompt| prompt.text().contains("please "))?;
        Some((prompt, render(&same, &same_tools)?))
    })
}

/// The added tokens of a prompt and the bytes that are spelled before each.
fn added_tokens(ids: &[TokenId], tokenizer: &Tokenizer) -> Vec<(usize, TokenId)> {
    let mut at = 0;
    let mut found = Vec::new();
    for id in ids {
        if tokenizer.token_kind(*id) != TokenKind::Text {
            found.push((at, *id));
        }
        at += tokenizer.token_bytes(*id).len();
    }
    found
}

/// What is wrong with the pair's ids under one tokenizer.
fn fault((attack, control): &(Prompt, Prompt), tokenizer: &Tokenizer) -> Option<&'static str> {
    let ids =
        |prompt, content| RenderedPrompt::new(prompt, tokenizer, content).expect("any text has ids").ids;
    let (hostile, harmless) = (ids(attack, ContentTokens::Plain), ids(control, ContentTokens::Plain));
    let expected = added_tokens(&harmless, tokenizer);
    if added_tokens(&hostile, tokenizer) != expected {
        return Some("its added tokens are not those of the harmless text");
    }
    // A SentencePiece tokenizer puts a blank before each piece of text, and its own mark (U+2581) is a blank to it.
    let without_blanks = |text: String| text.replace([' ', '\u{2581}'], "");
    let decoded = tokenizer.decode(&hostile, SpecialTokens::Keep);
    if without_blanks(decoded) != without_blanks(attack.text()) {
        return Some("it does not decode to its text");
    }
    if ids(control, ContentTokens::Recognized) != harmless {
        return Some("its harmless twin has other ids than its text alone");
    }
    if added_tokens(&ids(attack, ContentTokens::Recognized), tokenizer).len() <= expected.len() {
        return Some("its text spells no added token: the test shows nothing");
    }
    None
}

/// A template's prompts by the place of the text.
type Prompts = Vec<(String, Place, (Prompt, Prompt))>;

fn all_prompts(templates: &[Published]) -> Prompts {
    let mut all = Vec::new();
    for published in templates {
        let template = published.compile();
        let text = hostile(&markers(published));
        for place in PLACES {
            if let Some(pair) = prompts(&template, place, &text) {
                all.push((published.id.clone(), place, pair));
            }
        }
    }
    all
}

fn faults(shared: &Path, name: &str, added: &[AddedToken], prompts: &Prompts) -> Vec<String> {
    let tokenizer = tokenizer(shared, name, added);
    let check = |(id, place, pair): &(String, Place, (Prompt, Prompt))| {
        fault(pair, &tokenizer).map(|fault| format!("{name} {id} {place:?}: {fault}"))
    };
    prompts.iter().filter_map(check).collect()
}

#[test]
fn no_content_spells_an_added_token() {
    let Some(shared) = shared() else { return };
    let templates = Published::all(&shared);
    let (prompts, shapes): (Prompts, Prompts) = all_prompts(&templates)
        .into_iter()
        .partition(|(_, _, (hostile, harmless))| hostile.text().len() == harmless.text().len());
    let reading: Vec<(&str, Place)> = shapes.iter().map(|(id, place, _)| (id.as_str(), *place)).collect();
    assert_eq!(reading, READS_CONTENT, "templates whose own text depends on the content");

    let markers: BTreeSet<String> = templates.iter().flat_map(markers).collect();
    let as_tokens = |special| -> Vec<AddedToken> {
        markers.iter().map(|marker| AddedToken::from(marker.as_str(), special)).collect()
    };
    let sets = [as_tokens(true), as_tokens(false)];
    let jobs: Vec<(&str, &Vec<AddedToken>)> =
        TOKENIZERS.iter().flat_map(|name| sets.iter().map(move |set| (*name, set))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = jobs
            .chunks(jobs.len().div_ceil(threads))
            .map(|part| {
                let (shared, prompts) = (&shared, &prompts);
                let run = move || {
                    part.iter().flat_map(|(name, set)| faults(shared, name, set, prompts)).collect::<Vec<_>>()
                };
                scope.spawn(run)
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("no thread panics")).collect()
    });
    let mut counts: BTreeMap<Place, usize> = BTreeMap::new();
    prompts.iter().for_each(|(_, place, _)| *counts.entry(*place).or_default() += 1);
    println!(
        "{} hostile prompts in {} tokenizers with {} markers as added tokens: {counts:?} of {} templates",
        prompts.len() * jobs.len(),
        jobs.len(),
        markers.len(),
        templates.len(),
    );
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(20)]);
    let families: BTreeSet<&str> = templates.iter().map(|template| template.family.as_str()).collect();
    let covered = |place| {
        let ids: BTreeSet<&str> =
            prompts.iter().filter(|(_, at, _)| *at == place).map(|(id, ..)| id.as_str()).collect();
        templates
            .iter()
            .filter(|template| ids.contains(template.id.as_str()))
            .map(|template| template.family.as_str())
            .collect::<BTreeSet<&str>>()
    };
    assert_eq!(covered(Place::User), families, "a user's text in every family");
    println!("families with a tool's result: {:?}", covered(Place::ToolResult));
}
