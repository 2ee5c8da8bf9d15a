//! Random tools, and arguments that match them.

use lm_processors::{ToolSpec, Value};
use serde_json::{Map, json};

/// Random numbers from a fuzzer's bytes or from a seed.
pub struct Random<'a> {
    bytes: std::slice::Iter<'a, u8>,
    state: u64,
}

impl<'a> Random<'a> {
    /// Pseudo-random numbers, reproducible by seed.
    #[allow(dead_code, reason = "the fuzz target has bytes")]
    pub fn seeded(seed: u64) -> Self {
        Self { bytes: [].iter(), state: seed.wrapping_mul(7919).wrapping_add(1) }
    }

    /// Numbers from these bytes, then from a fixed seed.
    #[allow(dead_code, reason = "the tests have seeds")]
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter(), state: 1 }
    }

    /// A number from 0 to `limit`, exclusive.
    pub fn below(&mut self, limit: u64) -> u64 {
        if let Some(byte) = self.bytes.next() {
            return u64::from(*byte) % limit;
        }
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

const NAMES: [&str; 14] = [
    "k",
    "name",
    "item",
    "a b",
    "@type",
    "filter[status]",
    "x:y",
    "größe",
    "$ref-like",
    "a=b",
    "user's",
    "q{id}",
    "k1",
    "content-type",
];

const TOOLS: [&str; 8] = ["do_it", "server/tool", "a.b", "get-x", "print", "größe", "f x", "ns:f"];

/// Listed texts: some read as another type, and some are the beginning of others.
const LISTED: [&[&str]; 4] = [
    &["one", "two words", "3rd, \"quoted\"", "null", "1", "</parameter>", "[1]"],
    &["a", "a<b", "a</", "a\"", "a'", "a,", "a b"],
    &["1", "1 x", "12", "12<", "true", "true story", "nullable", "-"],
    &["[1", "[1] x", "[\"a\"]", "[\"a\", \"b", "{\"k\": 1}", "{}", "['a']"],
];

/// A tool whose name differs from those of the neighbours of `at`.
pub fn tool(random: &mut Random<'_>, at: u64) -> ToolSpec {
    let mut parameters = if random.chance(4) {
        union(random)
    } else {
        let count = random.below(4);
        object(random, count, 2)
    };
    parameters["$defs"] = json!({"word": {"type": "string"}, "list": {"type": "array", "items": {"$ref": "#/$defs/count"}, "maxItems": 3}, "count": {"type": "integer", "minimum": 0, "maximum": 99}});
    let name = random.one_of(&TOOLS);
    ToolSpec::new(if at == 0 { name.to_owned() } else { format!("{name}{at}") }, "", parameters)
}

/// A union of objects with scalar members of the same names, and one of any type that is their own: what is a
/// text in one and a list in another is a text, unless a member before it decides.
fn union(random: &mut Random<'_>) -> Value {
    let mut options = [(); 3].map(|()| {
        let count = random.below(3);
        object(random, count, 0)
    });
    for (at, option) in options.iter_mut().enumerate() {
        let members = option["properties"].as_object_mut().expect("an object");
        members.values_mut().for_each(|member| {
            if !is_scalar(member) {
                *member = json!({"type": random.one_of(&["string", "integer", "boolean"])});
            }
        });
        members.values_mut().for_each(told_apart);
        if random.chance(2) {
            members.insert(format!("only{at}"), schema(random, 2));
        }
    }
    json!({"type": "object", "anyOf": options[..2 + random.below(2) as usize]})
}

fn is_scalar(schema: &Value) -> bool {
    let text = schema.to_string();
    !["$ref", "array", "[\"x\"]", "[\"a\","].iter().any(|structure| text.contains(structure))
}

/// Changes a schema that shares a place with others. If any value is allowed, a listed value with the prefix
/// of another one is not always distinguished from it. A bounded text and a list with the same prefix are one
/// lexeme, that of the text: a longer list is then not written.
fn told_apart(option: &mut Value) {
    if *option == json!({}) {
        *option = json!({"type": "null"});
    }
    if let Some(option) = option.as_object_mut() {
        option.remove("maxLength");
    }
}

fn object(random: &mut Random<'_>, count: u64, depth: u64) -> Value {
    let names: Vec<String> = (0..count)
        .map(|at| {
            if random.chance(2) {
                format!("k{at}")
            } else {
                format!("{}{}", random.one_of(&NAMES), ["", "2"][at as usize % 2])
            }
        })
        .collect();
    let properties: Map<_, _> = names.iter().map(|name| (name.clone(), schema(random, depth))).collect();
    let required: Vec<_> = properties.keys().filter(|_| random.chance(2)).cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// A schema of the keywords that grammars enforce.
fn schema(random: &mut Random<'_>, depth: u64) -> Value {
    match random.below(if depth == 0 { 20 } else { 30 }) {
        0 | 1 => json!({"type": "string"}),
        2 => json!({"type": "string", "maxLength": 4}),
        3 => json!({"type": "string", "enum": random.one_of(&LISTED)}),
        4 => json!({"type": "integer"}),
        5 => json!({"type": "integer", "minimum": -3, "maximum": 17}),
        6 => json!({"type": "number"}),
        7 => json!({"type": "boolean"}),
        8 => json!({"type": ["integer", "null"]}),
        9 => json!({"type": ["string", "integer"]}),
        10 => json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 100}]}),
        11 => json!({"type": ["string", "null"]}),
        12 => json!({"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": "^[a-z]{1,3}$"}]}),
        13 => json!({"const": ["a", {"k": 1, "x:y": [true]}]}),
        14 => json!({"enum": [1, "1", null, true, "true", ["x"], 2.5]}),
        15 => json!({"type": "string", "format": "date"}),
        16 => json!({"$ref": random.one_of(&["#/$defs/word", "#/$defs/list", "#/$defs/count"])}),
        17 => json!({"anyOf": [{"$ref": "#/$defs/word"}, {"$ref": "#/$defs/list"}]}),
        18 => json!({"type": "string", "nullable": true}),
        19 => {
            random.one_of(&[&json!({}), &json!({"const": "[\"a\"]"}), &json!({"const": "[\"a\"]]"})]).clone()
        }
        20 | 21 => json!({"type": "array", "items": schema(random, depth - 1), "minItems": 1, "maxItems": 3}),
        22 => {
            json!({"type": "array", "prefixItems": [schema(random, depth - 1), {"type": "string"}], "items": false})
        }
        23 | 24 => {
            let count = 1 + random.below(3);
            object(random, count, depth - 1)
        }
        25 => json!({"anyOf": [{"type": "string"}, {"type": "array", "items": schema(random, depth - 1)}]}),
        26 => {
            let mut options = [schema(random, depth - 1), schema(random, depth - 1)];
            options.iter_mut().for_each(told_apart);
            json!({"anyOf": options})
        }
        27 => {
            let inner = object(random, 2, depth - 1);
            json!({"anyOf": [{"type": "string"}, inner, {"type": "null"}]})
        }
        28 => json!({"type": "object", "additionalProperties": schema(random, depth - 1)}),
        _ => {
            json!({"allOf": [{"type": ["string", "array"]}, {"items": {"type": "integer"}, "maxItems": 4, "type": ["string", "array", "null"]}]})
        }
    }
}

/// A value that matches `schema` in most cases.
pub fn value(random: &mut Random<'_>, schema: &Value, root: &Value) -> Value {
    if let Some(target) = schema["$ref"].as_str() {
        return value(random, root.pointer(&target[1..]).expect("a definition"), root);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[random.below(values.len() as u64) as usize].clone();
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let option = random.below(options.len() as u64) as usize;
        return value(random, &options[option], root);
    }
    if schema.get("allOf").is_some() {
        return if random.chance(2) { text(random).into() } else { json!([1, 2]) };
    }
    let name = match &schema["type"] {
        Value::Array(names) => names[random.below(names.len() as u64) as usize].as_str(),
        name => name.as_str(),
    };
    match name {
        Some("string") if schema.get("maxLength").is_some() => {
            text(random).chars().take(4).collect::<String>().into()
        }
        Some("string") if schema.get("pattern").is_some() => random.one_of(&["a", "xyz", "no"]).into(),
        Some("string") if schema.get("format").is_some() => "2024-02-03".into(),
        Some("string") => text(random).into(),
        Some("integer") if schema.get("maximum").is_some() => random.below(18).into(),
        Some("integer") if schema.get("minimum").is_some() => (100 + random.below(1000)).into(),
        Some("integer") => (random.below(2_000_000) as i64 - 1_000_000).into(),
        Some("number") => (random.below(4_001) as f64 / 16.0 - 125.03125).into(),
        Some("boolean") => random.chance(2).into(),
        Some("null") => Value::Null,
        Some("array") => array(random, schema, root),
        Some("object") => arguments(random, schema, root).into(),
        _ => random.one_of(&["x", "free text"]).into(),
    }
}

fn array(random: &mut Random<'_>, schema: &Value, root: &Value) -> Value {
    if let Some(heads) = schema["prefixItems"].as_array() {
        return heads.iter().map(|head| value(random, head, root)).collect();
    }
    (0..1 + random.below(3)).map(|_| value(random, &schema["items"], root)).collect()
}

/// The members of an object in declaration order.
pub fn arguments(random: &mut Random<'_>, schema: &Value, root: &Value) -> Map<String, Value> {
    if let Some(options) = schema["anyOf"].as_array() {
        let option = random.below(options.len() as u64) as usize;
        return arguments(random, &options[option], root);
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut out = Map::new();
    for (name, schema) in properties {
        if required.contains(&json!(name)) || random.chance(2) {
            out.insert(name, value(random, &schema, root));
        }
    }
    if let Some(further) = schema.get("additionalProperties").filter(|_| random.chance(2)) {
        out.insert("further_one".to_owned(), value(random, further, root));
    }
    out
}

/// Special characters of the syntaxes, and texts that look like another type or a marker.
fn text(random: &mut Random<'_>) -> String {
    const PARTS: [&str; 28] = [
        "a",
        "b",
        "Z",
        "0",
        " ",
        "\"",
        "'",
        "\\",
        "\n",
        "<",
        ">",
        "{",
        "}",
        "é",
        "😀",
        "/",
        "[",
        "]",
        ",",
        ":",
        "=",
        "-1",
        "</param",
        "<|end",
        "null",
        "(",
        "</parameter>",
        "</arg_value>",
    ];
    const WHOLE: [&str; 12] =
        ["", "42", "null", "[1]", "{\"a\": 1}", "true", "None", "['a']", " 7 ", "-1.5e3", "\"q\"", "[\"a\"]"];
    if random.chance(4) {
        return random.one_of(&WHOLE).to_owned();
    }
    (0..random.below(8)).map(|_| random.one_of(&PARTS)).collect()
}
