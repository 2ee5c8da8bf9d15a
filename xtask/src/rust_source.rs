//! Text-level analysis of Rust source without a parser: blanks comments and literals, finds functions by
//! their braces.

/// Replaces comments and the contents of string and character literals by spaces.
///
/// Lines and columns do not change, so that findings can give line numbers.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !continues_word(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => at,
            },
            b'\'' => char_end(bytes, at),
            _ => at,
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    // Only complete literals and comments are blanked, each byte by a space, so the text stays UTF-8.
    String::from_utf8_lossy(&code).into_owned()
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i < bytes.len() {
        if bytes[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if bytes[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// End of a raw string, `r"…"` or `r#"…"#`; `None` if the `r` begins a word.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&b| b == b'#').count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = at + 2 + hashes;
    let length = bytes[body..].windows(close.len()).position(|window| window == close.as_slice());
    Some(length.map_or(bytes.len(), |n| body + n + close.len()))
}

/// End of a character literal, or `at` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes.get(at + 3..).and_then(|rest| rest.iter().position(|&b| b == b'\''));
        return close.map_or(bytes.len(), |n| at + 3 + n + 1);
    }
    let width = match bytes.get(at + 1) {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    };
    if bytes.get(at + 1 + width) == Some(&b'\'') { at + width + 2 } else { at }
}

/// Returns true if the byte at `at` continues a word; a `b` before a raw string (`br"…"`) does not count.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    let is_word = |i: usize| bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_';
    match at {
        0 => false,
        1 => is_word(0) && bytes[0] != b'b',
        _ => is_word(at - 1) && (bytes[at - 1] != b'b' || is_word(at - 2)),
    }
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub struct Function<'a> {
    pub name: &'a str,
    /// Line of the `fn` keyword, from one.
    pub line: usize,
    /// Lines from the `fn` keyword to the closing brace.
    pub lines: usize,
}

/// Finds the functions of a source processed by [`code_only`].
pub fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if continues_word(code.as_bytes(), at) {
            continue;
        }
        let name =
            code[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let Some(length) = function_length(&code[at..]).filter(|_| !name.is_empty()) else { continue };
        let line = code[..at].matches('\n').count() + 1;
        found.push(Function { name, line, lines: code[at..at + length].matches('\n').count() + 1 });
    }
    found
}

/// Number of bytes from `fn` to the closing brace of its body; `None` for a function without one.
fn function_length(code: &str) -> Option<usize> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        let source = "let a = \"unsafe {\"; // unsafe\nlet b = r#\"x \"unsafe\" \"#;\nlet c = '\"'; let d: &'a str = x; /* unsafe\n */ e";
        let code = code_only(source);
        assert!(!code.contains("unsafe"), "{code}");
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(code.contains("let d: &'a str = x;") && code.ends_with('e'), "{code}");
    }

    #[test]
    fn escaped_quotes_and_byte_strings_are_delimited() {
        let code = code_only(r#"f("\"", b"x", '\'', '\u{1f600}', br"y"); unsafe"#);
        assert!(code.ends_with("unsafe") && !code.contains('x') && !code.contains('y'), "{code}");
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let code =
            code_only("trait T { fn a(x: [u8; 2]); }\nfn b(x: [u8; 2]) -> u8 {\n    match x { _ => 1 }\n}\n");
        assert_eq!(functions(&code), [Function { name: "b", line: 2, lines: 3 }]);
    }
}
