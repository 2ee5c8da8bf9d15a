//! Replies with tool calls in the syntax of `CallBody::Parameters`.

#![no_main]

mod replies;

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_processors::CallBody;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    replies::read(bytes, |body| matches!(body, CallBody::Parameters(_)))
});
