//! Constraint of a reply, derived from the turn's options.

use std::sync::Arc;

use lm_processors::{
    Channel, GrammarRequest, MarkerTokens, ModelDataProcessor, Recovery, ReplyForm, Thinking, ToolChoice,
    ToolSpec, UnenforcedKeyword,
};
use lm_session::{ChannelBudget, Constraint, ConstraintSpec, Engine};

use crate::config::{ConstrainCalls, TurnOptions};
use crate::error::Result;
use crate::reply_checks::ReplyChecks;
use crate::thinking::ThinkingMode;

/// Inputs of the reply's constraint, besides the turn's options.
pub(crate) struct ReplyRules<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) processor: &'a dyn ModelDataProcessor,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) tokens: &'a MarkerTokens,
    pub(crate) constrain_calls: ConstrainCalls,
    /// Channels that replace the dialect's.
    pub(crate) channels: Option<Arc<[Channel]>>,
    /// True if the model may reason here: its template has the dialect's reasoning channel, and the
    /// template's switch is not off.
    pub(crate) reasons: bool,
    /// True if the prompt has opened the dialect's reasoning channel.
    pub(crate) in_reasoning: bool,
    /// True if the prompt has opened the channel that thinking limits apply to.
    pub(crate) in_channel: bool,
}

/// Constraint and checks of a reply.
#[derive(Debug, Default)]
pub(crate) struct ReplyConstraints {
    /// Token-level constraint; `None` if the reply is free.
    pub(crate) constraint: Option<Box<dyn Constraint>>,
    /// Form of the reply for its parser; `None` if the reply is free, or has a user-defined constraint.
    pub(crate) form: Option<ReplyForm>,
    /// Validators of complete calls and answers.
    pub(crate) checks: Option<ReplyChecks>,
    /// Schema keywords that the constraint does not enforce.
    pub(crate) unenforced: Vec<UnenforcedKeyword>,
    /// Recovery from defects of the reply: off under the family's grammar, which excludes them.
    pub(crate) recovery: Recovery,
}

impl ReplyRules<'_> {
    /// Derives the constraints of a reply to a turn with these options.
    pub(crate) fn constraints(&self, turn: &mut TurnOptions) -> Result<ReplyConstraints> {
        let mut constraints = match turn.constraint.take() {
            Some(own) => ReplyConstraints { constraint: Some(own), ..ReplyConstraints::default() },
            None => self.grammar(turn)?,
        };
        let channel = match &self.channels {
            Some(channels) => channels.first().cloned(),
            None => self.processor.channels().into_iter().next(),
        };
        if let Some((tokens, channel)) = turn.thinking.limit().zip(channel) {
            let tokenizer = self.engine.tokenizer();
            let layout = self.processor.dialect().and_then(|dialect| dialect.channels.first());
            let layout = layout.filter(|syntax| syntax.tags.close == channel.end);
            let layout = layout.map_or("", |channel| channel.tags.before_close);
            let budget = ChannelBudget::new(tokenizer, &channel.start, layout, &channel.end, tokens)?;
            let budget = budget.with(constraints.constraint.take());
            constraints.constraint =
                Some(Box::new(if self.in_channel { budget.starting_inside() } else { budget }));
        }
        Ok(constraints)
    }

    /// Compiles the grammar of the family's dialect for the turn's options.
    fn grammar(&self, turn: &TurnOptions) -> Result<ReplyConstraints> {
        let free = turn.response_format.is_none() && turn.tool_choice == ToolChoice::Auto;
        // Without tools, the grammar would only exclude markers of other channels.
        let has_calls = self.constrain_calls == ConstrainCalls::Yes;
        if free && (!has_calls || (self.tools.is_empty() && self.channels.is_some())) {
            return Ok(ReplyConstraints::default());
        }
        let request = self.request(turn);
        let Some(reply) = self.processor.grammar(&request)? else {
            return Ok(ReplyConstraints::default());
        };
        let form = Some(ReplyForm::of(&request));
        let spec = ConstraintSpec::Lark { text: reply.grammar.lark, markers: reply.grammar.markers };
        let checks = ReplyChecks::new(&reply.unenforced, self.tools, turn.response_format.as_ref())?;
        let constraint = Some(self.engine.compile(&spec)?.start());
        Ok(ReplyConstraints {
            constraint,
            form,
            checks,
            unenforced: reply.unenforced,
            recovery: Recovery::Off,
        })
    }

    fn request(&self, turn: &TurnOptions) -> GrammarRequest<'_> {
        let must_call = matches!(turn.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        let forced = must_call || turn.response_format.is_some();
        GrammarRequest {
            tools: self.tools,
            choice: turn.tool_choice.clone(),
            calls: turn.calls,
            thinking: match turn.thinking.mode {
                _ if self.in_reasoning => Thinking::Open,
                ThinkingMode::Off => Thinking::Forbidden,
                // A format or a required call forbids the first word of most models, and the channel's marker
                // would be what is left: reasoning that the model does not have.
                ThinkingMode::Default if !self.reasons && forced => Thinking::Forbidden,
                ThinkingMode::Default | ThinkingMode::On => Thinking::Allowed,
            },
            response_format: turn.response_format.clone(),
            tokens: self.tokens.clone(),
            ..GrammarRequest::default()
        }
    }
}
