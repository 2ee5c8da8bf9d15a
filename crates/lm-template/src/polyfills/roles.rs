//! Polyfills for declared tools, tool results and system messages.

use serde_json::{Map, Value, json};

use super::draft::{Draft, append, role, text};
use super::tagged_json;
use crate::capabilities::Capabilities;
use crate::tool_spec::ToolSpec;

pub(super) fn assistant_as_model(draft: &mut Draft, can: &Capabilities) -> bool {
    can.model_role == "model"
        && draft.each(|message| {
            let found = role(message) == "assistant";
            if found {
                message.insert("role".to_owned(), "model".into());
            }
            found
        })
}

pub(super) fn wrap_tools(draft: &mut Draft, _: &Capabilities) -> bool {
    let mut wrapped = false;
    for tool in draft.tools.as_array_mut().into_iter().flatten() {
        let bare = tool.get("function").is_none() && tool.get("name").is_some();
        if let Some(spec) = bare.then(|| ToolSpec::from_json(tool.clone()).ok()).flatten() {
            *tool = spec.to_function_json();
            wrapped = true;
        }
    }
    wrapped
}

pub(super) fn rename_tools(draft: &mut Draft, can: &Capabilities) -> bool {
    let Some(variable) = can.tools_variable.filter(|_| !can.tools && draft.has_tools()) else { return false };
    draft.extra_context.insert(variable.to_owned(), draft.tools.take());
    true
}

pub(super) fn tools_as_empty_list(draft: &mut Draft, can: &Capabilities) -> bool {
    let missing = !can.null_tools && draft.tools.is_null();
    if missing {
        draft.tools = json!([]);
    }
    missing
}

pub(super) fn add_system(draft: &mut Draft, can: &Capabilities) -> bool {
    let has_system = draft.messages.first().is_some_and(|first| first["role"] == "system");
    let add = can.tools_need_system && draft.has_tools() && !has_system;
    if add {
        draft.messages.insert(0, json!({"role": "system", "content": ""}));
    }
    add
}

pub(super) fn results_as_user_text(draft: &mut Draft, can: &Capabilities) -> bool {
    !can.tool_results
        && draft.fold_into_user(|message| {
            let result = message.get("content").filter(|_| role(message) == "tool")?;
            let mut shown = Map::new();
            shown.extend(message.get("name").map(|name| ("name".to_owned(), name.clone())));
            shown.insert(
                "content".to_owned(),
                if result.is_array() { text(message).into() } else { result.clone() },
            );
            Some(format!("<tool_response>\n{}\n</tool_response>", tagged_json(&Value::Object(shown))))
        })
}

pub(super) fn tools_in_system_text(draft: &mut Draft, can: &Capabilities) -> bool {
    if can.tools || !draft.has_tools() {
        return false;
    }
    let tools = draft.tools.take();
    let declared: Vec<String> = tools.as_array().into_iter().flatten().map(tagged_json).collect();
    let text = format!(
        "You can call these functions, one JSON declaration a line:\n<tools>\n{}\n</tools>\n\n\
         To call a function, write its name and its arguments as JSON between these tags:\n\
         <tool_call>\n{{\"name\": \"the function\", \"arguments\": {{\"an argument\": \"its value\"}}}}\n</tool_call>\n\
         What it returns comes between <tool_response> and </tool_response>.",
        declared.join("\n")
    );
    match draft.messages.first_mut().and_then(Value::as_object_mut).filter(|first| role(first) == "system") {
        Some(system) => append(system, text, "\n\n"),
        None => draft.messages.insert(0, json!({"role": "system", "content": text})),
    }
    true
}

pub(super) fn system_in_user_text(draft: &mut Draft, can: &Capabilities) -> bool {
    !can.system && draft.fold_into_user(|message| (role(message) == "system").then(|| text(message)))
}
