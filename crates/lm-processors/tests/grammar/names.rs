//! Names of tools and parameters with any characters: a call is read back as it is declared, or the grammar is refused.

use lm_processors::{
    Error, GrammarRequest, ModelDataProcessor, ParserOptions, Recovery, SchemaFault, Thinking, ToolCall,
    ToolChoice, ToolSpec,
};
use serde_json::{Map, json};

use crate::common::{Compiler, Verdict, verdict};
use crate::writer::reply;

/// Names as APIs have them.
const COMMON: &[&str] = &[
    "@type",
    "a b",
    "filter[status]",
    "x:y",
    "$top",
    "server/tool",
    "a.b",
    "content-type",
    "größe",
    "名前",
    "1st",
    "a,b",
    "(x)",
    "user's",
    "what?",
    "q{id}",
    "a=b",
    "x;y",
    "C#",
    "50%",
];

/// Names that hold what some syntaxes are made of.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "a ",
    " a",
    "\"a\"",
    "<b>",
    "a>b",
    "a\nb",
    "</parameter>",
    "<|end|>",
    "print",
    "all",
    "item",
    "$text",
    "a</arg_key>b",
    "f(a=1)",
    "functions.f:0",
    "name",
    "default_api.f",
    "x\": ",
    "🙂",
    "{",
    "]<]minimax[>[<a>",
];

/// The outcome of a call with one odd name.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    ReadBack,
    Refused,
}

fn outcome(compiler: &Compiler, processor: &dyn ModelDataProcessor, tool: &str, key: &str) -> Outcome {
    let name = processor.name();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, key: {"type": "string"}}, "required": ["a", key]});
    let tools = [ToolSpec::new(tool, "", schema), ToolSpec::new("other", "", json!({}))];
    let request = GrammarRequest {
        tools: &tools,
        choice: ToolChoice::Required,
        thinking: Thinking::Forbidden,
        ..GrammarRequest::default()
    };
    let grammar = match processor.grammar(&request) {
        Ok(grammar) => grammar.expect("a call is required").grammar,
        Err(Error::Schema(error)) => {
            assert_eq!(error.tool.as_deref(), Some(tool), "{name}");
            let SchemaFault::Name { name: refused, .. } = &error.fault else { panic!("{name}: {error}") };
            assert!(refused == tool || refused == key, "{name}: {error}");
            return Outcome::Refused;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let arguments = Map::from_iter([("a".to_owned(), json!("y:1")), (key.to_owned(), json!("z"))]);
    let calls = [ToolCall::new(tool, arguments)];
    let dialect = processor.dialect().expect("a dialect");
    let text = reply(dialect, &calls, &tools).expect("plain values");
    let matcher = compiler.compile_grammar(&grammar).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(verdict(&matcher, &text), Verdict::Accepted, "{name}: {text}\n{}", grammar.lark);
    let options = ParserOptions { tools: tools.into(), recovery: Recovery::Off, ..ParserOptions::default() };
    let read = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut parser = processor.parser(&options);
        let mut events: Vec<_> = pieces.flat_map(|piece| parser.push(piece)).collect();
        events.extend(parser.finish());
        let mut builder = lm_processors::MessageBuilder::new(&options);
        events
            .into_iter()
            .try_for_each(|event| builder.push(event))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        builder.finish().tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect::<Vec<_>>()
    };
    let expected: Vec<_> = calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
    assert_eq!(read(&mut std::iter::once(text.as_str())), expected, "{name}: {text}");
    assert_eq!(read(&mut text.split_inclusive(|_| true)), expected, "{name}, by character: {text}");
    Outcome::ReadBack
}

#[test]
fn names_are_read_back_or_refused() {
    let compiler = Compiler::new();
    let (mut read, mut refused) = (0, Vec::new());
    for family in lm_processors::ALL {
        let processor = family.processor;
        if processor.dialect().is_none_or(|dialect| dialect.calls.is_empty()) {
            continue;
        }
        for odd in COMMON.iter().chain(HOSTILE) {
            for (tool, key) in [(*odd, "b"), ("f", *odd)] {
                match outcome(&compiler, processor, tool, if key == "a" { "b" } else { key }) {
                    Outcome::ReadBack => read += 1,
                    Outcome::Refused => refused.push((processor.name(), tool, key)),
                }
            }
        }
    }
    for refused in &refused {
        println!("{refused:?}");
    }
    println!("{read} read back, {} refused", refused.len());
    let common: Vec<_> =
        refused.iter().filter(|(_, tool, key)| COMMON.contains(tool) || COMMON.contains(key)).collect();
    assert!(common.is_empty(), "{common:?}");
}
