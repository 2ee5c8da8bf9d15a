//! Names of tools, as the APIs of models allow them: 1 to 64 letters, digits, `_` and `-`.

/// Maximum length of a tool's name in messages.
const MAX_SHOWN_CHARS: usize = 128;
/// Maximum length of a name.
const MAX_CHARS: usize = 64;

/// Replaces characters that names cannot have by `_`, and cuts the name to 64 characters.
pub(crate) fn cleaned(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    name.chars().take(MAX_CHARS).map(allowed).collect()
}

/// Name of a server's tool: `server_tool`, or the tool's own name for a server without a prefix.
pub(crate) fn tool_name(prefix: &str, tool: &str) -> String {
    if prefix.is_empty() { cleaned(tool) } else { cleaned(&format!("{prefix}_{tool}")) }
}

/// Cuts the name of a tool, or another text of a server, for messages.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_server_prefix_and_allowed_characters() {
        assert_eq!(tool_name("files", "read.file"), "files_read_file");
        assert_eq!(tool_name("a b", "résumé/x"), "a_b_r_sum__x");
        assert_eq!(tool_name("", "get-sum"), "get-sum");
    }

    #[test]
    fn long_name_is_cut() {
        let name = tool_name("s", &"é".repeat(500));
        assert_eq!(name.len(), MAX_CHARS);
        assert!(name.starts_with("s____"));
    }
}
