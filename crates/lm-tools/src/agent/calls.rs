//! Calls of a round: limits and hooks decide on each, those that may run are run, and each has one result.

use super::driver::Driver;
use super::state::refused;
use super::{
    AfterCall, AgentEvent, AgentStep, ApprovalRequest, AtLimit, CallOutcome, CallRequest, Decision, Hook,
    StopReason, spans,
};
use crate::execution::not_run;
use crate::{Error, Result, ToolAnnotations};
use lm_template::{Message, ToolCall, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A call after the decision.
enum Planned {
    Run { call: ToolCall, outcome: CallOutcome },
    Given { result: Message, outcome: CallOutcome },
}

/// Decision on a call.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one")]
enum Verdict {
    Planned(Planned),
    /// A limit: this call does not run, others of the round may.
    OverLimit(StopReason),
    /// No call of the round runs.
    Stop(StopReason),
}

impl Planned {
    fn not_run(call: &ToolCall, reason: &StopReason) -> Self {
        let result = refused(call, &format!("the call was not run: {reason}"));
        Self::Given { result, outcome: CallOutcome::NotRun }
    }

    fn given(call: &ToolCall, result: Value, outcome: CallOutcome) -> Verdict {
        let result = Message::tool(call.id.as_deref(), call.name.as_str(), result);
        Verdict::Planned(Self::Given { result, outcome })
    }

    fn call(&self) -> Option<&ToolCall> {
        match self {
            Self::Run { call, .. } => Some(call),
            Self::Given { .. } => None,
        }
    }
}

impl Driver {
    /// Runs the calls of a round. Returns the reason to stop after it, if there is one.
    pub async fn calls(&mut self, calls: &[ToolCall]) -> Result<Option<StopReason>> {
        self.counts.rounds += 1;
        let (planned, mut stop) = self.plan(calls).await?;
        self.state.lock().begin_calls()?;
        let to_run = planned.iter().filter_map(Planned::call).cloned().collect();
        let mut running = self.tools.start(to_run, &self.options.cancel, self.options.deadline);
        for (call, planned) in calls.iter().zip(planned) {
            let span = spans::execute_tool(call);
            let (outcome, result) = match planned {
                Planned::Given { result, outcome } => (outcome, result),
                Planned::Run { call, outcome } => {
                    let result = running.recv().await.unwrap_or_else(|| not_run(&call));
                    (if result == not_run(&call) { CallOutcome::NotRun } else { outcome }, result)
                }
            };
            let step = self.state.lock().step(outcome, result).ok_or(Error::Cancelled)?;
            let (step, stopped) = self.after(step);
            spans::record_step(&span, &step);
            drop(span);
            stop = stop.or(stopped);
            self.state.lock().add(step.clone())?;
            if !self.options.cancel.is_cancelled() {
                self.events.emit(AgentEvent::ToolResult(step)).await;
            }
        }
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(self.at_limit(stop))
    }

    /// Lets the model answer after a limit, if that is wanted.
    fn at_limit(&mut self, stop: Option<StopReason>) -> Option<StopReason> {
        let limits = &self.settings.limits;
        if limits.at_limit == AtLimit::Stop {
            return stop;
        }
        match stop {
            None => {
                self.must_answer |= self.counts.rounds >= limits.max_rounds;
                None
            }
            Some(StopReason::CallLimit { .. } | StopReason::RepeatedCall { .. }) => {
                self.must_answer = true;
                None
            }
            stop => stop,
        }
    }

    /// Decides on the calls of a round, in order.
    async fn plan(&mut self, calls: &[ToolCall]) -> Result<(Vec<Planned>, Option<StopReason>)> {
        let mut planned = Vec::new();
        let mut limit = None;
        for call in calls {
            match self.decide(call).await? {
                Verdict::Planned(call) => planned.push(call),
                Verdict::OverLimit(reason) => {
                    planned.push(Planned::not_run(call, &reason));
                    limit = limit.or(Some(reason));
                }
                Verdict::Stop(reason) => {
                    planned = calls.iter().map(|call| Planned::not_run(call, &reason)).collect();
                    return Ok((planned, Some(reason)));
                }
            }
        }
        Ok((planned, limit))
    }

    async fn decide(&mut self, call: &ToolCall) -> Result<Verdict> {
        if let Some(reason) = self.counts.admit(&self.settings.limits, call) {
            return Ok(Verdict::OverLimit(reason));
        }
        let annotations = self.tools.annotations(&call.name).cloned().unwrap_or_default();
        let (mut current, mut outcome) = (call.clone(), CallOutcome::Ran);
        for hook in self.settings.hooks.clone() {
            let mut decision = self.before(&hook, &current, &annotations);
            if decision == Decision::Ask {
                decision = self.ask(&current, &annotations).await?;
                if let Some(stop) = self.exhausted().filter(|stop| *stop == StopReason::TimeLimit) {
                    return Ok(Verdict::Stop(stop));
                }
            }
            match decision {
                Decision::Run => {}
                Decision::Edit(arguments) => {
                    current.arguments = arguments.clone();
                    outcome = CallOutcome::Edited { arguments };
                }
                Decision::Ask => return Ok(Planned::denied(call, UNANSWERED)),
                Decision::Deny(reason) => return Ok(Planned::denied(call, &reason)),
                Decision::Answer(result) => return Ok(Planned::given(call, result, CallOutcome::Answered)),
                Decision::Stop(message) => return Ok(Verdict::Stop(StopReason::Hook { message })),
            }
        }
        Ok(Verdict::Planned(Planned::Run { call: current, outcome }))
    }

    /// Asks the reader of the turn.
    async fn ask(&mut self, call: &ToolCall, annotations: &ToolAnnotations) -> Result<Decision> {
        let (request, answers) = ApprovalRequest::new(call, annotations);
        request.end_with(self.options.cancel.clone(), self.options.deadline);
        self.events.emit(AgentEvent::Approval(request)).await;
        let decision = answers.recv().await;
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(decision.unwrap_or_else(|_| Decision::Deny(UNANSWERED.to_owned())))
    }

    fn before(&self, hook: &Arc<dyn Hook>, call: &ToolCall, annotations: &ToolAnnotations) -> Decision {
        let request = CallRequest { call, annotations, round: self.counts.rounds - 1 };
        let decision = catch_unwind(AssertUnwindSafe(|| hook.before_call(&request)));
        decision.unwrap_or_else(|_| Decision::Stop(PANICKED.to_owned()))
    }

    /// Shows a result to the hooks.
    fn after(&self, mut step: AgentStep) -> (AgentStep, Option<StopReason>) {
        let mut stop = None;
        for hook in &self.settings.hooks {
            let after = catch_unwind(AssertUnwindSafe(|| hook.after_call(&step)));
            match after.unwrap_or_else(|_| AfterCall::Stop(PANICKED.to_owned())) {
                AfterCall::Keep => {}
                AfterCall::Replace(result) => {
                    step.result = Message::tool(step.call.id.as_deref(), step.call.name.as_str(), result);
                }
                AfterCall::Stop(message) => stop = stop.or(Some(StopReason::Hook { message })),
            }
        }
        (step, stop)
    }
}

const UNANSWERED: &str = "the call was not approved: nobody answered the request";
const PANICKED: &str = "a hook panicked";

impl Planned {
    fn denied(call: &ToolCall, reason: &str) -> Verdict {
        Verdict::Planned(Self::Given { result: refused(call, reason), outcome: CallOutcome::Denied })
    }
}
