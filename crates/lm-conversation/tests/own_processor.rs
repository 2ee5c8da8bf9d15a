//! Processors of a program, written with the public interface alone: with a dialect of its own, and by hand.

use lm_conversation::{
    Conversation, ConversationConfig, GenerationPrompt, Message, ModelDataProcessor, Preface, Processor,
    PromptTemplate, TurnOptions, Value,
};
use lm_processors::{
    CallBody, CallSyntax, ChannelSyntax, Dialect, DialectProcessor, GrammarRequest, JsonCall, OutputParser,
    ParserOptions, ProcessorEvent, ReplyGrammar, Tags, TemplateInput,
};
use lm_session::testing::scripted_engine;
use lm_template::{ToolCall, ToolSpec};
use serde_json::json;

const TEMPLATE: &str = "{# The model reasons: ((Hm.)) #}{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}\
    {% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

/// Calls in `<<` and `>>`, reasoning in `((` and `))`.
const ARROWS: Dialect = Dialect {
    name: "arrows",
    channels: &[ChannelSyntax::new(Tags::new("((", "))"))],
    calls: &[CallSyntax::new(Tags::new("<<", ">>"), CallBody::Json(JsonCall::ONE))],
    ..Dialect::PLAIN
};

fn config(processor: impl ModelDataProcessor + 'static) -> ConversationConfig {
    let tool = json!({"name": "get_weather", "description": "The weather.",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}}});
    let preface: Preface = serde_json::from_value(json!({"tools": [tool]})).unwrap();
    ConversationConfig {
        preface,
        template: Some(PromptTemplate::new(TEMPLATE).unwrap()),
        processor: Some(Processor::new(processor)),
        ..ConversationConfig::default()
    }
}

#[test]
fn dialect_of_a_program_reads_and_constrains_calls() {
    let call = r#"<<{"name": "get_weather", "arguments": {"location": "Paris"}}>>"#;
    let engine = scripted_engine([call, "((Sunny is good.))Take a hat."]);
    let config = config(DialectProcessor::new(&ARROWS));
    let mut conversation = Conversation::new(&engine, config).unwrap();
    assert_eq!(conversation.processor().name(), "arrows");
    let reply = conversation.send("How is the weather in Paris?").unwrap();
    assert_eq!(reply.tool_calls()[0].arguments["location"], "Paris");
    assert!(reply.finish.masked.is_some(), "its grammar constrains the call");
    assert_eq!(reply.raw, call);
    let result =
        Message::tool(reply.tool_calls()[0].id.as_deref(), "get_weather", json!({"condition": "Sunny"}));
    let reply = conversation.send(result).unwrap();
    assert_eq!(reply.message.reasoning_content.as_deref(), Some("Sunny is good."));
    assert_eq!(reply.text(), "Take a hat.");
}

#[test]
fn settings_of_a_dialect_choose_the_form_of_tools_and_results() {
    let declared = json!({"name": "get_weather", "description": "The weather."});
    let tools = [ToolSpec::from_json(declared.clone()).unwrap()];
    let result = Message::tool(Some("call_0"), "get_weather", json!({"condition": "Sunny"}));
    let input = |input| {
        let processor = DialectProcessor::new(&ARROWS).with_input(input);
        let message = processor.message_to_template_input(&result).unwrap();
        (processor.format_tools(&tools)[0].clone(), message["content"].clone())
    };
    let wrapped = json!({"type": "function", "function": declared});
    assert_eq!(input(TemplateInput::Text), (wrapped, json!("{\"condition\": \"Sunny\"}")));
    assert_eq!(input(TemplateInput::Unchanged), (declared, json!({"condition": "Sunny"})));
}

/// A processor by hand: a reply `CALL name` is a call; the user's text is between marks.
struct Marked {
    mark: &'static str,
}

struct MarkedParser {
    text: String,
}

impl ModelDataProcessor for Marked {
    fn name(&self) -> &'static str {
        "marked"
    }

    fn message_to_template_input(&self, message: &Message) -> lm_processors::Result<Value> {
        let mut input = message.to_json();
        input["content"] = format!("{0}{1}{0}", self.mark, message.content.text()).into();
        Ok(input)
    }

    fn grammar(&self, _: &GrammarRequest<'_>) -> lm_processors::Result<Option<ReplyGrammar>> {
        Ok(None)
    }

    fn parser(&self, _: &ParserOptions) -> Box<dyn OutputParser> {
        Box::new(MarkedParser { text: String::new() })
    }
}

impl OutputParser for MarkedParser {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        self.text += delta;
        Vec::new()
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        match self.text.strip_prefix("CALL ") {
            Some(name) => {
                let call = ToolCall::new(name, Default::default());
                let arguments = ProcessorEvent::ToolCallArguments { index: 0, fragment: "{}".to_owned() };
                let started =
                    ProcessorEvent::ToolCallStarted { index: 0, name: Some(name.to_owned()), id: None };
                vec![started, arguments, ProcessorEvent::ToolCall { index: 0, call }]
            }
            None => vec![ProcessorEvent::Text(std::mem::take(&mut self.text))],
        }
    }
}

#[test]
fn processor_by_hand_converts_messages_and_reads_replies() {
    let engine = scripted_engine(["CALL get_weather", "Sunny."]);
    let mut conversation = Conversation::new(&engine, config(Marked { mark: "*" })).unwrap();
    let rendered = conversation.render("Weather?", GenerationPrompt::Omit).unwrap();
    assert!(rendered.text.ends_with("user: *Weather?*\n"), "{}", rendered.text);
    let reply = conversation.send("Weather?").unwrap();
    assert_eq!((reply.tool_calls()[0].name.as_str(), reply.text().as_str()), ("get_weather", ""));
    let result = Message::tool(reply.tool_calls()[0].id.as_deref(), "get_weather", "sunny".into());
    assert_eq!(conversation.send(result).unwrap().text(), "Sunny.");
}

#[test]
fn turn_has_a_processor_with_its_own_settings() {
    let engine = scripted_engine(["One.", "Two.", "Three."]);
    let mut conversation = Conversation::new(&engine, config(Marked { mark: "*" })).unwrap();
    let tokens = |conversation: &Conversation| {
        engine.tokenizer().decode(&conversation.tokens(), lm_session::SpecialTokens::Keep)
    };
    conversation.send("Hi.").unwrap();
    let processor = Some(Processor::new(Marked { mark: "#" }));
    let turn = TurnOptions { processor, ..TurnOptions::default() };
    conversation.send_with("Hi again.", turn).unwrap();
    let prompt = tokens(&conversation);
    assert!(prompt.contains("user: #Hi.#\n") && prompt.contains("user: #Hi again.#\n"), "{prompt}");
    conversation.send("And again.").unwrap();
    let prompt = tokens(&conversation);
    assert!(prompt.contains("user: *Hi again.*\n") && prompt.contains("user: *And again.*\n"), "{prompt}");
    assert_eq!(conversation.history().len(), 6);
}
