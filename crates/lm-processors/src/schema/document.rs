//! References inside one document.

use lm_template::Value;

/// A schema document, which resolves references.
pub(super) struct Document<'a> {
    root: &'a Value,
    /// URI of the document, without a fragment; empty if it has none.
    base: &'a str,
    /// True if `$ref` overrides its sibling keywords, as up to draft 7.
    pub(super) ref_stands_alone: bool,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let text = |key: &str| root.get(key).and_then(Value::as_str).unwrap_or_default();
        let draft = text("$schema");
        let ref_stands_alone =
            ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old));
        let base = [text("$id"), text("id")].into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        Self { root, base: base.split('#').next().unwrap_or_default(), ref_stands_alone }
    }

    pub(super) fn root(&self) -> &'a Value {
        self.root
    }

    /// Resolves `reference` to a pointer and its schema; `None` if it points outside the document or nowhere.
    pub(super) fn resolve(&self, reference: &str) -> Option<(String, &'a Value)> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !base.is_empty() && base != self.base {
            return None;
        }
        let fragment = percent_decoded(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let found = self.root.pointer(&fragment).or_else(|| (fragment == "/").then_some(self.root))?;
            return Some((fragment, found));
        }
        let (pointer, found) = anchored(self.root, &fragment, String::new(), 0)?;
        Some((pointer, found))
    }
}

/// Finds the schema with this `anchor`, and its pointer.
fn anchored<'a>(
    value: &'a Value,
    anchor: &str,
    pointer: String,
    depth: usize,
) -> Option<(String, &'a Value)> {
    if depth > super::node::MAX_DEPTH * 2 {
        return None;
    }
    match value {
        Value::Object(map) => {
            let is = |key: &str| map.get(key).and_then(Value::as_str);
            if is("$anchor") == Some(anchor)
                || [is("$id"), is("id")].iter().flatten().any(|id| id.strip_prefix('#') == Some(anchor))
            {
                return Some((pointer, value));
            }
            map.iter().find_map(|(key, value)| {
                anchored(value, anchor, format!("{pointer}/{}", escaped(key)), depth + 1)
            })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, value)| anchored(value, anchor, format!("{pointer}/{at}"), depth + 1)),
        _ => None,
    }
}

/// A key as a token of a JSON pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
