//! The flows of LiteRT-LM's page on the conversation API: blocking and streamed messages, parts, preface,
//! history, overrides.

use crate::common;
use crate::common::{conversation, engine, litert_tools};
use lm_conversation::{Conversation, ConversationConfig, ConversationEvent, GenerationPrompt, TurnOptions};
use lm_session::{Device, FinishReason, SessionConfig};
use lm_template::{Message, Part, Preface, PromptTemplate, Role};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TALLEST: &str = "What is the tallest building in the world?";
const TOO_SMALL: &str = "I am sorry, I am too small a model to know that.";

fn question() -> Value {
    json!({"role": "user", "content": TALLEST})
}

fn message(json: Value) -> Message {
    Message::from_json(json).expect("a message")
}

/// The page's preface: instructions, tools, and thinking disabled.
fn preface() -> Preface {
    let preface = json!({
        "messages": {"role": "system", "content": ["You are a model that can do function calling."]},
        "tools": litert_tools(),
        "extra_context": {"enable_thinking": false},
    });
    serde_json::from_value(preface).expect("a preface")
}

#[test]
fn send_message_returns_the_whole_reply() {
    let mut conversation = conversation(Preface::default());
    let reply = conversation.send(question()).expect("a reply");
    assert_eq!(reply.message.role, Role::Assistant);
    assert_eq!(reply.message.content.text(), TOO_SMALL);
    assert_eq!(reply.finish.reason, FinishReason::EndToken);
}

#[test]
fn streamed_message_ends_as_the_last_history_entry() {
    let mut conversation = conversation(Preface::default());
    // The page's `PrintJsonMessage`: the delta of each chunk is printed.
    let mut captured_output = String::new();
    let mut chunks = 0;
    let mut finished = None;
    for event in conversation.stream(question(), TurnOptions::default()).expect("a stream") {
        match event.expect("an event") {
            ConversationEvent::Text(text) => {
                chunks += 1;
                captured_output += &text;
            }
            ConversationEvent::Prefill(_) => {}
            ConversationEvent::Finished(reply) => finished = Some(reply),
            other => panic!("neither text nor end: {other:?}"),
        }
    }
    assert_eq!(captured_output, TOO_SMALL);
    assert!(chunks > 5, "{chunks} chunks");
    let reply = finished.expect("an end");
    assert_eq!(conversation.history().last(), Some(&reply.message));
    assert_eq!(reply.message.content.text(), TOO_SMALL);
}

#[test]
fn detached_message_is_the_last_history_entry() {
    let mut conversation = conversation(Preface::default());
    // The page's `CreatePrintMessageCallback`; an empty message is the end.
    let captured_output = Arc::new(Mutex::new(Vec::new()));
    let printed = captured_output.clone();
    let callback = move |event: lm_conversation::Result<ConversationEvent>| {
        let message = event.expect("an event").to_json();
        printed.lock().expect("no panic").extend(message);
    };
    let turn = conversation.stream(question(), TurnOptions::default()).expect("a turn");
    drop(turn.detach(callback).expect("a thread"));
    conversation.engine().wait_idle(Duration::from_secs(60)).expect("it ends");
    let messages = captured_output.lock().expect("no panic");
    let (last, chunks) = messages.split_last().expect("messages");
    assert_eq!(*last, json!({}));
    let text: String = chunks.iter().filter_map(|chunk| chunk["content"][0]["text"].as_str()).collect();
    assert_eq!(text, TOO_SMALL);
    assert_eq!(conversation.history().last().expect("a reply").content.text(), TOO_SMALL);
}

#[test]
fn blocking_and_streamed_questions_share_a_conversation() {
    let mut conversation = conversation(Preface::default());
    let first = conversation.send(question()).expect("a reply");
    let mut text = String::new();
    for event in conversation.stream(question(), TurnOptions::default()).expect("a stream") {
        if let ConversationEvent::Text(chunk) = event.expect("an event") {
            text += &chunk;
        }
    }
    let history = conversation.history();
    assert_eq!(history.len(), 4);
    assert_eq!(history[1], first.message);
    assert_eq!(history[3].content.text(), text);
}

#[test]
fn chunks_written_as_messages_add_up_to_the_reply() {
    let whole = message(json!({"role": "model", "content": [{"type": "text", "text": "Hello World!"}]}));
    let chunks = ["He", "llo", " Wo", "rl", "d!"];
    let chunk = |text: &str| message(json!({"role": "model", "content": [{"type": "text", "text": text}]}));
    let joined: String = chunks.iter().map(|text| chunk(text).content.text()).collect();
    assert_eq!(joined, whole.content.text());
    for text in chunks {
        let event = ConversationEvent::Text(text.to_owned()).to_json().expect("a chunk");
        assert_eq!(event["content"], chunk(text).to_json()["content"], "an event is written as such a chunk");
    }
}

#[test]
fn role_model_is_read_and_written_as_assistant() {
    let message = message(json!({"role": "model", "content": "Hello World!"}));
    assert_eq!(message.role, Role::Assistant);
    assert_eq!(message.to_json(), json!({"role": "assistant", "content": "Hello World!"}));
}

#[test]
fn unknown_keys_reach_the_template() {
    let source = "{% for m in messages %}[{{ m.role }}, {{ m.mood }}] {{ m.content }}{% endfor %}";
    let template = Some(PromptTemplate::new(source).expect("a template"));
    let config = ConversationConfig { template, ..ConversationConfig::default() };
    let conversation = Conversation::new(engine(), config).expect("a conversation");
    let message = json!({"role": "user", "mood": "curious", "content": TALLEST});
    let prompt = conversation.render(message, GenerationPrompt::Omit).expect("a prompt");
    assert_eq!(prompt.text, format!("[user, curious] {TALLEST}"));
}

#[test]
fn every_kind_of_part_is_read_and_written_back_in_order() {
    let blob = "aW1hZ2UgYnl0ZXM="; // "image bytes"
    let content = json!([
        {"type": "text", "text": "this is a text"},
        {"type": "image", "path": "/path/to/image.jpg"},
        {"type": "image", "blob": blob},
        {"type": "audio", "path": "/path/to/audio.wav"},
        {"type": "audio", "blob": blob},
    ]);
    let message = message(json!({"role": "user", "content": content}));
    let kinds: Vec<&str> = message.content.parts().iter().map(Part::kind).collect();
    assert_eq!(kinds, ["text", "image", "image", "audio", "audio"]);
    assert_eq!(message.to_json()["content"], content);
}

#[test]
fn invalid_base64_blob_is_an_error_with_place() {
    let content = json!([{"type": "image", "blob": "base64 encoded image bytes as string"}]);
    let error = Message::from_json(json!({"role": "user", "content": content})).expect_err("no base64");
    assert!(error.to_string().contains("content[0].blob"), "{error}");
}

#[test]
fn unsupported_media_are_named_before_prefill() {
    let mut conversation = conversation(Preface::default());
    for (content, part) in [
        (
            json!([
                {"type": "text", "text": "Describe the following image: "},
                {"type": "image", "path": "/file/path/to/image.jpg"}
            ]),
            "image",
        ),
        (
            json!([
                {"type": "text", "text": "Transcribe the audio: "},
                {"type": "audio", "path": "/file/path/to/audio.wav"}
            ]),
            "audio",
        ),
        (
            json!([
                {"type": "text", "text": "First briefly describe the two images "},
                {"type": "image", "path": "/file/path/to/image1.jpg"},
                {"type": "text", "text": "and "},
                {"type": "image", "path": "/file/path/to/image2.jpg"},
                {"type": "text", "text": " then transcribe the content in the audio"},
                {"type": "audio", "path": "/file/path/to/audio.wav"}
            ]),
            "image",
        ),
        (
            json!([
                {"type": "text", "text": "Describe the image in details: "},
                {"type": "image", "path": "/path/to/image.jpg"}
            ]),
            "image",
        ),
    ] {
        let error =
            conversation.send(json!({"role": "user", "content": content})).expect_err("no such modality");
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(conversation.history(), []);
    }
    let reply = conversation.send(question()).expect("the conversation continues");
    assert_eq!(reply.finish.usage.cached_tokens, 0, "nothing was prefilled");
    assert_eq!(reply.message.content.text(), TOO_SMALL);
}

#[test]
fn preface_sets_instructions_tools_and_extra_context() {
    let mut conversation = conversation(preface());
    let prompt =
        conversation.render("How is the weather in Paris?", GenerationPrompt::Add).expect("a prompt");
    let start = "<|im_start|>system\nYou are a model that can do function calling.\n\n<tools>\n";
    assert!(prompt.text.starts_with(start), "{}", prompt.text);
    assert!(prompt.text.ends_with("<|im_start|>assistant\n"), "thinking is off: {}", prompt.text);

    let message = conversation.send("How is the weather in Paris?").expect("a call").message;
    assert_eq!((message.tool_calls.len(), message.tool_calls[0].name.as_str()), (1, "get_weather"));
    assert_eq!(Value::Object(message.tool_calls[0].arguments.clone()), json!({"location": "Paris"}));
    let reply =
        conversation.send(json!({"role": "tool", "content": common::paris_report()})).expect("an answer");
    assert_eq!(reply.message.content.text(), common::PARIS_SENTENCE);
}

#[test]
fn preface_can_be_prefilled_before_the_first_turn() {
    let mut conversation = common::conversation_on(&common::engine_on(Device::Cpu), preface());
    let rendered = conversation.render(Vec::<Message>::new(), GenerationPrompt::Omit).expect("a prompt");
    let stats = conversation.prefill(Vec::<Message>::new()).expect("it runs");
    assert_eq!(stats.prefilled_tokens, rendered.ids.len());
    assert_eq!(conversation.tokens(), rendered.ids);
    assert_eq!(conversation.history(), []);
    conversation.send("How is the weather in Paris?").expect("a call");
    assert!(conversation.tokens().starts_with(&rendered.ids));
}

#[test]
fn only_new_tokens_are_prefilled() {
    // On an engine that has seen no other conversation with this prefix.
    let mut conversation = common::conversation_on(&common::engine_on(Device::Cpu), preface());
    let first = conversation.send("How is the weather in Paris?").expect("a call").finish.usage;
    assert_eq!(first.cached_tokens, 0);
    let second =
        conversation.send(json!({"role": "tool", "content": common::paris_report()})).expect("an answer");
    let known = first.prompt_tokens + first.output_tokens;
    assert!(second.finish.usage.cached_tokens + 1 >= known, "{:?} after {known}", second.finish.usage);
}

#[test]
fn history_can_be_set_and_cleared() {
    let mut conversation = conversation(Preface::default());
    conversation.send(question()).expect("a reply");
    assert_eq!(conversation.history().len(), 2);
    conversation.reset();
    assert_eq!(conversation.history(), []);
    let before = vec![Message::user("hi!"), Message::assistant("Hello! How can I help you?")];
    conversation.set_history(before.clone());
    assert_eq!(conversation.history(), before);
}

#[test]
fn configuration_can_override_template_and_session() {
    let template = PromptTemplate::new(
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    let config = ConversationConfig {
        session: SessionConfig { max_output_tokens: Some(3), ..SessionConfig::default() },
        template: Some(template.expect("a template")),
        ..ConversationConfig::default()
    };
    let mut conversation = Conversation::new(engine(), config).expect("a conversation");
    let prompt = conversation.render(question(), GenerationPrompt::Omit).expect("a prompt");
    assert_eq!(prompt.text, format!("[user] {TALLEST}"));
    let reply = conversation.send(question()).expect("a reply");
    assert_eq!(reply.finish.usage.output_tokens, 3);
    assert_eq!(reply.finish.reason, FinishReason::MaxOutputTokens);
}

#[test]
fn turn_arguments_apply_to_that_turn_only() {
    let mut conversation = conversation(Preface::default());
    let short = TurnOptions { max_output_tokens: Some(2), ..TurnOptions::default() };
    let reply = conversation.send_with(question(), short).expect("a reply");
    assert_eq!(reply.finish.usage.output_tokens, 2);
    conversation.reset();
    assert_eq!(conversation.send(question()).expect("a reply").message.content.text(), TOO_SMALL);
}

#[test]
fn configuration_can_override_the_processor() {
    let generic = lm_processors::detect("", "");
    assert_eq!(generic.name(), "generic");
    let config = ConversationConfig {
        preface: preface(),
        processor: Some(generic.into()),
        ..ConversationConfig::default()
    };
    let mut conversation = Conversation::new(engine(), config).expect("a conversation");
    let message = conversation.send("How is the weather in Paris?").expect("a reply").message;
    assert_eq!(message.tool_calls, [], "the generic processor knows no calls");
    let call = r#"{"name": "get_weather", "arguments": {"location": "Paris"}}"#;
    assert_eq!(message.content.text(), format!("<tool_call>\n{call}\n</tool_call>"));
}
