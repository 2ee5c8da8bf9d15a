//! Replay of recorded requests.

use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::constraint::{ChannelBudget, Constraint, ConstraintRecord};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::event::{FinishReason, SessionEvent};
use crate::params::{GenerateParams, SessionConfig};
use crate::record::{RecordedEnd, RequestRecord};

/// Outcome of a replayed request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replayed {
    /// The tokens and the end match the record.
    Equal,
    /// The first different token.
    Token {
        /// Number of equal tokens before it.
        at: usize,
        /// Token of the record; `None` after its last one.
        recorded: Option<TokenId>,
        /// Token of the replay; `None` after its last one.
        replayed: Option<TokenId>,
    },
    /// The tokens are equal, but the end differs.
    End {
        /// End in the record.
        recorded: RecordedEnd,
        /// End of the replay.
        replayed: RecordedEnd,
    },
    /// The request used code of the caller, which is not in the record.
    Custom,
}

impl Engine {
    /// Runs a recorded request again, in a session of its own, and compares the tokens.
    ///
    /// ```
    /// use lm_session::{CancelHandle, GenerateParams, RecordReader, Replayed, SessionConfig, testing};
    ///
    /// let file = tempfile::NamedTempFile::new()?;
    /// let engine = testing::scripted_engine(["Hello!", "Hello!", "Help!"]);
    /// engine.record(file.reopen()?)?;
    /// let mut session = engine.session(SessionConfig::default())?;
    /// session.submit(&[1, 2], GenerateParams::default())?.into_text()?;
    /// engine.stop_recording();
    ///
    /// let record = RecordReader::new(std::io::BufReader::new(file.reopen()?))?;
    /// assert_eq!(*record.header(), engine.record_header());
    /// for request in record {
    ///     let (request, cancel) = (request?, CancelHandle::new());
    ///     assert_eq!(engine.replay(&request, &cancel)?, Replayed::Equal);
    ///     assert!(matches!(engine.replay(&request, &cancel)?, Replayed::Token { .. }));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Cancelled`], and the errors of [`Session::submit`](crate::Session::submit) for a request that
    /// this engine rejects.
    pub fn replay(&self, request: &RequestRecord, cancel: &CancelHandle) -> Result<Replayed> {
        if request.custom {
            return Ok(Replayed::Custom);
        }
        let config = SessionConfig {
            sampler: request.sampler.clone(),
            stop: request.stop.clone(),
            stop_ids: request.stop_ids.clone(),
            max_output_tokens: request.max_output_tokens,
            adapter: request.adapter_id(),
        };
        let constraint = request.constraint.as_ref().map(|record| self.constraint(record));
        let params = GenerateParams {
            constraint: constraint.transpose()?,
            continued: request.continued,
            cancel: cancel.clone(),
            ..GenerateParams::default()
        };
        let mut recorded = request.tokens.iter().copied();
        let cut = matches!(request.end, RecordedEnd::Caller | RecordedEnd::Error(_));
        let mut at = 0;
        for event in self.session(config)?.submit(&request.prompt, params)? {
            if cut && at == request.tokens.len() {
                break;
            }
            let replayed = match event? {
                SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => continue,
                SessionEvent::Token { id, .. } => Some(id),
                SessionEvent::Finished(finished) if finished.reason == FinishReason::Cancelled => {
                    return Err(Error::Cancelled);
                }
                SessionEvent::Finished(finished) => {
                    let end = RecordedEnd::from(&finished.reason);
                    if recorded.len() == 0 && !cut && end != request.end {
                        return Ok(Replayed::End { recorded: request.end.clone(), replayed: end });
                    }
                    None
                }
            };
            let recorded = recorded.next();
            if recorded != replayed {
                return Ok(Replayed::Token { at, recorded, replayed });
            }
            at += 1;
        }
        Ok(Replayed::Equal)
    }

    /// Creates a recorded constraint at its start.
    fn constraint(&self, record: &ConstraintRecord) -> Result<Box<dyn Constraint>> {
        match record {
            ConstraintRecord::Grammar(spec) => Ok(self.compile(spec)?.start()),
            ConstraintRecord::Budget { start, end, closing, tokens, inside, inner } => {
                let tokenizer = self.tokenizer();
                let budget = ChannelBudget::closing_with(tokenizer, start, end, closing.clone(), *tokens);
                let inner = inner.as_deref().map(|inner| self.constraint(inner)).transpose()?;
                let budget = budget.with(inner);
                Ok(Box::new(if *inside { budget.starting_inside() } else { budget }))
            }
        }
    }
}
