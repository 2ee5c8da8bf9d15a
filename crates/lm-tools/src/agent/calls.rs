//! Calls of a round: permitted ones run, and each has one result.

use super::decisions::{NOT_RUN, PANICKED, Planned};
use super::driver::{Driver, Events};
use super::external::ExternalCall;
use super::state::milliseconds;
use super::{AfterCall, AgentEvent, AtLimit, spans};
use crate::error::Result;
use crate::execution::given;
use crate::execution::{CallEvent, CallResult};
use crate::running_calls::RunningCalls;
use crate::steps::{AgentStep, CallOutcome, StopReason};
use crate::tool_error::ToolErrorKind;
use lm_template::{Message, ToolCall};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing::Span;

/// Running calls of a round, with their numbers in the reply.
struct Round {
    running: RunningCalls,
    numbers: Vec<usize>,
}

impl Round {
    /// Waits for the result of the next call; `step` is the step of a call that does not run.
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
    /// Runs the calls of a round. Returns the reason to stop after it, if any.
    pub async fn calls(&mut self, calls: &[ToolCall]) -> Result<Option<StopReason>> {
        self.counts.rounds += 1;
        let (planned, mut stop) = self.plan(calls).await?;
        self.check_cancelled()?;
        let external = planned.iter().enumerate().filter(|(_, planned)| planned.is_external());
        self.state.lock().begin_calls(external.map(|(number, _)| number).collect())?;
        let (numbers, to_run) = planned.iter().enumerate().filter_map(Planned::to_run).unzip();
        let running = self.tools.start(to_run, &self.options.cancel, self.deadline());
        let mut round = Round { running, numbers };
        let mut external = Vec::new();
        for (number, (call, planned)) in calls.iter().zip(planned).enumerate() {
            let span = spans::execute_tool(call);
            let step = match planned {
                Planned::Given(step) => *step,
                Planned::External(call) => {
                    external.push((number, *call));
                    continue;
                }
                Planned::Run { outcome, asked, .. } => {
                    let step = AgentStep { asked, ..self.not_run(call, NOT_RUN) };
                    let step = round.next(&self.events, step, outcome).await;
                    self.after_second_failure(step)
                }
            };
            let stopped = self.add(number, step, span).await?;
            stop = stop.or(stopped);
        }
        self.check_cancelled()?;
        let stop = self.at_limit(stop).or_else(|| self.exhausted());
        self.hand_over(external, stop).await
    }

    /// Adds the result of a call after the hooks. Returns their reason to stop, if any.
    async fn add(&mut self, number: usize, step: AgentStep, span: Span) -> Result<Option<StopReason>> {
        let (step, stop) = self.after(step);
        spans::record_step(&span, &step);
        drop(span);
        self.state.lock().add(number, step.clone())?;
        self.state.record();
        if !self.options.cancel.is_cancelled() {
            self.events.emit(AgentEvent::ToolResult(step)).await;
        }
        Ok(stop)
    }

    /// Hands calls over to the caller. If the turn ends for another reason, they are not run.
    async fn hand_over(
        &mut self,
        external: Vec<(usize, ExternalCall)>,
        stop: Option<StopReason>,
    ) -> Result<Option<StopReason>> {
        let Some(stop) = stop else {
            let external: Vec<_> = external.into_iter().map(|(_, call)| call).collect();
            return Ok((!external.is_empty()).then(|| self.state.lock().hand_over(external)));
        };
        for (number, ExternalCall { call, asked, .. }) in external {
            let step = AgentStep { asked, ..self.stopped(&call, &stop) };
            self.add(number, step, spans::execute_tool(&call)).await?;
        }
        Ok(Some(stop))
    }

    /// Lets the model answer after a limit, if the limits allow it.
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

    /// Shows a result to the hooks.
    pub fn after(&self, mut step: AgentStep) -> (AgentStep, Option<StopReason>) {
        let mut stop = None;
        for hook in &self.settings.hooks {
            let after = catch_unwind(AssertUnwindSafe(|| hook.after_call(&step)));
            match after.unwrap_or_else(|_| AfterCall::Stop(PANICKED.to_owned())) {
                AfterCall::Keep => {}
                AfterCall::Replace(result) => {
                    let (id, name) = (step.call.id.as_deref(), step.call.name.as_str());
                    step.result = Message::tool(id, name, given(result));
                }
                AfterCall::Stop(message) => stop = stop.or(Some(StopReason::Hook { message })),
            }
        }
        (step, stop)
    }
}
