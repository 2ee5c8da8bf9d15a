//! `--tool-share`: the tools that are declared in a turn.

use lm_conversation::Conversation;
use lm_template::{Message, Role};
use lm_tools::{ToolSpec, select_tools};

use crate::screen::one_line;
use crate::share::Share;

/// Largest number of tools that a note names.
const MAX_NAMED: usize = 16;

/// Names of the tools to declare with a question: all if they fit the share, otherwise those that the
/// conversation has called, and those that share words with the question and the user's message before it.
pub fn declared<'a>(
    share: Share,
    specs: &'a [ToolSpec],
    question: &Message,
    conversation: &Conversation,
) -> Vec<&'a str> {
    let engine = conversation.engine();
    let budget = share.of(engine.context_tokens());
    let json = |spec: &ToolSpec| spec.to_function_json().to_string();
    // A token has a byte at least.
    if specs.iter().map(|spec| json(spec).len()).sum::<usize>() <= budget {
        return specs.iter().map(ToolSpec::name).collect();
    }
    let history = conversation.history();
    let called: Vec<&str> =
        history.iter().flat_map(|message| &message.tool_calls).map(|call| call.name.as_str()).collect();
    let before = history.iter().rfind(|message| message.role == Role::User);
    let asked: String =
        before.into_iter().chain([question]).map(|message| message.content.text() + "\n").collect();
    let size = |spec: &ToolSpec| {
        let json = json(spec);
        engine.tokenizer().encode(&json).map_or(json.len(), |ids| ids.len())
    };
    select_tools(specs, &asked, &called, budget, size)
}

/// Note on a turn that declares some of the tools.
pub fn note(declared: &[String], all: usize) -> String {
    let named = declared.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let others = if declared.len() > MAX_NAMED { ", …" } else { "" };
    let count = declared.len();
    let named = if named.is_empty() { named } else { format!(": {named}{others}") };
    one_line(&format!("({count} of {all} tools declared{named}; --tool-share off declares all)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_names_the_first_tools() {
        let names = |count: usize| (0..count).map(|number| format!("t{number}")).collect::<Vec<_>>();
        assert_eq!(note(&names(2), 9), "(2 of 9 tools declared: t0, t1; --tool-share off declares all)");
        assert!(note(&names(17), 40).contains("t15, …; "), "{}", note(&names(17), 40));
    }
}
