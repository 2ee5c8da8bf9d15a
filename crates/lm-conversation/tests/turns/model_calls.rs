//! Calls as the model means them: repeats, calls without markers, reasoning that the model does not have.

use lm_conversation::{
    ConstrainCalls, ConversationConfig, ConversationEvent, Error, FinishReason, Message, PromptTemplate,
    Reply, ResponseFormat, ToolChoice, TurnOptions, UnmarkedCalls,
};
use serde_json::json;

use crate::turns::fixture::{CALL, config, conversation, weather};

/// A call of another city.
fn of(city: &str) -> String {
    CALL.replace("Paris", city)
}

/// Events and reply of a turn.
fn run(config: ConversationConfig, reply: &str, options: TurnOptions) -> (Vec<ConversationEvent>, Reply) {
    let (mut conversation, _) = conversation(config, [reply]);
    let events: Result<Vec<_>, Error> = conversation.stream("Go.", options).expect("a turn").collect();
    let events = events.expect("a reply");
    let Some(ConversationEvent::Finished(reply)) = events.last().cloned() else { panic!("{events:?}") };
    assert_eq!(conversation.history(), [Message::user("Go."), reply.message.clone()]);
    (events, reply)
}

fn cities(reply: &Reply) -> Vec<&str> {
    reply.tool_calls().iter().filter_map(|call| call.arguments["location"].as_str()).collect()
}

#[test]
fn identical_call_ends_the_reply_before_it() {
    for constrain_calls in [ConstrainCalls::Yes, ConstrainCalls::No] {
        for tool_choice in [ToolChoice::Auto, ToolChoice::Required] {
            let config = ConversationConfig { constrain_calls, ..config().with_preface(weather()) };
            let script = [of("Paris"), of("Parma"), of("Paris"), of("Rome")].join("\n");
            let options = TurnOptions { tool_choice: tool_choice.clone(), ..TurnOptions::default() };
            let (events, reply) = run(config, &script, options);
            assert_eq!(cities(&reply), ["Paris", "Parma"], "{constrain_calls:?} {tool_choice:?}");
            assert_eq!(reply.finish.reason, FinishReason::EndToken);
            let started =
                events.iter().filter(|event| matches!(event, ConversationEvent::ToolCallStarted { .. }));
            assert_eq!(started.count(), 2, "the repeat was announced");
            let arguments = events.iter().filter_map(|event| match event {
                ConversationEvent::ToolCallArguments { index: 1, fragment } => Some(fragment.as_str()),
                _ => None,
            });
            assert_eq!(arguments.collect::<String>(), r#"{"location": "Parma"}"#);
        }
    }
}

#[test]
fn reply_that_is_one_json_call_is_a_call() {
    let bare = r#"{"name": "get_weather", "arguments": {"location": "Paris"}}"#;
    for reply in [bare.to_owned(), format!("```json\n{bare}\n```")] {
        let config = || config().with_preface(weather());
        let (events, read) = run(config(), &reply, TurnOptions::default());
        assert_eq!((cities(&read), read.text().as_str()), (vec!["Paris"], ""));
        assert!(read.tool_calls()[0].id.is_some());
        assert!(!events.iter().any(|event| matches!(event, ConversationEvent::Text(_))), "{events:?}");
        let text = ConversationConfig { unmarked_calls: Some(UnmarkedCalls::Text), ..config() };
        let (_, read) = run(text, &reply, TurnOptions::default());
        assert_eq!((read.text(), read.tool_calls().len()), (reply.clone(), 0));
        let none = TurnOptions { tool_choice: ToolChoice::None, ..TurnOptions::default() };
        assert_eq!(run(config(), &reply, none).1.text(), reply);
    }
}

/// The dialect knows `<think>`; the template of this model does not.
#[test]
fn forced_reply_has_no_reasoning_that_the_template_lacks() {
    let template = |text: &str| {
        let source = format!("{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{text}");
        Some(PromptTemplate::new(&source).expect("it compiles"))
    };
    let processor = lm_processors::by_name("qwen").map(lm_processors::Processor::from);
    let required = TurnOptions { tool_choice: ToolChoice::Required, ..TurnOptions::default() };
    let format = Some(ResponseFormat::Regex("yes|no".to_owned()));
    let formatted = TurnOptions { response_format: format, ..TurnOptions::default() };
    for (text, reasons) in [("", false), ("{# <think> #}", true)] {
        for (options, answer) in [(&required, of("Rome")), (&formatted, "yes".to_owned())] {
            let config = ConversationConfig {
                template: template(text),
                processor: processor.clone(),
                ..config().with_preface(weather())
            };
            let script = format!("<think>\nHm.\n</think>\n\n{answer}");
            let (_, reply) = run(config, &script, options.clone());
            assert_eq!(reply.message.reasoning_content.is_some(), reasons, "{text} {reply:?}");
        }
    }
}

/// A variable of the template turns reasoning off as the option does.
#[test]
fn switched_off_reasoning_is_forbidden_in_free_replies() {
    let variables = json!({"enable_thinking": false}).as_object().expect("an object").clone();
    let options = TurnOptions { extra_context: variables, ..TurnOptions::default() };
    let (_, reply) = run(config(), "<think>\nHm.\n</think>\n\nyes", options);
    assert_eq!(reply.message.reasoning_content, None);
    let (_, reply) = run(config(), "<think>\nHm.\n</think>\n\nyes", TurnOptions::default());
    assert_eq!(reply.message.reasoning_content.as_deref(), Some("Hm."));
}
