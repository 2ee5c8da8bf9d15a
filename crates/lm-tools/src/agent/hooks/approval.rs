//! Approval of calls: predefined policies, and requests that the user answers.

use super::{CallRequest, Decision, Hook};
use crate::annotations::ToolAnnotations;
use async_channel::{Receiver, Sender};
use lm_conversation::CancelHandle;
use lm_template::{Map, ToolCall, Value};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a waiting request checks for the end of its turn.
const TICK: Duration = Duration::from_millis(20);

/// Predefined approval policies, based on the [annotations](ToolAnnotations) of the tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Every call runs.
    #[default]
    All,
    /// Calls of read-only tools run; others are denied.
    ReadOnly,
    /// Calls of tools that may delete or overwrite, including tools without annotations, need an approval;
    /// others run.
    AskDestructive,
    /// Every call needs an approval.
    AskAll,
}

impl Hook for Approval {
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        match self {
            Self::All => Decision::Run,
            Self::ReadOnly if request.annotations.is_read_only() => Decision::Run,
            Self::ReadOnly => Decision::Deny("only tools that change nothing may be called".to_owned()),
            Self::AskDestructive if !request.annotations.is_destructive() => Decision::Run,
            Self::AskDestructive | Self::AskAll => Decision::Ask,
        }
    }
}

/// A call that waits for approval. It may be answered from any thread, during further reads of the turn or
/// later; the first answer counts. The call is denied when the request and all its clones are dropped without
/// an answer.
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use serde_json::json;
/// use lm_tools::{Agent, AgentEvent, Approval, ApprovalRequest, CallOutcome, demo};
/// use std::sync::mpsc::channel;
///
/// // A window of its own, on another thread.
/// let (window, requests) = channel::<ApprovalRequest>();
/// let user = std::thread::spawn(move || {
///     for request in requests {
///         match request.call.arguments["location"].as_str() {
///             Some("Paris") => request.allow(),
///             _ => request.deny("only Paris is of interest"),
///         }
///     }
/// });
///
/// # let call = ScriptedReply::call("get_weather", json!({"location": "Paris"}));
/// # let engine = scripted_engine([call, ScriptedReply::text("It is sunny.")]);
/// let mut agent = Agent::builder(&engine, demo()).approval(Approval::AskAll).build()?;
/// for event in agent.stream("How is the weather in Paris?")? {
///     match event? {
///         AgentEvent::Approval(request) => window.send(request)?,
///         AgentEvent::Finished(reply) => assert_eq!(reply.steps[0].outcome, CallOutcome::Ran),
///         _ => {}
///     }
/// }
/// # drop(window);
/// # user.join().expect("no panic");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The call.
    pub call: ToolCall,
    /// Hints about the tool's effects; the default for an unknown tool.
    pub annotations: ToolAnnotations,
    answer: Sender<Decision>,
}

impl ApprovalRequest {
    pub(in crate::agent) fn new(
        call: &ToolCall,
        annotations: &ToolAnnotations,
    ) -> (Self, Receiver<Decision>) {
        let (answer, answers) = async_channel::bounded(1);
        (Self { call: call.clone(), annotations: annotations.clone(), answer }, answers)
    }

    /// Lets the call run.
    pub fn allow(&self) {
        self.answer(Decision::Run);
    }

    /// Lets the call run with other arguments, which the toolset validates.
    pub fn allow_with(&self, arguments: Map<String, Value>) {
        self.answer(Decision::Edit(arguments));
    }

    /// Denies the call; the model reads the text.
    pub fn deny(&self, reason: impl Into<String>) {
        self.answer(Decision::Deny(reason.into()));
    }

    /// Answers with any decision. [`Decision::Ask`] denies.
    pub fn answer(&self, decision: Decision) {
        let _ = self.answer.try_send(decision); // It was answered, or the turn has ended.
    }

    /// Denies the request when the turn is cancelled or its deadline passes, on a thread that ends with the
    /// request.
    pub(in crate::agent) fn end_with(&self, cancel: CancelHandle, deadline: Option<Instant>) {
        let answer = self.answer.downgrade();
        let watch = move || {
            while let Some(answer) = answer.upgrade().filter(|answer| !answer.is_closed()) {
                if cancel.is_cancelled() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    let _ = answer.try_send(Decision::Deny("the turn has ended".to_owned()));
                    return;
                }
                drop(answer);
                thread::sleep(TICK);
            }
        };
        if let Err(error) = thread::Builder::new().name("lm-approval".to_owned()).spawn(watch) {
            tracing::error!(%error, "a request for approval does not end with its turn");
        }
    }
}
