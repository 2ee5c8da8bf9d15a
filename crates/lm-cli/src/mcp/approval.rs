//! Approval of calls of MCP servers' tools by the user.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use lm_tools::{ApprovalRequest, CallRequest, Decision, ToolAnnotations, Toolset};

use crate::interrupt::Interrupt;
use crate::lines::{Line, Lines};
use crate::screen::{json_line, one_line};

/// Reasons for the model. The embedded model repeats these verbatim; other words can make it generate until
/// its context is full.
const DENIED: &str = "permission denied: the user said no";
const NOBODY: &str = "permission denied: there is no one to ask";

/// Value of `--mcp-approve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Approve {
    Destructive,
    All,
    None,
}

impl Approve {
    fn asks(self, hints: &ToolAnnotations) -> bool {
        match self {
            Self::Destructive => hints.is_destructive(),
            Self::All => true,
            Self::None => false,
        }
    }

    /// Decides on a call: the user is asked about tools of servers, as the policy says. These are all that
    /// are not among the chat's `own`: a server that withdraws a tool during a turn does not change the
    /// decision.
    pub fn decide(self, own: &Toolset, request: &CallRequest<'_>) -> Decision {
        let is_own = own.annotations(&request.call.name).is_some();
        if !is_own && self.asks(request.annotations) { Decision::Ask } else { Decision::Run }
    }
}

/// The user, who answers the questions of a chat.
pub struct Approver {
    lines: Arc<Mutex<Lines>>,
    interrupt: Interrupt,
    /// Tools that need no further question.
    always: HashSet<String>,
}

impl Approver {
    pub fn new(lines: Arc<Mutex<Lines>>, interrupt: Interrupt) -> Self {
        Self { lines, interrupt, always: HashSet::new() }
    }

    /// Forgets the permissions: other tools may have the same names now.
    pub fn forget(&mut self) {
        self.always.clear();
    }

    /// Asks whether a call of a server's tool, which was shown, may run, and answers the request. The model
    /// reads the reason if it may not.
    ///
    /// # Errors
    /// When the terminal cannot be read; the call is denied.
    pub fn answer(&mut self, request: &ApprovalRequest, call: &AskedCall) -> Result<()> {
        let name = &request.call.name;
        if self.always.contains(name) {
            request.allow();
            return Ok(());
        }
        let name = &one_line(name);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.is_terminal() {
            eprintln!(
                "note: `{name}` was not called: without a terminal nobody can be asked (--mcp-approve none asks nobody)"
            );
            request.deny(NOBODY);
            return Ok(());
        }
        eprintln!("{}", call.question(request));
        loop {
            match lines.line("Run it? [yes/no/always] ")? {
                Line::Text(text) => match text.trim().to_lowercase().as_str() {
                    "y" | "yes" => request.allow(),
                    "n" | "no" => request.deny(DENIED),
                    "a" | "always" => {
                        self.always.insert(request.call.name.clone());
                        request.allow();
                    }
                    _ => continue,
                },
                Line::Interrupted | Line::Cleared => {
                    self.interrupt.cancel();
                    request.deny("cancelled");
                }
                Line::End => request.deny(DENIED),
            }
            return Ok(());
        }
    }
}

/// A call in a question, beside its request.
pub struct AskedCall {
    /// Server of the tool; `None` if it has withdrawn the tool.
    pub server: Option<String>,
    /// True if the reply has other calls: the question then shows the arguments.
    pub has_siblings: bool,
}

impl AskedCall {
    /// Names the tool, its server and the reason for the question, on one line.
    fn question(&self, request: &ApprovalRequest) -> String {
        let ApprovalRequest { call, annotations: hints, .. } = request;
        let server =
            self.server.as_ref().map(|server| format!(" of server \"{server}\"")).unwrap_or_default();
        let arguments =
            if self.has_siblings { format!("({})", json_line(&call.arguments)) } else { String::new() };
        let reason = match (hints.is_read_only(), hints.destructive) {
            (true, _) => "says that it changes nothing",
            (false, Some(false)) => "says that it deletes and overwrites nothing",
            (false, Some(true)) => "says that it may delete or overwrite data",
            (false, None) => "has no hints that it changes nothing",
        };
        one_line(&format!("{}{arguments}{server} {reason}.", call.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_tools::{ToolCall, demo};

    #[test]
    fn tools_outside_the_chat_need_approval() {
        let annotations = &ToolAnnotations::default();
        let decide = |name: &str| {
            let call = &ToolCall::new(name, Default::default());
            Approve::All.decide(&demo(), &CallRequest { call, annotations, round: 0 })
        };
        assert_eq!(decide("get_weather"), Decision::Run);
        assert_eq!(decide("withdrawn"), Decision::Ask);
    }

    #[test]
    fn policy_decides_which_tools_need_approval() {
        let read = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
        let write = ToolAnnotations::default();
        for (approve, asked) in [
            (Approve::Destructive, [false, true]),
            (Approve::All, [true, true]),
            (Approve::None, [false, false]),
        ] {
            assert_eq!([&read, &write].map(|hints| approve.asks(hints)), asked);
        }
    }
}
