//! Messages of several lines between `"""`.

const MARK: &str = "\"\"\"";

/// Returns true if a text begins with `"""` and does not end with another one.
pub fn is_open(text: &str) -> bool {
    text.trim_start().starts_with(MARK) && unquoted(text).is_none()
}

/// Returns the text between the marks, if it is a quoted message.
pub fn unquoted(text: &str) -> Option<&str> {
    text.trim().strip_prefix(MARK)?.strip_suffix(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_open_until_the_closing_mark() {
        for open in ["\"\"\"", " \"\"\"a", "\"\"\"a\nb\"", "\"\"\"\"\""] {
            assert!(is_open(open) && unquoted(open).is_none(), "{open}");
        }
        for (text, inner) in
            [("\"\"\"a\nb\"\"\"", Some("a\nb")), ("\"\"\"\"\"\" ", Some("")), ("a \"\"\"", None)]
        {
            assert!(!is_open(text), "{text}");
            assert_eq!(unquoted(text), inner);
        }
    }
}
