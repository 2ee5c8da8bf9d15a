//! Limits of a turn, and the tool choice of its replies.

use super::*;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn limited(limits: AgentLimits, replies: impl IntoIterator<Item = String>) -> AgentReply {
    let mut agent = agent(replies);
    let reply = agent.turn("Go on.").limits(limits).run().expect("a reply");
    let calls = agent.conversation().history().iter().map(|message| message.tool_calls.len()).sum::<usize>();
    let results = roles(&agent).iter().filter(|role| **role == Role::Tool).count();
    assert_eq!(calls, results, "each call has one result");
    assert_eq!(results, reply.steps.len());
    reply
}

fn outcomes(reply: &AgentReply) -> Vec<CallOutcome> {
    reply.steps.iter().map(|step| step.outcome.clone()).collect()
}

use CallOutcome::{NotRun, Ran, Repeated};

#[test]
fn calls_per_turn_are_limited() {
    let limits = AgentLimits { max_calls: Some(3), ..AgentLimits::default() };
    let two = |a| said("multiply", a, 2) + "\n" + &said("multiply", a, 4);
    let reply = limited(limits, [two(1), two(2), "Never.".to_owned()]);
    assert_eq!(reply.stop, StopReason::CallLimit { max_calls: 3 });
    assert_eq!(outcomes(&reply), [Ran, Ran, Ran, NotRun]);
}

#[test]
fn identical_calls_are_limited_and_others_run() {
    let limits = AgentLimits { max_identical_calls: Some(1), ..AgentLimits::default() };
    let again = said("multiply", 1, 2) + "\n" + &said("multiply", 2, 1);
    let reply = limited(limits, [said("multiply", 1, 2), again]);
    assert_eq!(reply.stop, StopReason::RepeatedCall { name: "multiply".to_owned(), max_identical_calls: 1 });
    assert_eq!(outcomes(&reply), [Ran, NotRun, Ran]);
}

#[test]
fn first_exceeded_limit_is_the_stop_reason() {
    let limits = AgentLimits { max_calls: Some(2), max_identical_calls: Some(1), ..AgentLimits::default() };
    let calls = [(1, 2), (3, 4), (5, 6)].map(|(a, b)| said("multiply", a, b));
    let reply = limited(limits, [said("multiply", 1, 2), calls.join("\n"), "Never.".to_owned()]);
    assert_eq!(reply.stop, StopReason::RepeatedCall { name: "multiply".to_owned(), max_identical_calls: 1 });
    assert_eq!(outcomes(&reply), [Ran, NotRun, Ran, NotRun]);
}

#[test]
fn model_can_answer_at_a_limit() {
    let limits = AgentLimits { max_rounds: 1, at_limit: AtLimit::Answer, ..AgentLimits::default() };
    let reply = limited(limits, [said("multiply", 1, 2), "It is 2.".to_owned()]);
    assert_eq!((reply.stop.clone(), reply.text().as_str()), (StopReason::Answered, "It is 2."));
    let limits = AgentLimits { max_calls: Some(0), at_limit: AtLimit::Answer, ..AgentLimits::default() };
    let reply = limited(limits, [said("multiply", 1, 2), "I cannot tell.".to_owned()]);
    assert_eq!((outcomes(&reply), reply.text().as_str()), (vec![NotRun], "I cannot tell."));
}

#[test]
fn reply_after_the_last_round_cannot_call() {
    let limits = AgentLimits { max_rounds: 1, at_limit: AtLimit::Answer, ..AgentLimits::default() };
    let reply = limited(limits, [said("multiply", 1, 2), said("multiply", 3, 4)]);
    // Where no call is allowed, the markup of one is text.
    assert_eq!((&reply.stop, outcomes(&reply)), (&StopReason::Answered, vec![Ran]));
}

#[test]
fn tokens_per_turn_are_limited() {
    let limits = AgentLimits { max_output_tokens: Some(5), ..AgentLimits::default() };
    let reply = limited(limits, ["Once upon a time there was a very long story.".to_owned()]);
    assert_eq!(reply.stop, StopReason::TokenLimit { max_output_tokens: 5 });
    assert_eq!(reply.usage().output_tokens, 5);
    assert!(!reply.text().is_empty());
}

#[test]
fn smaller_of_reply_and_turn_token_limits_applies() {
    let story = "Once upon a time there was a very long story.";
    let of_turn = StopReason::TokenLimit { max_output_tokens: 5 };
    for (of_reply, max_output_tokens, stop) in [(5, 1_000, StopReason::Answered), (1_000, 5, of_turn)] {
        let options = TurnOptions { max_output_tokens: Some(of_reply), ..TurnOptions::default() };
        let limits = AgentLimits { max_output_tokens: Some(max_output_tokens), ..AgentLimits::default() };
        let reply = agent([story]).turn("Go on.").options(options).limits(limits).run().expect("a reply");
        assert_eq!((reply.usage().output_tokens, reply.stop), (5, stop));
    }
}

#[test]
fn known_text_of_a_continued_reply_is_not_recounted() {
    let continued = |max_output_tokens| {
        let text = format!("Let me work that out for you now.{}", said("multiply", 3, 5));
        let mut agent = agent([text, "It is 15, as far as I can tell.".to_owned()]);
        let short = TurnOptions { max_output_tokens: Some(5), ..TurnOptions::default() };
        agent.run_with("3 times 5?", short).expect("a reply");
        agent.settings.limits.max_output_tokens = max_output_tokens;
        let turn = agent.continue_reply(TurnOptions::default()).expect("a turn");
        turn.into_reply().expect("a reply")
    };
    let usage = continued(None).usage();
    assert_eq!(usage.continued_tokens, 5);
    let new = usage.output_tokens - usage.continued_tokens;
    assert_eq!(continued(Some(new)).stop, StopReason::Answered);
    let cut = continued(Some(new - 2));
    assert_eq!(cut.stop, StopReason::TokenLimit { max_output_tokens: new - 2 });
}

#[test]
fn answer_at_the_exact_token_limit_is_complete() {
    let tokens = limited(AgentLimits::default(), ["Hello!".to_owned()]).usage().output_tokens;
    let limits = AgentLimits { max_output_tokens: Some(tokens), ..AgentLimits::default() };
    assert_eq!(limited(limits, ["Hello!".to_owned()]).stop, StopReason::Answered);
}

#[test]
fn calls_of_a_reply_at_the_token_limit_run() {
    let tokens = limited(AgentLimits::default(), [said("multiply", 1, 2)]).finished[0].usage.output_tokens;
    let limits = AgentLimits { max_output_tokens: Some(tokens), ..AgentLimits::default() };
    let reply = limited(limits, [said("multiply", 1, 2), "Never.".to_owned()]);
    assert_eq!(reply.stop, StopReason::TokenLimit { max_output_tokens: tokens });
    assert_eq!(outcomes(&reply), [Ran]);
}

#[test]
fn missing_required_call_at_the_limit_keeps_finished_calls() {
    let tokens = limited(AgentLimits::default(), [said("multiply", 1, 2)]).finished[0].usage.output_tokens;
    let limits = AgentLimits { max_output_tokens: Some(tokens + 1), ..AgentLimits::default() };
    let mut agent = agent([said("multiply", 1, 2), said("multiply", 3, 4)]);
    agent.settings.tool_choices = ToolChoices::with(|_, _| ToolChoice::Required);
    let reply = agent.turn("Go on.").limits(limits).run().expect("a reply");
    assert_eq!(reply.stop, StopReason::TokenLimit { max_output_tokens: tokens + 1 });
    assert_eq!((outcomes(&reply), roles(&agent)), (vec![Ran], vec![Role::User, Role::Assistant, Role::Tool]));
}

#[test]
fn zero_token_turn_is_empty() {
    let limits = AgentLimits { max_output_tokens: Some(0), ..AgentLimits::default() };
    let reply = limited(limits, ["Never.".to_owned()]);
    assert_eq!(
        (reply.stop.clone(), reply.text()),
        (StopReason::TokenLimit { max_output_tokens: 0 }, String::new())
    );
}

/// Runs a turn with longer and longer time limits, until it gets far enough within one: on a busy machine the
/// model needs longer for its reply. `turn` returns `None` for a turn that did not.
pub(super) fn with_enough_time<T>(turn: impl Fn(Duration) -> Option<T>) -> T {
    (0..12).map(|doublings| Duration::from_millis(50 << doublings)).find_map(turn).expect("enough time")
}

#[test]
fn late_turn_keeps_finished_calls() {
    let (agent, reply) = with_enough_time(|timeout| {
        let limits = AgentLimits { timeout: Some(timeout), ..AgentLimits::default() };
        let wait = crate::ToolSpec::new("multiply", "Wait.", json!({"type": "object"}));
        let started = Arc::new(AtomicBool::new(false));
        let begins = started.clone();
        let run = move |_, _| {
            begins.store(true, Ordering::SeqCst);
            std::future::pending()
        };
        let tools = Toolset::new().with_async_fn(wait, run).expect("one tool");
        let mut agent = agent_with(tools, [said("multiply", 1, 2), "Never.".to_owned()]);
        let reply = agent.turn("Go on.").limits(limits).run().expect("a reply");
        assert_eq!(reply.stop, StopReason::TimeLimit);
        started.load(Ordering::SeqCst).then_some((agent, reply))
    });
    assert_eq!(reply.steps.len(), 1);
    assert!(reply.steps[0].result.content.text().contains("may still take effect"), "{:?}", reply.steps[0]);
    assert_eq!(roles(&agent), [Role::User, Role::Assistant, Role::Tool]);
}

#[test]
fn earlier_of_deadline_and_turn_time_limit_applies() {
    let hour = Duration::from_secs(3600);
    for (deadline, timeout) in [(Duration::ZERO, hour), (hour, Duration::ZERO)] {
        let options = TurnOptions { deadline: Some(Instant::now() + deadline), ..TurnOptions::default() };
        let limits = AgentLimits { timeout: Some(timeout), ..AgentLimits::default() };
        let mut agent = agent(["Never."]);
        let reply = agent.turn("Hi!").options(options).limits(limits).run().expect("a reply");
        assert_eq!((reply.stop, roles(&agent)), (StopReason::TimeLimit, vec![]), "{deadline:?} {timeout:?}");
    }
}

#[test]
fn each_reply_has_its_own_time_limit() {
    let wait = || {
        let wait = crate::ToolSpec::new("multiply", "Wait.", json!({"type": "object"}));
        let run = |arguments: crate::Map<String, crate::Value>, _| async move {
            if arguments["a"] == 3 { std::future::pending().await } else { Ok("waited".into()) }
        };
        Toolset::new().with_async_fn(wait, run).expect("one tool")
    };
    let limits = |round_timeout| AgentLimits { round_timeout: Some(round_timeout), ..AgentLimits::default() };
    let replies = || [said("multiply", 1, 2), said("multiply", 3, 4), "Never.".to_owned()];
    let reply = with_enough_time(|timeout| {
        let mut agent = agent_with(wait(), replies());
        let reply = agent.turn("Go on.").limits(limits(timeout)).run().expect("a reply");
        assert_eq!(reply.stop, StopReason::RoundTimeLimit);
        (reply.steps.len() == 2).then_some(reply)
    });
    assert_eq!(outcomes(&reply), [Ran, Ran]);
    assert_eq!(reply.steps[0].result.content.text(), "waited");
    assert_eq!(reply.steps[1].error, Some(crate::ToolErrorKind::TimedOut));

    let mut agent = agent(["Never.", "Hello!"]);
    let reply = agent.turn("Hi!").limits(limits(Duration::ZERO)).run().expect("a reply");
    assert_eq!((reply.stop, roles(&agent)), (StopReason::RoundTimeLimit, vec![]));
    let both = AgentLimits { timeout: Some(Duration::ZERO), ..limits(Duration::ZERO) };
    let reply = agent.turn("Hi!").limits(both).run().expect("a reply");
    assert_eq!(reply.stop, StopReason::TimeLimit, "the limit of the turn comes first");
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Never.");
}

#[test]
fn round_time_restarts_with_each_reply() {
    let reply = with_enough_time(|timeout| {
        let slow = crate::ToolSpec::new("multiply", "Sleep.", json!({"type": "object"}));
        let sleep = move |_| {
            std::thread::sleep(timeout / 2); // Three of them are longer than the limit.
            Ok("slept".into())
        };
        let tools = Toolset::new().with_fn(slow, sleep).expect("one tool");
        let calls = [said("multiply", 1, 2), said("multiply", 3, 4), said("multiply", 5, 6)];
        let mut agent = agent_with(tools, calls.into_iter().chain(["Done.".to_owned()]));
        let limits = AgentLimits { round_timeout: Some(timeout), ..AgentLimits::default() };
        let reply = agent.turn("Go on.").limits(limits).run().expect("a reply");
        (reply.stop == StopReason::Answered).then_some(reply)
    });
    assert_eq!(outcomes(&reply), [Ran, Ran, Ran]);
}

#[test]
fn zero_time_turn_ends_before_its_first_token() {
    let limits = AgentLimits { timeout: Some(Duration::ZERO), ..AgentLimits::default() };
    let mut agent = agent(["Hello!", "Hello!"]);
    let reply = agent.turn("Hi!").limits(limits).run().expect("a reply");
    assert_eq!((reply.stop, reply.steps.len()), (StopReason::TimeLimit, 0));
    assert_eq!(roles(&agent), []);
    assert_eq!(agent.run("Hi!").expect("an answer").text(), "Hello!");
}

#[test]
fn each_reply_can_have_its_own_tool_choice() {
    let mut asked = Vec::new();
    for choices in [
        ToolChoices::Sequence(vec![
            ToolChoice::Auto,
            ToolChoice::Named("multiply".to_owned()),
            ToolChoice::None,
        ]),
        ToolChoices::with(|reply, steps| {
            if reply < 2 {
                assert_eq!(steps.len(), reply);
                ToolChoice::Auto
            } else {
                ToolChoice::None
            }
        }),
    ] {
        // Where no call is allowed, the markup of one is text.
        let replies = [said("multiply", 1, 2), said("multiply", 3, 4), said("multiply", 5, 6)];
        let mut agent = agent(replies);
        agent.settings.tool_choices = choices;
        let reply = agent.run("Go on.").expect("a reply");
        asked.push((reply.steps.len(), reply.stop));
    }
    assert_eq!(asked, [(2, StopReason::Answered), (2, StopReason::Answered)]);
}

#[test]
fn context_filling_results_end_the_turn() {
    let spec = crate::ToolSpec::new("multiply", "Write.", json!({"type": "object"}));
    let tools = Toolset::new().with_fn(spec, |_| Ok("word ".repeat(8_000).into())).expect("one tool");
    let mut agent = agent_with(tools, [said("multiply", 1, 2), "Never.".to_owned()]);
    let reply = agent.run("Go on.").expect("a reply");
    assert!(matches!(reply.stop, StopReason::ContextFull { context_tokens: 4096, .. }), "{:?}", reply.stop);
    assert_eq!((reply.steps.len(), roles(&agent)), (1, vec![Role::User, Role::Assistant, Role::Tool]));
    let long = agent.run("word ".repeat(8_000));
    assert!(matches!(long, Err(Error::Conversation(_))), "a question that is too long is an error: {long:?}");
}

#[test]
fn repeated_call_is_answered_from_its_result() {
    let again = || said("multiply", 1, 2);
    let reply = limited(AgentLimits::default(), [again(), again(), "It is 2.".to_owned()]);
    assert_eq!(outcomes(&reply), [Ran, Repeated]);
    assert_eq!((&reply.stop, reply.text().as_str()), (&StopReason::Answered, "It is 2."));
    let told = reply.steps[1].result.content.text();
    assert_eq!(told, "2\nNow answer the question in words. Do not call a function.");
    // The reply after a repeat cannot call.
    let reply = limited(AgentLimits::default(), [again(), again(), again(), "Never.".to_owned()]);
    assert_eq!((reply.stop.clone(), outcomes(&reply)), (StopReason::Answered, vec![Ran, Repeated]));
}

#[test]
fn call_after_another_one_is_no_repeat() {
    let calls = [said("multiply", 1, 2), said("multiply", 3, 4), said("multiply", 1, 2)];
    let reply = limited(AgentLimits::default(), calls.into_iter().chain(["It is 2.".to_owned()]));
    assert_eq!(outcomes(&reply), [Ran, Ran, Ran]);
}

#[test]
fn new_calls_beside_a_repeat_run_and_more_may_follow() {
    let both = said("multiply", 1, 2) + "\n" + &said("multiply", 3, 4);
    let replies = [said("multiply", 1, 2), both, said("multiply", 5, 6), "It is 30.".to_owned()];
    let reply = limited(AgentLimits::default(), replies);
    assert_eq!(outcomes(&reply), [Ran, Repeated, Ran, Ran]);
    assert_eq!(reply.text(), "It is 30.");
}

#[test]
fn failed_call_is_tried_once_more() {
    let broken = || said("divide", 1, 0);
    let replies = [broken(), broken(), broken(), "It does not work.".to_owned()];
    let tools = Toolset::new().with(divide::tool()).expect("one tool");
    let limits = AgentLimits::default();
    let reply = agent_with(tools, replies).turn("Go on.").limits(limits).run().expect("a reply");
    assert_eq!(outcomes(&reply), [Ran, Ran, Repeated]);
    let told: Vec<_> = reply.steps.iter().map(|step| step.result.content.text()).collect();
    assert_eq!(told.iter().map(|text| text.matches("Now answer").count()).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!(told[2], told[1]);
    assert_eq!(reply.steps[2].error, reply.steps[1].error);
    assert_eq!(reply.text(), "It does not work.");
}

#[test]
fn repeated_calls_run_where_the_limits_say_so() {
    let again = || said("multiply", 1, 2);
    let replies = || [again(), again(), again(), "It is 2.".to_owned()];
    let run = AgentLimits { on_repeat: OnRepeat::Run, ..AgentLimits::default() };
    assert_eq!(outcomes(&limited(run, replies())), [Ran, Ran, Ran]);
    let counted = AgentLimits { max_identical_calls: Some(3), ..AgentLimits::default() };
    assert_eq!(outcomes(&limited(counted, replies())), [Ran, Ran, Ran]);
}

#[test]
fn complete_call_before_a_cut_one_runs() {
    let two = format!("{}\n{}", said("multiply", 1, 2), said("multiply", 3, 4));
    let all = limited(AgentLimits::default(), [two.clone(), "2 and 12.".to_owned()]).finished[0]
        .usage
        .output_tokens;
    let short = TurnOptions { max_output_tokens: Some(all - 4), ..TurnOptions::default() };
    let mut agent = agent([two, "2.".to_owned()]);
    let reply = agent.run_with("Go on.", short).expect("a reply");
    assert_eq!((outcomes(&reply), &reply.stop), (vec![Ran], &StopReason::Answered));
    assert_eq!(reply.text(), "2.");
}
