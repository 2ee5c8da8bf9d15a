//! Conversations that do not fit the context.

use lm_api::{
    ApiError, ChatEngine, ChatRequest, ChunkWriter, Limits, OllamaRequest, OllamaWriter, ResponseStore,
    ResponsesRequest, ResponsesWriter, Value,
};
use lm_conversation::{ConversationConfig, PromptTemplate};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{Engine, EngineSettings};
use serde_json::json;

use crate::support::TEMPLATE;

const CONTEXT: usize = 512;

/// Tokens of a page of the cache.
const PAGE: u64 = 32;

/// An engine whose context is small, of replies that are alike.
fn chat() -> ChatEngine {
    let model = FakeLm::scripted(&tokenizer(), std::iter::repeat_n("Hello!", 64));
    chat_of(model.with_context_len(CONTEXT))
}

fn chat_of(model: FakeLm) -> ChatEngine {
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
    let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
    let processor = lm_processors::by_name("hermes").map(Into::into);
    let config = ConversationConfig { template, processor, ..ConversationConfig::from_engine(&engine) };
    ChatEngine::new(engine, config)
}

/// `turns` questions and answers after instructions, and a last question.
fn messages(turns: usize) -> Vec<Value> {
    let turn = |turn| {
        let question = json!({"role": "user", "content": format!("question {turn} {}", "x ".repeat(8))});
        [question, json!({"role": "assistant", "content": format!("answer {turn}")})]
    };
    let system = json!({"role": "system", "content": "Rules."});
    let last = json!({"role": "user", "content": "the last question"});
    [system].into_iter().chain((0..turns).flat_map(turn)).chain([last]).collect()
}

fn ollama(fields: Value) -> ChatRequest {
    let mut body = json!({"model": "m", "stream": false});
    for (key, value) in fields.as_object().expect("an object") {
        body[key] = value.clone();
    }
    OllamaRequest::chat(body, &Limits::default()).expect("a request")
}

/// Number of messages that were left out, and tokens of the prompt that ran.
fn run(request: ChatRequest) -> Result<(usize, usize), ApiError> {
    let running = chat().start(request, OllamaWriter::chat)?;
    let left_out = running.messages_left_out();
    let tokens = running.wait()?["prompt_eval_count"].as_u64().expect("a number");
    Ok((left_out, usize::try_from(tokens).expect("a count")))
}

#[test]
fn oldest_messages_are_left_out() {
    assert_eq!(run(ollama(json!({"messages": messages(3)}))).expect("it fits").0, 0);
    let request = ollama(json!({"messages": messages(40), "options": {"num_predict": 20}}));
    let (left_out, tokens) = run(request).expect("it is shortened");
    assert!(left_out > 40 && left_out < 80, "{left_out}");
    // No more than needed: the messages up to the mark before would not leave room for the reply.
    assert!(tokens + 20 <= CONTEXT && tokens + 20 > CONTEXT / 2 - 40, "{tokens}");
    // A reply without a limit has a quarter of the context.
    let (_, tokens) = run(ollama(json!({"messages": messages(40)}))).expect("it is shortened");
    assert!(tokens <= CONTEXT * 3 / 4 && tokens > CONTEXT * 3 / 8 - 40, "{tokens}");
}

#[test]
fn without_truncation_the_prompt_is_too_long() {
    let error =
        run(ollama(json!({"messages": messages(40), "truncate": false}))).expect_err("it is too long");
    assert_eq!(error.code, Some("context_length_exceeded"), "{error}");
    // What is always kept does not fit.
    let long = json!([{"role": "user", "content": "x ".repeat(2_000)}]);
    let error = run(ollama(json!({"messages": long}))).expect_err("it is too long");
    assert_eq!(error.code, Some("context_length_exceeded"), "{error}");
}

#[test]
fn results_of_tools_stay_with_their_calls() {
    let call = |id: usize| json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"n": id}}}]});
    let result = |id: usize| json!({"role": "tool", "content": format!("result {id} {}", "y ".repeat(20))});
    let mut messages = vec![json!({"role": "user", "content": "question"})];
    messages.extend((0..30).flat_map(|id| [call(id), result(id)]));
    let request = ollama(json!({"messages": messages}));
    let running = chat().start(request.clone(), OllamaWriter::chat).expect("it is shortened");
    assert_eq!(running.messages_left_out() % 2, 1, "the question, and pairs of calls and results");
    assert!(running.wait().is_ok());
}

#[test]
fn results_without_their_calls_are_left_out() {
    let call = json!({"role": "assistant", "content": "x ".repeat(600), "tool_calls": [{"function": {"name": "f", "arguments": {}}}]});
    let messages = json!([
        {"role": "system", "content": "Rules."}, {"role": "user", "content": "one"}, call, {"role": "user", "content": "two"},
        {"role": "tool", "content": "y ".repeat(100)}, {"role": "user", "content": "three"},
    ]);
    let (left_out, tokens) = run(ollama(json!({"messages": messages}))).expect("it is shortened");
    assert_eq!(left_out, 3);
    assert!(tokens < 100, "{tokens}");
    // The call of a last message that is a result stays, and what does not fit is an error.
    let messages = json!([{"role": "user", "content": "one"}, call, {"role": "tool", "content": "z"}]);
    let error = run(ollama(json!({"messages": messages}))).expect_err("the call is too long");
    assert_eq!(error.code, Some("context_length_exceeded"), "{error}");
}

/// Each request has the whole conversation, as clients send it, and the server keeps none of it.
#[test]
fn cut_of_a_growing_conversation_stays_and_its_prompt_is_cached() {
    let model = FakeLm::scripted(&tokenizer(), (0..60).map(|turn| format!("Answer {turn}.")));
    let chat = chat_of(model.with_context_len(2 * CONTEXT));
    let (mut messages, mut cut, mut moves) =
        (vec![json!({"role": "system", "content": "Rules."})], 0, Vec::new());
    let (mut before, mut ran) = (0, Vec::new());
    for turn in 0..40 {
        let question = format!("question {turn} {}", "x ".repeat(8));
        messages.push(json!({"role": "user", "content": question}));
        let request = chat_completion(&messages.clone().into(), json!({"max_tokens": 20}));
        let running = chat.start(request, ChunkWriter::for_request).expect("it is shortened");
        let left_out = running.messages_left_out();
        let object = running.wait().expect("a reply");
        let usage = |path: &str| object["usage"].pointer(path).and_then(Value::as_u64).expect("a number");
        let (prompt, cached) = (usage("/prompt_tokens"), usage("/prompt_tokens_details/cached_tokens"));
        if left_out == cut {
            // The new message with its markers, the last reply's, and the rest of a page of the cache.
            assert!(prompt - cached <= (prompt - before).max(1) + PAGE, "{turn}: {cached} of {prompt}");
        } else {
            assert!(left_out > cut, "{turn}");
            moves.push(turn);
        }
        ran.push(prompt - cached);
        (cut, before) = (left_out, prompt);
        messages.push(object["choices"][0]["message"].clone());
    }
    assert!(moves.len() >= 2, "{moves:?}");
    let intervals: Vec<usize> = moves.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(intervals.iter().all(|turns| *turns >= 5), "{moves:?}");
    let last: u64 = ran[20..].iter().sum();
    println!(
        "cut moved in turns {moves:?}; the last 20 turns ran {last} tokens of prompts: {:?}",
        &ran[20..]
    );
}

#[test]
fn responses_truncate_on_request() {
    let input: Vec<Value> = messages(40);
    for (truncation, fits) in [("auto", true), ("disabled", false)] {
        let (store, limits) = (ResponseStore::default(), Limits::default());
        let body = json!({"input": input, "truncation": truncation});
        let request = ResponsesRequest::from_json_within(body, &store, &limits).expect("a request");
        let chat_request = request.chat.clone();
        let running = chat().start(chat_request, |_, model| ResponsesWriter::new(request, model, &store));
        match running {
            Ok(running) => {
                assert!(fits && running.messages_left_out() > 40);
                let object = running.wait().expect("a reply");
                assert_eq!(object["truncation"], "auto");
                // All items are stored: a model with a longer context could read them.
                let stored = store.get(object["id"].as_str().unwrap()).expect("it is stored");
                assert_eq!(stored.items.len(), input.len() + 1);
            }
            Err(error) => assert!(!fits && error.code == Some("context_length_exceeded"), "{error}"),
        }
    }
}

#[test]
fn counted_tokens_are_those_of_the_shortened_prompt() {
    let request = ollama(json!({"messages": messages(40)}));
    let counted = chat().prompt_tokens(request.clone()).expect("it is shortened");
    assert_eq!(counted, run(request.clone()).expect("a reply").1);
    let whole = chat().prompt_tokens(ollama(json!({"messages": messages(40), "truncate": false})));
    assert!(whole.expect("it is rendered") > CONTEXT);
}

fn chat_completion(messages: &Value, fields: Value) -> ChatRequest {
    let mut body = fields;
    body["messages"] = messages.clone();
    let mut request = ChatRequest::from_json(body).expect("a request");
    request.truncates = true;
    request
}

#[test]
fn instructions_of_developers_are_kept_and_results_follow_their_ids() {
    let call = |id: &str, filler: &str| json!({"role": "assistant", "content": filler, "tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("result of {id}")});
    let messages = json!([
        {"role": "developer", "content": "Rules of the developer."}, {"role": "user", "content": "one"},
        call("cut", &"x ".repeat(600)), {"role": "user", "content": "two"}, result("cut"), call("kept", ""), result("kept"),
        {"role": "user", "content": "three"},
    ]);
    let chat = chat();
    let request = chat_completion(&messages, json!({"max_tokens": 10}));
    let running = chat.start(request, ChunkWriter::for_request).expect("it is shortened");
    // The question, the call, and its result.
    assert_eq!(running.messages_left_out(), 3);
    let tokens = running.wait().expect("a reply")["usage"]["prompt_tokens"].as_u64().expect("a number");
    let kept = json!([
        {"role": "developer", "content": "Rules of the developer."}, {"role": "user", "content": "two"}, call("kept", ""), result("kept"),
        {"role": "user", "content": "three"},
    ]);
    let expected = chat.render(&chat_completion(&kept, json!({}))).expect("it fits").ids.len();
    assert_eq!(tokens, expected as u64);
}

#[test]
fn prompt_that_leaves_room_for_the_reply_is_whole() {
    let chat = chat();
    let messages = Value::from(messages(7));
    let tokens = chat.render(&chat_completion(&messages, json!({}))).expect("it fits").ids.len();
    let room = CONTEXT - tokens;
    for (limit, whole) in [(room, true), (room + 1, false)] {
        assert!(limit <= CONTEXT / 4, "{room}");
        let request = chat_completion(&messages, json!({"max_tokens": limit}));
        let running = chat.start(request, ChunkWriter::for_request).expect("it starts");
        assert_eq!(running.messages_left_out() == 0, whole, "{limit}");
    }
}

#[test]
fn chat_completions_truncate_on_request() {
    for (truncation, fits) in [(json!("auto"), true), (json!("disabled"), false), (json!(null), false)] {
        let body = json!({"messages": messages(40), "truncation": truncation});
        let request = ChatRequest::from_json(body).expect("a request");
        match chat().start(request, ChunkWriter::for_request) {
            Ok(running) => assert!(fits && running.messages_left_out() > 40),
            Err(error) => assert!(!fits && error.code == Some("context_length_exceeded"), "{error}"),
        }
    }
    let error = ChatRequest::from_json(json!({"messages": messages(1), "truncation": "middle"}));
    assert_eq!(error.expect_err("is unknown").param.as_deref(), Some("truncation"));
}
