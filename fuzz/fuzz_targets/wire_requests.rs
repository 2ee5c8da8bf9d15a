//! Arbitrary bodies as requests of the Responses API, of Anthropic and of Ollama, each body for all of them.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_api::{
    AnthropicRequest, ApiError, ChatRequest, ConversationConfig, Limits, OllamaRequest, ResponseStore,
    ResponsesRequest, Value, ollama_embed,
};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return Corpus::Reject };
    let (limits, store) = (Limits::default(), ResponseStore::default());
    let body = || body.clone();
    check(ResponsesRequest::from_json_within(body(), &store, &limits).map(|request| request.chat));
    check(AnthropicRequest::message(body(), &limits));
    check(AnthropicRequest::count(body(), &limits));
    check(OllamaRequest::chat(body(), &limits));
    check(OllamaRequest::generate(body(), &limits));
    if let Err(error) = ollama_embed(body(), &limits) {
        rejected(&error);
    }
    Corpus::Keep
});

/// A request can run, and an error is the client's.
fn check(request: Result<ChatRequest, ApiError>) {
    match request {
        Ok(request) => {
            let config = request.config(&ConversationConfig::default(), request.choices - 1);
            assert!(config.session.sampler.validate(usize::MAX).is_ok(), "{config:?}");
            assert!(request.stop.iter().all(|stop| !stop.is_empty()));
        }
        Err(error) => rejected(&error),
    }
}

fn rejected(error: &ApiError) {
    assert!((400..500).contains(&error.status), "{error}");
}
