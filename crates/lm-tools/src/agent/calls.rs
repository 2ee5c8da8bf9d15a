//! Calls of a round: limits and hooks decide on each, those that may run are run, and each has one result.

use super::driver::{Driver, Events};
use super::state::{milliseconds, refused};
use super::{
    AfterCall, AgentEvent, AgentStep, ApprovalRequest, AtLimit, CallOutcome, CallRequest, Decision, Hook,
    StopReason, spans,
};
use crate::{CallEvent, CallResult, Error, Result, RunningCalls, ToolAnnotations, ToolErrorKind};
use lm_template::{Message, ToolCall, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A call after the decision.
enum Planned {
    /// It runs.
    Run { call: ToolCall, outcome: CallOutcome },
    /// It has a result.
    Given(Box<AgentStep>),
}

/// Decision on a call.
enum Verdict {
    Planned(Planned),
    /// A limit: this call does not run, others of the round may.
    OverLimit(StopReason),
    /// No call of the round runs.
    Stop(StopReason),
}

impl Planned {
    fn to_run((number, planned): (usize, &Self)) -> Option<(usize, ToolCall)> {
        match planned {
            Self::Run { call, .. } => Some((number, call.clone())),
            Self::Given(_) => None,
        }
    }
}

/// Running calls of a round, with their numbers in the reply.
struct Round {
    running: RunningCalls,
    numbers: Vec<usize>,
}

impl Round {
    /// Waits for the result of the next call; `step` is that of a call that does not run.
    async fn next(&mut self, events: &Events, step: AgentStep, outcome: CallOutcome) -> AgentStep {
        while let Some(event) = self.running.recv_event().await {
            let number = |index: usize| self.numbers.get(index).copied().unwrap_or(index);
            match event {
                CallEvent::Progress { index, progress } => {
                    events.emit(AgentEvent::ToolProgress { index: number(index), progress }).await;
                }
                CallEvent::Retry { index, attempt, error, delay } => {
                    let index = number(index);
                    events.emit(AgentEvent::ToolRetry { index, attempt, error, delay }).await;
                }
                CallEvent::Finished(result) => return executed(step, *result, outcome),
            }
        }
        step
    }
}

/// Adds the result of the toolset to the step of a call.
fn executed(step: AgentStep, result: CallResult, outcome: CallOutcome) -> AgentStep {
    let error = result.error.map(|error| error.kind());
    let is_not_run = result.attempts == 0 && error == Some(ToolErrorKind::Cancelled);
    AgentStep {
        outcome: if is_not_run { CallOutcome::NotRun } else { outcome },
        result: result.message,
        error,
        attempts: result.attempts,
        elapsed_ms: milliseconds(result.elapsed),
        ..step
    }
}

impl Driver {
    /// Runs the calls of a round. Returns the reason to stop after it, if there is one.
    pub async fn calls(&mut self, calls: &[ToolCall]) -> Result<Option<StopReason>> {
        self.counts.rounds += 1;
        let (planned, mut stop) = self.plan(calls).await?;
        self.state.lock().begin_calls()?;
        let (numbers, to_run) = planned.iter().enumerate().filter_map(Planned::to_run).unzip();
        let running = self.tools.start(to_run, &self.options.cancel, self.options.deadline);
        let mut round = Round { running, numbers };
        for (call, planned) in calls.iter().zip(planned) {
            let span = spans::execute_tool(call);
            let step = match planned {
                Planned::Given(step) => *step,
                Planned::Run { outcome, .. } => {
                    round.next(&self.events, self.not_run(call, NOT_RUN), outcome).await
                }
            };
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
                    planned.push(self.refused(call, &reason));
                    limit = limit.or(Some(reason));
                }
                Verdict::Stop(reason) => {
                    planned = calls.iter().map(|call| self.refused(call, &reason)).collect();
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
                Decision::Ask => return Ok(self.denied(call, UNANSWERED)),
                Decision::Deny(reason) => return Ok(self.denied(call, &reason)),
                Decision::Answer(result) => return Ok(self.answered(call, result)),
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

    /// Step of a call that the toolset is not given.
    fn given(&self, call: &ToolCall, outcome: CallOutcome, result: Message) -> AgentStep {
        let step = AgentStep::new(self.counts.rounds - 1, call.clone(), result);
        AgentStep { outcome, attempts: 0, ..step }
    }

    fn not_run(&self, call: &ToolCall, reason: &str) -> AgentStep {
        let step = self.given(call, CallOutcome::NotRun, refused(call, reason));
        AgentStep { error: Some(ToolErrorKind::Cancelled), ..step }
    }

    fn refused(&self, call: &ToolCall, reason: &StopReason) -> Planned {
        Planned::Given(Box::new(self.not_run(call, &format!("{NOT_RUN}: {reason}"))))
    }

    fn denied(&self, call: &ToolCall, reason: &str) -> Verdict {
        let step = self.given(call, CallOutcome::Denied, refused(call, reason));
        Verdict::Planned(Planned::Given(Box::new(AgentStep { error: Some(ToolErrorKind::Denied), ..step })))
    }

    fn answered(&self, call: &ToolCall, result: Value) -> Verdict {
        let result = Message::tool(call.id.as_deref(), call.name.as_str(), result);
        Verdict::Planned(Planned::Given(Box::new(self.given(call, CallOutcome::Answered, result))))
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

const NOT_RUN: &str = "the call was not run";
const UNANSWERED: &str = "the call was not approved: nobody answered the request";
const PANICKED: &str = "a hook panicked";
