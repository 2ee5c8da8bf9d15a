//! Grammar of a call as a JSON object.

use lm_template::Value;

use super::super::lark::{Lark, literal, one_of, sequence};
use super::super::values::Spelling;
use crate::dialect::{JsonKey, JsonObject};
use crate::layout::Layout;

/// Builds `{"name": "f", "arguments": ARGUMENTS}`, with the family's key order and names, or all accepted
/// ones.
pub(super) fn json_object(
    lark: &mut Lark,
    object: &JsonObject,
    spelling: &Spelling,
    layout: Layout,
    name: &str,
    arguments: &str,
) -> String {
    let JsonObject::Keys { written, aliases } = object else {
        let (open, colon) = (spelling.mark("{", layout), spelling.mark(spelling.colon, layout));
        return sequence([
            &*open,
            &literal(&spelling.write_key(name, &[])),
            &colon,
            arguments,
            &spelling.mark("}", layout),
        ]);
    };
    let name = literal(&Value::from(name).to_string());
    let id = "/\\x22[A-Za-z0-9_-]{1,64}\\x22/";
    let mut orders: Vec<Vec<(JsonKey, Vec<&str>)>> =
        vec![written.iter().map(|(key, text)| (*key, vec![*text])).collect()];
    if layout == Layout::Any {
        let all = |key: JsonKey| {
            written.iter().chain(*aliases).filter(move |(own, _)| *own == key).map(|(_, text)| *text)
        };
        let mut parts = vec![
            (JsonKey::Name, all(JsonKey::Name).collect()),
            (JsonKey::Arguments, all(JsonKey::Arguments).collect()),
        ];
        orders = permutations(&parts);
        let ids: Vec<&str> = all(JsonKey::Id).collect();
        if !ids.is_empty() {
            parts.push((JsonKey::Id, ids));
            orders.extend(permutations(&parts));
        }
    }
    let options: Vec<String> = orders
        .iter()
        .map(|order| {
            let mut parts = vec![spelling.mark("{", layout)];
            for (at, (key, names)) in order.iter().enumerate() {
                if at > 0 {
                    parts.push(spelling.mark(spelling.comma, layout));
                }
                let names: Vec<String> =
                    names.iter().map(|text| literal(&spelling.write_key(text, &[]))).collect();
                parts.push(one_of(&names));
                parts.push(spelling.mark(spelling.colon, layout));
                parts.push(match key {
                    JsonKey::Name => name.clone(),
                    JsonKey::Arguments => arguments.to_owned(),
                    JsonKey::Id => id.to_owned(),
                });
            }
            parts.push(spelling.mark("}", layout));
            parts.join(" ")
        })
        .collect();
    lark.rule(options.join(" | "))
}

fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    let mut found = Vec::new();
    for at in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(at);
        found.extend(permutations(&rest).into_iter().map(|mut order| {
            order.insert(0, first.clone());
            order
        }));
    }
    found
}
