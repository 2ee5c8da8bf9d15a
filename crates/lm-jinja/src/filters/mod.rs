//! Jinja2's filters.

mod attr;
mod html;
mod numbers;
mod select;
mod sequences;
mod sorting;
mod texts;
mod tojson;

use crate::builtins::FilterId;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::values::{Args, Value};

/// A filter: receives the value and the arguments.
type Filter = fn(&mut Interpreter<'_>, Value, Args) -> Result<Value>;

/// Filters by name.
const ALL: &[(&str, Filter)] = &[
    ("abs", numbers::abs),
    ("attr", attr::attr),
    ("batch", sequences::batch),
    ("capitalize", texts::capitalize),
    ("center", texts::center),
    ("count", sequences::length),
    ("d", sequences::default),
    ("default", sequences::default),
    ("dictsort", sorting::dictsort),
    ("e", html::escape_filter),
    ("escape", html::escape_filter),
    ("filesizeformat", numbers::filesizeformat),
    ("first", sequences::first),
    ("float", numbers::float),
    ("forceescape", html::forceescape),
    ("format", texts::format),
    ("groupby", sorting::groupby),
    ("indent", texts::indent),
    ("int", numbers::int),
    ("items", sequences::items),
    ("join", texts::join),
    ("last", sequences::last),
    ("length", sequences::length),
    ("list", sequences::list),
    ("lower", texts::lower),
    ("map", select::map),
    ("max", sorting::max),
    ("min", sorting::min),
    ("pprint", texts::pprint),
    ("random", |_, _, _| not_offered("random")),
    ("reject", select::reject),
    ("rejectattr", select::rejectattr),
    ("replace", texts::replace),
    ("reverse", sequences::reverse),
    ("round", numbers::round),
    ("safe", html::safe),
    ("select", select::select),
    ("selectattr", select::selectattr),
    ("slice", sequences::slice),
    ("sort", sorting::sort),
    ("string", texts::string),
    ("striptags", html::striptags),
    ("sum", numbers::sum),
    ("title", texts::title),
    ("tojson", tojson::tojson),
    ("trim", texts::trim),
    ("truncate", texts::truncate),
    ("unique", sorting::unique),
    ("upper", texts::upper),
    ("urlencode", html::urlencode),
    ("urlize", |_, _, _| not_offered("urlize")),
    ("wordcount", texts::wordcount),
    ("wordwrap", |_, _, _| not_offered("wordwrap")),
    ("xmlattr", html::xmlattr),
];

/// Looks up a filter by name.
pub(crate) fn find(name: &str) -> Option<FilterId> {
    ALL.binary_search_by(|(found, _)| (*found).cmp(name)).ok().map(FilterId)
}

/// Applies a filter.
pub(crate) fn apply(
    filter: FilterId,
    interpreter: &mut Interpreter<'_>,
    value: Value,
    args: Args,
) -> Result<Value> {
    (ALL[filter.0].1)(interpreter, value, args)
}

/// Error of an unsupported filter: those for web pages, and `random`, since a prompt depends only on its
/// input.
fn not_offered(name: &str) -> Result<Value> {
    Err(Error::runtime(format!("the filter '{name}' is not offered")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn filters_are_sorted() {
        assert!(super::ALL.is_sorted_by(|a, b| a.0 < b.0));
    }
}
