//! Random schemas of all keywords: what their grammars write fits them, by validators that share no code with
//! the grammars.

use std::collections::BTreeMap;
use std::io::Write;

use lm_processors::{Layout, SchemaError, SchemaFault, Value, json_grammar, validator};
use serde_json::{Map, json};

use crate::grammar::common::Compiler;
use crate::grammar::random::Random;
use crate::grammar::walk::{Pieces, walk};

/// Default number of schemas. `LM_PROPERTY_CASES` overrides it, and `LM_PROPERTY_SEED` the first seed (0).
const CASES: u64 = 300;
/// Number of texts of each schema.
const TEXTS: usize = 4;
/// Maximum length of a text in bytes.
const MAX_BYTES: usize = 3_000;

const NAMES: [&str; 6] = ["a", "b", "c", "x-1", "long name", "é"];
const PATTERNS: [&str; 12] = [
    "^[a-c]{1,3}$",
    "b",
    "^a|c$",
    r"^\d{2,}$",
    r"^\w+ \w+$",
    r"^(?=.*\d)[a-z\d]{2,5}$",
    r"^(a|b)\1$",
    r"\bab",
    "^x-",
    "^[^a-z]*$",
    r"^.{2}\s?$",
    "",
];
const FORMATS: [&str; 7] = ["date", "time", "date-time", "ipv4", "uuid", "email", "unknown-format"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn generated_text_satisfies_its_schema() {
    let (cases, first) = (number("LM_PROPERTY_CASES", CASES), number("LM_PROPERTY_SEED", 0));
    let samples = std::env::var("LM_SAMPLES").ok();
    let mut samples = samples.map(|path| std::fs::File::create(path).expect("a file"));
    let compiler = Compiler::new();
    let hermes = lm_processors::by_name("hermes").expect("a family").dialect().expect("a dialect");
    let pieces = Pieces::of(hermes);
    let (mut counts, mut unfit): (BTreeMap<String, u64>, _) = (BTreeMap::new(), Vec::new());
    for seed in first..first + cases {
        let mut random = Random::seeded(seed);
        let schema = document(&mut random);
        let written = match json_grammar(&schema, Layout::Exact) {
            Ok(written) => written,
            Err(error) => {
                *counts.entry(format!("refused: {}", kind(&error))).or_default() += 1;
                // The schemas are valid, but a reference may lead back to itself.
                let is_cycle = error.keyword == "$ref";
                assert!(is_cycle || !matches!(error.fault, SchemaFault::Bad(_)), "{seed}: {error}: {schema}");
                continue;
            }
        };
        let unenforced: Vec<(String, String)> =
            written.unenforced.iter().map(|it| (it.path.clone(), it.keyword.clone())).collect();
        let matcher = match compiler.compile_grammar(&written.grammar) {
            Ok(matcher) => matcher,
            Err(error) => {
                unfit.push(format!("{seed}: {error}\n{schema}"));
                continue;
            }
        };
        let judge = validator(&schema, true).unwrap_or_else(|error| panic!("{seed}: {error}: {schema}"));
        *counts.entry(if unenforced.is_empty() { "whole" } else { "in part" }.to_owned()).or_default() += 1;
        for _ in 0..TEXTS {
            let Some(text) = walk(&matcher, &pieces, &mut random, MAX_BYTES) else {
                *counts.entry("texts without an end".to_owned()).or_default() += 1;
                continue;
            };
            *counts.entry("texts".to_owned()).or_default() += 1;
            let value: Value =
                text.parse().unwrap_or_else(|error| panic!("{seed}: {error}: {text}\n{schema}"));
            if let Some(file) = &mut samples {
                let line = json!({"seed": seed, "schema": schema, "text": text, "unenforced": unenforced});
                writeln!(file, "{line}").expect("a file");
            }
            let excused = |path: &str| unenforced.iter().any(|(at, keyword)| excuses(at, keyword, path));
            let errors = judge.errors(&value);
            let error = errors.iter().find(|error| !excused(&error.evaluation_path().to_string()));
            if let Some(error) = error {
                unfit.push(format!(
                    "{seed}: {error} at {}: {text}\n{schema}\n{unenforced:?}",
                    error.evaluation_path()
                ));
            }
        }
    }
    println!("seeds {first} to {}: {counts:?}", first + cases);
    assert!(unfit.is_empty(), "{} of them:\n{}", unfit.len(), unfit.join("\n\n"));
    assert!(counts.get("whole").is_some_and(|whole| whole * 5 > cases), "{counts:?}");
}

/// Returns true if an error at `path` of the schema may be due to a keyword that is not enforced.
fn excuses(at: &str, keyword: &str, path: &str) -> bool {
    let place = format!("{}/{keyword}", at.trim_start_matches('#'));
    at.starts_with("#/$defs/")
        || place.starts_with(path)
        || path.starts_with(&place)
        || path.ends_with(&format!("/{keyword}"))
}

fn kind(error: &SchemaError) -> &'static str {
    match error.fault {
        SchemaFault::Unsatisfiable(_) => "unsatisfiable",
        SchemaFault::TooLarge(_) => "too large",
        SchemaFault::UnsupportedPattern(_) => "pattern",
        SchemaFault::Bad(_) => "bad",
        _ => "other",
    }
}

fn document(random: &mut Random<'_>) -> Value {
    let mut root = schema(random, 3);
    let definitions: Map<String, Value> =
        ["d", "e"].into_iter().map(|name| (name.to_owned(), schema(random, 1))).collect();
    if let Value::Object(root) = &mut root {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    root
}

fn schema(random: &mut Random<'_>, depth: u64) -> Value {
    match random.below(40) {
        0 => return json!(false),
        1 | 2 => return json!(true),
        3..=5 if depth < 3 => return json!({"$ref": random.one_of(&["#/$defs/d", "#/$defs/e"])}),
        6 | 7 => return json!({"const": value(random, 2)}),
        _ => {}
    }
    let mut out = Map::new();
    let all = ["string", "integer", "number", "boolean", "null", "object", "array"];
    let mut types = vec![random.one_of(&all)];
    if random.chance(4) {
        types.push(random.one_of(&all));
    }
    types.dedup();
    match (random.chance(8), &types[..]) {
        (true, _) => {}
        (false, [one]) => drop(out.insert("type".to_owned(), json!(one))),
        (false, two) => drop(out.insert("type".to_owned(), json!(two))),
    }
    for name in types {
        match name {
            "string" => string(random, &mut out),
            "integer" | "number" => numeric(random, &mut out),
            "object" if depth > 0 => object(random, &mut out, depth - 1),
            "array" if depth > 0 => array(random, &mut out, depth - 1),
            _ => {}
        }
    }
    if depth > 0 && random.chance(5) {
        let keyword = random.one_of(&["allOf", "anyOf", "oneOf"]);
        let parts: Vec<Value> = (0..1 + random.below(3)).map(|_| schema(random, depth - 1)).collect();
        out.insert(keyword.to_owned(), json!(parts));
    }
    if random.chance(12) {
        let values: Vec<Value> = (0..1 + random.below(4)).map(|_| value(random, 1)).collect();
        out.insert("enum".to_owned(), json!(values));
    }
    if depth > 0 && random.chance(20) {
        out.insert(random.one_of(&["not", "if"]).to_owned(), schema(random, 0));
        out.insert("then".to_owned(), schema(random, 0));
    }
    Value::Object(out)
}

fn string(random: &mut Random<'_>, out: &mut Map<String, Value>) {
    match random.below(6) {
        0 => drop(out.insert("pattern".to_owned(), json!(random.one_of(&PATTERNS)))),
        1 => drop(out.insert("format".to_owned(), json!(random.one_of(&FORMATS)))),
        2 => {
            out.insert("pattern".to_owned(), json!(random.one_of(&PATTERNS)));
            out.insert("maxLength".to_owned(), json!(random.below(20) + 5));
        }
        _ => {}
    }
    bounds(random, out, ["minLength", "maxLength"]);
}

/// Some of the bounds of a count.
fn bounds(random: &mut Random<'_>, out: &mut Map<String, Value>, [min, max]: [&str; 2]) {
    let least = random.below(4);
    if random.chance(3) {
        out.insert(min.to_owned(), json!(least));
    }
    if random.chance(3) {
        let most = least + random.below(4);
        out.entry(max.to_owned()).or_insert(if random.chance(5) { json!(most as f64) } else { json!(most) });
    }
}

fn numeric(random: &mut Random<'_>, out: &mut Map<String, Value>) {
    const BOUNDS: [f64; 12] =
        [-1e18, -1000.0, -10.5, -3.0, -0.25, 0.0, 0.5, 3.0, 9.75, 100.0, 12345.678, 1e17];
    let place = random.below(BOUNDS.len() as u64 - 1) as usize;
    let bound = |number: f64| if number.fract() == 0.0 { json!(number as i64) } else { json!(number) };
    let [lower, upper] =
        [["minimum", "exclusiveMinimum"], ["maximum", "exclusiveMaximum"]].map(|names| random.one_of(&names));
    if random.chance(2) {
        out.insert(lower.to_owned(), bound(BOUNDS[place]));
    }
    if random.chance(2) {
        let above = place as u64 + 1 + random.below((BOUNDS.len() - place - 1) as u64);
        out.insert(upper.to_owned(), bound(BOUNDS[above as usize]));
    }
    if random.chance(4) {
        let divisors = [
            json!(1),
            json!(3),
            json!(0.5),
            json!(0.01),
            json!(2.5),
            json!(1001),
            json!(9_007_199_254_740_993_i64),
            json!(4_611_686_018_427_387_905_i64),
            json!(1e25),
        ];
        let divisor = &divisors[random.below(divisors.len() as u64) as usize];
        out.insert("multipleOf".to_owned(), divisor.clone());
    }
}

fn object(random: &mut Random<'_>, out: &mut Map<String, Value>, depth: u64) {
    let names: Vec<&str> = (0..random.below(4)).map(|_| random.one_of(&NAMES)).collect();
    if !names.is_empty() || random.chance(3) {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), schema(random, depth))).collect();
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    if random.chance(2) {
        // A name may be undeclared or repeated.
        let required: Vec<&str> = (0..random.below(3)).map(|_| random.one_of(&NAMES)).collect();
        out.insert("required".to_owned(), json!(required));
    }
    if random.chance(3) {
        out.insert("additionalProperties".to_owned(), schema(random, depth.min(1)));
    } else if random.chance(2) {
        out.insert("additionalProperties".to_owned(), json!(false));
    }
    if random.chance(6) {
        let patterns = [json!({"^x-": schema(random, 0)}), json!({"^a": schema(random, 0), "^b": true})];
        out.insert("patternProperties".to_owned(), patterns[random.below(2) as usize].clone());
    }
    if random.chance(8) {
        let names =
            [json!({"maxLength": 3}), json!({"pattern": "^[a-f]+$"}), json!({"enum": ["a", "k", "x-1"]})];
        out.insert("propertyNames".to_owned(), names[random.below(3) as usize].clone());
    }
    if random.chance(3) {
        bounds(random, out, ["minProperties", "maxProperties"]);
    }
    match random.below(24) {
        0 => drop(out.insert("dependentRequired".to_owned(), json!({"a": ["b"]}))),
        1 => drop(out.insert("dependentSchemas".to_owned(), json!({"a": schema(random, 0)}))),
        2 => drop(out.insert("unevaluatedProperties".to_owned(), json!(false))),
        _ => {}
    }
}

fn array(random: &mut Random<'_>, out: &mut Map<String, Value>, depth: u64) {
    if random.chance(3) {
        let heads: Vec<Value> = (0..1 + random.below(3)).map(|_| schema(random, depth)).collect();
        out.insert("prefixItems".to_owned(), json!(heads));
    }
    if random.chance(2) {
        out.insert("items".to_owned(), schema(random, depth));
    }
    bounds(random, out, ["minItems", "maxItems"]);
    match random.below(16) {
        0 => drop(out.insert("uniqueItems".to_owned(), json!(random.chance(2)))),
        1 => {
            out.insert("contains".to_owned(), schema(random, 0));
            out.insert("minContains".to_owned(), json!(random.below(3)));
        }
        2 => drop(out.insert("unevaluatedItems".to_owned(), json!(false))),
        _ => {}
    }
}

/// A constant.
fn value(random: &mut Random<'_>, depth: u64) -> Value {
    let scalars = [
        json!(null),
        json!(true),
        json!(0),
        json!(1.0),
        json!(2.5),
        json!(-7),
        json!("a"),
        json!("ab ab"),
        json!("2024-02-29"),
        json!(""),
        json!("\"\\\n"),
        json!(9_007_199_254_740_993_i64),
        json!("12"),
    ];
    match random.below(20) {
        0 if depth > 0 => json!([value(random, depth - 1), value(random, depth - 1)]),
        1 if depth > 0 => json!({"a": value(random, depth - 1), "z": value(random, depth - 1)}),
        at => scalars[at as usize % scalars.len()].clone(),
    }
}
