//! The pocket model's template against transformers: `testdata/templates/pocket.json`.

use std::path::Path;

use lm_template::{
    GenerationPrompt, Map, Message, Origin, Prompt, PromptTemplate, RenderInput, Segment, ToolSpec, Value,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
    add_generation_prompt: bool,
    extra_context: Map<String, Value>,
    text: String,
}

impl Case {
    fn all() -> anyhow::Result<Vec<Self>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/templates/pocket.json");
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    fn render(&self, messages: &[Value], tools: Vec<Value>) -> anyhow::Result<Prompt> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/pocket/model");
        let template = PromptTemplate::new(&std::fs::read_to_string(folder.join("chat_template.jinja"))?)?;
        let generation_prompt =
            if self.add_generation_prompt { GenerationPrompt::Add } else { GenerationPrompt::Omit };
        let tools = if tools.is_empty() { Value::Null } else { Value::Array(tools) };
        let extra_context = &self.extra_context;
        Ok(template.render(&RenderInput { messages, tools: &tools, generation_prompt, extra_context })?)
    }
}

#[test]
fn raw_messages_render_as_the_reference() -> anyhow::Result<()> {
    for case in Case::all()? {
        let prompt = case.render(&case.messages, case.tools.clone())?;
        assert_eq!(prompt.text(), case.text, "{}", case.name);
    }
    Ok(())
}

#[test]
fn parsed_messages_render_as_the_reference() -> anyhow::Result<()> {
    for case in Case::all()? {
        let read = |message: &Value| Ok(Message::from_json(message.clone())?.to_json());
        let messages = case.messages.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        let declared = |tool: &Value| Ok(ToolSpec::from_json(tool.clone())?.to_function_json());
        let tools = case.tools.iter().map(declared).collect::<anyhow::Result<Vec<_>>>()?;
        assert_eq!(case.render(&messages, tools)?.text(), case.text, "{}", case.name);
    }
    Ok(())
}

#[test]
fn special_tokens_in_content_stay_content() -> anyhow::Result<()> {
    let mut cases = 0;
    for case in Case::all()?.iter().filter(|case| case.name.starts_with("special tokens")) {
        let content =
            case.messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
        let prompt = case.render(&case.messages, case.tools.clone())?;
        let holds = |segment: &Segment| segment.origin == Origin::Content && segment.text.contains(content);
        assert!(prompt.segments.iter().any(holds), "{}: {:?}", case.name, prompt.segments);
        cases += 1;
    }
    assert_eq!(cases, 2);
    Ok(())
}
