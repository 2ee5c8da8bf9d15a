#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod docs;
mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Turns a function into a tool: its name, its doc comment and its argument types become the declaration for the model,
/// and calls with JSON arguments are passed to the function.
///
/// For `fn multiply`, the macro adds a type of the same name: `multiply(3, 2)` calls the function as before,
/// `multiply::tool()` is the tool.
///
/// # Docs
/// - The text of the doc comment up to its first heading or section (`Args:`, `Returns:`, `Raises:`) is the description. It is required: the model selects tools
///   by it.
/// - An argument is described by a doc comment on it, or by a line ``- `name`: text`` under a heading
///   `# Arguments`, or by `name: text` in an `Args:` section as in Python; once. An argument without docs is declared without a description.
/// - A description that ends with `(choices: ["celsius", "fahrenheit"])` declares these values as an `enum`; the list
///   is removed from the text.
///
/// # Types
/// - Arguments are owned and implement `serde::Deserialize` and `schemars::JsonSchema`. An argument with the type
///   `Option<T>` is optional, and declared as `T`.
/// - The result implements `serde::Serialize`; a result type `Result<T, E>`, with `E: Display`, makes a tool that
///   can fail.
/// - An `async fn` makes an asynchronous tool. It runs on the runtime of `Toolset::with_spawner`, or else on a thread.
/// - An argument of the type `&CallContext` or `State<T>` is given by the toolset and is not declared.
///
/// # Options
/// `#[tool(name = "…", description = "…")]` overrides the name or the description in the declaration, and `timeout = "5s"` (or `ms`,
/// `m`) limits the time of a call.
///
/// # Errors
/// A function that cannot be a tool (`self`, generics, patterns or references as arguments) is a compile
/// error that suggests a replacement.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into()).into()
}
