//! Texts that contain the marker which closes them: grammar and parser agree on their end.

use lm_processors::{Message, ParserOptions, ToolCall, ToolSpec, Value};
use serde_json::json;

use super::common::{Compiler, Verdict, verdict};
use super::enforced::grammar;
use super::writer::reply;
use crate::parsers::common::family;

/// Placeholder for the closing marker while a call is written.
const MARKER: char = '\u{e000}';

/// Dialects whose texts end at a marker that they can spell, and this marker.
const MARKUP: [(&str, &str); 15] = [
    ("deepseek_dsml", "</｜DSML｜parameter>"),
    ("dots", "</parameter>"),
    ("glm4_xml", "</arg_value>"),
    ("hf_response_template_invoke", "</param>"),
    ("hy_v3", "</arg_value>"),
    ("k2_horizon", "</ifm|arg_value>"),
    ("kimi_k3", "<|close|>argument<|sep|>"),
    ("ling3", "</arg_value>"),
    ("minicpm5_xml", "</param>"),
    ("minimax_m2", "</parameter>"),
    ("muse", "</atem:parameter>"),
    ("poolside_xml", "</arg_value>"),
    ("qwen3_coder_xml", "</parameter>"),
    ("seed_oss_xml", "</parameter>"),
    ("step3", "</steptml:parameter>"),
];

fn tools() -> [ToolSpec; 1] {
    let text = json!({"type": "string"});
    let properties = json!({"title": text, "body": text, "lines": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["title", "body"]});
    [ToolSpec::new("save_note", "", schema)]
}

/// A call with this text in `key`, as the dialect writes it.
fn written(name: &str, key: &str, text: &str) -> String {
    let mut arguments = json!({"title": "on markup", "body": "none", "lines": 3});
    arguments[key] = text.replace(marker(name), &MARKER.to_string()).into();
    let call = ToolCall::from_json(json!({"name": "save_note", "arguments": arguments})).expect("a call");
    let dialect = family(name).dialect().expect("a dialect");
    let text = reply(dialect, &[call], &tools()).expect("a reply");
    text.replace(MARKER, marker(name))
}

fn marker(name: &str) -> &'static str {
    MARKUP.iter().find(|(dialect, _)| *dialect == name).expect("a dialect with markup").1
}

fn read(name: &str, text: &str) -> Result<Message, String> {
    let options = ParserOptions { tools: tools().to_vec().into(), ..ParserOptions::default() };
    family(name).to_message(text, &options).map_err(|error| error.to_string())
}

#[test]
fn text_holds_its_closing_marker() {
    let compiler = Compiler::new();
    for (name, close) in MARKUP {
        let processor = lm_processors::ALL.iter().find(|known| known.processor.name() == name);
        let matcher = compiler.compile_grammar(&grammar(processor.expect("a family"), &tools()).grammar);
        let matcher = matcher.expect("a grammar");
        for text in [
            format!("ends at {close}, then the next"),
            format!("'{close}'"),
            format!("a\n{close}\n\nb {close} c"),
            format!("{close}!"),
            format!("{close}<br>{close} </b>?"),
        ] {
            for key in ["title", "body"] {
                let reply = written(name, key, &text);
                assert_eq!(verdict(&matcher, &reply), Verdict::Accepted, "{name}: {reply}");
                let message = read(name, &reply).unwrap_or_else(|error| panic!("{name}: {error}: {reply}"));
                assert_eq!(message.tool_calls.len(), 1, "{name}: {reply}");
                assert_eq!(
                    message.tool_calls[0].arguments[key],
                    Value::from(text.clone()),
                    "{name}: {reply}"
                );
            }
        }
    }
}

/// Markers of the call, of its end and of a parameter within a text, where a call with missing markers would
/// go on in another way: no declared tool follows, or the parameter's marker is not on a line of its own.
#[test]
fn text_holds_other_markers_of_its_syntax() {
    let markers = [
        ("qwen3_coder_xml", "a</tool_call>\n<tool_call>f"),
        ("qwen3_coder_xml", "a</function>\n</tool_call>\n<tool_call>\n<function=other>"),
        ("qwen3_coder_xml", "write <parameter=body> before the text"),
        ("glm4_xml", "a</tool_call>\n<tool_call>f"),
        ("glm4_xml", "'</tool_call><tool_call>'"),
        ("glm4_xml", "</tool_call> and <tool_call> save"),
        ("seed_oss_xml", "a</seed:tool_call>\n<seed:tool_call>f"),
    ];
    for (name, text) in markers {
        for key in ["title", "body"] {
            let reply = written(name, key, text);
            let message = read(name, &reply).unwrap_or_else(|error| panic!("{name}: {error}: {reply}"));
            assert_eq!(message.tool_calls.len(), 1, "{name}: {reply}");
            assert_eq!(message.tool_calls[0].arguments[key], Value::from(text), "{name}: {reply}");
        }
    }
}

/// A text with a closing marker that another marker follows is not written.
#[test]
fn text_with_the_markers_of_its_end_is_not_written() {
    let compiler = Compiler::new();
    for (name, close) in MARKUP {
        let processor = lm_processors::ALL.iter().find(|known| known.processor.name() == name);
        let matcher = compiler.compile_grammar(&grammar(processor.expect("a family"), &tools()).grammar);
        let reply = written(name, "title", &format!("x{close} {close}y"));
        let verdict = verdict(&matcher.expect("a grammar"), &reply);
        assert!(matches!(verdict, Verdict::Rejected { .. }), "{name}: {verdict:?} for {reply}");
    }
}

/// A closing marker before other text, in a value that no marker closes, has two readings.
#[test]
fn unclosed_text_with_a_closing_marker_is_malformed() {
    for (name, close) in MARKUP {
        let reply = written(name, "title", &format!("a{close} b"));
        let at = reply.rfind(close).map(|_| reply.match_indices(close).nth(1).expect("two markers").0);
        let at = at.expect("a marker");
        let cut = format!("{}{}", &reply[..at], &reply[at + close.len()..]);
        let values: Vec<Value> = match read(name, &cut) {
            Err(_) => continue,
            Ok(message) => message.tool_calls.iter().map(|call| call.arguments["title"].clone()).collect(),
        };
        assert!(values.iter().all(|title| title != "a"), "{name}: {values:?} of {cut}");
    }
}

#[test]
fn protected_text_holds_its_end() {
    let call = |body: &str| {
        format!(
            "<function name=\"save_note\"><param name=\"title\">t</param><param name=\"body\"><![CDATA[{body}]]></param></function>"
        )
    };
    for body in ["a]]>b", "if (x[y[0]]>1) </param>", "]]> ]]>."] {
        let message = read("minicpm5_xml", &call(body)).expect("a message");
        assert_eq!(message.tool_calls[0].arguments["body"], body);
    }
}

/// The markers at the end of a call may be a part of its text as well, if the section goes on.
#[test]
fn quoted_end_of_a_call_is_text() {
    let body = "print('</parameter>\n</function>')";
    let message = read("qwen3_coder_xml", &written("qwen3_coder_xml", "body", body)).expect("a message");
    assert_eq!(message.tool_calls[0].arguments["body"], body);
}
