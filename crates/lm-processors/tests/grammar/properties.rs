//! Random tools and random arguments that fit them, written in every syntax: the grammar takes the reply, and the parser
//! gives the arguments back.

use lm_processors::{
    GrammarRequest, ModelDataProcessor, ParserOptions, Recovery, Thinking, ToolCall, ToolChoice, ToolSpec,
    Value,
};
use serde_json::{Map, json};

use crate::common::{Compiler, Verdict, verdict};
use crate::writer::reply;

const CASES_PER_FAMILY: u64 = 40;

#[test]
fn what_fits_is_taken_and_read_back() {
    let compiler = Compiler::new();
    let mut written = 0;
    for family in lm_processors::ALL {
        let processor = family.processor;
        let Some(dialect) = processor.dialect().filter(|dialect| !dialect.calls.is_empty()) else { continue };
        for seed in 0..CASES_PER_FAMILY {
            let mut random = Random(seed * 7919 + 1);
            let tools: Vec<ToolSpec> = (0..random.below(2) + 1).map(|at| tool(&mut random, at)).collect();
            let calls: Vec<ToolCall> = (0..random.below(2) + 1)
                .map(|_| {
                    let tool = &tools[random.below(tools.len() as u64) as usize];
                    let Value::Object(arguments) = value(&mut random, tool.parameters()) else {
                        unreachable!("an object")
                    };
                    ToolCall::new(tool.name(), arguments)
                })
                .collect();
            if let Some(text) = reply(dialect, &calls, &tools) {
                check(&compiler, processor, &tools, &calls, &text);
                written += 1;
            }
        }
    }
    println!("seeds 0 to {CASES_PER_FAMILY} for {} families: {written} replies", lm_processors::ALL.len());
}

fn check(
    compiler: &Compiler,
    processor: &dyn ModelDataProcessor,
    tools: &[ToolSpec],
    calls: &[ToolCall],
    text: &str,
) {
    let name = processor.name();
    let choice = ToolChoice::Required;
    let request =
        GrammarRequest { tools, choice, thinking: Thinking::Forbidden, ..GrammarRequest::default() };
    let grammar = processor.grammar(&request).expect("a grammar").expect("a call is required").grammar;
    let matcher = compiler
        .compile_grammar(&grammar)
        .unwrap_or_else(|error| panic!("{name}: {error}\n{}", grammar.lark));
    let verdict = verdict(&matcher, text);
    let rest = if let Verdict::Rejected { at } = verdict {
        String::from_utf8_lossy(&text.as_bytes()[at..]).into_owned()
    } else {
        String::new()
    };
    assert_eq!(verdict, Verdict::Accepted, "{name}: {text}\nstopped before: {rest}\n{}", grammar.lark);
    let more = format!("{text} and more");
    assert_ne!(crate::common::verdict(&matcher, &more), Verdict::Accepted, "{name}: {more}");
    let auto = GrammarRequest { tools, thinking: Thinking::Forbidden, ..GrammarRequest::default() };
    let auto = processor.grammar(&auto).expect("a grammar").expect("tools are declared").grammar;
    let auto =
        compiler.compile_grammar(&auto).unwrap_or_else(|error| panic!("{name}: {error}\n{}", auto.lark));
    assert_eq!(crate::common::verdict(&auto, text), Verdict::Accepted, "{name}: {text}");
    assert_ne!(crate::common::verdict(&auto, &more), Verdict::Accepted, "{name}: {more}");
    let options = ParserOptions { tools: tools.into(), recovery: Recovery::Off, ..ParserOptions::default() };
    let message =
        processor.to_message(text, &options).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    let plain = |calls: &[ToolCall]| -> Vec<_> {
        calls.iter().map(|call| (call.name.clone(), Value::Object(call.arguments.clone()))).collect()
    };
    assert_eq!(plain(&message.tool_calls), plain(calls), "{name}: {text}");
}

/// Numbers that look random and come again for a seed.
pub struct Random(u64);

impl Random {
    /// A number from 0 to `limit`, exclusive.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn tool(random: &mut Random, at: u64) -> ToolSpec {
    let count = random.below(4);
    ToolSpec::new(format!("do_{at}"), "", object(random, count, 2))
}

fn object(random: &mut Random, count: u64, depth: u64) -> Value {
    let names: Vec<String> = (0..count).map(|at| format!("k{at}")).collect();
    let properties: Map<_, _> = names.iter().map(|name| (name.clone(), schema(random, depth))).collect();
    let required: Vec<_> = names.iter().filter(|_| random.below(2) == 0).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn schema(random: &mut Random, depth: u64) -> Value {
    match random.below(if depth == 0 { 8 } else { 11 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "minLength": 2, "maxLength": 9}),
        2 => json!({"type": "string", "enum": ["one", "two words", "3rd, \"quoted\""]}),
        3 => json!({"type": "integer"}),
        4 => json!({"type": "integer", "minimum": -3, "maximum": 17}),
        5 => json!({"type": "number"}),
        6 => json!({"type": "boolean"}),
        7 => json!({"type": ["integer", "null"]}),
        8 => json!({"type": "array", "items": schema(random, depth - 1), "minItems": 1, "maxItems": 3}),
        9 => {
            let count = 1 + random.below(3);
            object(random, count, depth - 1)
        }
        _ => json!({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}),
    }
}

fn value(random: &mut Random, schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[random.below(values.len() as u64) as usize].clone();
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let option = random.below(options.len() as u64) as usize;
        return value(random, &options[option]);
    }
    match schema["type"].as_str() {
        Some("string") => text(random).into(),
        Some("integer") if schema.get("minimum").is_some() => (random.below(21) as i64 - 3).into(),
        Some("integer") => (random.below(2_000_000) as i64 - 1_000_000).into(),
        Some("number") => (random.below(4_001) as f64 / 16.0 - 125.03125).into(),
        Some("boolean") => (random.below(2) == 0).into(),
        Some("array") => (0..1 + random.below(3)).map(|_| value(random, &schema["items"])).collect(),
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            let mut out = Map::new();
            for (name, schema) in properties {
                if required.contains(&json!(name)) || random.below(2) == 0 {
                    out.insert(name, value(random, &schema));
                }
            }
            Value::Object(out)
        }
        _ if random.below(2) == 0 => Value::Null,
        _ => 7.into(),
    }
}

/// Two to nine characters, those among them that mean something to some syntax.
fn text(random: &mut Random) -> String {
    const PARTS: [&str; 16] =
        ["a", "b", "Z", "0", " ", "\"", "'", "\\", "\n", "<", ">", "{", "}", "é", "😀", "/"];
    let inner: String = (0..random.below(8)).map(|_| PARTS[random.below(16) as usize]).collect();
    format!("x{inner}y")
}
