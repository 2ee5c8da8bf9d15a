//! Records of requests as JSON Lines, and their replay.
//!
//! The first line of a record is a [`RecordHeader`], each other one a [`RequestRecord`]: the prompt as token
//! ids, all parameters, the seed, and the tokens that came of them. A sequence's tokens do not depend on the
//! other sequences of a batch, so that requests can be replayed one after another.

mod reader;
mod recorder;

use crate::constraint::ConstraintRecord;
use lm_tokenizer::TokenId;
use serde::{Deserialize, Serialize};

use crate::event::FinishReason;
use crate::ids::AdapterId;
use crate::sampling::SamplerParams;
pub use reader::RecordReader;
pub(crate) use recorder::{Recorder, Recording};

/// First line of a record: the model and the build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordHeader {
    /// Format of the file: [`RecordHeader::FORMAT`].
    pub format: String,
    /// Version of the format: [`RecordHeader::VERSION`].
    pub version: u32,
    /// Version of this crate.
    pub build: String,
    /// Name of the model.
    pub model: String,
    /// [`Engine::fingerprint`](crate::Engine::fingerprint).
    pub fingerprint: String,
    /// [`Engine::context_tokens`](crate::Engine::context_tokens), which limits replies.
    pub context_tokens: usize,
}

impl RecordHeader {
    /// Format of written files.
    pub const FORMAT: &'static str = "lm-requests";
    /// Version of written files.
    pub const VERSION: u32 = 1;
}

/// A request with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRecord {
    /// All token ids of the session at the start of the request.
    pub prompt: Vec<TokenId>,
    /// Number of last ids that start the output:
    /// [`GenerateParams::continued`](crate::GenerateParams::continued).
    pub continued: usize,
    /// The sampler with its actual seed. User-defined filters are not recorded.
    pub sampler: SamplerParams,
    /// Token limit of the output.
    pub max_output_tokens: Option<usize>,
    /// Stop strings.
    pub stop: Vec<String>,
    /// Ids that end the output, in addition to the model's.
    pub stop_ids: Vec<TokenId>,
    /// Id of the adapter: [`AdapterId`].
    pub adapter: Option<u32>,
    /// The constraint, if it can be recorded.
    pub constraint: Option<ConstraintRecord>,
    /// True if the request used a constraint or filter of the caller's code: it cannot be replayed.
    pub custom: bool,
    /// Read tokens of the output, without those of `continued`.
    pub tokens: Vec<TokenId>,
    /// End of the output.
    pub end: RecordedEnd,
}

/// End of a recorded output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordedEnd {
    /// [`FinishReason::EndToken`].
    EndToken,
    /// [`FinishReason::StopString`].
    StopString(String),
    /// [`FinishReason::MaxOutputTokens`].
    MaxOutputTokens,
    /// [`FinishReason::ContextFull`].
    ContextFull,
    /// Ended by its reader: cancelled, dropped, or at its deadline. Only the tokens are compared.
    Caller,
    /// Failed with this message. Only the tokens are compared.
    Error(String),
}

impl From<&FinishReason> for RecordedEnd {
    fn from(reason: &FinishReason) -> Self {
        match reason {
            FinishReason::EndToken => Self::EndToken,
            FinishReason::StopString(stop) => Self::StopString(stop.clone()),
            FinishReason::MaxOutputTokens => Self::MaxOutputTokens,
            FinishReason::ContextFull => Self::ContextFull,
            FinishReason::Cancelled | FinishReason::DeadlineExceeded => Self::Caller,
        }
    }
}

impl RequestRecord {
    /// Id of the adapter.
    pub(crate) fn adapter_id(&self) -> Option<AdapterId> {
        self.adapter.map(AdapterId)
    }
}
