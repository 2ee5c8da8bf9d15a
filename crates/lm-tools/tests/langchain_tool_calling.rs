//! The flows of the LangChain article: a function as a tool, binding, calls, execution by id, the chain, the
//! agent.

use crate::common;
use lm_conversation::ConversationConfig;
use lm_template::Message;
use lm_tools::{
    Agent, AgentEvent, AgentStep, CallContext, ChatPrompt, Error, Invocation, ModelWithTools, Plan,
    PromptValues, Tool, Toolset, invocations, tool,
};
use serde_json::{Value, json};

/// Multiply a and b.
#[tool]
fn multiply(
    /** first int */
    a: i64,
    /** second int */
    b: i64,
) -> i64 {
    a * b
}

fn tools() -> Toolset {
    Toolset::new().with(multiply::tool()).expect("one tool")
}

fn llm_with_tools() -> ModelWithTools {
    tools().bind(common::engine(), ConversationConfig::default()).expect("a model with tools")
}

/// The calls of a message as the article prints them; ids are omitted, since they vary there.
fn calls(message: &Message) -> Value {
    let mut calls = serde_json::to_value(invocations(message)).expect("JSON");
    for call in calls.as_array_mut().into_iter().flatten() {
        let id = call.as_object_mut().and_then(|call| call.shift_remove("id")).unwrap_or_default();
        assert!(id.as_str().is_some_and(|id| !id.is_empty()), "a call has an id: {id}");
    }
    calls
}

#[test]
fn tool_has_name_description_and_argument_schema() {
    let spec = multiply::tool().spec();
    assert_eq!((spec.name(), spec.description()), ("multiply", "Multiply a and b."));
    let args = json!({
        "a": {"type": "integer", "description": "first int"},
        "b": {"type": "integer", "description": "second int"},
    });
    assert_eq!(spec.parameters()["properties"].to_string(), args.to_string());
    assert_eq!(multiply(3, 2), 6, "and stays a function");
}

#[test]
fn bound_model_answers_with_text_or_with_calls() {
    let mut model = llm_with_tools();
    let result = model.invoke("Hello world!").expect("text").message;
    assert_eq!((result.content.text().as_str(), result.tool_calls.len()), ("Hello! How can I help you?", 0));

    let result = model.invoke("What is 3 times by 2?").expect("a call").message;
    assert!(result.content.is_empty(), "{:?}", result.content);
    assert_eq!(calls(&result), json!([{"name": "multiply", "args": {"a": 3, "b": 2}, "type": "tool_call"}]));
}

#[test]
fn call_in_the_article_form_is_executed() {
    let call = json!({"name": "multiply", "args": {"a": 3, "b": 2}, "id": "call_UDe4BsVA4wnhKE2jvKmrNtMw", "type": "tool_call"});
    let call: Invocation = serde_json::from_value(call).expect("a call");
    let expected = json!({
        "role": "tool", "content": "6", "tool_call_id": "call_UDe4BsVA4wnhKE2jvKmrNtMw", "name": "multiply"
    });
    assert_eq!(tools().invoke(&call).to_json(), expected);
}

#[test]
fn model_call_and_tool_make_a_chain() {
    let mut model = llm_with_tools();
    let reply = model.invoke("What is two times by 43").expect("a call");
    let args = invocations(&reply.message).remove(0).args;
    assert_eq!(multiply::tool().call(args, &CallContext::default()).wait(), Ok(json!(86)));
}

#[test]
fn results_return_to_the_model_by_call_id() {
    let mut model = llm_with_tools();
    let mut messages = vec![Message::user("What is 3 times by five?")];
    let ai_msg = model.invoke(messages.clone()).expect("a call").message;
    assert_eq!(calls(&ai_msg), json!([{"name": "multiply", "args": {"a": 3, "b": 5}, "type": "tool_call"}]));
    messages.push(ai_msg.clone());
    for call in invocations(&ai_msg) {
        let tool_msg = tools().invoke(&call);
        assert_eq!((tool_msg.content.text().as_str(), &tool_msg.tool_call_id), ("15", &call.id));
        messages.push(tool_msg);
    }
    let answer = model.invoke(messages).expect("an answer").message;
    assert_eq!(answer.content.text(), "3 times 5 is 15.");
}

#[test]
fn article_messages_are_answered() {
    let messages = json!([
        {"role": "user", "content": "What is 3 times by five?"},
        {"role": "assistant", "content": "", "tool_calls": [{
            "id": "call_YqdoEgVMQ2u3LZKeH8EzEf36",
            "function": {"arguments": "{\"a\":3,\"b\":5}", "name": "multiply"},
            "type": "function"
        }]},
        {"role": "tool", "content": "15", "name": "multiply", "tool_call_id": "call_YqdoEgVMQ2u3LZKeH8EzEf36"}
    ]);
    let answer = llm_with_tools().invoke(messages).expect("an answer").message;
    assert_eq!(answer.content.text(), "3 times 5 is 15.");
}

#[test]
fn agent_plans_its_steps_and_executes_nothing() {
    let mut agent = llm_with_tools();
    let Plan::Calls(calls) = agent.plan("What is 3 times by five?", &[], &[]).expect("a plan") else {
        panic!("it calls a tool first")
    };
    assert_eq!((calls[0].name.as_str(), calls[0].arguments["b"].as_i64()), ("multiply", Some(5)));
    let chat_history = [Message::user("hi!"), Message::assistant("Hello! How can I help you?")];
    let agent_scratchpad = [AgentStep::new(0, calls[0].clone(), tools().call(&calls[0]))];
    let plan = agent.plan("What is 3 times by five?", &chat_history, &agent_scratchpad).expect("a plan");
    let Plan::Answer(answer) = plan else { panic!("it answers: {plan:?}") };
    assert_eq!(answer.content.text(), "3 times 5 is 15.");
}

#[test]
fn agent_loops_until_the_answer_and_keeps_steps() {
    let mut agent = Agent::builder(common::engine(), tools()).build().expect("an agent");
    let reply = agent.run("hi!").expect("an answer");
    assert_eq!((reply.message.content.text().as_str(), reply.steps.len()), ("Hello! How can I help you?", 0));

    agent.conversation_mut().reset();
    let reply = agent.run("What is 3 times by five?").expect("an answer");
    assert_eq!(reply.message.content.text(), "3 times 5 is 15.");
    assert_eq!(reply.steps.len(), 1);
    assert_eq!(reply.steps[0].result.content.text(), "15");
    assert_eq!(reply.steps[0].result.tool_call_id, reply.steps[0].call.id);
}

#[test]
fn agent_streams_text_and_tool_results() {
    let mut agent = Agent::builder(common::engine(), tools()).build().expect("an agent");
    let mut results = Vec::new();
    let mut reply = None;
    for event in agent.stream("What is 3 times by 2?").expect("a stream") {
        match event.expect("an event") {
            AgentEvent::ToolResult(step) => results.push(step.result.content.text()),
            AgentEvent::Finished(end) => reply = Some(end),
            _ => {}
        }
    }
    assert_eq!(results, ["6"]);
    assert_eq!(reply.expect("an end").message.content.text(), "3 times 2 is 6.");
}

#[test]
fn agent_prompt_is_system_history_and_input() {
    let prompt = ChatPrompt::tool_calling_agent();
    assert_eq!(prompt.variables(), ["chat_history", "input", "agent_scratchpad"]);
    let agent = Agent::builder(common::engine(), tools()).prompt(prompt.clone());
    let mut agent = agent.build().expect("an agent");
    let system = Message::system("You are a helpful assistant");
    assert_eq!(agent.conversation().preface().messages, std::slice::from_ref(&system));
    let chat_history = [Message::user("hi!"), Message::assistant("Hello! How can I help you?")];
    agent.conversation_mut().set_history(chat_history.to_vec());
    let reply = agent.run("What is 3 times by five?").expect("an answer");
    assert_eq!(reply.message.content.text(), "3 times 5 is 15.");
    assert_eq!(agent.conversation().history()[2], Message::user("What is 3 times by five?"));

    // The messages of one model call, as `create_tool_calling_agent` makes them.
    let values = PromptValues::new().text("input", "What is 3 times by five?");
    let values =
        values.messages("chat_history", chat_history.clone()).steps("agent_scratchpad", &reply.steps);
    let messages = prompt.format(&values).expect("all values");
    assert_eq!(messages[0], system);
    let json = |messages: &[Message]| messages.iter().map(Message::to_json).collect::<Vec<_>>();
    assert_eq!(json(&messages[1..]), json(&agent.conversation().history()[..5]));
    let answer = llm_with_tools().invoke(messages).expect("an answer").message;
    assert_eq!(answer.content.text(), "3 times 5 is 15.");
}

#[test]
fn prompt_values_are_required_unless_optional() {
    let prompt = ChatPrompt::tool_calling_agent();
    let missing = |values: PromptValues| match prompt.format(&values) {
        Err(Error::MissingPromptValue { name }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(PromptValues::new()), "input");
    assert_eq!(missing(PromptValues::new().text("input", "hi!")), "agent_scratchpad");
    let values = PromptValues::new().text("input", "{hi}").steps("agent_scratchpad", &[]);
    let messages = prompt.format(&values).expect("the history is optional");
    assert_eq!(messages[1..], [Message::user("{hi}")], "a value is no template");
}

#[test]
fn prompt_texts_are_read_as_f_strings() {
    let user = |text: &str| ChatPrompt::new().user(text);
    let prompt = user("{{{a}}} of {b_2}, {a}").expect("a text").partial("b_2", "two");
    assert_eq!(prompt.variables(), ["a"]);
    let messages = prompt.format(&PromptValues::new().text("a", "one")).expect("all values");
    assert_eq!(messages, [Message::user("{one} of two, one")]);
    let overridden = PromptValues::new().text("a", "1").text("b_2", "2");
    assert_eq!(prompt.format(&overridden).expect("all values"), [Message::user("{1} of 2, 1")]);
    for wrong in ["a { b", "a } b", "{}", "{a b}", "{a"] {
        assert!(matches!(user(wrong), Err(Error::InvalidPrompt { .. })), "{wrong}");
    }
}

#[test]
fn agent_writes_the_input_into_its_prompt() {
    let prompt = ChatPrompt::new()
        .system("You work for {company}.")
        .and_then(|prompt| prompt.user("{input}\nAnswer in one sentence, as {company} does."));
    let prompt = prompt.expect("texts").messages("agent_scratchpad").partial("company", "Acme");
    let mut agent = Agent::builder(common::engine(), tools()).prompt(prompt).build().expect("an agent");
    assert_eq!(agent.conversation().preface().messages, [Message::system("You work for Acme.")]);
    let input = json!({"role": "user", "content": [{"type": "text", "text": "hi!"}], "name": "Ann"});
    agent.run(input).expect("an answer");
    let sent = agent.conversation().history()[0].to_json();
    let text = json!({"type": "text", "text": "hi!\nAnswer in one sentence, as Acme does."});
    assert_eq!(sent, json!({"role": "user", "content": [text], "name": "Ann"}));
}

#[test]
fn unusable_prompts_of_agents_are_errors() {
    let built = |prompt: ChatPrompt| Agent::builder(common::engine(), tools()).prompt(prompt).build();
    let user = |text: &str| ChatPrompt::new().user(text).expect("a text");
    for prompt in [
        user("{input}"),
        user("Hello").messages("agent_scratchpad"),
        user("{input}").optional_messages("chat_history").messages("agent_scratchpad"),
        user("{input}").user("{input}").expect("a text").messages("agent_scratchpad"),
    ] {
        let error = built(prompt.clone()).expect_err("it is refused");
        assert!(matches!(error, Error::AgentPrompt { .. }), "{prompt:?}: {error}");
    }
    let other = user("{input} {when}").messages("agent_scratchpad");
    assert!(matches!(built(other), Err(Error::MissingPromptValue { name }) if name == "when"));
    let examples = ChatPrompt::new().messages("examples").user("{input}").expect("a text");
    let error = built(examples.messages("agent_scratchpad")).expect_err("it is refused");
    assert!(matches!(error, Error::MissingPromptValue { name } if name == "examples"));
}
