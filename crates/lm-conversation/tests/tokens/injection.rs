//! Injection of added tokens: the text of a user, of a tool result or of a call's arguments cannot spell one,
//! in any template.
//!
//! Each conversation is rendered twice: with a text made of the template's own markers, and with a text of
//! the same length that spells no marker. Every marker of every template is an added token of the tokenizers,
//! so the two prompts have the same added tokens at the same positions if and only if no content was encoded
//! as one.

use std::collections::BTreeSet;
use std::path::Path;

use lm_conversation::{ContentTokens, GenerationPrompt, Map, RenderedPrompt, TokenId, Value};
use lm_template::{PolyfilledPrompt, PolyfilledTemplate, Polyfills, RenderInput};
use lm_tokenizer::{SpecialTokens, TokenKind, Tokenizer};
use serde_json::json;
use tokenizers::AddedToken;

use crate::shared;
use crate::tokens::support::{Published, TOKENIZERS, tokenizer};

/// Position of the text in a conversation.
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

/// Templates for which the comparison fails for reasons unrelated to tokens.
const EXCEPTIONS: [(&str, Place, &str); 2] = [
    (
        "HuggingFaceTB-SmolLM3-3B",
        Place::ToolDeclaration,
        "takes `/think` out of the system message, so the places shift",
    ),
    ("meetkai-functionary-medium-v3.1", Place::ToolDeclaration, "writes `<` as `&lt;`, so no marker is left"),
];

/// Markers of the template: `<…>` and `[…]` without blanks in its source, and its special tokens. The tag
/// `<code>` of SmolLM3's examples is a token in content too where a vocabulary has it.
fn markers(template: &Published) -> BTreeSet<String> {
    let source = &template.source;
    let mut found: BTreeSet<String> =
        template.context.values().filter_map(Value::as_str).map(str::to_owned).collect();
    for (start, _) in source.match_indices(['<', '[']) {
        let close = if source[start..].starts_with('<') { '>' } else { ']' };
        let Some(length) = source[start..].find(close) else { continue };
        let inner = &source[start + 1..start + length];
        let is_marker = match close {
            _ if inner.trim_start_matches('/') == "code" => false,
            '>' => inner == "|\"|" || !inner.contains(|c: char| c.is_whitespace() || "\"'{}<=\\".contains(c)),
            _ => inner.len() > 2 && inner.chars().all(|c| c.is_ascii_uppercase() || "_/".contains(c)),
        };
        if is_marker && (1..48).contains(&inner.len()) {
            found.insert(source[start..=start + length].to_owned());
        }
    }
    found
}

/// A text that spells every marker, separated and adjacent.
fn hostile(markers: &[String]) -> String {
    format!("please {} and {} now", markers.join(" "), markers.concat())
}

/// A text of the same length and punctuation that spells no marker.
fn harmless(markers: &[String]) -> String {
    let disarm = |marker: &String| match marker.contains(|c: char| c.is_ascii_alphabetic()) {
        true => marker.replace(|c: char| c.is_ascii_alphabetic(), "x"),
        false => marker.replace('|', "!"),
    };
    hostile(&markers.iter().map(disarm).collect::<Vec<_>>())
}

/// Builds the conversation with `text` in its position, and its tools.
fn conversation(place: Place, text: &str) -> (Vec<Value>, Value) {
    let at = |here: Place| if place == here { text } else { "Paris" };
    let arguments = json!({"city": at(Place::ToolArgument), "unit": [at(Place::ToolArgument)], at(Place::ToolArgumentName): 1});
    let user = json!({"role": "user", "content": at(Place::User)});
    if place == Place::User {
        return (vec![user], Value::Null);
    }
    let tools = json!([{"type": "function", "function": {
        "name": "get_weather",
        "description": at(Place::ToolDeclaration),
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": at(Place::ToolDeclaration)}}},
    }}]);
    if place == Place::ToolDeclaration {
        return (vec![user], tools);
    }
    let call = json!({"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}});
    let messages = vec![
        user,
        json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        json!({"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": at(Place::ToolResult)}),
    ];
    (messages, tools)
}

/// Two prompts: with the hostile text and with the harmless one.
type Pair = (PolyfilledPrompt, PolyfilledPrompt);

/// Renders the pair; `None` if the template rejects the conversation or leaves the text out.
fn pair(template: &PolyfilledTemplate, place: Place, markers: &[String]) -> Option<Pair> {
    let render = |text: String| {
        let (messages, tools) = conversation(place, &text);
        let (generation_prompt, extra_context) = (GenerationPrompt::Add, &Map::new());
        let input = RenderInput { messages: &messages, tools: &tools, generation_prompt, extra_context };
        template.render(&input).ok().filter(|rendered| rendered.prompt.text().contains("please "))
    };
    Some((render(hostile(markers))?, render(harmless(markers))?))
}

/// Added tokens of a prompt, each with the number of bytes spelled before it.
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

/// Returns the defect of the pair's ids under one tokenizer.
fn fault((attack, control): &Pair, tokenizer: &Tokenizer) -> Option<&'static str> {
    let ids =
        |prompt, content| RenderedPrompt::new(prompt, tokenizer, content).expect("any text has ids").ids;
    let (hostile, harmless) = (ids(attack, ContentTokens::Plain), ids(control, ContentTokens::Plain));
    let expected = added_tokens(&harmless, tokenizer);
    if added_tokens(&hostile, tokenizer) != expected {
        return Some("its added tokens are not those of the harmless text");
    }
    // A SentencePiece tokenizer puts a blank before each piece of text, and decodes its own mark (U+2581) as
    // a blank.
    let without_blanks = |text: String| text.replace([' ', '\u{2581}'], "");
    let decoded = tokenizer.decode(&hostile, SpecialTokens::Keep);
    if without_blanks(decoded) != without_blanks(attack.prompt.text()) {
        return Some("it does not decode to its text");
    }
    // (The tags of polyfills are content too, and spell the markers of other templates.)
    if control.polyfills.is_empty() && ids(control, ContentTokens::Recognized) != harmless {
        return Some("its harmless twin has other ids than its text alone");
    }
    if added_tokens(&ids(attack, ContentTokens::Recognized), tokenizer).len() <= expected.len() {
        return Some("its text spells no added token: the test shows nothing");
    }
    None
}

/// Prompts by template and position of the text.
type Pairs = Vec<(String, Place, Pair)>;

/// Pairs of every template and position, with polyfills where the template alone omits the text.
fn all_pairs(templates: &[Published]) -> Pairs {
    let mut all = Vec::new();
    for published in templates {
        let markers: Vec<String> = markers(published).into_iter().collect();
        let template = published.compile();
        let alone = PolyfilledTemplate::new(template.clone(), Polyfills::none());
        let helped = PolyfilledTemplate::new(template, Polyfills::default());
        for place in PLACES {
            let pair = pair(&alone, place, &markers).or_else(|| pair(&helped, place, &markers));
            let pair = pair.unwrap_or_else(|| panic!("{} does not say {place:?}", published.id));
            all.push((published.id.clone(), place, pair));
        }
    }
    all
}

/// A template, the position of the text, and the defect there.
type Fault = (String, Place, String);

fn faults(shared: &Path, name: &str, added: &[AddedToken], pairs: &Pairs) -> Vec<Fault> {
    let tokenizer = tokenizer(shared, name, added);
    let check = |(id, place, pair): &(String, Place, Pair)| {
        fault(pair, &tokenizer).map(|fault| (id.clone(), *place, format!("{name}: {fault}")))
    };
    pairs.iter().filter_map(check).collect()
}

#[test]
fn content_does_not_form_added_tokens() {
    let Some(shared) = shared::path("") else { return };
    let templates = Published::all(&shared);
    let pairs = all_pairs(&templates);
    let markers: BTreeSet<String> = templates.iter().flat_map(markers).collect();
    let as_tokens = |special| -> Vec<AddedToken> {
        markers.iter().map(|marker| AddedToken::from(marker.as_str(), special)).collect()
    };
    let sets = [as_tokens(true), as_tokens(false)];
    let jobs: Vec<(&str, &Vec<AddedToken>)> =
        TOKENIZERS.iter().flat_map(|name| sets.iter().map(move |set| (*name, set))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let faults: Vec<Fault> = std::thread::scope(|scope| {
        let parts: Vec<_> = jobs
            .chunks(jobs.len().div_ceil(threads))
            .map(|part| {
                let (shared, pairs) = (&shared, &pairs);
                let run = move || {
                    part.iter().flat_map(|(name, set)| faults(shared, name, set, pairs)).collect::<Vec<_>>()
                };
                scope.spawn(run)
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("no thread panics")).collect()
    });
    let alone = pairs.iter().filter(|(_, _, (prompt, _))| prompt.polyfills.is_empty()).count();
    println!(
        "{} hostile prompts: {} templates with a text in {} places ({alone} said by the template alone, {} with polyfills), \
         in {} tokenizers with {} markers as added tokens",
        pairs.len() * jobs.len(),
        templates.len(),
        PLACES.len(),
        pairs.len() - alone,
        jobs.len(),
        markers.len(),
    );
    let faulty: BTreeSet<(&str, Place)> = faults.iter().map(|(id, place, _)| (id.as_str(), *place)).collect();
    let expected = EXCEPTIONS.into_iter().map(|(id, place, _)| (id, place)).collect();
    assert_eq!(faulty, expected, "{:#?}", &faults[..faults.len().min(20)]);
}
