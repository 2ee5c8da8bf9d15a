//! Schemas that need much time or memory.

use std::sync::{Arc, OnceLock};

use lm_processors::{Grammar, GrammarRequest, Layout, ResponseFormat, ToolChoice};
use lm_session::{ConstraintSpec, GrammarCompiler, testing};
use lm_template::{ToolSpec, Value};
use serde_json::{Map, json};

/// Compiler of all cases of the benchmark.
static COMPILER: OnceLock<GrammarCompiler> = OnceLock::new();

/// Schemas by name.
pub fn all() -> Vec<(&'static str, Value)> {
    let letters = || ('a'..='z').map(String::from);
    let conjoined = |patterns: Vec<String>| {
        let parts: Vec<_> = patterns.into_iter().map(|pattern| json!({"pattern": pattern})).collect();
        json!({"type": "string", "allOf": parts})
    };
    let properties = |count: usize, schema: Value| {
        let all: Map<String, Value> =
            (0..count).map(|at| (format!("property_{at}"), schema.clone())).collect();
        json!({"type": "object", "properties": all})
    };
    let chain = |count: usize, body: &dyn Fn(String) -> Value| {
        let link = |at: usize| (format!("d{at}"), body(format!("#/$defs/d{}", at + 1)));
        let mut definitions: Map<String, Value> = (0..count).map(link).collect();
        definitions.insert(format!("d{count}"), json!({"type": "string", "maxLength": 3}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let nested = |depth: usize, open: &dyn Fn(Value) -> Value| {
        (0..depth).fold(json!({"type": "integer"}), |inner, _| open(inner))
    };
    let alternatives = |count: usize| -> Value {
        (0..count).map(|at| json!({"type": "object", "properties": {format!("k{at}"): {"const": at}}, "required": [format!("k{at}")]})).collect()
    };
    vec![
        ("26 patterns that begin alike", conjoined(letters().map(|c| format!("a{c}")).collect())),
        ("26 patterns with one letter each", conjoined(letters().collect())),
        (
            "26 patterns of overlapping classes",
            conjoined(
                (0..26)
                    .map(|at| format!("[{}-z][a-{}]x", (b'a' + at) as char, (b'a' + at) as char))
                    .collect(),
            ),
        ),
        (
            "12 patterns that look back",
            conjoined((1..13).map(|at| format!("^[ab]*a[ab]{{{at}}}$")).collect()),
        ),
        (
            "9 patterns of periods",
            conjoined(
                [2, 3, 5, 7, 11, 13, 17, 19, 23].iter().map(|n| format!("^(?:a{{{n}}})*b?$")).collect(),
            ),
        ),
        (
            "2 patterns of 500 classes",
            conjoined(vec![
                (0..500)
                    .map(|at| format!("[a-{}]x{at}|", char::from_u32(0x100 + at).unwrap_or('z')))
                    .collect::<String>()
                    + "q";
                2
            ]),
        ),
        (
            "pattern: repetitions nested",
            json!({"type": "string", "pattern": "^((((a{1,100}b?){1,100}c?){1,100}d?){1,100}e?){1,100}$"}),
        ),
        (
            "pattern: classes of letters repeated",
            json!({"type": "string", "pattern": "^(\\p{L}{1,900}\\p{N}{1,900}){1,900}$"}),
        ),
        ("pattern: .*a.{1000}", json!({"type": "string", "pattern": "a.{1000}$", "minLength": 1000})),
        (
            "300 long patterns of letters",
            properties(300, json!({"type": "string", "pattern": "\\p{L}\\p{N}".repeat(400)})),
        ),
        ("allOf of anyOfs", json!({"allOf": vec![json!({"anyOf": alternatives(8)}); 12]})),
        ("30 references doubled", chain(30, &|next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}))),
        (
            "30 references doubled in anyOf",
            chain(30, &|next| json!({"anyOf": [{"$ref": next}, {"$ref": next}]})),
        ),
        (
            "30 pairs of properties",
            chain(
                30,
                &|next| json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}, "required": ["a", "b"]}),
            ),
        ),
        (
            "a reference to itself",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
        ),
        (
            "objects 120 deep",
            nested(120, &|inner| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]})),
        ),
        (
            "lists 3 deep of 1,000 each",
            nested(3, &|inner| json!({"type": "array", "items": inner, "minItems": 1000, "maxItems": 1000})),
        ),
        ("20,000 optional properties", properties(20_000, json!({"type": "string"}))),
        (
            "an enum of 5,000 long values",
            json!({"enum": (0..5_000).map(|at| format!("{at}{}", "x".repeat(700))).collect::<Vec<_>>()}),
        ),
        ("oneOf of 3,000 objects", json!({"oneOf": alternatives(3_000)})),
        (
            "50 patterns of keys",
            json!({"type": "object", "additionalProperties": false, "minProperties": 3,
            "patternProperties": letters().chain(letters().map(|c| c + "b")).map(|c| (format!("{c}.*[a-z]$"), json!({"type": "integer"}))).collect::<Map<_, _>>()}),
        ),
        (
            "multiples of a small number",
            json!({"type": "number", "multipleOf": 1e-9, "minimum": 1.23456789e-7, "maximum": 9.87654321e14}),
        ),
        (
            "texts of 65,536 in 200 properties",
            properties(
                200,
                json!({"type": "string", "minLength": 30_000, "maxLength": 65_536, "pattern": "^[a-z]+$"}),
            ),
        ),
        (
            "a name of 1 MB",
            properties(1, json!({"type": "object", "properties": {"x".repeat(1 << 20): {"type": "string"}}})),
        ),
    ]
}

/// Compiles one of them in each way that leads to the compiler, and returns the results.
pub fn compile(name: &str) -> String {
    let (_, schema) = all().into_iter().find(|(known, _)| *known == name).expect("a schema of this name");
    // Each way has its own compiler, so that no cache is shared.
    let compiler = || GrammarCompiler::new(&Arc::new(testing::tokenizer())).expect("a vocabulary");
    let [plain, markup] = ["hermes", "qwen3_coder_xml"].map(|family| as_tool(&compiler(), family, &schema));
    let answer = as_answer(&compiler(), &schema);
    let alone = match lm_processors::json_grammar(&schema, Layout::Any) {
        Ok(json) => compile_grammar(&compiler(), json.grammar),
        Err(_) => "refused when written".to_owned(),
    };
    format!("tool {plain}, in markup {markup}, answer {answer}, alone {alone}")
}

fn as_tool(compiler: &GrammarCompiler, family: &str, schema: &Value) -> String {
    let parameters = json!({"type": "object", "properties": {"x": schema}, "required": ["x"]});
    let tool = ToolSpec::new("f", "", parameters);
    let request =
        GrammarRequest { tools: &[tool], choice: ToolChoice::Required, ..GrammarRequest::default() };
    of_request(compiler, family, &request)
}

fn as_answer(compiler: &GrammarCompiler, schema: &Value) -> String {
    let response_format = Some(ResponseFormat::JsonSchema(schema.clone()));
    of_request(compiler, "hermes", &GrammarRequest { response_format, ..GrammarRequest::default() })
}

fn of_request(compiler: &GrammarCompiler, family: &str, request: &GrammarRequest<'_>) -> String {
    let known =
        lm_processors::ALL.iter().find(|known| known.processor.name() == family).expect("a known family");
    match known.processor.grammar(request) {
        Ok(Some(reply)) => compile_grammar(compiler, reply.grammar),
        Ok(None) => "free".to_owned(),
        Err(_) => "refused when written".to_owned(),
    }
}

fn compile_grammar(compiler: &GrammarCompiler, grammar: Grammar) -> String {
    match compiler.compile(&spec(grammar)) {
        Ok(_) => "compiled".to_owned(),
        Err(lm_session::Error::Grammar { kind, .. }) => format!("{kind:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the reason why a case of the benchmark does not compile; `None` if it does or is not a case.
pub fn refused(case: &Value) -> Option<String> {
    let schema = case.get("schema")?;
    // Invalid schemas are rejected earlier.
    let json = lm_processors::json_grammar(schema, Layout::Any).ok()?;
    let compiler =
        COMPILER.get_or_init(|| GrammarCompiler::new(&Arc::new(testing::tokenizer())).expect("a vocabulary"));
    compiler.compile(&spec(json.grammar)).err().map(|error| format!("{}: {error}", case["id"]))
}

fn spec(Grammar { lark, markers }: Grammar) -> ConstraintSpec {
    ConstraintSpec::Lark { text: lark, markers }
}
