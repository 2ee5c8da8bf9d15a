//! Hooks and approvals.

use super::*;
use CallOutcome::{Answered, Denied, Edited, NotRun, Ran};
use std::sync::Mutex;

/// Runs a turn of two calls in a round with `build`'s hooks; `read` handles the events.
fn turn(
    build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    mut read: impl FnMut(&AgentEvent),
) -> (Agent, AgentReply) {
    let engine = scripted_engine([
        said("multiply", 3, 5) + "\n" + &said("multiply", 2, 43),
        "Done.".to_owned(),
        "Hello!".to_owned(),
    ]);
    let config = ConversationConfig { template: Some(template()), ..ConversationConfig::default() };
    let builder = Agent::builder(&engine, multiplication()).config(config);
    let mut agent = build(builder).build().expect("an agent");
    let mut reply = None;
    for event in agent.stream("Go on.").expect("a turn") {
        let event = event.expect("an event");
        read(&event);
        if let AgentEvent::Finished(finished) = event {
            reply = Some(finished);
        }
    }
    (agent, reply.expect("a reply"))
}

fn results(reply: &AgentReply) -> Vec<String> {
    reply.steps.iter().map(|step| step.result.content.text()).collect()
}

fn outcomes(reply: &AgentReply) -> Vec<CallOutcome> {
    reply.steps.iter().map(|step| step.outcome.clone()).collect()
}

fn arguments(a: i64, b: i64) -> crate::Map<String, crate::Value> {
    json!({"a": a, "b": b}).as_object().cloned().expect("an object")
}

#[test]
fn hook_denies_answers_or_edits_a_call() {
    let decide = |request: &CallRequest<'_>| match request.call.arguments["a"].as_i64() {
        Some(3) => Decision::Edit(arguments(10, 10)),
        _ => Decision::Answer(json!({"product": 86})),
    };
    let (agent, reply) = turn(|agent| agent.before_call(decide), |_| {});
    assert_eq!(results(&reply), ["100", r#"{"product":86}"#]);
    assert_eq!(outcomes(&reply), [Edited { arguments: arguments(10, 10) }, Answered]);
    assert_eq!(reply.steps[0].arguments(), &arguments(10, 10));
    let history = agent.conversation().history();
    assert_eq!(history[1].tool_calls[0].arguments, arguments(3, 5), "the history has the model's call");
    let (_, reply) = turn(|agent| agent.before_call(|_| Decision::Deny("not today".to_owned())), |_| {});
    assert_eq!(outcomes(&reply), [Denied, Denied]);
    assert!(reply.steps.iter().all(|step| !step.asked));
    assert!(results(&reply)[0].contains("not today"), "{reply:?}");
    assert_eq!(reply.text(), "Done.");
}

#[test]
fn edited_arguments_are_validated_and_passed_on() {
    let edit =
        |_: &CallRequest<'_>| Decision::Edit(json!({"a": "three"}).as_object().cloned().expect("an object"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let look = move |request: &CallRequest<'_>| {
        log.lock().expect("no panic").push(request.call.arguments["a"].clone());
        Decision::Run
    };
    let (_, reply) = turn(|agent| agent.before_call(edit).before_call(look), |_| {});
    assert_eq!(*seen.lock().expect("no panic"), [json!("three"), json!("three")]);
    assert!(results(&reply)[0].contains("error"), "{reply:?}");
}

#[test]
fn hook_stops_the_turn_before_the_round() {
    let decide = |request: &CallRequest<'_>| match request.call.arguments["a"].as_i64() {
        Some(2) => Decision::Stop("enough".to_owned()),
        _ => Decision::Run,
    };
    let (mut agent, reply) = turn(|agent| agent.before_call(decide), |_| {});
    assert_eq!(reply.stop, StopReason::Hook { message: "enough".to_owned() });
    assert_eq!(outcomes(&reply), [NotRun, NotRun]);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Done.", "the next turn works");
}

#[test]
fn hook_replaces_a_result_and_stops_after_the_round() {
    let read = |step: &AgentStep| match step.result.content.text().as_str() {
        "15" => AfterCall::Replace(json!("fifteen")),
        _ => AfterCall::Stop("86 is too much".to_owned()),
    };
    let (agent, reply) = turn(|agent| agent.after_call(read), |_| {});
    assert_eq!(results(&reply), ["fifteen", "86"]);
    assert_eq!(reply.stop, StopReason::Hook { message: "86 is too much".to_owned() });
    assert_eq!(agent.conversation().history()[2], reply.steps[0].result);
}

#[test]
fn panicking_hook_stops_the_turn() {
    let (_, reply) = turn(|agent| agent.before_call(|_| panic!("a bug")), |_| {});
    assert_eq!(
        (&reply.stop, outcomes(&reply)),
        (&StopReason::Hook { message: "a hook panicked".to_owned() }, vec![NotRun, NotRun])
    );
    let (_, reply) = turn(|agent| agent.after_call(|_| panic!("a bug")), |_| {});
    assert_eq!((reply.steps.len(), outcomes(&reply)), (2, vec![Ran, Ran]));
}

#[test]
fn approval_allows_edits_and_denies_calls() {
    let answer = |event: &AgentEvent| {
        if let AgentEvent::Approval(request) = event {
            match request.call.arguments["a"].as_i64() {
                Some(3) => request.allow_with(arguments(7, 7)),
                _ => request.deny("no"),
            }
            request.allow(); // The first answer counts.
        }
    };
    let (_, reply) = turn(|agent| agent.approval(Approval::AskAll), answer);
    assert_eq!(outcomes(&reply), [Edited { arguments: arguments(7, 7) }, Denied]);
    assert_eq!(results(&reply)[0], "49");
    assert!(reply.steps.iter().all(|step| step.asked));
}

#[test]
fn approval_shows_arguments_after_earlier_hooks() {
    let mut shown = Vec::new();
    let answer = |event: &AgentEvent| {
        if let AgentEvent::Approval(request) = event {
            shown.push(request.call.arguments.clone());
            request.allow();
        }
    };
    let edit = |_: &CallRequest<'_>| Decision::Edit(arguments(10, 10));
    let (_, reply) = turn(|agent| agent.before_call(edit).approval(Approval::AskAll), answer);
    assert_eq!(shown, [arguments(10, 10), arguments(10, 10)]);
    assert_eq!(results(&reply), ["100", "100"]);
}

#[test]
fn approval_can_arrive_from_another_thread() {
    let (sender, requests) = std::sync::mpsc::channel::<ApprovalRequest>();
    let person = std::thread::spawn(move || requests.into_iter().map(|request| request.allow()).count());
    let ask = move |event: &AgentEvent| {
        if let AgentEvent::Approval(request) = event {
            sender.send(request.clone()).expect("a person");
        }
    };
    let (_, reply) = turn(|agent| agent.approval(Approval::AskDestructive), ask);
    assert_eq!((outcomes(&reply), person.join().expect("no panic")), (vec![Ran, Ran], 2));
}

#[test]
fn unapproved_calls_are_denied() {
    let (_, reply) = turn(|agent| agent.approval(Approval::AskAll), |_| {});
    assert_eq!(outcomes(&reply), [Denied, Denied]);
    assert!(results(&reply)[0].contains("nobody answered"), "{reply:?}");
}

#[test]
fn approval_request_ends_with_its_turn() {
    let mut agent = agent([said("multiply", 3, 5), "Hello!".to_owned()]);
    agent.settings.hooks = vec![Arc::new(Approval::AskAll)];
    let mut turn = agent.stream("3 times 5?").expect("a turn");
    let request = turn.find_map(|event| match event {
        Ok(AgentEvent::Approval(request)) => Some(request),
        _ => None,
    });
    turn.canceller().cancel();
    assert!(matches!(turn.next(), Some(Err(Error::Cancelled))));
    request.expect("a request").allow();
    assert_eq!(roles(&agent), [], "no call ran");
}

#[test]
fn approval_request_ends_at_the_time_limit() {
    for expected in [StopReason::TimeLimit, StopReason::RoundTimeLimit] {
        let (held, stop) = super::limits::with_enough_time(|time| {
            let mut agent = agent([said("multiply", 3, 5)]);
            agent.settings.hooks = vec![Arc::new(Approval::AskAll)];
            match expected {
                StopReason::TimeLimit => agent.settings.limits.timeout = Some(time),
                _ => agent.settings.limits.round_timeout = Some(time),
            }
            let mut held = Vec::new();
            let mut stop = None;
            for event in agent.stream("3 times 5?").expect("a turn") {
                match event.expect("an event") {
                    AgentEvent::Approval(request) => held.push(request),
                    AgentEvent::Finished(reply) => stop = Some((reply.stop.clone(), outcomes(&reply))),
                    _ => {}
                }
            }
            (!held.is_empty()).then_some((held, stop))
        });
        assert_eq!((held.len(), stop), (1, Some((expected, vec![NotRun]))));
    }
}

#[test]
fn policies_use_tool_annotations() {
    let annotations =
        |read_only, destructive| crate::ToolAnnotations { read_only, destructive, ..Default::default() };
    let call = ToolCall::new("x", Default::default());
    let decide = |policy: Approval, annotations: &crate::ToolAnnotations| {
        policy.before_call(&CallRequest { call: &call, annotations, round: 0 })
    };
    let (reads, adds, unknown) =
        (annotations(Some(true), None), annotations(None, Some(false)), annotations(None, None));
    for annotations in [&reads, &adds, &unknown] {
        assert_eq!(decide(Approval::All, annotations), Decision::Run);
        assert_eq!(decide(Approval::AskAll, annotations), Decision::Ask);
    }
    assert_eq!(decide(Approval::ReadOnly, &reads), Decision::Run);
    assert!(matches!(decide(Approval::ReadOnly, &adds), Decision::Deny(_)));
    let asks = [&reads, &adds, &unknown].map(|annotations| decide(Approval::AskDestructive, annotations));
    assert_eq!(asks, [Decision::Run, Decision::Run, Decision::Ask]);
}

#[test]
fn step_records_the_call_outcome() {
    let replies = [said("divide", 1, 1) + "\n" + &said("multiply", 3, 5), "15.".to_owned()];
    let reply = configured(ConstrainCalls::No, multiplication(), replies).run("Go on.").expect("an answer");
    let ends: Vec<_> = reply.steps.iter().map(|step| (step.error, step.attempts)).collect();
    assert_eq!(ends, [(Some(crate::ToolErrorKind::UnknownTool), 0), (None, 1)]);
}

#[test]
fn progress_event_has_the_call_index() {
    let spec = crate::ToolSpec::new("multiply", "Report.", json!({"type": "object"}));
    let tools = Toolset::new().with_async_fn(spec, async |_, context: crate::CallContext| {
        context.progress("half");
        Ok(15.into())
    });
    let replies = [said("multiply", 3, 5) + "\n" + &said("multiply", 2, 43), "15.".to_owned()];
    let mut agent = configured(ConstrainCalls::No, tools.expect("one tool"), replies);
    // The first call does not run: the toolset has the second one only.
    let deny = |request: &CallRequest<'_>| match request.call.arguments["a"].as_i64() {
        Some(3) => Decision::Deny("no".to_owned()),
        _ => Decision::Run,
    };
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(deny)));
    let progress = agent.stream("Go on.").expect("a turn").find_map(|event| match event {
        Ok(AgentEvent::ToolProgress { index, progress }) => Some((index, progress)),
        _ => None,
    });
    assert_eq!(progress, Some((1, json!("half"))));
}

#[test]
fn retry_event_has_the_call_index() {
    let spec = crate::ToolSpec::new("multiply", "Fail once.", json!({"type": "object"}));
    let has_failed = std::sync::atomic::AtomicBool::new(false);
    let fail_once = move |_| match has_failed.swap(true, Ordering::SeqCst) {
        false => Err(crate::ToolError::failed("busy").with_retry(crate::Retry::Always)),
        true => Ok(86.into()),
    };
    let backoff = std::time::Duration::from_millis(1);
    let retries = crate::RetryPolicy { max_retries: 1, backoff, max_backoff: backoff };
    let limits = CallLimits { retries, ..CallLimits::default() };
    let tools = Toolset::new().with_limits(limits).with_fn(spec, fail_once).expect("one tool");
    let mut agent =
        agent_with(tools, [said("multiply", 3, 5) + "\n" + &said("multiply", 2, 43), "86.".to_owned()]);
    // The first call does not run: the toolset has the second one only.
    let deny = |request: &CallRequest<'_>| match request.call.arguments["a"].as_i64() {
        Some(3) => Decision::Deny("no".to_owned()),
        _ => Decision::Run,
    };
    agent.settings.hooks.push(Arc::new(super::super::hooks::BeforeCall(deny)));
    let retry = agent.stream("Go on.").expect("a turn").find_map(|event| match event {
        Ok(AgentEvent::ToolRetry { index, attempt, .. }) => Some((index, attempt)),
        _ => None,
    });
    assert_eq!(retry, Some((1, 1)));
}
