//! Steps as data: serialised, replayed, logged.

use super::*;
use std::io::Write;
use std::sync::Mutex;

fn script() -> [String; 2] {
    [said("multiply", 3, 5) + "\n" + &said("multiply", 2, 43), "15 and 86.".to_owned()]
}

fn hooked(hook: impl Hook + 'static, tools: Toolset) -> Agent {
    let mut agent = agent_with(tools, script());
    agent.settings.hooks.push(Arc::new(hook));
    agent
}

/// The tool, which must not run.
fn unreachable() -> Toolset {
    let spec = crate::Tool::spec(&multiply::tool());
    Toolset::new().with_fn(spec, |_| panic!("nothing runs")).expect("one tool")
}

/// Bytes that a log and a test share; a writer of these many lines, then of none.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>, Option<usize>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.0.lock().expect("no panic");
        let written = lines.iter().filter(|byte| **byte == b'\n').count();
        if self.1.is_some_and(|max| written >= max) {
            return Err(std::io::Error::other("the disk is full"));
        }
        lines.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn entries(&self) -> Vec<AuditEntry> {
        let lines = self.0.lock().expect("no panic").clone();
        let text = String::from_utf8(lines).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("an entry")).collect()
    }
}

#[test]
fn reply_round_trips_as_json() {
    let reply = agent(script()).run("Go on.").expect("an answer");
    let text = serde_json::to_string(&reply).expect("JSON");
    assert_eq!(serde_json::from_str::<AgentReply>(&text).expect("a reply"), reply);
    assert!(
        text.contains(r#""stop":{"reason":"answered"}"#) && text.contains(r#""outcome":"ran""#),
        "{text}"
    );
    assert_eq!(
        reply.usage().output_tokens,
        reply.finished.iter().map(|one| one.usage.output_tokens).sum::<usize>()
    );
}

#[test]
fn recorded_steps_are_replayed_without_running() {
    let recorded = agent(script()).run("Go on.").expect("an answer");
    let replay = Arc::new(Replay::new(recorded.steps.clone()));
    let again = hooked(replay.clone(), unreachable()).run("Go on.").expect("an answer");
    assert_eq!(again.message, recorded.message);
    let results = |reply: &AgentReply| reply.steps.iter().map(|step| step.result.clone()).collect::<Vec<_>>();
    assert_eq!(results(&again), results(&recorded));
    assert_eq!(replay.remaining(), 0);
}

#[test]
fn turn_diverging_from_its_record_stops() {
    let mut steps = agent(script()).run("Go on.").expect("an answer").steps;
    let fewer = Replay::new(steps.clone().into_iter().take(1));
    let reply = hooked(fewer, unreachable()).run("Go on.").expect("a reply");
    assert!(reply.stop.to_string().contains("no further call"), "{}", reply.stop);
    steps[1].call.arguments.insert("a".to_owned(), json!(7));
    let reply = hooked(Replay::new(steps), unreachable()).run("Go on.").expect("a reply");
    let stop = reply.stop.to_string();
    assert!(stop.contains(r#"multiply({"a":7,"b":43}), the model calls multiply({"a":2,"b":43})"#), "{stop}");
}

#[test]
fn later_round_call_is_not_replayed_early() {
    let rounds = [said("multiply", 3, 5), said("multiply", 2, 43), "Done.".to_owned()];
    let steps = agent(rounds).run("Go on.").expect("an answer").steps;
    let replay = Arc::new(Replay::new(steps));
    let mut agent = agent_with(unreachable(), [said("multiply", 2, 43), "Done.".to_owned()]);
    agent.settings.hooks.push(replay.clone());
    let stop = agent.run("Go on.").expect("a reply").stop.to_string();
    assert!(stop.contains(r#"multiply({"a":3,"b":5}), the model calls multiply({"a":2,"b":43})"#), "{stop}");
    assert_eq!(replay.remaining(), 2);
}

#[test]
fn every_call_is_in_the_audit_log_once() {
    let lines = Lines::default();
    let mut agent = hooked(Audit::new(lines.clone()), multiplication());
    agent.settings.hooks.push(Arc::new(Approval::ReadOnly));
    agent.run("Go on.").expect("an answer");
    let denied = lines.entries();
    assert_eq!(denied.len(), 2);
    assert!(denied.iter().all(|entry| entry.outcome == CallOutcome::Denied && entry.elapsed_ms == 0));
    let lines = Lines::default();
    hooked(Audit::new(lines.clone()), multiplication()).run("Go on.").expect("an answer");
    let entries = lines.entries();
    let ran: Vec<_> = entries.iter().map(|entry| (&entry.arguments["b"], entry.result_bytes)).collect();
    assert_eq!(ran, [(&json!(5), 2), (&json!(43), 2)]);
    // SHA-256 of `15`.
    let hash = "e629fa6598d732768f7c726b4b621285f9c3b85303900aa912017db7617d8bdb";
    assert_eq!(entries[0].result_sha256, hash);
    assert!(entries[0].id.is_some() && entries[0].id != entries[1].id);
}

#[test]
fn audit_log_line_is_flushed_with_its_call() {
    let lines = Lines::default();
    let mut agent = hooked(Audit::new(std::io::BufWriter::new(lines.clone())), multiplication());
    let mut written = Vec::new();
    for event in agent.stream("Go on.").expect("a turn") {
        if let AgentEvent::ToolResult(_) = event.expect("an event") {
            written.push(lines.entries().len());
        }
    }
    assert_eq!(written, [1, 2]);
}

#[test]
fn truncated_audit_line_is_not_joined_with_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.jsonl");
    let run = || {
        let audit = Audit::append(&path).expect("a log");
        hooked(audit, multiplication()).run("Go on.").expect("an answer");
        std::fs::read_to_string(&path).expect("text")
    };
    let whole = run();
    assert_eq!(whole.lines().count(), 2);
    std::fs::write(&path, &whole[..whole.len() - 5]).expect("is cut");
    let text = run();
    let entries = text.lines().map(serde_json::from_str::<AuditEntry>);
    let are_whole: Vec<_> = entries.map(|entry| entry.is_ok()).collect();
    assert_eq!(are_whole, [true, false, true, true], "{text}");
    assert_eq!(run().lines().count(), 6, "no line is empty");
}

#[test]
fn audit_log_marks_calls_that_needed_approval() {
    let lines = Lines::default();
    let mut agent = hooked(Audit::new(lines.clone()), multiplication());
    let ask = |request: &CallRequest<'_>| match request.call.arguments["a"].as_i64() {
        Some(3) => Decision::Ask,
        _ => Decision::Run,
    };
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(ask)));
    for event in agent.stream("Go on.").expect("a turn") {
        if let AgentEvent::Approval(request) = event.expect("an event") {
            request.allow();
        }
    }
    let asked: Vec<_> = lines.entries().into_iter().map(|entry| (entry.asked, entry.outcome)).collect();
    assert_eq!(asked, [(true, CallOutcome::Ran), (false, CallOutcome::Ran)]);
}

/// Tools that run when they are started: a product, or nothing ever if the first factor is 2.
fn immediate() -> Toolset {
    let run = async |arguments: crate::Map<String, crate::Value>, _| match arguments["a"].as_i64() {
        Some(2) => std::future::pending().await,
        _ => Ok(15.into()),
    };
    let poll = |mut future: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if future.as_mut().poll(&mut context).is_pending() {
            std::mem::forget(future); // A runtime that is slow.
        }
    };
    let spec = crate::ToolSpec::new("multiply", "Multiply.", json!({"type": "object"}));
    Toolset::new().with_spawner(poll).with_async_fn(spec, run).expect("one tool")
}

#[test]
fn dropped_turn_keeps_available_results() {
    let lines = Lines::default();
    let round = [said("multiply", 3, 5), said("multiply", 5, 3), said("multiply", 2, 43)].join("\n");
    let mut agent = agent_with(immediate(), [round]);
    agent.settings.hooks.push(Arc::new(Audit::new(lines.clone())));
    let mut turn = agent.stream("Go on.").expect("a turn");
    assert!(turn.any(|event| matches!(event, Ok(AgentEvent::ToolResult(_)))));
    drop(turn);
    let outcomes: Vec<_> = lines.entries().into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Ran, CallOutcome::Ran, CallOutcome::Abandoned]);
    let history = agent.conversation().history();
    assert_eq!((history.len(), history[3].content.text().as_str()), (5, "15"));
}

#[test]
fn hooks_do_not_run_for_a_turn_dropped_before_its_calls() {
    let mut agent = agent(script());
    agent
        .settings
        .hooks
        .push(Arc::new(super::super::hooks::BeforeCall(|_: &CallRequest<'_>| panic!("not asked"))));
    let mut turn = agent.stream("Go on.").expect("a turn");
    assert!(turn.any(|event| matches!(event, Ok(AgentEvent::ReplyFinished(_)))));
    drop(turn);
    assert_eq!(roles(&agent), []);
}

#[test]
fn calls_stop_after_a_lost_audit_line() {
    let audit = Audit::new(Lines(Arc::default(), Some(1)));
    let replies = [said("multiply", 3, 5), said("multiply", 2, 43), said("multiply", 1, 1)];
    let mut agent = agent(replies);
    agent.settings.hooks.push(Arc::new(audit));
    let reply = agent.turn("Go on.").limits(AgentLimits::default()).run().expect("a reply");
    let outcomes: Vec<_> = reply.steps.iter().map(|step| step.outcome.clone()).collect();
    assert_eq!(outcomes, [CallOutcome::Ran, CallOutcome::Ran, CallOutcome::NotRun]);
    assert!(reply.stop.to_string().contains("the disk is full"), "{}", reply.stop);
}

/// A log that loses its first line.
struct Interrupted(Lines, bool);

impl Write for Interrupted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match std::mem::replace(&mut self.1, false) {
            true => Err(std::io::Error::other("the disk is full")),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn lost_audit_line_is_remembered_after_the_next_write() {
    let lines = Lines::default();
    let [two, _] = script();
    let mut agent = agent([two, said("multiply", 1, 1)]);
    agent.settings.hooks.push(Arc::new(Audit::new(Interrupted(lines.clone(), true))));
    let reply = agent.run("Go on.").expect("a reply");
    let outcomes: Vec<_> = reply.steps.iter().map(|step| step.outcome.clone()).collect();
    assert_eq!(outcomes, [CallOutcome::Ran, CallOutcome::Ran, CallOutcome::NotRun]);
    assert!(reply.stop.to_string().contains("the disk is full"), "{}", reply.stop);
    assert_eq!(lines.entries().len(), 2);
}
