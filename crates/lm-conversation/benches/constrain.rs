//! Benchmark of constraints: `cargo bench -p lm-conversation --bench constrain [TOKENIZER.json [MODEL]]`.
//!
//! No model is needed. If a model folder is given, its model also writes calls, with forced tokens batched
//! and one by one. The grammars are the schemas of `jsonschemabench` and the tools of `bfcl` in the shared
//! folder (`LM_SHARED`, by default `../shared` beside the checkout); the texts are the valid instances, and
//! calls made of the right answers. Each token of a text costs one mask, one commit and one query of the
//! tokens forced after it, as in a generation.

#[path = "../../../testdata/shared.rs"]
mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lm_processors::{GrammarRequest, Layout, Thinking, ToolChoice, ToolSpec};
use lm_session::testing::{FakeLm, loaded};
use lm_session::{
    CompiledConstraint, Constraint, ConstraintSpec, Ending, Engine, EngineSettings, GenerateParams,
    GrammarCompiler, LoadOptions, LoadedModel, ModelFolder, SamplerParams, SessionConfig, SessionEvent,
    TokenId, TokenMask, Tokenizer,
};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let Some(shared) = shared::path("") else { return Ok(()) };
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let file = args.next().unwrap_or_else(|| shared.join("tokenizers/qwen2-tokenizer.json"));
    let folder = args.next();
    let Ok(json) = std::fs::read(&file) else {
        println!("skipped: {} not found", file.display());
        return Ok(());
    };
    let tokenizer = Arc::new(Tokenizer::from_json(&json)?);
    let started = Instant::now();
    let compiler = GrammarCompiler::new(&tokenizer)?;
    println!(
        "vocabulary of {}: tables in {:.2} s",
        tokenizer.logits_width(),
        started.elapsed().as_secs_f64()
    );
    let schemas = walk_schemas(&compiler, &shared.join("jsonschemabench"))?;
    schemas.print("jsonschemabench, valid instances");
    let calls = |choice| walk_calls(&compiler, &shared, "hermes", &choice);
    calls(ToolChoice::Required)?.print("calls, required");
    calls(ToolChoice::Auto)?.print("text, then calls");
    steps(&shared)?;
    if let Some(folder) = folder {
        batched_and_singly(&folder, &shared)?;
    }
    Ok(())
}

/// Measurements over many texts.
#[derive(Default)]
struct Walk {
    grammars: usize,
    refused: usize,
    compile: Vec<Duration>,
    start: Vec<Duration>,
    masks: Vec<Duration>,
    commits: Vec<Duration>,
    forced: usize,
    tokens: usize,
    accepted: usize,
    texts: usize,
}

impl Walk {
    fn compile(&mut self, compiler: &GrammarCompiler, spec: &ConstraintSpec) -> Option<CompiledConstraint> {
        self.grammars += 1;
        let started = Instant::now();
        let compiled = compiler.compile(spec).ok();
        self.compile.push(started.elapsed());
        self.refused += usize::from(compiled.is_none());
        compiled
    }

    fn text(&mut self, compiled: &CompiledConstraint, ids: &[TokenId], width: usize) -> Result<()> {
        let started = Instant::now();
        let mut constraint = compiled.start();
        self.start.push(started.elapsed());
        self.texts += 1;
        let (mut mask, mut at) = (TokenMask::new(width), 0);
        while at < ids.len() {
            let started = Instant::now();
            let forced = constraint.forced()?;
            let took = started.elapsed();
            let right = forced.iter().zip(&ids[at..]).take_while(|(a, b)| a == b).count();
            if right > 0 {
                self.forced += right;
                self.tokens += right;
                self.commits.push(took);
                for id in &ids[at..at + right] {
                    constraint.commit(*id)?;
                }
                at += right;
                continue;
            }
            let started = Instant::now();
            mask.clear();
            constraint.mask(&mut mask)?;
            self.masks.push(took + started.elapsed());
            if !mask.allows(ids[at]) && constraint.valid_prefix(&ids[at..=at])? == 0 {
                return Ok(());
            }
            let started = Instant::now();
            constraint.commit(ids[at])?;
            self.commits.push(started.elapsed());
            self.tokens += 1;
            at += 1;
        }
        self.accepted += usize::from(constraint.ending()? != Ending::Forbidden);
        Ok(())
    }

    fn print(mut self, name: &str) {
        println!(
            "\n{name}: {} of {} grammars compiled, {} of {} texts accepted",
            self.grammars - self.refused,
            self.grammars,
            self.accepted,
            self.texts
        );
        println!(
            "  {} tokens, {:.1} % forced",
            self.tokens,
            100.0 * self.forced as f64 / self.tokens.max(1) as f64
        );
        for (what, times) in [
            ("compile", &mut self.compile),
            ("start", &mut self.start),
            ("mask", &mut self.masks),
            ("commit", &mut self.commits),
        ] {
            times.sort_unstable();
            let at = |share: f64| {
                times
                    .get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)))
                    .map_or(0.0, |t| t.as_secs_f64() * 1e6)
            };
            let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e6 / times.len().max(1) as f64;
            println!(
                "  {what:8} mean {mean:8.1} µs  p50 {:8.1}  p90 {:8.1}  p99 {:8.1}  max {:8.1}  ({} times)",
                at(0.5),
                at(0.9),
                at(0.99),
                at(1.0),
                times.len()
            );
        }
    }
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    Ok(std::fs::read_to_string(path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>()?)
}

fn walk_schemas(compiler: &GrammarCompiler, folder: &Path) -> Result<Walk> {
    let mut walk = Walk::default();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    for record in files.iter().map(|file| lines(file)).collect::<Result<Vec<_>>>()?.concat() {
        let Ok(json) = lm_processors::json_grammar(&record["schema"], Layout::Any) else { continue };
        let spec = ConstraintSpec::Lark { text: json.grammar.lark, markers: json.grammar.markers };
        let Some(compiled) = walk.compile(compiler, &spec) else { continue };
        let tests = record["tests"].as_array().into_iter().flatten();
        for test in tests.filter(|test| test["valid"] == json!(true)) {
            let ids = compiler.tokenizer().encode(&test["data"].to_string())?;
            walk.text(&compiled, &ids, compiler.tokenizer().logits_width())?;
        }
    }
    Ok(walk)
}

/// Replies in the dialect `format` under the grammar of `choice`: the right calls of the cases, after a
/// sentence if text may come first.
fn walk_calls(compiler: &GrammarCompiler, shared: &Path, format: &str, choice: &ToolChoice) -> Result<Walk> {
    const SENTENCE: &str = "To answer that I have to look a few things up first: the weather in three cities (1 < 2), and what people there say about it today.\n";
    let processor = lm_processors::by_name(format).ok_or("a family")?;
    let mut walk = Walk::default();
    for file in ["simple_python", "multiple", "live_multiple"] {
        for record in lines(&shared.join(format!("bfcl/{file}.jsonl")))? {
            let tools: Vec<ToolSpec> = serde_json::from_value(record["tools"].clone())?;
            let request = GrammarRequest {
                tools: &tools,
                choice: choice.clone(),
                thinking: Thinking::Forbidden,
                ..GrammarRequest::default()
            };
            let Some(reply) = processor.grammar(&request)? else { continue };
            let spec = ConstraintSpec::Lark { text: reply.grammar.lark, markers: reply.grammar.markers };
            let Some(compiled) = walk.compile(compiler, &spec) else { continue };
            let Some((name, arguments)) =
                record["expected"][0].as_object().and_then(|call| call.iter().next())
            else {
                continue;
            };
            let arguments: Vec<String> = arguments
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, right)| right[0] != json!(""))
                .map(|(key, right)| format!("{}: {}", json!(key), spaced(&right[0])))
                .collect();
            let call = format!(
                "<tool_call>\n{{\"name\": {}, \"arguments\": {{{}}}}}\n</tool_call>",
                json!(name),
                arguments.join(", ")
            );
            let reply = if *choice == ToolChoice::Auto { format!("{SENTENCE}{call}") } else { call };
            let ids = compiler.tokenizer().encode(&reply)?;
            walk.text(&compiled, &ids, compiler.tokenizer().logits_width())?;
        }
    }
    Ok(walk)
}

/// Cost of a constraint in a step of the engine, including steering: a model with random logits writes
/// greedily, without a constraint and with several ones.
fn steps(shared: &Path) -> Result<()> {
    let tokenizer = Tokenizer::from_json(&std::fs::read(shared.join("tokenizers/qwen2-tokenizer.json"))?)?;
    let end = tokenizer.token_id("<|im_end|>").ok_or("an end token")?;
    let tokenizer = tokenizer.with_end_ids([end]);
    let model = FakeLm::noise(3, tokenizer.logits_width());
    let engine = Engine::new(
        LoadedModel { tokenizer: Arc::new(tokenizer), ..loaded(model) },
        EngineSettings::default(),
    )?;
    let record = lines(&shared.join("bfcl/live_multiple.jsonl"))?.swap_remove(0);
    let tools: Vec<ToolSpec> = serde_json::from_value(record["tools"].clone())?;
    let hermes = lm_processors::by_name("hermes").ok_or("a family")?;
    let reply = |choice| -> Result<ConstraintSpec> {
        let request = GrammarRequest {
            tools: &tools,
            choice,
            thinking: Thinking::Forbidden,
            ..GrammarRequest::default()
        };
        let grammar = hermes.grammar(&request)?.ok_or("a grammar")?.grammar;
        Ok(ConstraintSpec::Lark { text: grammar.lark, markers: grammar.markers })
    };
    let string = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let string = lm_processors::json_grammar(&string, Layout::Exact)?.grammar;
    let cases = [
        ("no constraint", None),
        ("text that may call", Some(reply(ToolChoice::Auto)?)),
        ("calls, required", Some(reply(ToolChoice::Required)?)),
        ("a string in an object", Some(ConstraintSpec::Lark { text: string.lark, markers: string.markers })),
        ("digits", Some(ConstraintSpec::Regex("[0-9]{1000}".to_owned()))),
    ];
    println!("\na step of a model of noise, greedy, up to 400 tokens of 4,000 and of 1,100");
    for (name, spec) in cases {
        let compiled = spec.map(|spec| engine.compile(&spec)).transpose()?;
        for room in [4000, 1100] {
            let (mut times, mut forced, mut steered) = (Vec::new(), 0, 0);
            for prompt in 0..8 {
                let mut session = engine.session(SessionConfig::default())?;
                session.prefill(&[prompt])?;
                let constraint = compiled.as_ref().map(CompiledConstraint::start);
                let mut at = Instant::now();
                for event in session
                    .generate(GenerateParams {
                        constraint,
                        max_output_tokens: Some(room),
                        ..GenerateParams::default()
                    })
                    .take(400)
                {
                    times.push(at.elapsed());
                    at = Instant::now();
                    if let SessionEvent::Finished(finished) = event? {
                        forced += finished.usage.forced_tokens;
                        steered += usize::from(finished.steered.is_some());
                    }
                }
            }
            times.sort_unstable();
            let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
            let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e6 / times.len() as f64;
            println!(
                "  {name:22} room {room:5}: mean {mean:7.1} µs  p50 {:7.1}  p99 {:8.1}  p99.9 {:8.1}  ({} tokens, {forced} forced, {steered} steered)",
                at(0.5),
                at(0.99),
                at(0.999),
                times.len()
            );
        }
    }
    Ok(())
}

/// Tokens per second of a model's replies with forced tokens run in one batch, and of the same replies with
/// each token sampled on its own; the two alternate.
fn batched_and_singly(folder: &Path, shared: &Path) -> Result<()> {
    let folder = ModelFolder::open(folder)?;
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
    let mut rates = [(0, 0.0), (0, 0.0)];
    let mut forced = 0;
    let processor = lm_processors::by_name("hermes").ok_or("a family")?;
    for (seed, record) in lines(&shared.join("bfcl/multiple.jsonl"))?.into_iter().take(8).enumerate() {
        let tools: Vec<ToolSpec> = serde_json::from_value(record["tools"].clone())?;
        let choice = ToolChoice::Required;
        let request = GrammarRequest {
            tools: &tools,
            choice,
            thinking: Thinking::Forbidden,
            ..GrammarRequest::default()
        };
        let reply = processor.grammar(&request)?.ok_or("a grammar")?;
        let spec = ConstraintSpec::Lark { text: reply.grammar.lark, markers: reply.grammar.markers };
        let compiled = engine.compile(&spec)?;
        for (singly, rate) in rates.iter_mut().enumerate() {
            let constraint: Box<dyn Constraint> = match singly {
                0 => compiled.start(),
                _ => Box::new(NothingForced(compiled.start())),
            };
            let mut session = engine.session(SessionConfig::default())?;
            session.prefill(&[1, 2, 3, seed as TokenId])?;
            let sampler =
                SamplerParams { temperature: 1.0, seed: Some(seed as u64), ..SamplerParams::default() };
            let params = GenerateParams {
                sampler: Some(sampler),
                constraint: Some(constraint),
                max_output_tokens: Some(200),
                ..GenerateParams::default()
            };
            let started = Instant::now();
            let (_, finished) = session.generate(params).into_text()?;
            rate.0 += finished.usage.output_tokens;
            rate.1 += started.elapsed().as_secs_f64();
            forced += finished.usage.forced_tokens;
        }
    }
    println!(
        "\n{}: required calls of hermes, {} tokens, {:.1} % forced",
        engine.name(),
        rates[0].0,
        100.0 * forced as f64 / rates[0].0 as f64
    );
    for (name, (tokens, seconds)) in ["forced tokens together", "each token by itself"].iter().zip(rates) {
        println!("  {name:24} {:8.1} tokens/s", tokens as f64 / seconds);
    }
    Ok(())
}

/// A constraint that reports no forced tokens: the mask then allows a single token.
#[derive(Debug)]
struct NothingForced(Box<dyn Constraint>);

impl Constraint for NothingForced {
    fn mask(&mut self, mask: &mut TokenMask) -> lm_session::Result<()> {
        self.0.mask(mask)
    }
    fn commit(&mut self, id: TokenId) -> lm_session::Result<()> {
        self.0.commit(id)
    }
    fn rollback(&mut self, tokens: usize) -> lm_session::Result<()> {
        self.0.rollback(tokens)
    }
    fn ending(&mut self) -> lm_session::Result<Ending> {
        self.0.ending()
    }
    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(Self(self.0.fork()))
    }
    fn valid_prefix(&mut self, ids: &[TokenId]) -> lm_session::Result<usize> {
        self.0.valid_prefix(ids)
    }
    fn closing_literals(&self) -> &[String] {
        self.0.closing_literals()
    }
}

/// JSON with a space after each colon and comma, as models write it.
fn spaced(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", join(items.iter().map(spaced).collect())),
        Value::Object(fields) => format!(
            "{{{}}}",
            join(fields.iter().map(|(key, value)| format!("{}: {}", json!(key), spaced(value))).collect())
        ),
        other => other.to_string(),
    }
}
