//! Generated templates.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::second_opinion::classes::Tally;
use crate::second_opinion::engines::{Minijinja, ours};
use crate::second_opinion::grammar;

/// Default number of templates; `LM_PROPERTY_CASES` overrides it.
const CASES: usize = 2000;

#[test]
fn every_difference_on_generated_templates_has_a_class() {
    let cases = std::env::var("LM_PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[14; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (templates, variables, minijinja) = (grammar::templates(), grammar::variables(), Minijinja::new());
    let mut tally = Tally::default();
    for _ in 0..cases.unwrap_or(CASES) {
        let tree = templates.new_tree(&mut runner).expect("the grammar rejects nothing");
        let source = tree.current();
        let (ours, theirs) = (ours(&source)(&variables), minijinja.compile(&source)(&variables));
        tally.add(&source, &source, &ours, &theirs);
    }
    tally.finish("generated templates");
}
