//! Keys of a call's JSON object.

use lm_template::{ToolCall, Value};
use serde_json::Map;

use crate::dialect::{JsonKey, JsonObject};
use crate::parsers::fault::Fault;

/// Key of a call inside an object with its type, and the value of that type.
const WRAPPER: &str = "function";

/// Conversion of objects to calls by their keys.
#[derive(Debug)]
pub(super) struct CallKeys {
    pub(super) object: JsonObject,
    /// True if calls have no marker, so that other JSON is text.
    pub(super) bare: bool,
}

impl CallKeys {
    /// Returns true if the only key of an object is its tool's name.
    pub(super) fn name_is_key(&self) -> bool {
        matches!(self.object, JsonObject::NameIsKey)
    }

    /// The part of a call that a key of its object denotes.
    pub(super) fn part(&self, key: &str) -> Option<JsonKey> {
        match self.object {
            JsonObject::NameIsKey => Some(JsonKey::Arguments),
            JsonObject::Keys { written, aliases } => {
                written.iter().chain(aliases).find(|(_, name)| *name == key).map(|(part, _)| *part)
            }
        }
    }

    /// Converts an object to a call.
    pub(super) fn call(&self, object: Map<String, Value>) -> Result<ToolCall, Fault> {
        let call = if self.name_is_key() { of_one_member(object)? } else { self.of_parts(object)? };
        ToolCall::from_json(call.into()).map_err(|error| Fault::malformed(error.to_string()))
    }

    fn of_parts(&self, object: Map<String, Value>) -> Result<Map<String, Value>, Fault> {
        let object = self.unwrapped(object)?;
        self.check(&object)?;
        let mut call = Map::new();
        for (key, value) in object {
            let (key, value) = match (self.part(&key), value) {
                (Some(JsonKey::Name), name) => ("name", name),
                (Some(JsonKey::Arguments), arguments) => ("arguments", arguments),
                (Some(JsonKey::Id), Value::Number(id)) => ("id", id.to_string().into()),
                (Some(JsonKey::Id), id) => ("id", id),
                (None, value) => (key.as_str(), value),
            };
            call.entry(key).or_insert(value);
        }
        Ok(call)
    }

    /// Moves the members of the object inside a [`WRAPPER`] beside the others. An object with other members
    /// is not a call but, for example, a declaration.
    fn unwrapped(&self, mut object: Map<String, Value>) -> Result<Map<String, Value>, Fault> {
        if !object.get(WRAPPER).is_some_and(Value::is_object) {
            return Ok(object);
        }
        let Some(Value::Object(members)) = object.remove(WRAPPER) else { return Ok(object) };
        for (key, value) in members {
            match self.part(&key) {
                Some(_) if !object.contains_key(&key) => object.insert(key, value),
                _ => return Err(Fault::not_a_call(format!("`{WRAPPER}.{key}` is not a key of a call"))),
            };
        }
        Ok(object)
    }

    /// Checks that nothing of an object is lost as a call: an object without arguments has no other keys.
    /// Without a marker, a call has arguments and no other keys.
    fn check(&self, object: &Map<String, Value>) -> Result<(), Fault> {
        let is_arguments = |key: &String| key == WRAPPER || self.part(key) == Some(JsonKey::Arguments);
        let has_arguments = object.keys().any(is_arguments);
        let is_known = |(key, value): (&String, &Value)| {
            key == WRAPPER || self.part(key).is_some() || (key == "type" && value == WRAPPER)
        };
        let other = object.iter().find(|member| !is_known(*member)).map(|(key, _)| key);
        match other {
            Some(key) if self.bare || !has_arguments => {
                Err(Fault::not_a_call(format!("`{key}` is not a key of a call")))
            }
            None if self.bare && !has_arguments => Err(Fault::not_a_call("it has no arguments")),
            _ => Ok(()),
        }
    }
}

/// Parts of a call whose object has the tool's name as its only key.
fn of_one_member(object: Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let mut members = object.into_iter();
    let (Some((name, arguments)), None) = (members.next(), members.next()) else {
        return Err(Fault::malformed("its object must have one key, the tool's name"));
    };
    Ok(Map::from_iter([("name".to_owned(), name.into()), ("arguments".to_owned(), arguments)]))
}
