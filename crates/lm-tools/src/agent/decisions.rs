//! Decisions on the calls of a round: limits and hooks decide on each before the first one starts.

use super::driver::Driver;
use super::external::ExternalCall;
use super::state::refused;
use super::{AgentEvent, ApprovalRequest, CallRequest, Decision, Hook, OnRepeat};
use crate::annotations::ToolAnnotations;
use crate::error::Result;
use crate::execution::given;
use crate::steps::{AgentStep, CallOutcome, StopReason};
use crate::tool_error::ToolErrorKind;
use lm_template::{Message, ToolCall, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(super) const NOT_RUN: &str = "the call was not run";
const UNANSWERED: &str = "the call was not approved: nobody answered the request";
/// Added to the result of a repeated call, or of one whose result the model quotes. Among wordings that were
/// tried with Qwen2.5-Coder 1.5B, this one made it answer, and not quote the result.
const ANSWER_NOW: &str = "Now answer the question in words. Do not call a function.";
/// In place of a result that is too long to repeat.
const ABOVE: &str = "The result of this call is above.";
/// Maximum length of a result that a repeated call has again.
const MAX_REPEATED_BYTES: usize = 2 << 10;
pub(super) const PANICKED: &str = "a hook panicked";

/// Adds the request to answer to the text of a result, once.
pub(super) fn with_request_to_answer(text: &str) -> String {
    if text.ends_with(ANSWER_NOW) { text.to_owned() } else { format!("{text}\n{ANSWER_NOW}") }
}

/// A call after the decision.
pub(super) enum Planned {
    /// The call runs.
    Run { call: ToolCall, outcome: CallOutcome, asked: bool },
    /// The caller runs it.
    External(Box<ExternalCall>),
    /// The call already has a result.
    Given(Box<AgentStep>),
}

/// Decision on a call.
enum Verdict {
    Planned(Planned),
    /// A limit: this call does not run; others of the round may.
    OverLimit(StopReason),
    /// No call of the round runs.
    Stop(StopReason),
}

impl Planned {
    pub fn to_run((number, planned): (usize, &Self)) -> Option<(usize, ToolCall)> {
        match planned {
            Self::Run { call, .. } => Some((number, call.clone())),
            Self::External(_) | Self::Given(_) => None,
        }
    }

    pub fn is_external(&self) -> bool {
        matches!(self, Self::External(_))
    }
}

impl Driver {
    /// Decides on the calls of a round, in order.
    pub async fn plan(&mut self, calls: &[ToolCall]) -> Result<(Vec<Planned>, Option<StopReason>)> {
        let mut planned = Vec::new();
        let mut limit = None;
        let mut repeats = 0;
        for call in calls {
            if let Some(repeat) = self.repeat(call) {
                planned.push(repeat);
                repeats += 1;
                continue;
            }
            match self.decide(call).await? {
                Verdict::Planned(call) => planned.push(call),
                Verdict::OverLimit(reason) => {
                    planned.push(self.refused(call, &reason));
                    limit = limit.or(Some(reason));
                }
                Verdict::Stop(reason) => {
                    planned = calls.iter().map(|call| self.refused(call, &reason)).collect();
                    return Ok((planned, Some(reason)));
                }
            }
        }
        self.must_answer |= repeats == calls.len();
        Ok((planned, limit))
    }

    /// Returns a call that the reply before has made with its result, unless it failed once and may be tried
    /// again.
    fn repeat(&self, call: &ToolCall) -> Option<Planned> {
        let step = self.earlier(call, 1).filter(|_| self.answers_repeats())?;
        if step.error.is_some() {
            self.earlier(call, 2)?;
        }
        let text = step.result.content.text();
        let text = if (1..=MAX_REPEATED_BYTES).contains(&text.len()) { &text } else { ABOVE };
        let result = Value::String(with_request_to_answer(text));
        let result = Message::tool(call.id.as_deref(), call.name.as_str(), result);
        let given = self.given(call, CallOutcome::Repeated, result);
        let step = AgentStep { error: step.error, ..given };
        Some(Planned::Given(Box::new(step)))
    }

    /// Adds the request to answer to the error of a call that the reply before has made and that failed
    /// there, too.
    pub fn after_second_failure(&self, mut step: AgentStep) -> AgentStep {
        let failed_before = || self.earlier(&step.call, 1).is_some_and(|before| before.error.is_some());
        if step.error.is_some() && self.answers_repeats() && failed_before() {
            step.result.content = with_request_to_answer(&step.result.content.text()).into();
        }
        step
    }

    fn answers_repeats(&self) -> bool {
        let limits = &self.settings.limits;
        limits.on_repeat == OnRepeat::Answer && limits.max_identical_calls.is_none()
    }

    /// The last call of the same tool with the same arguments, a number of rounds before the current one.
    fn earlier(&self, call: &ToolCall, rounds: usize) -> Option<AgentStep> {
        let state = self.state.lock();
        let same = |step: &&AgentStep| {
            step.round + rounds + 1 == state.rounds
                && step.call.name == call.name
                && step.call.arguments == call.arguments
        };
        state.steps.iter().rfind(same).cloned()
    }

    async fn decide(&mut self, call: &ToolCall) -> Result<Verdict> {
        let mut was_asked = false;
        let mut verdict = self.ask_hooks(call, &mut was_asked).await?;
        if let Verdict::Planned(Planned::Given(step)) = &mut verdict {
            step.asked = was_asked;
        }
        Ok(verdict)
    }

    async fn ask_hooks(&mut self, call: &ToolCall, asked: &mut bool) -> Result<Verdict> {
        if let Some(reason) = self.counts.admit(&self.settings.limits, call) {
            return Ok(Verdict::OverLimit(reason));
        }
        let annotations = self.tools.annotations(&call.name).cloned().unwrap_or_default();
        let (mut current, mut outcome) = (call.clone(), CallOutcome::Ran);
        for hook in self.settings.hooks.clone() {
            let mut decision = self.before(&hook, &current, &annotations);
            if decision == Decision::Ask {
                *asked = true;
                decision = self.ask(&current, &annotations).await?;
                if let Some(stop) = self.late() {
                    return Ok(Verdict::Stop(stop));
                }
            }
            match decision {
                Decision::Run => {}
                Decision::Edit(arguments) => {
                    current.arguments = arguments.clone();
                    outcome = CallOutcome::Edited { arguments };
                }
                Decision::Ask => return Ok(self.denied(call, UNANSWERED)),
                Decision::Deny(reason) => return Ok(self.denied(call, &reason)),
                Decision::Answer(result) => return Ok(self.answered(call, result)),
                Decision::Stop(message) => return Ok(Verdict::Stop(StopReason::Hook { message })),
            }
        }
        Ok(Verdict::Planned(self.admitted(call, current, outcome, *asked)))
    }

    /// Hands a call of an external tool over to the caller; an invalid call gets its result from the toolset.
    fn admitted(&self, call: &ToolCall, mut current: ToolCall, outcome: CallOutcome, asked: bool) -> Planned {
        if !self.tools.is_external(&call.name) || self.tools.checked(&mut current).is_err() {
            return Planned::Run { call: current, outcome, asked };
        }
        let outcome = if outcome == CallOutcome::Ran { CallOutcome::External } else { outcome };
        let (call, arguments) = (call.clone(), current.arguments);
        Planned::External(Box::new(ExternalCall { call, arguments, outcome, asked }))
    }

    /// Asks the reader of the turn.
    async fn ask(&mut self, call: &ToolCall, annotations: &ToolAnnotations) -> Result<Decision> {
        let (request, answers) = ApprovalRequest::new(call, annotations);
        request.end_with(self.options.cancel.clone(), self.deadline());
        self.events.emit(AgentEvent::Approval(request)).await;
        let decision = answers.recv().await;
        self.check_cancelled()?;
        Ok(decision.unwrap_or_else(|_| Decision::Deny(UNANSWERED.to_owned())))
    }

    fn before(&self, hook: &Arc<dyn Hook>, call: &ToolCall, annotations: &ToolAnnotations) -> Decision {
        let request = CallRequest { call, annotations, round: self.round() };
        let decision = catch_unwind(AssertUnwindSafe(|| hook.before_call(&request)));
        decision.unwrap_or_else(|_| Decision::Stop(PANICKED.to_owned()))
    }

    /// Number of the running round.
    fn round(&self) -> usize {
        self.state.lock().rounds - 1
    }

    /// Step of a call that bypasses the toolset.
    fn given(&self, call: &ToolCall, outcome: CallOutcome, result: Message) -> AgentStep {
        let step = AgentStep::new(self.round(), call.clone(), result);
        AgentStep { outcome, attempts: 0, ..step }
    }

    pub fn not_run(&self, call: &ToolCall, reason: &str) -> AgentStep {
        let step = self.given(call, CallOutcome::NotRun, refused(call, reason));
        AgentStep { error: Some(ToolErrorKind::Cancelled), ..step }
    }

    /// Step of a call that does not run because the turn ends.
    pub fn stopped(&self, call: &ToolCall, reason: &StopReason) -> AgentStep {
        self.not_run(call, &format!("{NOT_RUN}: {reason}"))
    }

    fn refused(&self, call: &ToolCall, reason: &StopReason) -> Planned {
        Planned::Given(Box::new(self.stopped(call, reason)))
    }

    fn denied(&self, call: &ToolCall, reason: &str) -> Verdict {
        let step = self.given(call, CallOutcome::Denied, refused(call, reason));
        Verdict::Planned(Planned::Given(Box::new(AgentStep { error: Some(ToolErrorKind::Denied), ..step })))
    }

    fn answered(&self, call: &ToolCall, result: Value) -> Verdict {
        let result = Message::tool(call.id.as_deref(), call.name.as_str(), given(result));
        Verdict::Planned(Planned::Given(Box::new(self.given(call, CallOutcome::Answered, result))))
    }
}
