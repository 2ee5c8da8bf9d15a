//! A conversation that fills the context: its oldest turns are left out, or a summary replaces it.

use anyhow::{Result, bail};
use lm_conversation::{DroppedHistory, Overflow, ToolChoice};
use lm_template::Message;

use super::settings::Settings;
use super::turn::Ended;
use super::{Chat, lock};
use crate::lines::Line;

/// Request of a summary.
const SUMMARISE: &str = "Summarise the conversation above, so that we can go on from the summary alone: what I want, what was \
done and decided, names and numbers that are needed further on, and what is left to do. Write the summary alone.";
/// Maximum length of a summary, in tokens; at most a quarter of the context.
const MAX_TOKENS: usize = 1_024;

const DROP_OLDEST: Overflow = Overflow::DropOldest(DroppedHistory::Kept);

impl Chat {
    /// Asks what to do with a conversation that leaves a message no room. Returns the message if it is to be
    /// sent again.
    pub(super) fn make_room(&mut self, message: String) -> Result<Option<String>> {
        let answer = lock(&self.lines)
            .line("[d] leaves out the oldest turns, [s] summarises the conversation, Enter does neither: ")?;
        let Line::Text(answer) = answer else { return Ok(None) };
        match answer.trim() {
            "d" => {
                self.state.settings.turn.overflow = Some(DROP_OLDEST);
                self.state
                    .screen
                    .note("(from now on the oldest turns are left out; /set overflow error ends that)")?;
                Ok(Some(message))
            }
            "s" => Ok(self.compact()?.then_some(message)),
            _ => Ok(None),
        }
    }

    /// Replaces the conversation by a summary that the model writes, and that the user may change on a
    /// terminal. Returns false if it stays as it was.
    pub(super) fn compact(&mut self) -> Result<bool> {
        let before = self.state.turns.agent.conversation().history();
        if before.is_empty() {
            bail!("there is nothing to summarise");
        }
        let question = Message::user(SUMMARISE);
        let settings = self.summary_settings();
        let ended = self.state.turns.run(question.clone(), &settings, &mut self.state.screen);
        let summary = match ended {
            Ok(Ended::Answered { .. }) => self.edited(&self.state.turns.last_text()),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        let history = match &summary {
            Ok(Some(summary)) => vec![question, Message::assistant(summary.as_str())],
            _ => before,
        };
        self.state.turns.agent.conversation_mut().set_history(history);
        let is_replaced = summary?.is_some();
        self.state.screen.note(match is_replaced {
            true => "(the conversation goes on from this summary)",
            false => "(the conversation stays as it is)",
        })?;
        Ok(is_replaced)
    }

    fn summary_settings(&self) -> Settings {
        let mut settings = self.state.settings.clone();
        let context = self.state.turns.agent.conversation().engine().context_tokens();
        // Others are more often no summary at all.
        settings.sampler.temperature = 0.0;
        settings.max_tokens = Some(MAX_TOKENS.min(context / 4));
        settings.turn.overflow = Some(DROP_OLDEST);
        settings.turn.tool_choice = ToolChoice::None;
        settings
    }

    /// The summary as the user leaves it; `None` if it is not to be used.
    fn edited(&self, summary: &str) -> Result<Option<String>> {
        let mut lines = lock(&self.lines);
        let summary = summary.trim().to_owned();
        let edited = match lines.is_terminal() {
            true => lines.edit("Enter uses it, Ctrl-C does not> ", &summary)?,
            false => Line::Text(summary),
        };
        Ok(match edited {
            Line::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
            _ => None,
        })
    }
}
