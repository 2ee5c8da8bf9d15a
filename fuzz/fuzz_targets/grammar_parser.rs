//! The grammar of a family's calls and its parser on the same texts: the first byte selects the family, the
//! others the tools, the calls and the walk through the grammar.

#![no_main]

#[path = "../../crates/lm-processors/tests/grammar/common.rs"]
#[allow(dead_code, reason = "the tests of grammars use the rest")]
mod common;
#[path = "../../crates/lm-processors/tests/grammar/random.rs"]
mod random;
#[path = "../../crates/lm-processors/tests/grammar/round_trip.rs"]
mod round_trip;
#[path = "../../crates/lm-processors/tests/grammar/walk.rs"]
mod walk;
#[path = "../../crates/lm-processors/tests/grammar/writer.rs"]
mod writer;

use std::cell::LazyCell;

use libfuzzer_sys::{Corpus, fuzz_target};

thread_local! {
    static COMPILER: LazyCell<common::Compiler> = LazyCell::new(common::Compiler::new);
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((family, bytes)) = bytes.split_first() else { return Corpus::Reject };
    let families = lm_processors::ALL;
    let processor = families[usize::from(*family) % families.len()].processor;
    let mut random = random::Random::of_bytes(bytes);
    COMPILER.with(|compiler| match round_trip::Case::new(compiler, processor, &mut random) {
        Some(case) => {
            case.written_calls(&mut random);
            case.random_text(&mut random);
            Corpus::Keep
        }
        None => Corpus::Reject,
    })
});
