//! What a reply may be: from a turn's options to the constraint of its generation.

use lm_processors::{
    GrammarRequest, MarkerTokens, ModelDataProcessor, Recovery, Relaxed, ReplyForm, Thinking, ToolChoice,
    ToolSpec,
};
use lm_session::{ChannelBudget, Constraint, ConstraintSpec, Engine};

use crate::config::{ConstrainCalls, TurnOptions};
use crate::error::Result;
use crate::reply_checks::ReplyChecks;
use crate::thinking::ThinkingMode;

/// What decides what a reply may be, beside the turn's options.
pub(crate) struct ReplyRules<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) processor: &'static dyn ModelDataProcessor,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) tokens: &'a MarkerTokens,
    pub(crate) constrain_calls: ConstrainCalls,
    /// The prompt has opened the reasoning channel.
    pub(crate) in_reasoning: bool,
}

/// What holds for a reply.
#[derive(Debug, Default)]
pub(crate) struct ReplyLimits {
    /// What it may be, token by token; none when it may be anything.
    pub(crate) constraint: Option<Box<dyn Constraint>>,
    /// What its parser is told of it; none when the reply is free, or held by a constraint of the caller's own.
    pub(crate) form: Option<ReplyForm>,
    /// What its calls and its answer are checked against when they are complete.
    pub(crate) checks: Option<ReplyChecks>,
    /// What the constraint leaves open of the schemas.
    pub(crate) relaxed: Vec<Relaxed>,
    /// Whether defects of the reply are mended: a reply written by the family's grammar has none.
    pub(crate) recovery: Recovery,
}

impl ReplyRules<'_> {
    /// What holds for a reply to a turn with these options.
    pub(crate) fn limits(&self, turn: &mut TurnOptions) -> Result<ReplyLimits> {
        let mut limits = match turn.constraint.take() {
            Some(own) => ReplyLimits { constraint: Some(own), ..ReplyLimits::default() },
            None => self.grammar(turn)?,
        };
        let channel = self.processor.channels().into_iter().next();
        if let Some((tokens, channel)) = turn.thinking.limit().zip(channel) {
            let tokenizer = self.engine.tokenizer();
            let layout = self.processor.dialect().and_then(|dialect| dialect.channels.first());
            let layout = layout.map_or("", |channel| channel.tags.before_close);
            let budget = ChannelBudget::new(tokenizer, &channel.start, layout, &channel.end, tokens)?;
            let budget = budget.with(limits.constraint.take());
            limits.constraint = Some(Box::new(if self.in_reasoning { budget.opened() } else { budget }));
        }
        Ok(limits)
    }

    /// The grammar of the family's dialect for what the turn asks.
    fn grammar(&self, turn: &TurnOptions) -> Result<ReplyLimits> {
        let free = turn.response_format.is_none() && turn.tool_choice == ToolChoice::Auto;
        if free && self.constrain_calls == ConstrainCalls::No {
            return Ok(ReplyLimits::default());
        }
        let request = self.request(turn);
        let Some(reply) = self.processor.grammar(&request)? else {
            return Ok(ReplyLimits::default());
        };
        let form = Some(ReplyForm::of(&request));
        let spec = ConstraintSpec::Lark { text: reply.grammar.lark, markers: reply.grammar.markers };
        let checks = ReplyChecks::new(&reply.relaxed, self.tools, turn.response_format.as_ref())?;
        let constraint = Some(self.engine.compile(&spec)?.start());
        Ok(ReplyLimits { constraint, form, checks, relaxed: reply.relaxed, recovery: Recovery::Off })
    }

    fn request(&self, turn: &TurnOptions) -> GrammarRequest<'_> {
        GrammarRequest {
            tools: self.tools,
            choice: turn.tool_choice.clone(),
            calls: turn.calls,
            thinking: match turn.thinking.mode {
                _ if self.in_reasoning => Thinking::Open,
                ThinkingMode::Off => Thinking::Forbidden,
                ThinkingMode::Default | ThinkingMode::On => Thinking::Allowed,
            },
            response_format: turn.response_format.clone(),
            tokens: self.tokens.clone(),
            ..GrammarRequest::default()
        }
    }
}
