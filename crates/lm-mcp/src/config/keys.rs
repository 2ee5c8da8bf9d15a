//! Keys and values of JSON objects, with their places in errors.

use crate::{Error, Result};
use lm_tools::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of keys that an error quotes.
const MAX_QUOTED: usize = 5;

/// An unknown key of a file of servers, without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// Its path, such as `mcpServers.time.autoApprove`.
    pub path: String,
    /// The key itself.
    pub name: String,
    /// Keys that are known at this place.
    pub known: Vec<&'static str>,
}

/// The keys of an object, taken one by one.
pub(super) struct Keys<'a> {
    values: Vec<(&'a String, &'a Value)>,
    /// Keys that were asked for.
    known: Vec<&'static str>,
    at: String,
}

impl<'a> Keys<'a> {
    pub fn of(value: &'a Value, at: String) -> Result<Self> {
        Ok(Self { values: object(value, &at)?.iter().collect(), known: Vec::new(), at })
    }

    /// Takes the value of a key; `null` counts as absent.
    pub fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        let index = self.values.iter().position(|(name, _)| *name == key)?;
        Some(self.values.remove(index).1).filter(|value| !value.is_null())
    }

    pub fn path(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    /// The unread keys.
    pub fn unknown(&self) -> Vec<UnknownKey> {
        let unknown = |name: &String| UnknownKey {
            path: self.path(name),
            name: name.clone(),
            known: self.known.clone(),
        };
        self.values.iter().map(|(name, _)| unknown(name)).collect()
    }

    /// Error for a missing key, with the unread ones.
    pub fn missing(&self, key: &str, expected: &'static str) -> Error {
        let found = self.values.iter().take(MAX_QUOTED).map(|(name, _)| (*name).clone()).collect();
        Error::MissingConfig { key: self.path(key), expected, found }
    }

    /// Error for keys that exclude each other.
    pub fn contradiction(&self, expected: &'static str) -> Error {
        Error::InvalidConfig { key: self.at.clone(), expected, got: "both".to_owned() }
    }
}

pub(super) fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>> {
    let at = if at.is_empty() { "the file" } else { at };
    value.as_object().ok_or_else(|| invalid(at, "an object", value))
}

pub(super) fn text(value: &Value, at: &str) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid(at, "a string", value))
}

pub(super) fn list_of_texts(value: &Value, at: &str) -> Result<Vec<String>> {
    let items = value.as_array().ok_or_else(|| invalid(at, "an array of strings", value))?;
    items.iter().enumerate().map(|(index, item)| text(item, &format!("{at}[{index}]"))).collect()
}

pub(super) fn port(value: &Value, at: &str) -> Result<u16> {
    let port = value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    port.ok_or_else(|| invalid(at, "a port, 1 to 65535", value))
}

pub(super) fn boolean(value: &Value, at: &str) -> Result<bool> {
    value.as_bool().ok_or_else(|| invalid(at, "true or false", value))
}

pub(super) fn texts(value: &Value, at: &str) -> Result<BTreeMap<String, String>> {
    let value = value.as_object().ok_or_else(|| invalid(at, "an object of strings", value))?;
    value.iter().map(|(key, value)| Ok((key.clone(), text(value, &format!("{at}.{key}"))?))).collect()
}

/// Error for a value: a short one is quoted, so that it is found in the file.
pub(super) fn invalid(key: &str, expected: &'static str, got: &Value) -> Error {
    let got = match got {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string().chars().take(80).collect(),
    };
    Error::InvalidConfig { key: key.to_owned(), expected, got }
}
