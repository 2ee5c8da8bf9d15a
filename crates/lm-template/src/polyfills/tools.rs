//! Polyfills for `tools`, the declared tools.

use serde_json::{Value, json};

use super::tagged_json;
use super::template_input::{TemplateInput, append, role};
use crate::capabilities::Capabilities;
use crate::tool_spec::ToolSpec;

pub(super) fn wrap_tools(input: &mut TemplateInput, _: &Capabilities) -> bool {
    let mut wrapped = false;
    for tool in input.tools.as_array_mut().into_iter().flatten() {
        let bare = tool.get("function").is_none() && tool.get("name").is_some();
        if let Some(spec) = bare.then(|| ToolSpec::from_json(tool.clone()).ok()).flatten() {
            *tool = spec.to_function_json();
            wrapped = true;
        }
    }
    wrapped
}

pub(super) fn rename_tools(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let Some(variable) = capabilities.tools_variable.filter(|_| !capabilities.tools && input.has_tools())
    else {
        return false;
    };
    input.extra_context.insert(variable.to_owned(), input.tools.take());
    true
}

pub(super) fn tools_as_empty_list(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let missing = !capabilities.null_tools && input.tools.is_null();
    if missing {
        input.tools = json!([]);
    }
    missing
}

pub(super) fn tools_in_system_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    if capabilities.tools || !input.has_tools() {
        return false;
    }
    let tools = input.tools.take();
    let declared: Vec<String> = tools.as_array().into_iter().flatten().map(tagged_json).collect();
    let text = format!(
        "You can call these functions, one JSON declaration a line:\n<tools>\n{}\n</tools>\n\n\
         To call a function, write its name and its arguments as JSON between these tags:\n\
         <tool_call>\n{{\"name\": \"the function\", \"arguments\": {{\"an argument\": \"its value\"}}}}\n</tool_call>\n\
         What it returns comes between <tool_response> and </tool_response>.",
        declared.join("\n")
    );
    match input.messages.first_mut().and_then(Value::as_object_mut).filter(|first| role(first) == "system") {
        Some(system) => append(system, text, "\n\n"),
        None => input.messages.insert(0, json!({"role": "system", "content": text})),
    }
    true
}
