//! Tool and parameter names with any characters: a call is read back as declared, or the grammar is refused.

use lm_processors::{
    Error, GrammarRequest, MessageBuilder, ModelDataProcessor, ParserOptions, Recovery, SchemaFault,
    Thinking, ToolCall, ToolChoice, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::grammar::writer::reply;

/// Names common in APIs.
const COMMON: &[&str] = &[
    "@type",
    "a b",
    "filter[status]",
    "x:y",
    "x",
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
    "x=b",
    "x;y",
    "C#",
    "50%",
];

/// Names that contain characters of some syntaxes.
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

/// Calls each of these tools with these parameters; returns false if the grammar is refused for one of the
/// names.
fn read_back(compiler: &Compiler, processor: &dyn ModelDataProcessor, names: &[&str], keys: &[&str]) -> bool {
    let family = processor.name();
    let properties: Map<_, _> =
        keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": keys});
    let tools: Vec<_> = names.iter().map(|name| ToolSpec::new(*name, "", schema.clone())).collect();
    let request = GrammarRequest {
        tools: &tools,
        choice: ToolChoice::Required,
        thinking: Thinking::Forbidden,
        ..GrammarRequest::default()
    };
    let grammar = match processor.grammar(&request) {
        Ok(grammar) => grammar.expect("a call is required").grammar,
        Err(Error::Schema(error)) => {
            let tool = error.tool.as_deref().expect("a tool");
            let SchemaFault::Name { name, .. } = &error.fault else { panic!("{family}: {error}") };
            assert!(
                names.contains(&tool) && (name == tool || keys.contains(&name.as_str())),
                "{family}: {error}"
            );
            return false;
        }
        Err(error) => panic!("{family}: {error}"),
    };
    let arguments: Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), Value::from("y:1"))).collect();
    let calls: Vec<_> = names.iter().map(|name| ToolCall::new(*name, arguments.clone())).collect();
    let dialect = processor.dialect().expect("a dialect");
    let text = reply(dialect, &calls, &tools).expect("plain values");
    let matcher = compiler.compile_grammar(&grammar).unwrap_or_else(|error| panic!("{family}: {error}"));
    assert_eq!(verdict(&matcher, &text), Verdict::Accepted, "{family}: {text}\n{}", grammar.lark);
    let options = ParserOptions { tools: tools.into(), recovery: Recovery::Off, ..ParserOptions::default() };
    let read = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut parser = processor.parser(&options);
        let mut events: Vec<_> = pieces.flat_map(|piece| parser.push(piece)).collect();
        events.extend(parser.finish());
        let mut builder = MessageBuilder::new(&options);
        let mut built = events.into_iter().map(|event| builder.push(event));
        let failed = built.find_map(Result::err);
        assert_eq!(failed, None, "{family}: {text}");
        drop(built);
        builder.finish().tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect::<Vec<_>>()
    };
    let expected: Vec<_> = calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
    assert_eq!(read(&mut std::iter::once(text.as_str())), expected, "{family}: {text}");
    assert_eq!(read(&mut text.split_inclusive(|_| true)), expected, "{family}, by character: {text}");
    true
}

/// Families with a call syntax of their own.
fn families() -> impl Iterator<Item = &'static dyn ModelDataProcessor> {
    let all = lm_processors::ALL.iter().map(|family| family.processor);
    all.filter(|processor| processor.dialect().is_some_and(|dialect| !dialect.calls.is_empty()))
}

#[test]
fn common_names_are_read_back() {
    let compiler = Compiler::new();
    for processor in families() {
        assert!(read_back(&compiler, processor, COMMON, &["x", "y"]), "{}", processor.name());
        assert!(read_back(&compiler, processor, &["f"], COMMON), "{}", processor.name());
    }
}

#[test]
fn hostile_names_are_read_back_or_rejected() {
    let compiler = Compiler::new();
    let (mut read, mut refused) = (0, 0);
    for processor in families() {
        for odd in HOSTILE {
            for (names, keys) in [([*odd, "g"], ["b", "c"]), (["f", "g"], [*odd, "b"])] {
                let known = read_back(&compiler, processor, &names, &keys);
                (read, refused) = (read + u64::from(known), refused + u64::from(!known));
            }
        }
    }
    println!("{read} read back, {refused} refused");
    assert!(refused * 10 < read, "{read} read back, {refused} refused");
}
