//! rig's agents, streams, extractors and embeddings on an engine in this process.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures::StreamExt;
use lm_conversation::PromptTemplate;
use lm_rig::{ConversationConfig, Engine, EngineSettings, LoadOptions, ModelFolder, provider};
use lm_session::testing::scripted_engine;
use rig_agent::core::completion::{CompletionRequest, ToolDefinition};
use rig_agent::core::driver::Model;
use rig_agent::core::embeddings::Embedding;
use rig_agent::core::error::ProviderError;
use rig_agent::core::message::{AssistantContent, Message, ToolChoice, ToolName, UserContent};
use rig_agent::core::providers::openai::wire::OpenAiWire;
use rig_agent::core::streaming::{Item, StreamEvent};
use rig_agent::core::tool::ToolExecutionError;
use rig_agent::extractor::ExtractorBuilder;
use rig_agent::{AgentBuilder, rig_tool};
use serde_json::json;

/// Multiply a and b.
#[rig_tool]
fn multiply(
    /// first int
    a: i64,
    /// second int
    b: i64,
) -> Result<i64, ToolExecutionError> {
    Ok(a * b)
}

fn pocket() -> Engine {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})
        .expect("the embedded model")
}

/// An engine that says these replies, with the embedded model's chat template.
fn scripted<const N: usize>(replies: [&str; N]) -> (Engine, ConversationConfig) {
    let (_, source) =
        lm_pocket::FILES.iter().find(|(name, _)| *name == "chat_template.jinja").expect("a template");
    let template = PromptTemplate::new(std::str::from_utf8(source).expect("text")).expect("it compiles");
    let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    (scripted_engine(replies), config)
}

fn model<const N: usize>(replies: [&str; N]) -> Model<OpenAiWire> {
    let (engine, config) = scripted(replies);
    provider(&engine, config).completion("scripted")
}

/// A call in the words of the model's dialect.
fn said(name: &str, arguments: &str) -> String {
    format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
}

fn multiplication() -> ToolDefinition {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"]});
    ToolDefinition::new(ToolName::new("multiply").expect("a name"), "Multiply a and b.", parameters)
}

#[tokio::test]
async fn rig_agent_calls_its_tool_and_answers() {
    let engine = pocket();
    let model = provider(&engine, ConversationConfig::from_engine(&engine)).completion(engine.name());
    let agent = AgentBuilder::new(model).tool(Multiply).default_max_turns(4).build();
    let response = agent.prompt("What is 3 times by five?").await.expect("an answer");
    assert_eq!(response.output(), "3 times 5 is 15.");
    let usage = response.usage();
    assert!(usage.input_tokens > Some(0) && usage.output_tokens > Some(0), "{usage:?}");
    assert_eq!(response.completion_calls.len(), 2, "a call, and an answer");
    let cached = response.completion_calls[1].usage.cached_input_tokens;
    assert!(cached > Some(0), "the prompt of the first reply is not run again: {cached:?}");
}

#[tokio::test]
async fn parallel_call_results_return_under_their_ids() {
    let both = [said("multiply", r#"{"a": 3, "b": 5}"#), said("multiply", r#"{"a": 2, "b": 43}"#)].join("\n");
    let agent = AgentBuilder::new(model([&both, "15 and 86."])).tool(Multiply).default_max_turns(4).build();
    let response = agent.prompt("3 times 5, and 2 times 43?").await.expect("an answer");
    assert_eq!(response.output(), "15 and 86.");
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for message in &response.messages {
        match message {
            Message::Assistant(turn) => calls.extend(turn.tool_calls().map(|call| call.id.to_string())),
            Message::User { content } => results.extend(content.iter().filter_map(|part| match part {
                UserContent::ToolResult(result) => Some(result.call.to_string()),
                _ => None,
            })),
            Message::System { .. } => {}
        }
    }
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0], calls[1]);
    assert_eq!(calls, results);
}

#[tokio::test]
async fn stream_has_text_pieces_and_call_arguments() {
    let text = "Once upon a time there was a kernel.";
    let mut stream = model([text]).stream("A story, please.").expect("it opens");
    let mut pieces = Vec::new();
    while let Some(item) = stream.next().await {
        if let Item::Event(StreamEvent::Text { text, .. }) = item.expect("an event") {
            pieces.push(text);
        }
    }
    assert!(pieces.len() > 3, "{pieces:?}");
    assert_eq!(pieces.concat(), text);

    let call = said("multiply", r#"{"a": 3, "b": 5}"#);
    let request = CompletionRequest::new("3 times 5?").tools(vec![multiplication()]);
    let mut stream = model([&call]).stream(request).expect("it opens");
    let mut arguments = String::new();
    while let Some(item) = stream.next().await {
        if let Item::Event(StreamEvent::Arguments { json, .. }) = item.expect("an event") {
            arguments += &json;
        }
    }
    let arguments: serde_json::Value = serde_json::from_str(&arguments).expect("JSON");
    assert_eq!(arguments, json!({"a": 3, "b": 5}));
}

#[tokio::test]
async fn required_call_is_made_and_forbidden_one_omitted() {
    let ask = |choice| CompletionRequest::new("3 times 5?").tools(vec![multiplication()]).tool_choice(choice);
    let call = said("multiply", r#"{"a": 3, "b": 5}"#);
    let named = ToolChoice::Specific { function_names: vec![ToolName::new("multiply").expect("a name")] };
    for choice in [ToolChoice::Required, named] {
        // The grammar of a required call does not let the model chat.
        let response = model([&call]).call(ask(choice)).await.expect("a call");
        let calls: Vec<_> = response.tool_calls().map(|call| call.function.arguments_value()).collect();
        assert_eq!(calls, [json!({"a": 3, "b": 5})]);
    }
    let response = model([&call]).call(ask(ToolChoice::None)).await.expect("text");
    assert_eq!(response.tool_calls().count(), 0);
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Person {
    name: String,
    age: u8,
}

fn john() -> Person {
    Person { name: "John".to_owned(), age: 30 }
}

#[tokio::test]
async fn extractor_returns_a_value_of_its_type() {
    let call = said("submit", r#"{"name": "John", "age": 30}"#);
    let extractor = ExtractorBuilder::<Person>::new(model([&call])).build();
    assert_eq!(extractor.extract("John is 30.").await.expect("a person").output, john());
}

#[tokio::test]
async fn output_schema_constrains_the_answer() {
    let request = CompletionRequest::new("John is 30.").output_schema(schemars::schema_for!(Person));
    // The scripted reply is not a person: the grammar excludes it.
    let response = model([r#"{"name": "John", "age": 30} Is there anything else?"#]).call(request).await;
    let text = response.expect("an answer").text();
    assert_eq!(serde_json::from_str::<Person>(&text).expect("a person"), john());
}

#[tokio::test]
async fn request_limits_and_samplers_reach_the_engine() {
    let long = "word ".repeat(100);
    let request = CompletionRequest::new("Talk.").max_tokens(3);
    let response = model([&long]).call(request).await.expect("text");
    assert_eq!(response.usage.output_tokens, Some(3));
    assert_eq!(response.finish_reason(), Some(rig_agent::core::completion::FinishReason::Length));

    let request = CompletionRequest::new("Talk.").additional_params(json!({"min_p": 7}));
    let error = model([&long]).call(request).await.expect_err("a probability");
    assert!(error.to_string().contains("min_p"), "{error}");
    let error = model([&long]).call(CompletionRequest::new("Talk.").seed(7)).await.expect_err("refused");
    assert!(error.to_string().contains("additional_params"), "{error}");
}

#[tokio::test]
async fn errors_of_the_engine_have_their_status_and_code() {
    let endless = "word ".repeat(100_000);
    for stream in [false, true] {
        let model = model(["Never."]);
        let error = match stream {
            false => model.call(endless.as_str()).await.expect_err("too long"),
            true => {
                let mut stream = model.stream(endless.as_str()).expect("it opens");
                stream.next().await.expect("an item").expect_err("too long")
            }
        };
        let ProviderError::ProviderResponse(reply) = &error else { panic!("{error:?}") };
        assert_eq!(reply.status.map(|status| status.as_u16()), Some(400), "{error}");
        assert!(reply.body.contains("context_length_exceeded"), "{error}");
    }
}

/// Waits until no sequence has pages: its request has ended.
fn wait_for_the_end(engine: &Engine) {
    let held = || engine.cache_stats().map(|stats| stats.total_pages - stats.free_pages).expect("it runs");
    let until = Instant::now() + Duration::from_secs(60);
    while held() > 0 {
        assert!(Instant::now() < until, "the turn continues");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn dropped_stream_ends_its_turn() {
    let (engine, config) = scripted([&"and ".repeat(1_000), "Hello!"]);
    let model = provider(&engine, config).completion("scripted");
    let mut stream = model.stream("Count to a million.").expect("it opens");
    while let Some(item) = stream.next().await {
        if let Item::Event(StreamEvent::Text { .. }) = item.expect("an event") {
            break;
        }
    }
    drop(stream);
    wait_for_the_end(&engine);
    assert_eq!(model.call("Hi.").await.expect("a reply").text(), "Hello!");
}

#[tokio::test]
async fn reply_does_not_block_and_ends_with_its_future() {
    let (engine, config) = scripted([&"and ".repeat(1_000), "Hello!"]);
    let model = provider(&engine, config).completion("scripted");
    let mut call = Box::pin(model.call("Count to a million."));
    // A call that waited for its reply would be ready at its first poll.
    let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending(), "the thread that polls does not wait for the model");
    drop(call);
    wait_for_the_end(&engine);
    assert!(model.call("Hi.").await.is_ok());
}

#[tokio::test]
async fn multi_turn_conversation_has_the_template_form() {
    let (engine, config) = scripted(["It is 15."]);
    let model = provider(&engine, config).completion("scripted");
    let request = CompletionRequest::from(vec![
        Message::System { content: "Be brief.".to_owned() },
        Message::user("Hi."),
        Message::assistant("Hello!"),
        Message::user("3 times 5?"),
    ]);
    let response = model.call(request).await.expect("a reply");
    assert_eq!(response.choice.len(), 1);
    assert!(matches!(&response.choice[0], AssistantContent::Text(text) if text.text == "It is 15."));
    assert_eq!(response.model(), Some("scripted"), "the label of the request");
}

#[tokio::test]
async fn embeddings_equal_the_engine() {
    let (engine, config) = scripted(["Never."]);
    let width = engine.model_info().hidden_size;
    let model = provider(&engine, config).embedding("scripted", Some(width));
    let texts = vec!["Paris".to_owned(), "Rome".to_owned()];
    let response = model.call(texts).await.expect("two vectors");
    let ids = engine.tokenizer().encode_with_special_tokens(lm_session::TextSegment::Content("Rome"));
    let expected = engine.embed(&ids.expect("ids"), &lm_session::EmbedParams::default()).expect("a vector");
    let Embedding { document, vec } = &response.embeddings[1];
    assert_eq!((document.as_str(), vec.len()), ("Rome", width));
    assert!(vec.iter().zip(&expected).all(|(got, want)| (*got as f32 - want).abs() < 1e-6));
}
