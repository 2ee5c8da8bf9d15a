//! Sources of tools.

use super::Toolset;
use crate::error::Result;
use crate::tool::Tool;
use std::sync::Arc;

/// Tools that [`Toolset::with`] adds: a [`Tool`], the tools of a value (`db.tools()`), or another toolset.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "for a function with `#[tool]` write `name::tool()`, for an `Arc` of a type with `#[tools]` write `value.tools()`"
)]
pub trait IntoTools {
    /// Adds the tools to a toolset, in order.
    ///
    /// # Errors
    /// Same errors as [`Toolset::with`].
    fn add_to(self, tools: Toolset) -> Result<Toolset>;
}

impl<T: Tool + 'static> IntoTools for T {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        tools.with_tool(Arc::new(self))
    }
}

impl IntoTools for Box<dyn Tool> {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        tools.with_tool(self.into())
    }
}

impl IntoTools for Arc<dyn Tool> {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        tools.with_tool(self)
    }
}

impl<T: IntoTools> IntoTools for Vec<T> {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        self.into_iter().try_fold(tools, |tools, tool| tool.add_to(tools))
    }
}

impl IntoTools for Toolset {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        self.entries.into_iter().try_fold(tools, Toolset::with_entry)
    }
}

impl IntoTools for &Toolset {
    fn add_to(self, tools: Toolset) -> Result<Toolset> {
        self.clone().add_to(tools)
    }
}

/// Creates a [`Toolset`] of functions and other tools, in order; a `Result`, since names may conflict.
///
/// A path is a function with `#[tool]`. Any other expression gives tools, as [`Toolset::with`] takes them:
/// `db.tools()`, `&other_tools`.
///
/// ```
/// use lm_tools::{tool, tools, toolset};
/// use std::sync::Arc;
///
/// /// Multiply a and b.
/// #[tool]
/// fn multiply(a: i64, b: i64) -> i64 {
///     a * b
/// }
///
/// struct Shelf(Vec<String>);
///
/// #[tools]
/// impl Shelf {
///     /// Lists the books.
///     #[tool(read_only)]
///     fn books(&self) -> Vec<String> {
///         self.0.clone()
///     }
/// }
///
/// let shelf = Arc::new(Shelf(vec!["Emma".to_owned()]));
/// let tools = toolset![multiply, shelf.tools()]?;
/// let more = toolset![&tools, lm_tools::demo().select(["get_weather"])?.with_prefix("demo")?]?;
/// let names: Vec<String> = more.specs().iter().map(|spec| spec.name().to_owned()).collect();
/// assert_eq!(names, ["multiply", "books", "demo_get_weather"]);
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[macro_export]
macro_rules! toolset {
    (@add $tools:expr $(,)?) => { $tools };
    (@add $tools:expr, $($function:ident)::+ $(, $($rest:tt)*)?) => {
        $crate::toolset!(@add $tools.and_then(|tools| tools.with($($function)::+::tool())), $($($rest)*)?)
    };
    (@add $tools:expr, $source:expr $(, $($rest:tt)*)?) => {
        $crate::toolset!(@add $tools.and_then(|tools| tools.with($source)), $($($rest)*)?)
    };
    ($($tools:tt)*) => {
        $crate::toolset!(@add $crate::Result::Ok($crate::Toolset::new()), $($tools)*)
    };
}
