//! A grammar's verdict on a text, byte by byte, without a tokenizer.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities};
use llguidance::{Matcher, ParserFactory};
use lm_processors::{Grammar, GrammarRequest, ReplyGrammar, Value};

/// Verdict of a grammar on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Incomplete,
    Rejected { at: usize },
}

/// Compiler of grammars for a vocabulary of single bytes.
pub struct Compiler(ParserFactory);

impl Compiler {
    pub fn new() -> Self {
        let env = ApproximateTokEnv::single_byte_env();
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &[]).expect("a small vocabulary");
        factory.quiet().limits_mut().verbose_errors = false;
        Self(factory)
    }

    /// Compiles a grammar whose markers are ordinary text.
    pub fn compile_grammar(&self, grammar: &Grammar) -> Result<Matcher, String> {
        let rule = |(at, text): (usize, &String)| format!("marker_{at}: {}\n", Value::from(text.as_str()));
        let markers: String = grammar.markers.iter().enumerate().map(rule).collect();
        self.compile(TopLevelGrammar::from_lark(format!("{}{markers}", grammar.lark)))
    }

    pub fn compile(&self, grammar: TopLevelGrammar) -> Result<Matcher, String> {
        let matcher = Matcher::new(self.0.create_parser(grammar));
        matcher.get_error().map_or(Ok(matcher), Err)
    }
}

/// Grammar of a family's reply, if any.
pub fn grammar_of(family: &str, request: &GrammarRequest<'_>) -> lm_processors::Result<ReplyGrammar> {
    let family =
        lm_processors::ALL.iter().find(|known| known.processor.name() == family).expect("a known family");
    Ok(family.processor.grammar(request)?.expect("the request restricts the reply"))
}

pub fn verdict(matcher: &Matcher, text: &str) -> Verdict {
    let mut matcher = matcher.deep_clone();
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    match matcher.try_consume_tokens(&tokens) {
        Ok(taken) if taken < tokens.len() => Verdict::Rejected { at: taken },
        Ok(_) if matcher.is_stopped() && matcher.stop_reason().is_ok() => Verdict::Accepted,
        Ok(_) if matcher.is_accepting().unwrap_or(false) => Verdict::Accepted,
        Ok(_) => Verdict::Incomplete,
        Err(error) => panic!("{error}"),
    }
}
