//! Replies that consist of messages with headers of their own.

#![no_main]

mod replies;

use libfuzzer_sys::{Corpus, fuzz_target};

const FAMILIES: [&str; 3] = ["gpt_oss", "hf_response_template_invoke", "muse"];

fuzz_target!(|bytes: &[u8]| -> Corpus {
    replies::read_in(bytes, |family| FAMILIES.contains(&family.processor.name()))
});
