//! `--tool-share`: the tools that are declared in a turn.

use std::str::FromStr;

use lm_conversation::Conversation;
use lm_template::{Message, Role};
use lm_tools::{ToolSpec, select_tools};

use crate::screen::one_line;

/// Largest number of tools that a note names.
const MAX_NAMED: usize = 16;

/// Largest share of the context that declarations of tools may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolShare {
    /// No limit: all tools are declared.
    Off,
    /// In percent.
    Percent(u8),
}

impl FromStr for ToolShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = || text.trim_end_matches('%').parse().ok().filter(|percent| *percent <= 100);
        match text {
            "off" => Ok(Self::Off),
            _ => percent()
                .map(Self::Percent)
                .ok_or_else(|| "expected an integer in 0..=100, or `off`".to_owned()),
        }
    }
}

impl ToolShare {
    /// Names of the tools to declare with a question: all if they fit, otherwise those that the conversation
    /// has called, and those that share words with the question and the user's message before it.
    pub fn declared<'a>(
        self,
        specs: &'a [ToolSpec],
        question: &Message,
        conversation: &Conversation,
    ) -> Vec<&'a str> {
        let engine = conversation.engine();
        let budget = match self {
            Self::Off => usize::MAX,
            Self::Percent(percent) => engine.context_tokens() * usize::from(percent) / 100,
        };
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
    fn share_is_a_percentage_or_off() {
        for (text, expected) in [
            ("off", Some(ToolShare::Off)),
            ("25", Some(ToolShare::Percent(25))),
            ("100%", Some(ToolShare::Percent(100))),
            ("0", Some(ToolShare::Percent(0))),
            ("101", None),
            ("-1", None),
            ("half", None),
        ] {
            assert_eq!(text.parse::<ToolShare>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn note_names_the_first_tools() {
        let names = |count: usize| (0..count).map(|number| format!("t{number}")).collect::<Vec<_>>();
        assert_eq!(note(&names(2), 9), "(2 of 9 tools declared: t0, t1; --tool-share off declares all)");
        assert!(note(&names(17), 40).contains("t15, …; "), "{}", note(&names(17), 40));
    }
}
