//! Calls and answers that violate keywords without a grammar are resampled.

use lm_conversation::{
    Conversation, ConversationConfig, ConversationEvent, Engine, EngineSettings, Error, Polyfills, Preface,
    PromptTemplate, Reply, ResponseFormat, SamplerParams, ThinkingConfig, ToolChoice, ToolSpec, TurnOptions,
    Value,
};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use serde_json::json;

/// Parameters with two possible calls; a keyword without a grammar forbids one of them.
fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["unit"],
        "not": {"properties": {"unit": {"const": "celsius"}}},
    })
}

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec::from_json(json!({"name": name, "parameters": parameters})).expect("a tool")
}

/// Creates a conversation with a model of random logits.
fn conversation(dialect: &str, tools: Vec<ToolSpec>) -> Conversation {
    let tokenizer = tokenizer();
    let model = FakeLm::noise(3, tokenizer.logits_width()).with_context_len(1_024);
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}{% endif %}";
    let config = ConversationConfig {
        preface: Preface { tools, ..Preface::default() },
        template: Some(PromptTemplate::new(template).expect("a template")),
        polyfills: Polyfills::none(),
        processor: lm_processors::by_name(dialect).map(Into::into),
        ..ConversationConfig::default()
    };
    Conversation::new(&engine, config).expect("a conversation")
}

/// Options that require a call, and limit reasoning so that it fits.
fn required(conversation: &Conversation, seed: u64, temperature: f32) -> TurnOptions {
    let reasons = !conversation.processor().channels().is_empty();
    TurnOptions {
        thinking: ThinkingConfig { max_tokens: reasons.then_some(20), ..ThinkingConfig::default() },
        sampler: Some(SamplerParams { temperature, seed: Some(seed), ..SamplerParams::default() }),
        max_output_tokens: Some(200),
        tool_choice: ToolChoice::Required,
        ..TurnOptions::default()
    }
}

/// Runs a turn; returns its events and its reply.
fn turn(
    conversation: &mut Conversation,
    options: TurnOptions,
) -> Result<(Vec<ConversationEvent>, Reply), Error> {
    let mut events = Vec::new();
    for event in conversation.stream("go", options)? {
        match event? {
            ConversationEvent::Finished(reply) => return Ok((events, reply)),
            event => events.push(event),
        }
    }
    panic!("a turn has a last event");
}

/// Asserts that the events are exactly those of the reply.
fn assert_tells(events: &[ConversationEvent], reply: &Reply) {
    let mut started = 0;
    let mut arguments: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    for event in events {
        match event {
            ConversationEvent::ToolCallStarted { index, .. } => {
                assert_eq!(*index, started, "{events:?}");
                started += 1;
                arguments.push(String::new());
            }
            ConversationEvent::ToolCallArguments { index, fragment } => arguments[*index] += fragment,
            ConversationEvent::ToolCall(call) => calls.push(call.clone()),
            _ => {}
        }
    }
    assert_eq!(calls, reply.message.tool_calls);
    let text = events.iter().filter_map(|event| match event {
        ConversationEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(text.collect::<String>(), reply.text());
    let reasoning = events.iter().filter_map(|event| match event {
        ConversationEvent::Reasoning(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(reasoning.collect::<String>(), reply.message.reasoning_content.clone().unwrap_or_default());
    for (call, arguments) in calls.iter().zip(arguments).filter(|(_, arguments)| !arguments.is_empty()) {
        let arguments: Value = serde_json::from_str(&arguments).expect("the fragments are the arguments");
        assert_eq!(arguments, Value::Object(call.arguments.clone()), "{events:?}");
    }
}

#[test]
fn resampled_calls_satisfy_unenforced_keywords() {
    for dialect in ["hermes", "lfm2_pythonic", "qwen3_coder_xml", "llama3_json", "functiongemma", "kimi_k2"] {
        let (mut resampled, mut several) = (0, 0);
        for seed in 0..6 {
            for temperature in [0.0, 1.0] {
                let mut conversation = conversation(dialect, vec![tool("read", parameters())]);
                let options = required(&conversation, seed, temperature);
                let options = TurnOptions { logprobs: Some(0), prompt_logprobs: Some(0), ..options };
                let (events, reply) = turn(&mut conversation, options.clone()).expect(dialect);
                let scored_prompts =
                    events.iter().filter(|event| matches!(event, ConversationEvent::PromptLogprobs(_)));
                assert_eq!(scored_prompts.count(), 1, "{dialect}");
                let scored =
                    events.iter().filter(|event| matches!(event, ConversationEvent::Logprobs(_))).count();
                let output = reply.finish.usage.output_tokens;
                assert!(scored == output || scored + 1 == output, "{dialect}: {scored} of {output} tokens");
                for call in reply.tool_calls() {
                    assert_eq!(call.arguments["unit"], "fahrenheit", "{dialect}");
                }
                assert!(!reply.tool_calls().is_empty());
                assert_tells(&events, &reply);
                let output = conversation.tokens().len() - reply.finish.usage.prompt_tokens;
                assert_eq!(reply.finish.usage.output_tokens, output, "{dialect}");
                let (usage, timing) = (&reply.finish.usage, &reply.finish.timing);
                let prompt = conversation.engine().tokenizer().encode("go").expect("ids").len();
                assert_eq!((usage.prompt_tokens, usage.cached_tokens), (prompt, 0), "a fresh engine");
                assert_eq!(timing.prefilled_tokens, prompt, "{dialect}");
                assert!(output <= 200);
                assert!(reply.unenforced.iter().any(|unenforced| unenforced.keyword == "not"));
                resampled += reply.resampled;
                several += usize::from(reply.tool_calls().len() > 1 && reply.resampled > 0);
                let mut fresh = self::conversation(dialect, vec![tool("read", parameters())]);
                let (_, again) = turn(&mut fresh, options).expect("the same again");
                assert_eq!(again.message, reply.message, "{dialect}: a seed fixes the reply");
            }
        }
        assert!(resampled > 0, "{dialect}: no call was sampled again");
        println!("{dialect}: {resampled} sampled again, {several} replies with several calls among them");
    }
}

#[test]
fn unsatisfiable_call_is_a_typed_error() {
    let never = json!({
        "type": "object",
        "properties": {"unit": {"enum": ["a", "b"]}},
        "required": ["unit"],
        "not": {"properties": {"unit": {"enum": ["a", "b"]}}},
    });
    let mut conversation = conversation(
        "hermes",
        vec![tool("never", never), tool("free", json!({"type": "object", "properties": {}}))],
    );
    let options =
        TurnOptions { tool_choice: ToolChoice::Named("never".to_owned()), ..required(&conversation, 1, 1.0) };
    let Err(Error::InvalidCall { call, keyword, .. }) = turn(&mut conversation, options) else {
        panic!("the call cannot fit")
    };
    assert_eq!((call.name.as_str(), keyword.as_str()), ("never", "not"));
    assert!(conversation.history().is_empty());
    let options =
        TurnOptions { tool_choice: ToolChoice::Named("free".to_owned()), ..required(&conversation, 1, 1.0) };
    let (_, reply) = turn(&mut conversation, options).expect("the other tool can be called");
    assert_eq!(reply.resampled, 0);
    assert_eq!(conversation.history().len(), 2);
}

/// The same conversation, with a prompt that opens the reasoning.
fn reasoning(conversation: &Conversation) -> Conversation {
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}{% endif %}<think>";
    let template = Some(PromptTemplate::new(template).expect("a template"));
    let config = ConversationConfig { template, ..conversation.config() };
    Conversation::new(conversation.engine(), config).expect("a conversation")
}

/// Makes the end of the reasoning more or less likely.
fn biased(options: &mut TurnOptions, conversation: &Conversation, bias: f32) {
    let close = conversation.engine().tokenizer().token_id("</think>").expect("a token");
    options.sampler.as_mut().expect("a sampler").logit_bias = vec![(close, bias)];
}

/// All calls are rejected, so reasoning that waits for a call is never reported.
#[test]
fn reasoning_after_a_rejected_call_is_sent_at_once() {
    let mut never = parameters();
    never["not"]["properties"]["unit"] = parameters()["properties"]["unit"].clone();
    for seed in 0..6 {
        let mut conversation = reasoning(&conversation("hermes", vec![tool("read", never.clone())]));
        let mut options = required(&conversation, seed, 1.0);
        biased(&mut options, &conversation, 5.0);
        let (mut reported, mut failed) = (String::new(), None);
        for event in conversation.stream("go", options).expect("a turn") {
            match event {
                Ok(ConversationEvent::Reasoning(text)) => reported += &text,
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        assert!(matches!(failed, Some(Error::InvalidCall { .. })), "{failed:?}");
        let tokenizer = conversation.engine().tokenizer();
        let bytes = conversation.tokens().iter().flat_map(|&id| tokenizer.token_bytes(id).to_vec()).collect();
        let last = String::from_utf8(bytes).expect("text");
        assert!(last.starts_with(&format!("go<think>{reported}\n</think>")), "{reported:?} of {last:?}");
    }
}

/// The first turn has reached the limit on reasoning of the second, which then begins with the call.
#[test]
fn resampled_continuation_keeps_the_known_text() {
    let mut resampled = 0;
    for seed in 0..6 {
        let mut conversation = reasoning(&conversation("hermes", vec![tool("read", parameters())]));
        let options = required(&conversation, seed, 1.0);
        let mut begin = TurnOptions {
            sampler: options.sampler.clone(),
            max_output_tokens: Some(25),
            ..TurnOptions::default()
        };
        biased(&mut begin, &conversation, f32::NEG_INFINITY);
        let (mut events, _) = turn(&mut conversation, begin).expect("a beginning");
        // The text that ended the reply at its token limit is not kept.
        events.retain(|event| matches!(event, ConversationEvent::Reasoning(_)));
        for event in conversation.continue_reply(options).expect("it continues") {
            match event.expect("it continues") {
                ConversationEvent::Finished(reply) => {
                    assert_tells(&events, &reply);
                    resampled += reply.resampled;
                }
                event => events.push(event),
            }
        }
    }
    assert!(resampled > 0, "no call was sampled again");
}

#[test]
fn resampled_answers_satisfy_unenforced_keywords() {
    let schema = json!({
        "type": "object",
        "properties": {"digit": {"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}}},
        "required": ["digit"],
        "additionalProperties": false,
    });
    let mut resampled = 0;
    for seed in 0..20 {
        let mut conversation = conversation("hermes", vec![tool("read", parameters())]);
        let options = TurnOptions {
            response_format: Some(ResponseFormat::JsonSchema(schema.clone())),
            tool_choice: ToolChoice::None,
            ..required(&conversation, seed, 1.0)
        };
        let (events, reply) = turn(&mut conversation, options).expect("an answer");
        let value: Value = serde_json::from_str(&reply.text()).expect("JSON");
        assert!(value["digit"] == 1 || value["digit"] == 3, "{value}");
        let reported: String = events
            .iter()
            .filter_map(|event| match event {
                ConversationEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(reported, reply.text());
        resampled += reply.resampled;
    }
    assert!(resampled > 0, "no answer was sampled again");
}

/// Keywords that a grammar drops together with others: what comes back fits all of the schema, or the turn
/// fails.
#[test]
fn call_satisfies_partly_enforced_schema() {
    let schemas = [
        json!({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "z$"}]}),
        json!({"type": "integer", "allOf": [{"anyOf": [{"minimum": 3}, {"multipleOf": 7}]}, {"multipleOf": 2}]}),
        json!({"type": "object", "patternProperties": {"^i_": {"type": "integer"}}, "additionalProperties": false}),
        json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}),
        json!({"type": "string", "pattern": "^[A-Z]:\\\\"}),
        json!({"type": ["integer", "string"], "minLength": 2}),
    ];
    let (mut valid, mut invalid) = (0, 0);
    for schema in schemas {
        let parameters = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        for dialect in ["hermes", "lfm2_pythonic", "qwen3_coder_xml", "gemma4", "minimax_m3", "deepseek_dsml"]
        {
            for seed in 0..2 {
                let mut conversation = conversation(dialect, vec![tool("read", parameters.clone())]);
                let options = required(&conversation, seed, 1.0);
                match turn(&mut conversation, options) {
                    Ok((_, reply)) => {
                        for call in reply.tool_calls() {
                            let arguments = Value::Object(call.arguments.clone());
                            let error = jsonschema::validate(&parameters, &arguments).err();
                            assert!(
                                error.is_none(),
                                "{dialect}: {arguments}: {error:?}, {:?}",
                                reply.unenforced
                            );
                        }
                        valid += 1;
                    }
                    Err(Error::InvalidCall { .. }) => invalid += 1,
                    Err(error) => panic!("{dialect}, {schema}: {error}"),
                }
            }
        }
    }
    println!("{valid} replies, {invalid} turns without a valid call");
    assert!(valid > invalid);
}
