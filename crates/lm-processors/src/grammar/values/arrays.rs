//! Lists: prefix elements, then any number of equal ones.

use lm_template::Value;

use super::{Object, Values};
use crate::schema::list;

/// Maximum list length that is counted.
const MAX_COUNTED: u64 = 1_000;

impl Values<'_> {
    /// Minimum and maximum number of elements of a list, as far as they are counted; `None` for an empty
    /// range.
    pub(in crate::grammar) fn item_counts(
        &mut self,
        schema: &Object,
        path: &str,
    ) -> Option<(u64, Option<u64>)> {
        let mut count = |key: &str| {
            let given = schema.get(key).and_then(Value::as_u64)?;
            if given > MAX_COUNTED {
                self.leave_unenforced(path, key);
            }
            (given <= MAX_COUNTED).then_some(given)
        };
        let (min, max) = (count("minItems").unwrap_or(0), count("maxItems"));
        max.is_none_or(|max| max >= min).then_some((min, max))
    }

    pub(super) fn array(&mut self, schema: &Object, path: &str) -> Option<String> {
        let (min, max) = self.item_counts(schema, path)?;
        let prefix = list(schema, "prefixItems").unwrap_or_default();
        let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
        let first = self.first.take();
        let item = self.element(&items, first.as_ref(), &format!("{path}/items"));
        let (open, comma, close) = (self.mark("["), self.mark(self.spelling.comma), self.mark("]"));
        let mut heads = Vec::new();
        for (at, schema) in prefix.iter().take(max.unwrap_or(u64::MAX).min(MAX_COUNTED) as usize).enumerate()
        {
            let first = first.as_ref().filter(|_| at == 0);
            match self.element(schema, first, &format!("{path}/prefixItems/{at}")) {
                Some(head) => heads.push(head),
                None => break,
            }
        }
        let item = if heads.len() < prefix.len() { None } else { item };
        let members = self.members(&heads, item, &comma, min, max)?;
        Some(self.lark.rule(format!("{open} {members} {close}")))
    }

    /// Builds the content of a list: `heads` in order, then any number of `item`.
    fn members(
        &mut self,
        heads: &[String],
        item: Option<String>,
        comma: &str,
        min: u64,
        max: Option<u64>,
    ) -> Option<String> {
        let done = heads.len() as u64;
        let more = match (item, max) {
            (_, Some(max)) if max <= done => String::new(),
            (None, _) => String::new(),
            (Some(item), max) => {
                let item = self.lark.rule(item);
                let (least, most) = (min.saturating_sub(done), max.map(|max| max - done));
                return Some(self.repeated(heads, &item, comma, min, least, most));
            }
        };
        if min > done {
            return None;
        }
        Some(self.nested_heads(heads, comma, min, more))
    }

    fn repeated(
        &mut self,
        heads: &[String],
        item: &str,
        comma: &str,
        min: u64,
        least: u64,
        most: Option<u64>,
    ) -> String {
        if heads.is_empty() {
            if most == Some(0) {
                return "\"\"".to_owned();
            }
            let rest = match most.map(|most| most - 1) {
                Some(0) => String::new(),
                Some(most) => format!("({comma} {item}){{{},{most}}}", least.saturating_sub(1)),
                None if least > 1 => format!("({comma} {item}){{{},}}", least - 1),
                None => format!("({comma} {item})*"),
            };
            let rule = self.lark.rule(format!("{item} {rest}"));
            return if least == 0 { format!("{rule}?") } else { rule };
        }
        let more = match most {
            Some(0) => String::new(),
            Some(most) => format!("({comma} {item}){{{least},{most}}}"),
            None if least > 0 => format!("({comma} {item}){{{least},}}"),
            None => format!("({comma} {item})*"),
        };
        self.nested_heads(heads, comma, min, more)
    }

    /// `a (, b (, c more)?)?`: from the `min`th element on, each may be the last.
    fn nested_heads(&mut self, heads: &[String], comma: &str, min: u64, more: String) -> String {
        let mut rest = more;
        for (at, head) in heads.iter().enumerate().rev() {
            let before = if at == 0 { "" } else { comma };
            let body = self.lark.rule(format!("{before} {head} {rest}"));
            rest = if (at as u64) < min { body } else { format!("{body}?") };
        }
        if rest.is_empty() { "\"\"".to_owned() } else { rest }
    }
}
