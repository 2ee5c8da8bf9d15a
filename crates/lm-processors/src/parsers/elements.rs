//! Values written as elements: members of objects by name, elements of lists as `item`.

use lm_template::{Map, Value};

use super::body::Fault;
use super::guard::unguarded;
use super::marker_scan::{Scan, scan};
use crate::declared_names::{Declared, declared};
use crate::dialect::ParameterCall;
use crate::values::{MAX_DEPTH, Schema, Types, typed_value};

/// Element name of list elements.
const ITEM: &str = "item";
/// Key of text next to elements.
const TEXT: &str = "$text";

/// Searches for the end of the current element, which `rest` continues; `depth` is the number of open elements inside
/// it. Returns the end of the decided text, and true if the closing marker is there.
///
/// # Errors
/// If elements are nested too deeply.
pub(super) fn elements_end(
    rest: &str,
    syntax: &ParameterCall,
    depth: &mut usize,
) -> Result<(usize, bool), Fault> {
    let (open, close) = (syntax.key.open, syntax.value.close);
    let mut at = 0;
    loop {
        match scan(&rest[at..], &[open, close], false) {
            Scan::Clear { until } => return Ok((at + until, false)),
            Scan::Found { start, marker: 1 } if *depth == 0 => return Ok((at + start, true)),
            Scan::Found { start, marker } => {
                at += start + if marker == 1 { close.len() } else { open.len() };
                *depth = if marker == 1 { *depth - 1 } else { *depth + 1 };
                if *depth > MAX_DEPTH {
                    return Err(Fault::malformed(format!("it is nested deeper than {MAX_DEPTH}")));
                }
            }
        }
    }
}

/// An open element.
struct Element<'a> {
    name: &'a str,
    schema: Option<Schema<'a>>,
    start: usize,
    text: String,
    children: Vec<(&'a str, Value)>,
}

impl<'a> Element<'a> {
    fn new(name: &'a str, schema: Option<Schema<'a>>, start: usize) -> Self {
        Self { name, schema, start, text: String::new(), children: Vec::new() }
    }

    fn types(&self) -> Types {
        self.schema.map_or(Types::ANY, Schema::types)
    }

    fn is_list(&self, only_items: bool) -> bool {
        let types = self.types();
        types.contains(Types::ARRAY) && (only_items || !types.contains(Types::OBJECT))
    }

    fn child_schema(&self, name: &str) -> Option<Schema<'a>> {
        let schema = self.schema?;
        if self.is_list(name == ITEM) { schema.items() } else { schema.property(name) }
    }

    /// The name of a child at the start of `text`.
    fn child_name<'t>(&self, text: &'t str, close: &str) -> Option<&'t str> {
        let plain = name_before(text, [], close)?;
        if self.child_schema(plain).is_some() {
            return Some(plain);
        }
        let names = self.schema.map(Schema::declared_names).unwrap_or_default();
        name_before(text, names.iter().map(String::as_str), close)
    }

    /// Value of the element; `inside` is the text between its markers.
    fn value(self, inside: &str, syntax: &ParameterCall) -> Value {
        let (schema, types) = (self.schema, self.types());
        let empty = inside.trim().is_empty();
        let readings = match () {
            // If a string is allowed, elements are text.
            () if types != Types::ANY && types.contains(Types::STRING) => vec![],
            () if !self.children.is_empty() => self.structures(),
            () if !empty || types == Types::ANY => vec![],
            () => {
                let all = [(Types::ARRAY, Value::Array(vec![])), (Types::OBJECT, Value::Object(Map::new()))];
                all.into_iter().filter(|(own, _)| types.contains(*own)).map(|(_, value)| value).collect()
            }
        };
        match schema {
            _ if readings.is_empty() => typed_value(&unguarded(inside), schema, syntax.untyped),
            Some(schema) => schema.first_fitting(readings),
            None => readings.into_iter().next().unwrap_or_default(),
        }
    }

    /// The list or object of the element's children; the likelier one first if both are possible.
    fn structures(self) -> Vec<Value> {
        let only_items = self.children.iter().all(|(name, _)| *name == ITEM);
        let list =
            self.is_list(only_items).then(|| self.children.iter().map(|(_, value)| value.clone()).collect());
        let both = list.is_some() && self.types().contains(Types::OBJECT) && self.schema.is_some();
        let object = (list.is_none() || both).then(|| self.object());
        list.into_iter().chain(object).collect()
    }

    fn object(self) -> Value {
        let mut members: Map<String, Value> = Map::new();
        for (name, value) in self.children {
            match members.entry(unguarded(name)).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(values) => values.push(value),
                _ => unreachable!("only lists are put in"),
            }
        }
        members.values_mut().for_each(unwrap_single);
        if !self.text.trim().is_empty() {
            let mut key = TEXT.to_owned();
            while members.contains_key(&key) {
                key.insert(0, '$');
            }
            members.insert(key, unguarded(&self.text).into());
        }
        Value::Object(members)
    }
}

/// The name at the start of `text`: one of `names`, or the text before `close`.
fn name_before<'t, 'n>(
    text: &'t str,
    names: impl IntoIterator<Item = &'n str>,
    close: &str,
) -> Option<&'t str> {
    let len = match declared(text, names, &[close]) {
        Declared::Found(name) => name.len(),
        Declared::Open | Declared::Absent => text.find(close)?,
    };
    Some(&text[..len])
}

/// Replaces a list of one value by the value: the name occurred once.
fn unwrap_single(value: &mut Value) {
    if let Value::Array(values) = value
        && values.len() == 1
        && let Some(single) = values.pop()
    {
        *value = single;
    }
}

/// Value of an argument with the text `text`.
///
/// # Errors
/// If its elements are not properly nested.
pub(super) fn element_value(
    text: &str,
    syntax: &ParameterCall,
    schema: Option<Schema<'_>>,
) -> Result<Value, Fault> {
    let markers = [syntax.key.open, syntax.value.close];
    let mut open = vec![Element::new("", schema, 0)];
    let mut at = 0;
    loop {
        let Some(top) = open.last_mut() else { return Err(Fault::malformed("its elements do not fit")) };
        let Scan::Found { start, marker } = scan(&text[at..], &markers, true) else {
            top.text.push_str(&text[at..]);
            break;
        };
        top.text.push_str(&text[at..at + start]);
        let name_start = at + start + markers[marker].len();
        let name = match marker {
            0 => top.child_name(&text[name_start..], syntax.key.close),
            _ => name_before(&text[name_start..], [top.name], syntax.key.close),
        };
        let name = name.ok_or_else(|| Fault::malformed("an element's name has no end"))?;
        let end = at + start;
        at = name_start + name.len() + syntax.key.close.len();
        if marker == 0 {
            let schema = top.child_schema(name);
            open.push(Element::new(name, schema, at));
        } else {
            let element = open.pop().filter(|element| element.name == name && !open.is_empty());
            let element =
                element.ok_or_else(|| Fault::malformed(format!("`{name}` is closed and not open")))?;
            let value = element_inside(element, text, end, syntax);
            if let Some(parent) = open.last_mut() {
                parent.children.push(value);
            }
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(root.value(text, syntax)),
        _ => Err(Fault::malformed("an element is not closed")),
    }
}

fn element_inside<'a>(
    element: Element<'a>,
    text: &str,
    end: usize,
    syntax: &ParameterCall,
) -> (&'a str, Value) {
    let (name, inside) = (element.name, &text[element.start..end]);
    (name, element.value(inside, syntax))
}
