//! Doc comments: the description before the first section, the list under `# Arguments` or `Args:`, and the
//! text under `# Returns` or `Returns:`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// Sections of a docstring in Google's style, as in Python.
const GOOGLE_SECTIONS: [&str; 4] = ["Args:", "Arguments:", "Returns:", "Raises:"];

/// Parsed doc comment of a function.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FunctionDocs {
    /// The text before the first section: one line per paragraph, separated by blank lines.
    pub(crate) description: String,
    /// Names and descriptions of the items under `# Arguments` or `Args:`, in order.
    pub(crate) arguments: Vec<(String, String)>,
    /// The text under `# Returns` or `Returns:`; empty without one.
    pub(crate) returns: String,
}

impl FunctionDocs {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let text = text(attributes);
        let before: Vec<&str> = text.lines().take_while(|line| !is_section(line)).collect();
        let section = |is_start: fn(&str) -> bool| -> Vec<&str> {
            let lines = text.lines().skip_while(|line| !is_start(line)).skip(1);
            lines.take_while(|line| !is_section(line)).collect()
        };
        let arguments = items(&section(is_arguments_heading)).and_then(|mut arguments| {
            arguments.extend(google_items(&section(is_google_arguments))?);
            Ok(arguments)
        });
        let arguments = arguments.map_err(|message| match attributes.first() {
            Some(attribute) => Error::new_spanned(attribute, message),
            None => Error::new(Span::call_site(), message),
        })?;
        let returns = paragraphs(&section(is_returns));
        Ok(Self { description: paragraphs(&before), arguments, returns })
    }
}

/// Joins a doc comment to a single description.
pub(crate) fn description(attributes: &[Attribute]) -> String {
    let text = text(attributes);
    paragraphs(&text.lines().collect::<Vec<_>>())
}

/// Place of the line that describes an argument.
pub(crate) fn line_of(attributes: &[Attribute], name: &str) -> Span {
    let describes = |line: &str| {
        let item = line.trim().trim_start_matches(['-', '*', ' ', '`']);
        item.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '`', ' ']))
    };
    let is_line = |attribute: &&Attribute| text(std::slice::from_ref(attribute)).lines().any(describes);
    attributes.iter().find(is_line).map_or_else(Span::call_site, Spanned::span)
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// Splits `(choices: ["a", "b"])` off the end of a description.
pub(crate) fn split_choices(description: &str) -> std::result::Result<(String, Vec<String>), String> {
    const MARK: &str = "(choices:";
    let Some((text, list)) = description.rsplit_once(MARK).filter(|(_, list)| list.ends_with(')')) else {
        return Ok((description.to_owned(), Vec::new()));
    };
    let list = list[..list.len() - 1].trim();
    let wrong = || format!("`{MARK} {list})` is not a list of strings: write `(choices: [\"a\", \"b\"])`");
    let array: syn::ExprArray = syn::parse_str(list).map_err(|_| wrong())?;
    let choices = array.elems.iter().map(|element| match element {
        Expr::Lit(ExprLit { lit: Lit::Str(choice), .. }) => Ok(choice.value()),
        _ => Err(wrong()),
    });
    let choices = choices.collect::<std::result::Result<Vec<_>, _>>()?;
    if choices.is_empty() {
        return Err(wrong());
    }
    Ok((text.trim_end().to_owned(), choices))
}

/// Lines of the doc comment, each without the space after `///`.
fn text(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            let line = line.value();
            lines.extend(
                line.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
            );
            if line.is_empty() {
                lines.push(String::new());
            }
        }
    }
    lines.join("\n")
}

/// Returns true for a heading, or the header of a section in Google's style.
fn is_section(line: &str) -> bool {
    line.starts_with('#') || GOOGLE_SECTIONS.contains(&line)
}

fn is_google_arguments(line: &str) -> bool {
    matches!(line, "Args:" | "Arguments:")
}

fn is_arguments_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').trim().eq_ignore_ascii_case("arguments")
}

fn is_returns(line: &str) -> bool {
    let heading = line.trim_start_matches('#').trim();
    line == "Returns:" || line.starts_with('#') && heading.eq_ignore_ascii_case("returns")
}

fn paragraphs(lines: &[&str]) -> String {
    let paragraphs = lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(join).collect::<Vec<_>>().join("\n\n")
}

fn join(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Parses a Markdown list; lines without a bullet continue the item before them.
fn items(lines: &[&str]) -> std::result::Result<Vec<(String, String)>, String> {
    fn bullet(line: &str) -> Option<&str> {
        line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))
    }
    let begins = |line: &str| bullet(line.trim()).is_some();
    list(lines, begins, |line| name_and_text(bullet(line)?), wrong_item)
}

/// Parses `name: text` and `name (type): text`; lines with more indentation than the first continue the item
/// before them.
fn google_items(lines: &[&str]) -> std::result::Result<Vec<(String, String)>, String> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let first = lines.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indentation(line));
    list(lines, |line| indentation(line) <= first, google_item, wrong_google_item)
}

/// Parses a list of items; a line that does not begin an item continues the one before it.
fn list(
    lines: &[&str],
    begins: impl Fn(&str) -> bool,
    read: impl Fn(&str) -> Option<(String, String)>,
    wrong: impl Fn(&str) -> String,
) -> std::result::Result<Vec<(String, String)>, String> {
    let mut items: Vec<(String, String)> = Vec::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        match items.last_mut() {
            Some((_, text)) if !begins(line) => {
                text.push(' ');
                text.push_str(line.trim());
            }
            _ => items.push(read(line.trim()).ok_or_else(|| wrong(line.trim()))?),
        }
    }
    Ok(items)
}

fn google_item(item: &str) -> Option<(String, String)> {
    let (head, text) = item.split_once(':')?;
    let name = head.split_once('(').map_or(head, |(name, _type)| name).trim();
    name_and_text(&format!("{name}: {text}"))
}

fn wrong_google_item(line: &str) -> String {
    format!("under `Args:`, `{line}` is not an item: write `name: what it is`")
}

fn name_and_text(item: &str) -> Option<(String, String)> {
    let (name, text) = item.split_once(':')?;
    let name = name.trim().trim_matches('`');
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| (name.to_owned(), text.trim().to_owned()))
}

fn wrong_item(line: &str) -> String {
    format!("under `# Arguments`, `{line}` is not an item: write ``- `name`: what it is``")
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::{ItemFn, parse_quote};

    fn docs(function: ItemFn) -> FunctionDocs {
        FunctionDocs::parse(&function.attrs).expect("docs that can be read")
    }

    #[test]
    fn description_ends_at_first_heading_and_joins_paragraphs() {
        let docs = docs(parse_quote! {
            /// Multiply a
            /// and b.
            ///
            /// Exactly.
            ///
            /// # Panics
            /// Never.
            fn multiply() {}
        });
        assert_eq!(docs.description, "Multiply a and b.\n\nExactly.");
        assert_eq!(docs.arguments, []);
    }

    #[test]
    fn argument_items_include_continuation_lines() {
        let docs = docs(parse_quote! {
            /// Multiply.
            ///
            /// # Arguments
            ///
            /// - `a`: first int,
            ///   a factor
            /// * b: second: int
            ///
            /// # Errors
            /// - none: here
            fn multiply() {}
        });
        let expected = [("a", "first int, a factor"), ("b", "second: int")];
        assert_eq!(docs.arguments, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn google_style_docstring_is_read() {
        let docs = docs(parse_quote! {
            /// Returns the weather
            /// of a place.
            ///
            /// Args:
            ///     location: The city and country,
            ///         e.g. "Paris, France".
            ///     unit (str): The unit: one of two. (choices: ["C", "F"])
            ///
            /// Returns:
            ///     temperature: a number
            fn weather() {}
        });
        assert_eq!(docs.description, "Returns the weather of a place.");
        assert_eq!(docs.returns, "temperature: a number");
        let expected = [
            ("location", "The city and country, e.g. \"Paris, France\"."),
            ("unit", "The unit: one of two. (choices: [\"C\", \"F\"])"),
        ];
        assert_eq!(docs.arguments, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        let text = "Adds.\n\nArgs:\n    the first";
        let function: ItemFn = parse_quote! { #[doc = #text] fn add() {} };
        let error = FunctionDocs::parse(&function.attrs).expect_err("no item").to_string();
        assert!(error.contains("write `name: what it is`"), "{error}");
    }

    #[test]
    fn block_comment_reads_like_line_comments() {
        let docs = docs(parse_quote! {
            #[doc = " Adds.\n\n # Arguments\n - `a`: one"]
            fn add() {}
        });
        assert_eq!(docs.description, "Adds.");
        assert_eq!(docs.arguments, [("a".to_owned(), "one".to_owned())]);
    }

    #[test]
    fn non_item_line_under_arguments_is_an_error() {
        for line in ["first int", "- the first int", "- `a b`: two names"] {
            let text = format!("Adds.\n\n# Arguments\n{line}");
            let function: ItemFn = parse_quote! { #[doc = #text] fn add() {} };
            let error = FunctionDocs::parse(&function.attrs).expect_err(line);
            assert!(error.to_string().contains("write ``- `name`: what it is``"), "{error}");
        }
    }

    #[test]
    fn choices_are_split_off_the_end_only() {
        let (text, choices) =
            split_choices("The unit. (choices: [\"celsius\", \"fahrenheit\"])").expect("a list");
        assert_eq!(
            (text.as_str(), choices),
            ("The unit.", vec!["celsius".to_owned(), "fahrenheit".to_owned()])
        );
        let (text, choices) = split_choices("(choices: [\"a\"]) and more").expect("no list at the end");
        assert_eq!((text.as_str(), choices), ("(choices: [\"a\"]) and more", vec![]));
    }

    #[test]
    fn non_string_choices_are_an_error() {
        for wrong in ["(choices: [])", "(choices: [1, 2])", "(choices: a, b)"] {
            let message = split_choices(wrong).expect_err(wrong);
            assert!(message.contains("write `(choices: [\"a\", \"b\"])`"), "{message}");
        }
    }
}
