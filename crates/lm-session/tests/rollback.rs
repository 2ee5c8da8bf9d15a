//! Rollback of a constraint restores its state: mask, forced tokens, ending.

use std::sync::{Arc, LazyLock};

use lm_session::testing::tokenizer;
use lm_session::{Constraint, ConstraintSpec, Ending, GrammarCompiler, Result, TokenId, TokenMask};
use proptest::prelude::*;

static COMPILER: LazyLock<GrammarCompiler> =
    LazyLock::new(|| GrammarCompiler::new(&Arc::new(tokenizer())).unwrap());

/// All observable parts of a constraint's state.
#[derive(Debug, PartialEq)]
struct State {
    ending: Ending,
    forced: Vec<TokenId>,
    mask: TokenMask,
}

fn state(constraint: &mut dyn Constraint) -> State {
    let mut mask = TokenMask::new(tokenizer().logits_width());
    let (ending, forced) = (constraint.ending().unwrap(), constraint.forced().unwrap());
    constraint.mask(&mut mask).unwrap();
    State { ending, forced, mask }
}

/// A constraint with the trait's default methods.
#[derive(Debug)]
struct Committed(Box<dyn Constraint>);

impl Constraint for Committed {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        self.0.mask(mask)
    }
    fn commit(&mut self, id: TokenId) -> Result<()> {
        self.0.commit(id)
    }
    fn rollback(&mut self, tokens: usize) -> Result<()> {
        self.0.rollback(tokens)
    }
    fn ending(&mut self) -> Result<Ending> {
        self.0.ending()
    }
    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(Self(self.0.fork()))
    }
    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        self.0.valid_prefix(ids)
    }
}

fn specs() -> Vec<ConstraintSpec> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 3},
            "days": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {"day": {"type": "integer"}}, "required": ["day"]}},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "days", "unit"],
    });
    let markers: Vec<String> = ["<tool_call>", "</tool_call>", "<unknown>"].map(String::from).into();
    let lark = |text: String| ConstraintSpec::Lark { text, markers: markers.clone() };
    vec![
        ConstraintSpec::Regex("[a-f]{3,9}(-[0-9]+)*x?".to_owned()),
        ConstraintSpec::Choice(vec!["yes".to_owned(), "yes (or so)".to_owned(), "no".to_owned()]),
        lark(format!("start: %json {schema}")),
        lark(format!("start: marker_0 \"\\n\" %json {schema} \"\\n\" marker_1")),
        lark(
            "start: TEXT (marker_0 (\"a\" | \"b\")+ marker_1 | marker_2 \"end\")?\nTEXT: /[^<]*/".to_owned(),
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn rollback_restores_every_state(choices in prop::collection::vec((0usize..10_000, 0usize..12), 1..40)) {
        for spec in specs() {
            let compiled = COMPILER.compile(&spec).unwrap();
            let (mut walked, mut ids) = (compiled.start(), Vec::new());
            for &(choice, back) in &choices {
                let allowed: Vec<TokenId> = state(&mut *walked).mask.ids().collect();
                if !allowed.is_empty() {
                    ids.push(allowed[choice % allowed.len()]);
                    walked.commit(*ids.last().unwrap()).unwrap();
                }
                if back < ids.len() {
                    walked.rollback(back).unwrap();
                    ids.truncate(ids.len() - back);
                }
                // Queries do not change the state either.
                let valid = walked.valid_prefix(&[choice as TokenId % 270, (choice / 7) as TokenId % 270]).unwrap();
                prop_assert!(valid <= 2);
                let next: Vec<TokenId> = allowed.iter().copied().take(1).collect();
                let by_commits = Committed(walked.fork()).completes(&next).unwrap();
                prop_assert_eq!(walked.completes(&next).unwrap(), by_commits, "{:?} after {:?}, {:?}", spec, ids, next);
                let mut fresh = compiled.start();
                ids.iter().for_each(|&id| fresh.commit(id).unwrap());
                prop_assert_eq!(state(&mut *walked), state(&mut *fresh), "{:?} after {:?}", spec, ids);
            }
        }
    }
}
