//! Lists of items in pages.

use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::shown;

/// Default number of items of a page, and the maximum.
const PAGE: (usize, usize) = (20, 100);

/// An item in the form that OpenAI's API lists it in: messages have a type, a status and parts.
pub(super) fn listed(mut item: Value) -> Value {
    if item["type"].is_null() {
        item["type"] = "message".into();
    }
    if item["type"] != "message" {
        return item;
    }
    if item["status"].is_null() {
        item["status"] = "completed".into();
    }
    if let Some(text) = item["content"].as_str() {
        item["content"] = match item["role"] == "assistant" {
            true => json!([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]),
            false => json!([{"type": "input_text", "text": text}]),
        };
    }
    item
}

/// Returns a page of items as a list object. `query` has the parameters of the URL: `limit` (1 to 100; 20 if
/// absent), `order` (`desc`, the default, or `asc`) and `after`, the id of the item before the page.
///
/// ```
/// use lm_api::item_page;
/// use serde_json::json;
///
/// let items = ["a", "b", "c"].map(|id| json!({"id": id})).to_vec();
/// let page = item_page(items, &[("order".into(), "asc".into()), ("limit".into(), "2".into())])?;
/// assert_eq!((&page["last_id"], &page["has_more"]), (&json!("b"), &json!(true)));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
///
/// # Errors
/// When a parameter has another value; others are ignored.
pub fn item_page(mut items: Vec<Value>, query: &[(String, String)]) -> Result<Value> {
    let given = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let wrong = |name: &str, expected: &str| {
        ApiError::unexpected(name, shown(&given(name).unwrap_or_default().into()), expected)
    };
    match given("order") {
        Some("asc") => {}
        None | Some("desc") => items.reverse(),
        Some(_) => return Err(wrong("order", "\"asc\" or \"desc\"")),
    }
    let limit = given("limit").map(|limit| limit.parse().ok().filter(|limit| (1..=PAGE.1).contains(limit)));
    let limit = limit.unwrap_or(Some(PAGE.0)).ok_or_else(|| wrong("limit", "a number from 1 to 100"))?;
    if let Some(after) = given("after") {
        let before = items.iter().position(|item| item["id"] == after);
        items.drain(..=before.ok_or_else(|| wrong("after", "the id of an item"))?);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    let (first, last) = (id(items.first()), id(items.last()));
    let items: Vec<Value> = items.into_iter().map(listed).collect();
    Ok(json!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_page_has_no_more() {
        let items = || ["a", "b"].map(|id| json!({"id": id})).to_vec();
        for (limit, has_more) in [("1", true), ("2", false), ("3", false)] {
            let page = item_page(items(), &[("limit".to_owned(), limit.to_owned())]).expect("a page");
            assert_eq!(page["has_more"], has_more, "{limit}");
        }
    }

    #[test]
    fn messages_have_parts_of_their_role() {
        let listed = |role: &str| listed(json!({"role": role, "content": "x"}))["content"][0].clone();
        assert_eq!(listed("user"), json!({"type": "input_text", "text": "x"}));
        let output = json!({"type": "output_text", "text": "x", "annotations": [], "logprobs": []});
        assert_eq!(listed("assistant"), output);
        let cut = json!({"type": "message", "role": "assistant", "status": "incomplete", "content": []});
        assert_eq!(super::listed(cut.clone()), cut);
    }
}
