//! Compilation of grammars to constraints: cached by text, bounded in time and size.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{ParserFactory, TokenParser};
use lm_tokenizer::Tokenizer;

use super::bounds::Abandoned;
use super::cache::GrammarCache;
use super::shortest_completion::{CompletionTables, ShortestCompletion};
use super::vocabulary::{Vocabulary, special_token};
use super::{
    Acceptance, Constraint, ConstraintSpec, GrammarConstraint, bounds, conjunctions, cost, literals, refusal,
};
use crate::error::{Error, Result};
use crate::panics::panic_message;

/// Compiles grammars for one tokenizer; no model is needed. Clones share the vocabulary's tables and the
/// cache.
///
/// ```
/// use std::sync::Arc;
///
/// use lm_session::{Acceptance, ConstraintSpec, GrammarCompiler, testing};
///
/// let compiler = GrammarCompiler::new(&Arc::new(testing::tokenizer()))?;
/// let digits = compiler.compile(&ConstraintSpec::Regex("[0-9]{2,3}".to_owned()))?;
/// assert_eq!(digits.check("42")?, Acceptance::Accepted);
/// assert_eq!(digits.check("4")?, Acceptance::Incomplete);
/// assert_eq!(digits.check("4x")?, Acceptance::Rejected { at: 1 });
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Clone)]
pub struct GrammarCompiler {
    shared: Arc<Shared>,
}

struct Shared {
    tokenizer: Arc<Tokenizer>,
    factory: ParserFactory,
    cache: Mutex<GrammarCache<CompiledConstraint>>,
}

/// A grammar compiled for one tokenizer. Any number of generations can use it concurrently; clones are cheap.
#[derive(Clone)]
pub struct CompiledConstraint {
    grammar: Arc<Compiled>,
}

struct Compiled {
    spec: Arc<ConstraintSpec>,
    /// Parser at the start of the text; generations work on copies.
    start: Mutex<TokenParser>,
    closing_literals: Arc<[String]>,
    completion_tables: Option<Arc<CompletionTables>>,
    memory_bytes: usize,
}

impl GrammarCompiler {
    /// Builds the vocabulary's tables. Takes about half a second for 150,000 entries.
    ///
    /// # Errors
    /// [`Error::ConstraintFailed`] for a vocabulary that the grammar library rejects.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Result<Self> {
        let failed = |message| Error::ConstraintFailed { message };
        let factory = catch_unwind(AssertUnwindSafe(|| factory(tokenizer)))
            .map_err(|panic| failed(panic_message(&*panic)))?
            .map_err(failed)?;
        let shared = Shared { tokenizer: tokenizer.clone(), factory, cache: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The tokenizer that grammars are compiled for.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.shared.tokenizer
    }

    /// Compiles a grammar, or returns it from the cache. The work is done on its own thread, which is
    /// abandoned when it exceeds the time limit.
    ///
    /// # Errors
    /// [`Error::Grammar`] describes the defect; [`Error::ConstraintFailed`] when the compilation panics, or
    /// when no thread for it can start or becomes free.
    pub fn compile(&self, spec: &ConstraintSpec) -> Result<CompiledConstraint> {
        let key = bounds::checked_text(spec)?;
        let cache = || self.shared.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache().get(&key) {
            return Ok(found);
        }
        let started = Instant::now();
        let (shared, owned_spec) = (self.shared.clone(), spec.clone());
        let compile = move |abandoned: &Abandoned| {
            let parser = shared.parser(&owned_spec, abandoned)?;
            Ok::<_, Error>((completion_tables(&parser, abandoned), parser))
        };
        let (completion_tables, parser) = bounds::with_timeout(compile)??;
        let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
        let memory_bytes = TEXT_COPIES * key.len() + memory_bytes(&parser, completion_tables.as_deref());
        tracing::debug!(bytes = key.len(), memory_bytes, elapsed_ms, "grammar compiled");
        let compiled = Compiled {
            spec: Arc::new(spec.clone()),
            start: Mutex::new(parser),
            closing_literals: literals::string_literals(spec),
            completion_tables,
            memory_bytes,
        };
        let compiled = CompiledConstraint { grammar: Arc::new(compiled) };
        cache().insert(key, compiled.clone(), memory_bytes);
        Ok(compiled)
    }
}

/// Bytes of memory for each byte of a grammar's text, besides the automata: its copies, the syntax tree, the
/// rules. Measured: 60 to 100 for long lists of texts.
const TEXT_COPIES: usize = 60;

/// Estimate of the memory of a compiled grammar's automata and rules.
fn memory_bytes(parser: &TokenParser, tables: Option<&CompletionTables>) -> usize {
    let lexer = parser.parser.lexer_stats();
    // The library omits the sets of expressions of each state.
    let sets = lexer.num_states * 3 * lexer.num_regexps.div_ceil(8);
    lexer.num_bytes + sets + parser.dbg_grammar.len() + tables.map_or(0, CompletionTables::bytes)
}

/// Builds the rules for shortest completions; `None` if the grammar uses an unsupported feature, which leaves
/// only the search.
fn completion_tables(parser: &TokenParser, abandoned: &Abandoned) -> Option<Arc<CompletionTables>> {
    abandoned.check().ok()?;
    catch_unwind(AssertUnwindSafe(|| CompletionTables::from_parser(parser))).ok().flatten().map(Arc::new)
}

impl Shared {
    fn parser(&self, spec: &ConstraintSpec, abandoned: &Abandoned) -> Result<TokenParser> {
        conjunctions::check(spec).map_err(refusal::grammar_error)?;
        abandoned.check().map_err(refusal::grammar_error)?;
        self.bounded_parser(self.grammar(spec), abandoned).map_err(refusal::grammar_error)
    }

    /// Creates a parser after checking the bounds on its parts.
    fn bounded_parser(
        &self,
        grammar: TopLevelGrammar,
        abandoned: &Abandoned,
    ) -> std::result::Result<TokenParser, String> {
        let message = |error| format!("{error:#}");
        let init = GrammarInit::Serialized(grammar);
        let env = Some(self.factory.tok_env().clone());
        let limits = self.factory.limits().clone();
        let (grammar, lexer) = catch_unwind(AssertUnwindSafe(|| init.to_internal(env, limits)))
            .map_err(|panic| panic_message(&*panic))?
            .map_err(message)?;
        abandoned.check()?;
        cost::check(lexer.regex_builder.exprset())?;
        abandoned.check()?;
        self.factory.create_parser_from_init_default(GrammarInit::Internal(grammar, lexer)).map_err(message)
    }

    fn grammar(&self, spec: &ConstraintSpec) -> TopLevelGrammar {
        match spec {
            ConstraintSpec::Regex(regex) => TopLevelGrammar::from_regex(regex),
            ConstraintSpec::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| regex_syntax::escape(text)).collect();
                TopLevelGrammar::from_regex(&texts.join("|"))
            }
            ConstraintSpec::Lark { text, markers } => {
                let rules = markers.iter().enumerate().map(|(index, marker)| self.marker_rule(index, marker));
                TopLevelGrammar::from_lark(text.clone() + "\n" + &rules.collect::<String>())
            }
        }
    }

    /// Rule for the tokens and strings that make up a marker's text.
    fn marker_rule(&self, index: usize, text: &str) -> String {
        let trie = self.factory.tok_env().tok_trie();
        let (mut rule, mut plain, mut rest) = (format!("marker_{index}:"), String::new(), text);
        while let Some(first) = rest.chars().next() {
            let added = special_token(trie, rest.as_bytes());
            if let Some((id, len)) = added {
                push_literal(&mut rule, &mut plain);
                rule += &format!(" <[{id}]>");
                rest = &rest[len..];
            } else {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        push_literal(&mut rule, &mut plain);
        if text.is_empty() { rule + " \"\"\n" } else { rule + "\n" }
    }
}

/// Appends `plain` to a rule as a string literal, and clears it.
fn push_literal(rule: &mut String, plain: &mut String) {
    if !plain.is_empty() {
        *rule += &format!(" {}", serde_json::Value::from(std::mem::take(plain)));
    }
}

impl CompiledConstraint {
    /// Creates the constraint at the start of a text, for [`crate::GenerateParams::constraint`].
    pub fn start(&self) -> Box<dyn Constraint> {
        Box::new(self.start_grammar())
    }

    /// Checks `text` against the grammar, independent of tokenization; an added token required by the grammar
    /// is matched by its spelling.
    ///
    /// # Errors
    /// [`Error::ConstraintFailed`].
    pub fn check(&self, text: &str) -> Result<Acceptance> {
        self.start_grammar().check(text)
    }

    /// Estimate of its memory, in bytes. The compiler's cache holds at most 64 grammars and 128 MiB.
    pub fn memory_bytes(&self) -> usize {
        self.grammar.memory_bytes
    }

    fn start_grammar(&self) -> GrammarConstraint {
        let start = self.grammar.start.lock().unwrap_or_else(PoisonError::into_inner);
        let shortest = self.grammar.completion_tables.clone().map(ShortestCompletion::new);
        let Compiled { spec, closing_literals, .. } = &*self.grammar;
        GrammarConstraint::new(start.deep_clone(), spec.clone(), closing_literals.clone(), shortest)
    }
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCompiler").field("tokenizer", &self.shared.tokenizer).finish_non_exhaustive()
    }
}

impl fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledConstraint").finish_non_exhaustive()
    }
}

/// Vocabulary slices (llguidance) that are allowed as a whole if a lexeme matches all of their texts:
/// whitespace, and text inside of strings, which also covers free text without a start of a call marker.
const SLICES: [&str; 4] = [
    r"[\x20\x0A\x0D\x09]+",
    r#"[^"\\<\x00-\x1F\x7F]{1,10}"#,
    r#"[^"\\<\x00-\x1F\x7F]{1,30}"#,
    r#"[^"\\<\x00-\x1F\x7F]+"#,
];

fn factory(tokenizer: &Arc<Tokenizer>) -> std::result::Result<ParserFactory, String> {
    let env = Vocabulary::env(tokenizer);
    let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
    let slices = SLICES.map(str::to_owned);
    let mut factory =
        ParserFactory::new(&env, capabilities, &slices).map_err(|error| format!("{error:#}"))?;
    factory.quiet();
    *factory.limits_mut() = limits();
    Ok(factory)
}

/// llguidance limits of one generation.
///
/// - Lexer states take 1 to 2 kB each: 200 MB at most. A counted repetition of 10,000 characters needs that
///   many.
/// - A unit of fuel is about 100 ns: 0.3 s for one mask at most.
/// - A row of the parser has an item for each value of an `enum`.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 20_000,
        max_lexer_states: 100_000,
        step_lexer_fuel: 3_000_000,
        verbose_errors: false,
        ..ParserLimits::default()
    }
}
