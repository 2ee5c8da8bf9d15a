//! Arbitrary chat completion and embedding requests, and batch lines.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_api::{BatchReader, BatchRequest, ConversationConfig};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(line) = serde_json::from_slice(bytes) else { return Corpus::Reject };
    let read = BatchReader::default().read(Ok(line));
    match &read.request {
        Ok(BatchRequest::Chat(request)) => {
            let config = request.config(&ConversationConfig::default(), request.choices - 1);
            assert!(config.session.sampler.validate(usize::MAX).is_ok(), "{config:?}");
            assert!(request.stream.is_none() && request.stop.iter().all(|stop| !stop.is_empty()));
        }
        Ok(_) => {}
        Err(error) => assert_eq!((error.status, error.kind), (400, "invalid_request_error"), "{error}"),
    }
    drop(read.answer.json(&read.request.map(|_| serde_json::Value::Null)));
    Corpus::Keep
});
