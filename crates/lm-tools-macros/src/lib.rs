#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod docs;
mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Makes a tool of a function: its name, its docs and its argument types become the declaration that the model
/// reads, and a call with JSON arguments becomes a call of the function.
///
/// Beside `fn multiply` there is then a type of the same name: `multiply(3, 2)` calls the function as before,
/// `multiply::tool()` is the tool.
///
/// # Docs
/// - The text of the doc comment up to its first heading is the description. It must be there: a model chooses by
///   it.
/// - An argument is described by a doc comment on it, or by a line ``- `name`: text`` under a heading
///   `# Arguments`; not by both. An argument without docs is declared without a description.
/// - A description that ends with `(choices: ["celsius", "fahrenheit"])` declares these values as an `enum`, and
///   they are left out of the text.
///
/// # Types
/// - Arguments are owned and implement `serde::Deserialize` and `schemars::JsonSchema`. An argument written
///   `Option<T>` is not required, and declared as `T`.
/// - The result implements `serde::Serialize`; a type written `Result<T, E>`, with `E: Display`, is a tool that
///   can fail. Functions return at once: there is no `async`.
///
/// # Options
/// `#[tool(name = "…", description = "…")]` replaces the name or the description that the model reads.
///
/// # Errors
/// A function that cannot be a tool (`self`, generics, patterns or references as arguments, `async`) is a compile
/// error that says what to write in its place.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into()).into()
}
