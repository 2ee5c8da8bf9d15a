//! Byte-level BPE (`gpt2`): a pre-tokenizer splits the text, each byte maps to a character of a special
//! alphabet, merges are listed.

use lm_formats::GgufMetadata;
use tokenizers::SplitDelimiterBehavior;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

use super::pre_tokenizers::{self, IgnoreMerges, PreTokenizer, Verified};
use super::vocabulary::Vocabulary;
use super::{BpeOptions, Parts, merges, model};
use crate::token_table::{Spelling, byte_of_char};
use crate::{Error, Result};

pub(super) fn build(metadata: &GgufMetadata, vocabulary: &mut Vocabulary) -> Result<Parts> {
    let row = pre_tokenizers::find(metadata)?;
    if row.verified == Verified::No {
        tracing::warn!(name = row.name, "nothing is at hand that proves this pre-tokenizer right");
    }
    let merges = merges::listed(metadata, vocabulary)?;
    let options =
        BpeOptions { ignore_merges: row.ignore_merges == IgnoreMerges::Yes, ..BpeOptions::default() };
    let mut library = tokenizers::Tokenizer::new(model(vocabulary, merges, options)?);
    library.with_pre_tokenizer(Some(pre_tokenizer(row)?));
    library.with_decoder(Some(ByteLevel::new(false, true, false)));
    Ok(Parts { library, spelling: Spelling::ByteLevel(byte_of_char()) })
}

/// Builds the pre-tokenizer: each pattern splits the pieces of the previous ones, then bytes become
/// characters.
fn pre_tokenizer(row: &PreTokenizer) -> Result<Sequence> {
    let mut steps = Vec::with_capacity(row.patterns.len() + 1);
    for &pattern in row.patterns {
        let pattern = SplitPattern::Regex(pattern.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(Error::Library)?;
        steps.push(PreTokenizerWrapper::from(split));
    }
    steps.push(ByteLevel::new(false, true, false).into());
    Ok(Sequence::new(steps))
}
