//! Name of a call that starts with it, and the id that is part of it.

use crate::dialect::{NamedCall, NamedId, Nameless};
use crate::marker_guard::unguarded;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::{Departure, Tolerance};
use crate::parsers::tools::Tools;

/// Name of a call, with its id.
#[derive(Debug, Default)]
pub(super) struct CallName {
    pub(super) name: String,
    pub(super) id: Option<String>,
}

impl CallName {
    /// The declared `name`, if `after`, the text from there to the end of `word`, belongs to no longer name.
    pub(super) fn declared(name: String, word: &str, after: &str, syntax: &NamedCall) -> Option<Self> {
        let index = after.strip_prefix(':').filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
        let whole = if syntax.id == NamedId::NameAndIndex { index.is_some() } else { after.is_empty() };
        whole.then(|| Self { name, id: index.map(|_| word.to_owned()) })
    }

    /// The name in `word`.
    pub(super) fn undeclared(
        word: &str,
        syntax: &NamedCall,
        tools: &Tools,
        tolerance: Tolerance,
    ) -> Result<Self, Fault> {
        let word = word.strip_prefix(syntax.other.0).unwrap_or(word);
        let mut name = word.strip_prefix(syntax.before_name).unwrap_or(word);
        let mut id = None;
        if syntax.id == NamedId::NameAndIndex {
            let found = name_before_index(name, tools, tolerance);
            name = found.ok_or_else(|| Fault::malformed(format!("`{name}` is no name and index")))?;
            id = Some(unguarded(word).into_owned());
        }
        if name.contains(|c: char| c.is_whitespace() || c == '`') {
            return Err(Fault::malformed(format!("`{name}` is no name")));
        }
        if name.is_empty() && syntax.nameless == Nameless::Malformed {
            return Err(Fault::malformed("it has no name"));
        }
        Ok(Self { name: unguarded(name).into_owned(), id })
    }
}

/// Extracts the name from a word with an index: the part after the last dot, unless a declared tool has the
/// whole name. An index alone denotes the only tool.
fn name_before_index<'a>(word: &'a str, tools: &'a Tools, tolerance: Tolerance) -> Option<&'a str> {
    let is_index = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((name, _)) = word.rsplit_once(':').filter(|(_, index)| is_index(index)) {
        let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
        return Some(if tools.declares(name) { name } else { last });
    }
    let only = tools.only_name().filter(|_| is_index(word));
    let bare = tolerance.accepts(Departure::AffixedName).then(|| without_affixes(word));
    let declared = [Some(word), bare].into_iter().flatten().find(|name| tools.declares(name));
    only.or(declared)
}

/// The name in an id whose separators were lost or replaced: `functions_forecast_1`, `functionsforecast1`.
fn without_affixes(id: &str) -> &str {
    const SEPARATORS: [char; 3] = ['_', '.', ':'];
    let name = id.strip_prefix("functions").map_or(id, |name| name.strip_prefix(SEPARATORS).unwrap_or(name));
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.strip_suffix(SEPARATORS).unwrap_or(name)
}
