#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arg_options;
mod docs;
mod expand;
mod methods;
mod options;
mod signature;
mod tool_fn;
mod types;

use proc_macro::TokenStream;

/// Turns a function into a tool: its name, its doc comment and its argument types become the declaration for
/// the model, and calls with JSON arguments are passed to the function.
///
/// For `fn multiply`, the macro adds a type of the same name: `multiply(3, 2)` calls the function as before,
/// `multiply::tool()` is the tool. Methods become tools with [`#[tools]`](macro@tools).
///
/// # Docs
/// - The text of the doc comment up to its first heading or section (`Args:`, `Returns:`, `Raises:`) is the
///   description. It is required: the model selects tools by it.
/// - An argument is described by a doc comment on it, or by a line ``- `name`: text`` under a heading
///   `# Arguments`, or by `name: text` in an `Args:` section as in Python; once. An argument without docs is
///   declared without a description.
/// - A description that ends with `(choices: ["celsius", "fahrenheit"])` declares these values as an `enum`;
///   the list is removed from the text.
/// - A section `Returns:`, or a heading `# Returns`, describes the result of a function with a return type:
///   the declaration has its description, and the type's schema if it implements `schemars::JsonSchema`,
///   under `return`, as `get_json_schema` of transformers does.
///
/// # Types
/// - Arguments are owned and implement `serde::Deserialize` and `schemars::JsonSchema`. An argument with the
///   type `Option<T>` is optional, and declared as `T`.
/// - The result implements `serde::Serialize`; a result type `Result<T, E>`, with `E: Display`, makes a tool
///   that can fail.
/// - An `async fn` makes an asynchronous tool. It runs on the runtime of `Toolset::with_spawner`, or else on
///   a thread.
/// - An argument of the type `&CallContext` or `State<T>` is given by the toolset and is not declared.
///
/// # Options of the tool
/// | `#[tool(..)]` | effect |
/// |---|---|
/// | `name = ".."`, `description = ".."` | replace those of the function |
/// | `timeout = "5s"` (`ms`, `m`) | limits the time of a call |
/// | `retries = 2` | attempts after the first one, with the delays of `RetryPolicy::default()` |
/// | `sequential` | no other call runs at the same time |
/// | `strict` | the schema as OpenAI's strict mode requires it: no other arguments, all of them required, optional ones nullable |
/// | `output_schema`, `output_schema = Type` | describes the result: by the return type (`T` of a `Result<T, E>`), or another one; it implements `schemars::JsonSchema` |
/// | `title = ".."`, `read_only`, `destructive = false`, `idempotent`, `open_world = false` | hints about effects, `ToolAnnotations` |
///
/// # Options of an argument
/// | `#[arg(..)]` | effect |
/// |---|---|
/// | `default = value`, `default` | the argument may be missing: the function gets this value, or `Default::default()`; it is in the schema, too |
/// | `range(1..=10)`, `range(0.0..)` | limits of a number |
/// | `length(1..=80)` | limits of a text's characters, a list's items, a map's entries |
/// | `pattern = "^[a-z]+$"` | regular expression that a text contains |
/// | `choices("a", "b")`, `choices(1, 2)` | the only values |
/// | `items(range(..), length(..), pattern = "..", choices(..))` | the same for each item of a list |
/// | `example = value` | an example in the schema |
/// | `rename = ".."`, `description = ".."` | name and description for the model |
///
/// The schema restricts the model's grammar, and arguments are validated against it before the function runs.
///
/// # Errors
/// A function that cannot be a tool (`self`, generics, patterns or references as arguments) is a compile
/// error that suggests a replacement.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into()).into()
}

/// Turns the methods of an `impl` block that have `#[tool]` into tools of one value.
///
/// The macro adds a method `tools(self: &Arc<Self>) -> Vec<Box<dyn Tool>>`, for `Toolset::with`; the methods
/// stay unchanged. A method takes `&self`, or no receiver, and everything that [`#[tool]`](macro@tool) knows
/// for functions, which also documents the options. The type is `Send + Sync + 'static`: calls run at the
/// same time, on several threads.
///
/// # Errors
/// A block of a trait or with generics, `self` and `&mut self` are compile errors that suggest a replacement.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    methods::tools(options.into(), item.into()).into()
}
