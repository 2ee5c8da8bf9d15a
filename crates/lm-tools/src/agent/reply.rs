//! Result of a turn, as data.

use crate::error::{Error, Result};
use crate::steps::{AgentStep, StopReason};
use lm_conversation::{Finished, Usage};
use lm_template::Message;
use serde::{Deserialize, Serialize};

/// Result of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReply {
    /// The model's last message: the answer, if the turn was [answered](StopReason::Answered). At a time
    /// limit, as much of a reply as was generated; at [external calls](StopReason::ExternalCalls), the reply
    /// that makes them.
    pub message: Message,
    /// Reason for the end of the turn.
    pub stop: StopReason,
    /// The calls of the turn and their results, in order. External calls are in the turn that starts with
    /// their results.
    pub steps: Vec<AgentStep>,
    /// Finish reason and usage of each reply of the model, in order.
    pub finished: Vec<Finished>,
}

impl AgentReply {
    /// Text of the last message.
    pub fn text(&self) -> String {
        self.message.content.text()
    }

    /// Token counts of all replies together: the prompt counts once for each reply, as in hosted billing.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.finished.iter().for_each(|finished| sum += finished.usage);
        sum
    }

    /// Returns the reply if the model answered.
    ///
    /// # Errors
    /// [`Error::Stopped`] with the steps if a limit or a hook ended the turn.
    pub fn answered(self) -> Result<Self> {
        match self.stop {
            StopReason::Answered => Ok(self),
            reason => Err(Error::Stopped { reason, steps: self.steps }),
        }
    }
}
