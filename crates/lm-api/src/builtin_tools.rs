//! Built-in tools of the Responses API that the client runs. To the model they are functions; their calls are
//! items of their own types.

use serde_json::{Map, Value, json};

/// A built-in tool.
#[derive(Debug)]
pub(crate) struct BuiltinTool {
    /// Type of its declaration, and its name to the model.
    pub kind: &'static str,
    /// Type of the item of a call.
    pub item: &'static str,
    /// Beginning of the item's id.
    pub id_prefix: &'static str,
    /// Field of the item that has the arguments.
    pub field: &'static str,
    /// Members of that field that the model does not write, as JSON.
    fixed: &'static str,
    description: &'static str,
    /// Schema of the arguments, as JSON.
    schema: &'static str,
}

/// The tools, by their types.
pub(crate) const BUILTIN_TOOLS: &[BuiltinTool] = &[
    BuiltinTool {
        kind: "apply_patch",
        item: "apply_patch_call",
        id_prefix: "apc_",
        field: "operation",
        fixed: "{}",
        description: "Creates, updates or deletes a file of the workspace.",
        schema: r#"{
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                "path": {"type": "string", "description": "Path of the file, relative to the workspace."},
                "diff": {"type": "string", "description": "Lines of the change: `@@` begins a section, `+` adds a line, `-` removes one, a space keeps one. All lines of a new file begin with `+`. Empty to delete a file."}
            },
            "required": ["type", "path", "diff"],
            "additionalProperties": false
        }"#,
    },
    BuiltinTool {
        kind: "local_shell",
        item: "local_shell_call",
        id_prefix: "lsh_",
        field: "action",
        fixed: r#"{"type": "exec", "env": {}}"#,
        description: "Runs a command on the user's machine and returns its output.",
        schema: r#"{
            "type": "object",
            "properties": {
                "command": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The program and its arguments."},
                "working_directory": {"type": "string", "description": "Directory to run the command in."},
                "timeout_ms": {"type": "integer", "minimum": 1, "description": "Timeout in milliseconds."}
            },
            "required": ["command"],
            "additionalProperties": false
        }"#,
    },
    BuiltinTool {
        kind: "shell",
        item: "shell_call",
        id_prefix: "sh_",
        field: "action",
        fixed: r#"{"timeout_ms": null, "max_output_length": null}"#,
        description: "Runs shell commands and returns their output.",
        schema: r#"{
            "type": "object",
            "properties": {
                "commands": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Commands to run, in their order."},
                "timeout_ms": {"type": "integer", "minimum": 1, "description": "Timeout of all commands in milliseconds."},
                "max_output_length": {"type": "integer", "minimum": 1, "description": "Maximum number of characters of the output."}
            },
            "required": ["commands"],
            "additionalProperties": false
        }"#,
    },
];

impl BuiltinTool {
    /// The function that the tool is to the model.
    pub fn function(&self) -> Value {
        let function =
            json!({"name": self.kind, "description": self.description, "parameters": parsed(self.schema)});
        json!({"type": "function", "function": function})
    }

    /// Value of the item's field for the arguments of a call.
    pub fn value(&self, arguments: &Map<String, Value>) -> Value {
        let mut value = parsed(self.fixed);
        if let Value::Object(members) = &mut value {
            members.extend(arguments.clone());
            if members.get("type").is_some_and(|kind| kind == "delete_file") {
                members.shift_remove("diff");
            }
        }
        value
    }

    /// Arguments of a call with this value of the item's field, as the model writes them.
    pub fn arguments(&self, value: &Value) -> Value {
        let Value::Object(members) = value else { return value.clone() };
        let fixed = parsed(self.fixed);
        let mut members = members.clone();
        members.retain(|name, value| !value.is_null() && fixed.get(name) != Some(value));
        if members.get("type").is_some_and(|kind| kind == "delete_file") {
            members.insert("diff".to_owned(), "".into());
        }
        Value::Object(members)
    }
}

/// JSON of the table.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the tests read the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_fields_of_items_convert_into_each_other() {
        for (kind, arguments) in [
            ("local_shell", json!({"command": ["ls", "-l"], "working_directory": "src"})),
            ("shell", json!({"commands": ["ls"], "timeout_ms": 9})),
            ("apply_patch", json!({"type": "update_file", "path": "a.txt", "diff": "+a"})),
            ("apply_patch", json!({"type": "delete_file", "path": "a.txt", "diff": ""})),
        ] {
            let tool = BUILTIN_TOOLS.iter().find(|tool| tool.kind == kind).expect("a tool");
            let value = tool.value(arguments.as_object().expect("an object"));
            assert_eq!(tool.arguments(&value), arguments);
        }
    }

    #[test]
    fn tools_are_functions_with_schemas_of_objects() {
        for tool in BUILTIN_TOOLS {
            let function = tool.function();
            assert_eq!(function["function"]["parameters"]["type"], "object", "{}", tool.kind);
            assert!(tool.value(&Map::new()).is_object() && tool.item.starts_with(tool.kind));
        }
    }
}
