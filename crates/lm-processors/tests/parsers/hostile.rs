//! Adversarial replies that cost time or memory.

use crate::parsers::common::{parse, with_a_tool};
use lm_processors::{ALL, ModelDataProcessor, OnMalformed, ParserOptions, ProcessorEvent, by_name};

/// Long enough that this test does not end in bearable time if parsing is quadratic: 128 KiB take a quarter
/// of a second unoptimized in a linear parser, and took five minutes in a quadratic one.
const LEN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// Feeds a text byte by byte; returns the total length of all texts in its events.
fn feed(processor: &dyn ModelDataProcessor, options: &ParserOptions, text: &str) -> usize {
    let mut parser = processor.parser(options);
    let said = |events: Vec<ProcessorEvent>| {
        let len = |event| match event {
            ProcessorEvent::Text(text) | ProcessorEvent::Channel { text, .. } => text.len(),
            ProcessorEvent::ToolCallArguments { fragment, .. } => fragment.len(),
            ProcessorEvent::Malformed { text, .. } => text.len(),
            _ => 0,
        };
        events.into_iter().map(len).sum::<usize>()
    };
    let mut len = 0;
    for piece in text.split_inclusive(|_| true) {
        len += said(parser.push(piece));
    }
    len + said(parser.finish())
}

/// Many repetitions of one unit after a prefix, byte by byte.
#[test]
fn parsing_is_linear() {
    let cases = [
        ("hermes", "", "<"),
        ("hermes", "", "<tool_call"),
        ("hermes", "", " "),
        ("hermes", "<think>", "\n"),
        ("hermes", "<tool_call>", "{"),
        ("hermes", "<tool_call>", " "),
        ("hermes", "<tool_call>nonsense", "</tool_cal"),
        ("hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}", "\n"),
        ("hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"a\": \"", "x"),
        ("llama3_json", "", "{"),
        ("llama3_json", "", "["),
        ("llama4_pythonic", "", "{"),
        ("llama3_json", "", "{\"a"),
        ("llama3_json", "", "{\"name\":[],"),
        ("llama3_json", "{\"name\": \"get_weather\", \"parameters\": {}}", " ;"),
        ("xlam_json", "", "["),
        ("xlam_json", "", "[{\"name\":"),
        ("mistral_args", "", "[TOOL_CALLS]"),
        ("mistral_args", "[TOOL_CALLS]", " "),
        ("mistral_args", "[TOOL_CALLS]get_weather", "[ARG"),
        ("kimi_k2", "<|tool_calls_section_begin|>", "\n"),
        ("cohere_action", "", "</co"),
        ("functionary_v32", "", ">>>a"),
        ("qwen3_coder_xml", "<tool_call>", " "),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>", "\n"),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>\n<parameter=a>\n", "\n"),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>\n<parameter=a>", "</parameter"),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>", "<parameter=a>1</parameter>"),
        ("glm4_xml", "<tool_call>", "get_weather "),
        ("glm4_xml", "<tool_call>get_weather<arg_key>a</arg_key>", " "),
        ("glm4_xml", "<tool_call>get_weather\n{", " "),
        ("hy_v3", "<tool_calls>", "<tool_call>get_weather</tool_call>"),
        ("k2_horizon", "<ifm|tool_calls>", "<ifm|tool_call>get_weather</ifm|tool_call>"),
        ("minicpm5_xml", "<function name=\"get_weather\"><param name=\"a\">", " "),
        ("minicpm5_xml", "<function name=\"get_weather\"><param name=\"a\"><![CDATA[", "]"),
        (
            "minimax_m3",
            "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"get_weather\">",
            "]<]minimax[>[<a>",
        ),
        ("pythonic", "", "["),
        ("pythonic", "", "[get_weather("),
        ("llama4_pythonic", "", "[get_weather(city='LA'"),
        ("lfm2_pythonic", "", "[get_weather(city='x "),
        ("tool_code", "", "[get_weather(city='LA'"),
        ("lfm2_pythonic", "<|tool_call_start|>[get_weather(a='", "' "),
        ("lfm2_pythonic", "<|tool_call_start|>[get_weather(a='", "\\u0041"),
        ("lfm2_pythonic", "<|tool_call_start|>[get_weather(a=", "1"),
        ("lfm2_pythonic", "<|tool_call_start|>[get_weather(a={", "'k',"),
        ("olmo3_pythonic", "<function_calls>", "get_weather()\n"),
        ("gemma4", "<|tool_call>", " "),
        ("gemma4", "<|tool_call>call:get_weather{", " "),
        ("gemma4", "<|tool_call>call:get_weather{a:<|\"|>", "<|\""),
        ("gemma4", "<|tool_call>call:get_weather{a:[", "1,"),
        ("gemma4", "<|tool_call>call:get_weather{", "k"),
        ("gemma4", "<|tool_call>call:get_weather{\"", "k"),
        ("gemma4", "<|tool_call>call:get_weather{a:'b'", " "),
        ("gemma4", "<|tool_call>call:get_weather{a:'", "' "),
        ("gemma4", "<|tool_call>call:get_weather{a:<|\"|>b<|\"|>", " "),
        ("gpt_oss", "", "<|channel|>"),
        ("gpt_oss", "<|channel|>", "x"),
        ("gpt_oss", "", "<|channel|>final<|message|>"),
        ("gpt_oss", "<|channel|>analysis<|message|>", "<|en"),
        ("hf_response_template_invoke", "", "to="),
        ("muse", "", " "),
        ("hermes", "<think>", "<tool_call>"),
        ("hermes", "<think>", "<tool_call>{"),
        ("hermes", "<tool_call>```", "a"),
        ("hermes", "<tool_call>{\"name\": \"get_weather\"}", "</tool_call"),
        ("qwen3_coder_xml", "<think>", "<tool_call><function="),
        ("qwen3_coder_xml", "<think>", "<tool_call><function=get_weather><parameter=a>"),
        ("qwen3_coder_xml", "<tool_call><function=get_weather></function></tool_call>", "x"),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>\n<parameter=a>", "</function>"),
        (
            "qwen3_coder_xml",
            "<tool_call>\n<function=get_weather>\n<parameter=a>",
            "</function>\n</tool_call>\n",
        ),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>\n<parameter=a>", "\n<parameter=b>"),
        ("qwen3_coder_xml", "<tool_call>\n<function=get_weather>\n<parameter=a>", "<parameter="),
        ("gemma4", "<|channel>", "<|tool_call>call:"),
        ("kimi_k2", "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{}", "x"),
        ("kimi_k3", "<|open|>think<|sep|>", "<|open|>tools<|sep|><|open|>call"),
        ("deepseek_v3", "<think>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x"),
        ("minicpm5_xml", "<function", " "),
        ("minicpm5_xml", "<function name=\"get_weather\">", "<param "),
        ("hy_v3", "<tool_calls><tool_call>get_weather</tool_call>", "x</tool_calls>"),
    ];
    for (format, beginning, unit) in cases {
        let text = beginning.to_owned() + &unit.repeat(LEN / unit.len());
        let processor = by_name(format).expect("a family");
        for tail in [Some("".into()), None] {
            let options = ParserOptions { prompt_tail: tail, ..with_a_tool(OnMalformed::Text, "") };
            let len = feed(processor, &options, &text);
            // JSON text may be half as long again as its value.
            assert!(len <= 3 * text.len(), "{format} says {len} bytes of {beginning:?} and many {unit:?}");
        }
    }
}

/// Nesting too deep to parse is malformed, and no parser overflows the stack.
#[test]
fn nesting_is_bounded() {
    for family in ALL {
        for opening in
            ["{\"a\":", "[", "{\"name\": \"get_weather\", \"arguments\": {\"a\": [", "f(a=[", "call:f{a:{"]
        {
            let nested = opening.repeat(2_000);
            let opens = family.processor.dialect().into_iter().flat_map(|dialect| dialect.calls);
            for begin in opens.map(|syntax| syntax.section.open.to_owned() + syntax.call.open) {
                parse(family.processor, &with_a_tool(OnMalformed::Error, ""), [&*(begin + &nested)]);
            }
        }
    }
}

/// A call that is too long is malformed, wherever the limit is inside a character.
#[test]
fn length_of_calls_is_bounded() {
    let cases = [
        ("hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"a\": \""),
        ("mistral_args", "[TOOL_CALLS]get_weather[ARGS]{\"a\": \""),
    ];
    for (format, beginning) in cases {
        for pad in ["", "x"] {
            let reply = [beginning, pad, &"é".repeat(1 << 19)].concat();
            let processor = by_name(format).expect("a family");
            let events = parse(processor, &with_a_tool(OnMalformed::Error, ""), [&*reply]);
            let is_too_long = |event: &ProcessorEvent| matches!(event, ProcessorEvent::Malformed { reason, .. } if reason == "it is too long");
            assert!(events.iter().any(is_too_long), "{format} after {pad:?}");
        }
    }
}
