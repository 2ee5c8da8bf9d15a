//! Functions of chat templates, by name.

/// A built-in function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Cycler,
    Dict,
    DictFromKeys,
    Joiner,
    Namespace,
    RaiseException,
    Range,
    /// `self`, whose attributes are the blocks of the template.
    SelfReference,
    StrftimeNow,
}

/// Global functions by name.
const GLOBALS: &[(&str, Function)] = &[
    ("cycler", Function::Cycler),
    ("dict", Function::Dict),
    ("joiner", Function::Joiner),
    ("namespace", Function::Namespace),
    ("raise_exception", Function::RaiseException),
    ("range", Function::Range),
    ("self", Function::SelfReference),
    ("strftime_now", Function::StrftimeNow),
];

impl Function {
    /// Looks up a global function by name.
    pub(crate) fn global(name: &str) -> Option<Self> {
        GLOBALS.iter().find(|(found, _)| *found == name).map(|(_, function)| *function)
    }
}
