//! References: each target is read once and becomes a definition.

use std::collections::BTreeMap;

use lm_template::Value;
use serde_json::json;

use super::error::{SchemaError, SchemaFault};
use super::keywords::role;
use super::node::{Closing, Node, Object, Place};
use super::normalize::Normalizer;

impl Normalizer<'_> {
    pub(super) fn reference(&mut self, node: Node<'_>, reference: &Value) -> Result<Value, SchemaError> {
        let text = reference.as_str();
        let text = text.ok_or_else(|| SchemaError::bad(node.path, "$ref", "it must be a string"))?;
        let restricts =
            |key: &String| key != "$ref" && role(key).is_some() && !self.document.ref_stands_alone;
        let siblings = node.map.iter().filter(|(key, _)| restricts(key));
        let siblings: Object = siblings.map(|(key, value)| (key.clone(), value.clone())).collect();
        let closing = if siblings.is_empty() { node.place.closing } else { Closing::Open };
        let place = Place { closing, ..node.place };
        let name = self.definition(text, node.path, place)?;
        let reference = json!({"$ref": format!("#/$defs/{name}")});
        if siblings.is_empty() {
            return Ok(reference);
        }
        if !self.definitions.contains_key(&name) {
            // The target is still being read: siblings of a recursive reference cannot be merged with it.
            siblings.keys().for_each(|keyword| self.leave_unenforced(node.path, keyword));
            return Ok(reference);
        }
        let beside = self.object(Node { map: &siblings, place, ..node })?;
        Ok(json!({"allOf": [reference, beside]}))
    }

    /// Name of the definition that `reference` points to, which is read on first use.
    fn definition(&mut self, reference: &str, path: &str, place: Place) -> Result<String, SchemaError> {
        let Some((pointer, target)) = self.document.resolve(reference) else {
            return Err(match reference.starts_with('#') {
                false => SchemaError::new(path, "$ref", SchemaFault::Unsupported),
                true => SchemaError::bad(path, "$ref", &format!("the schema has nothing at {reference}")),
            });
        };
        let key = (pointer, place.closing);
        let known = self.names.get(&key).copied();
        let number = known.unwrap_or(self.names.len());
        if let Some(definition) = place.definition {
            self.in_place.push((definition, number, path.to_owned()));
        }
        let name = format!("d{number}");
        if known.is_none() {
            let at = format!("#{}", key.0);
            self.names.insert(key, number);
            let place = Place { depth: place.depth + 1, definition: Some(number), ..place };
            let schema = self.schema(target, &at, place)?;
            self.definitions.insert(name.clone(), schema);
        }
        Ok(name)
    }

    /// Refuses definitions that contain themselves in place, by which no value can be decided.
    pub(super) fn reject_cycles(&self) -> Result<(), SchemaError> {
        let mut edges: BTreeMap<usize, Vec<(usize, &str)>> = BTreeMap::new();
        for (from, to, path) in &self.in_place {
            edges.entry(*from).or_default().push((*to, path));
        }
        let mut seen: BTreeMap<usize, Visit> = BTreeMap::new();
        for &start in edges.keys() {
            // Depth-first search: an open definition that is reached again is a cycle.
            let mut stack = vec![(start, 0)];
            while let Some((at, next)) = stack.pop() {
                match edges.get(&at).and_then(|edges| edges.get(next)) {
                    _ if next == 0 && seen.get(&at) == Some(&Visit::Done) => {}
                    Some(&(to, path)) => {
                        seen.insert(at, Visit::Open);
                        stack.push((at, next + 1));
                        match seen.get(&to) {
                            Some(Visit::Open) => {
                                return Err(SchemaError::bad(path, "$ref", "it leads back to itself"));
                            }
                            Some(Visit::Done) => {}
                            None => stack.push((to, 0)),
                        }
                    }
                    None => drop(seen.insert(at, Visit::Done)),
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    Open,
    Done,
}
