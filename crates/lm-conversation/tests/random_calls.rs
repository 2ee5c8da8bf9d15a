//! Calls of a model with random logits: every call parses and matches its tool.
//!
//! The cases are those of the shared `bfcl`, with tool choice `required`, at temperature 1. By default one
//! case of each syntax runs over a small vocabulary; `LM_BFCL=all` runs all over one of 152k with 256 tokens
//! at most and prints the table of docs/constrained-decoding.md. `LM_FAMILY=name` selects one family,
//! `LM_TOKENIZER=file` another vocabulary, `LM_MODEL=folder` a checkpoint instead of random logits:
//! `testdata/models/random_checkpoint.py` creates one.

use crate::shared;
use std::path::Path;
use std::sync::Arc;

use lm_model::testing::FakeLm;
use lm_model::{LoadOptions, LoadedModel, ModelFolder};
use lm_processors::{
    Family, GrammarRequest, Message, ParserOptions, ReplyGrammar, Thinking, ToolChoice, ToolSpec, Value,
};
use lm_session::{
    ConstraintSpec, CrossEncoderConfig, Engine, EngineSettings, Error, GenerateParams, GenerationConfig,
    SamplerParams, SessionConfig, SessionEvent, Usage,
};
use lm_tokenizer::Tokenizer;

/// Outcomes of the cases of one syntax.
#[derive(Default)]
struct Counts {
    cases: usize,
    /// Cases whose reply has a complete call.
    complete: usize,
    /// Cases rejected before the first token: even the shortest call does not fit.
    refused: usize,
    calls: usize,
    /// Replies with text that is not a call.
    malformed: usize,
    /// Calls that violate their tool's schema.
    unfit: usize,
    tokens: usize,
    forced: usize,
    steered: usize,
}

#[test]
fn random_calls_parse_and_fit_their_tools() {
    let (Some(cases), Some(tokenizers)) = (shared::path("bfcl"), shared::path("tokenizers")) else { return };
    let cases = cases_of(&cases);
    let all = std::env::var("LM_BFCL").is_ok_and(|value| value == "all");
    let only = std::env::var("LM_FAMILY").ok();
    let step = if all { 1 } else { cases.len() };
    let vocabulary = std::env::var("LM_TOKENIZER").unwrap_or_else(|_| "qwen2-tokenizer.json".to_owned());
    let (tokenizer, max_tokens) = match all {
        true => (real_tokenizer(&tokenizers.join(vocabulary)), 256),
        false => (lm_model::testing::tokenizer(), 2_048),
    };
    let loaded = match std::env::var_os("LM_MODEL") {
        Some(folder) => checkpoint(Path::new(&folder)),
        None => random(tokenizer),
    };
    let engine = Engine::new(loaded, EngineSettings::default()).expect("an engine");
    println!("syntax | cases | complete | refused | calls | malformed | unfit | tokens | forced % | steered");
    let mut wrong = Vec::new();
    for family in lm_processors::ALL {
        let name = family.processor.name();
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut counts = Counts::default();
        for (seed, tools) in cases.iter().enumerate().step_by(step) {
            if run(&engine, family, tools, (seed as u64, max_tokens), &mut counts).is_none() {
                break;
            }
        }
        if counts.cases == 0 {
            continue;
        }
        let Counts { cases, complete, refused, calls, malformed, unfit, tokens, forced, steered } = counts;
        let share = 100 * forced / tokens.max(1);
        println!(
            "{name} | {cases} | {complete} | {refused} | {calls} | {malformed} | {unfit} | {tokens} | {share} | {steered}"
        );
        if (all && complete * 100 < cases * 99) || malformed + unfit > 0 {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "not every call is right: {wrong:?}");
}

/// Tools of each case.
fn cases_of(folder: &Path) -> Vec<Arc<[ToolSpec]>> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let texts = files.iter().map(|path| std::fs::read_to_string(path).expect("text"));
    let case = |line: &str| -> Arc<[ToolSpec]> {
        let case: Value = serde_json::from_str(line).expect("JSON");
        case["tools"]
            .as_array()
            .expect("tools")
            .iter()
            .map(|tool| ToolSpec::from_json(tool.clone()).expect("a tool"))
            .collect()
    };
    texts.flat_map(|text| text.lines().map(case).collect::<Vec<_>>()).collect()
}

/// A published vocabulary, with its usual logits width.
fn real_tokenizer(path: &Path) -> Tokenizer {
    let tokenizer = Tokenizer::from_json(&std::fs::read(path).expect("a file")).expect("a tokenizer");
    let width = tokenizer.logits_width().next_multiple_of(256);
    let end = ["<|im_end|>", "<|eot_id|>", "<|end|>"].iter().find_map(|text| tokenizer.token_id(text));
    tokenizer.with_end_ids([end.expect("an end token")]).with_logits_width(width)
}

fn checkpoint(folder: &Path) -> LoadedModel {
    let folder = ModelFolder::open(folder).expect("a model folder");
    folder.load(&LoadOptions::default(), &mut |_| ()).expect("a checkpoint that loads")
}

/// A model with random logits.
fn random(tokenizer: Tokenizer) -> LoadedModel {
    LoadedModel {
        model: Arc::new(FakeLm::noise(7, tokenizer.logits_width())),
        tokenizer: Arc::new(tokenizer),
        chat_template: None,
        generation_config: GenerationConfig::default(),
        embedding: Arc::default(),
        cross_encoder: CrossEncoderConfig::default(),
        name: "random".to_owned(),
        adapters: Vec::new(),
        adapter_loader: None,
        audio_adapter: None,
        vision: None,
        audio: None,
    }
}

/// Generates one reply; returns `None` if the family has no call syntax.
fn run(
    engine: &Engine,
    family: &Family,
    tools: &Arc<[ToolSpec]>,
    (seed, max_tokens): (u64, usize),
    counts: &mut Counts,
) -> Option<()> {
    let request = GrammarRequest {
        tools,
        choice: ToolChoice::Required,
        thinking: Thinking::Forbidden,
        ..GrammarRequest::default()
    };
    let grammar = match family.processor.grammar(&request) {
        Err(lm_processors::Error::NoCallSyntax { .. }) => return None,
        grammar => grammar.expect("the schemas are right").expect("a call is required"),
    };
    counts.cases += 1;
    match generate(engine, grammar, (seed, max_tokens)) {
        Err(Error::BudgetTooSmall { .. }) => counts.refused += 1,
        Err(error) => panic!("{}: {error}", family.processor.name()),
        Ok((text, usage, steered)) => {
            counts.tokens += usage.output_tokens;
            counts.forced += usage.forced_tokens;
            counts.steered += usize::from(steered);
            judge(family, tools, &text, counts);
        }
    }
    Some(())
}

fn generate(
    engine: &Engine,
    grammar: ReplyGrammar,
    (seed, max_tokens): (u64, usize),
) -> Result<(String, Usage, bool), Error> {
    let spec = ConstraintSpec::Lark { text: grammar.grammar.lark, markers: grammar.grammar.markers };
    let mut session = engine.session(SessionConfig::default())?;
    session.prefill(&[17, 4, seed as u32 % 200])?;
    let params = GenerateParams {
        sampler: Some(SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() }),
        constraint: Some(engine.compile(&spec)?.start()),
        max_output_tokens: Some(max_tokens),
        ..GenerateParams::default()
    };
    let mut whole = String::new();
    for event in session.generate(params) {
        match event? {
            SessionEvent::Token { text, .. } => whole += &text,
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
            SessionEvent::Finished(finished) => {
                return Ok((whole, finished.usage, finished.steered.is_some()));
            }
        }
    }
    panic!("a generation has a last event");
}

fn judge(family: &Family, tools: &Arc<[ToolSpec]>, text: &str, counts: &mut Counts) {
    let options = ParserOptions { tools: tools.clone(), ..ParserOptions::default() };
    let reply: Message = match family.processor.to_message(text, &options) {
        Ok(reply) => reply,
        Err(error) => {
            println!("{}: {error}: {text:?}", family.processor.name());
            counts.malformed += 1;
            return;
        }
    };
    counts.complete += usize::from(!reply.tool_calls.is_empty());
    counts.calls += reply.tool_calls.len();
    if reply.tool_calls.is_empty() {
        println!("{}: no call in {text:?}", family.processor.name());
    }
    for call in &reply.tool_calls {
        let tool = tools.iter().find(|tool| tool.name() == call.name);
        let fits =
            |tool: &ToolSpec| jsonschema::is_valid(tool.parameters(), &Value::Object(call.arguments.clone()));
        if !tool.is_some_and(fits) {
            println!("{}: {call:?} does not fit; in {text:?}", family.processor.name());
            counts.unfit += 1;
        }
    }
}
