//! Every declared tool can be called in every dialect if its shortest call fits; otherwise an error before
//! the first token names a number of tokens that suffices.

use std::sync::Arc;

use lm_model::testing::FakeLm;
use lm_processors::{
    Family, GrammarRequest, Message, ParserOptions, Thinking, ToolCall, ToolChoice, ToolSpec, Value,
};
use lm_session::testing::{loaded, tokenizer};
use lm_session::{
    Constraint, ConstraintSpec, Engine, EngineSettings, Error, Finished, GenerateParams, SamplerParams,
    SessionConfig, SessionEvent,
};
use serde_json::json;

/// Schemas of one argument each, whose shortest values are beyond a search of a few hundred states.
fn schemas() -> Vec<(&'static str, Value)> {
    let uuid = json!({"type": "string", "format": "uuid"});
    let flags: serde_json::Map<_, _> =
        (0..40).map(|at| (format!("flag_{at}"), json!({"type": "boolean"}))).collect();
    let required: Vec<_> = flags.keys().cloned().collect();
    let tree = json!({
        "type": "object", "required": ["root"], "additionalProperties": false, "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {
            "type": "object", "required": ["name", "children"], "additionalProperties": false,
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }},
    });
    let of = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false});
    vec![
        ("at", of("x", json!({"type": "string", "pattern": "@"}))),
        ("aris", of("city", json!({"type": "string", "pattern": "aris"}))),
        (
            "uuids",
            json!({"type": "object", "properties": {"from": uuid, "to": uuid}, "required": ["from", "to"], "additionalProperties": false}),
        ),
        (
            "flags",
            json!({"type": "object", "properties": flags, "required": required, "additionalProperties": false}),
        ),
        ("items", of("numbers", json!({"type": "array", "items": {"type": "integer"}, "minItems": 40}))),
        ("moment", of("at", json!({"type": "string", "format": "date-time"}))),
        ("tree", tree),
    ]
}

struct Case {
    family: &'static Family,
    /// Index of the schema in [`schemas`], and its name.
    schema: (usize, &'static str),
    tools: Arc<[ToolSpec]>,
}

/// Each dialect with every third schema, so that neighbours have others; with `LM_MATRIX` each with all.
fn cases() -> impl Iterator<Item = Case> {
    let one_of = if std::env::var_os("LM_MATRIX").is_some() { 1 } else { 3 };
    let of_family = move |(number, &family): (usize, &&'static Family)| {
        let schemas = schemas().into_iter().enumerate().filter(move |(at, _)| (number + at) % one_of == 0);
        schemas.map(move |(at, (name, schema))| Case {
            family,
            schema: (at, name),
            tools: [ToolSpec::new("send", "", schema)].into(),
        })
    };
    lm_processors::ALL.iter().enumerate().flat_map(of_family)
}

impl Case {
    fn constraint(
        &self,
        engine: &Engine,
        choice: ToolChoice,
        thinking: Thinking,
    ) -> Option<Box<dyn Constraint>> {
        let request = GrammarRequest { tools: &self.tools, choice, thinking, ..GrammarRequest::default() };
        let grammar = match self.family.processor.grammar(&request) {
            Err(lm_processors::Error::NoCallSyntax { .. }) => return None,
            grammar => grammar.expect("the schema is right").expect("there are tools").grammar,
        };
        let spec = ConstraintSpec::Lark { text: grammar.lark, markers: grammar.markers };
        Some(engine.compile(&spec).expect("it compiles").start())
    }

    /// Parses the calls in `text`; asserts that there are some and that each matches its tool.
    fn calls(&self, text: &str) -> Vec<ToolCall> {
        let name = self.family.processor.name();
        let options = ParserOptions { tools: self.tools.clone(), ..ParserOptions::default() };
        let reply: Message = self.family.processor.to_message(text, &options).expect("it parses");
        assert!(!reply.tool_calls.is_empty(), "{name}: no call in {text:?}");
        for call in &reply.tool_calls {
            let tool = self.tools.iter().find(|tool| tool.name() == call.name).expect("a declared tool");
            let arguments = Value::Object(call.arguments.clone());
            assert!(jsonschema::is_valid(tool.parameters(), &arguments), "{name}: {arguments} in {text:?}");
        }
        reply.tool_calls
    }
}

fn noise() -> Engine {
    let model = FakeLm::noise(11, tokenizer().logits_width());
    Engine::new(loaded(model), EngineSettings::default()).expect("an engine")
}

fn generate(
    engine: &Engine,
    constraint: Box<dyn Constraint>,
    seed: u64,
    max_output_tokens: Option<usize>,
) -> Result<(String, Finished), Error> {
    let mut session = engine.session(SessionConfig::default())?;
    session.prefill(&[17, 4])?;
    let temperature = if seed == 0 { 0.0 } else { 1.0 };
    let sampler = Some(SamplerParams { temperature, seed: Some(seed), ..SamplerParams::default() });
    let constraint = Some(constraint);
    let params = GenerateParams { sampler, constraint, max_output_tokens, ..GenerateParams::default() };
    let mut whole = String::new();
    for event in session.generate(params) {
        match event? {
            SessionEvent::Token { text, .. } => whole += &text,
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
            SessionEvent::Finished(finished) => return Ok((whole, finished)),
        }
    }
    panic!("a generation has a last event");
}

#[test]
fn call_is_valid_or_truthfully_refused_within_any_budget() {
    let engine = noise();
    let mut calls = 0;
    for case in cases() {
        let (seed, schema_name) = case.schema;
        let start = || case.constraint(&engine, ToolChoice::Required, Thinking::Forbidden);
        let (name, Some(constraint)) = (case.family.processor.name(), start()) else { continue };
        let Err(Error::BudgetTooSmall { needed_tokens, available_tokens: 1 }) =
            generate(&engine, constraint, 1, Some(1))
        else {
            panic!("{name} {schema_name}: one token suffices");
        };
        for budget in [Some(needed_tokens), [Some(64), Some(300), Some(1_000), None][seed % 4]] {
            let constraint = start().expect("as before");
            match generate(&engine, constraint, seed as u64 + 1, budget) {
                Ok((text, finished)) => {
                    assert!(finished.usage.output_tokens <= budget.unwrap_or(usize::MAX));
                    assert_eq!(
                        finished.steered.map_or(0, |steered| steered.unfound),
                        0,
                        "{name} {schema_name}"
                    );
                    calls += case.calls(&text).len();
                }
                Err(Error::BudgetTooSmall { needed_tokens: again, .. }) => {
                    assert_eq!(again, needed_tokens);
                    assert!(
                        budget.is_some_and(|budget| budget < needed_tokens),
                        "{name} {schema_name}: {budget:?}"
                    );
                }
                Err(error) => panic!("{name} {schema_name} {budget:?}: {error}"),
            }
        }
    }
    assert!(calls > 200, "{calls}");
}

#[test]
fn required_calls_are_writable_when_optional() {
    let engine = noise();
    let tokenizer = tokenizer();
    for case in cases() {
        let schema_name = case.schema.1;
        let required = || case.constraint(&engine, ToolChoice::Required, Thinking::Forbidden);
        let (name, Some(constraint)) = (case.family.processor.name(), required()) else { continue };
        let Err(Error::BudgetTooSmall { needed_tokens, .. }) = generate(&engine, constraint, 1, Some(1))
        else {
            panic!("{name} {schema_name}: one token suffices");
        };
        let budget = Some(needed_tokens + 5);
        let (text, _) = generate(&engine, required().expect("as before"), 3, budget).expect("it fits");
        let script = FakeLm::scripted(&tokenizer, [text.as_str()]);
        let engine = Engine::new(loaded(script), EngineSettings::default()).expect("an engine");
        let auto = case.constraint(&engine, ToolChoice::Auto, Thinking::Forbidden).expect("as above");
        let (again, finished) = generate(&engine, auto, 0, budget).expect("text may always end");
        assert_eq!(again, text, "{name} {schema_name}: {finished:?}");
        assert_eq!(case.calls(&again), case.calls(&text), "{name} {schema_name}");
    }
}

/// A model with random logits never ends its reasoning by itself: it is ended in time for the call.
#[test]
fn reasoning_ends_in_time_for_a_required_call() {
    let model = FakeLm::noise(5, tokenizer().logits_width()).with_context_len(1_600);
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
    let schema = schemas().swap_remove(2).1;
    let mut reasoned = 0;
    for family in lm_processors::ALL.iter().filter(|family| !family.processor.channels().is_empty()) {
        let case =
            Case { family, schema: (2, "uuids"), tools: [ToolSpec::new("send", "", schema.clone())].into() };
        for budget in [Some(400), None] {
            let constraint = case.constraint(&engine, ToolChoice::Required, Thinking::Open);
            let Some(constraint) = constraint else { break };
            let (text, finished) = generate(&engine, constraint, 1, budget).expect("the call fits");
            let open = &family.processor.channels()[0].start;
            case.calls(&format!("{open}{text}"));
            reasoned += usize::from(finished.usage.output_tokens > 390);
        }
    }
    assert!(reasoned > 10, "{reasoned}: nothing was tested");
}
