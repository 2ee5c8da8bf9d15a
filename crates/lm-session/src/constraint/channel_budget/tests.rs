use super::*;
use crate::testing::tokenizer;

fn budget(tokens: usize) -> (ChannelBudget, Arc<Tokenizer>) {
    let tokenizer = Arc::new(tokenizer());
    let budget = ChannelBudget::new(&tokenizer, "<think>", "\n", "</think>", tokens).expect("it encodes");
    (budget, tokenizer)
}

fn write(budget: &mut ChannelBudget, tokenizer: &Tokenizer, text: &str) -> usize {
    let ids = tokenizer.encode(text).expect("it encodes");
    ids.iter().for_each(|&id| budget.commit(id).expect("all is let in"));
    ids.len()
}

#[test]
fn all_parts_of_the_channel_count_together() {
    let (mut budget, tokenizer) = budget(8);
    write(&mut budget, &tokenizer, "An answer that is longer than the budget.");
    assert!(budget.forced().expect("no inner one").is_empty());
    write(&mut budget, &tokenizer, "<think>");
    let first = write(&mut budget, &tokenizer, "abc");
    let end = write(&mut budget, &tokenizer, "</think>");
    write(&mut budget, &tokenizer, "More of the answer.<think>");
    assert!(budget.forced().expect("no inner one").is_empty());
    for _ in first + end..8 {
        assert_eq!(budget.ending().expect("no inner one"), Ending::Allowed);
        write(&mut budget, &tokenizer, "a");
    }
    let closing = tokenizer.encode("\n</think>").expect("it encodes");
    assert_eq!(budget.forced().expect("no inner one"), closing);
    assert_eq!(budget.ending().expect("no inner one"), Ending::Forbidden);
}

#[test]
fn forced_end_is_undone_by_rollback() {
    let (budget, tokenizer) = budget(2);
    let mut budget = budget.starting_inside();
    write(&mut budget, &tokenizer, "a");
    write(&mut budget, &tokenizer, "b");
    let closing = budget.forced().expect("no inner one");
    let mut mask = TokenMask::new(tokenizer.logits_width());
    for &id in &closing {
        mask.clear();
        budget.mask(&mut mask).expect("no inner one");
        assert_eq!(mask.ids().collect::<Vec<_>>(), [id]);
        budget.commit(id).expect("all is let in");
    }
    assert!(budget.forced().expect("no inner one").is_empty());
    budget.rollback(closing.len()).expect("as many were committed");
    assert_eq!(budget.forced().expect("no inner one"), closing);
    budget.rollback(1).expect("one was committed");
    assert!(budget.forced().expect("no inner one").is_empty());
}

#[test]
fn reopened_channel_has_no_budget_left() {
    let (budget, tokenizer) = budget(2);
    let mut budget = budget.starting_inside();
    write(&mut budget, &tokenizer, "a");
    write(&mut budget, &tokenizer, "b");
    let closing = budget.forced().expect("no inner one");
    closing.iter().for_each(|&id| budget.commit(id).expect("all is let in"));
    write(&mut budget, &tokenizer, "<think>");
    assert_eq!(budget.forced().expect("no inner one"), closing);
}

#[test]
fn reply_constraint_decides_when_the_channel_ends() {
    /// Requires "ab" first.
    #[derive(Clone, Debug)]
    struct AbFirst(Vec<TokenId>, usize);
    impl Constraint for AbFirst {
        fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
            match self.0.get(self.1) {
                Some(&id) => mask.allow(id),
                None => mask.allow_all(),
            }
            Ok(())
        }
        fn commit(&mut self, _: TokenId) -> Result<()> {
            self.1 += 1;
            Ok(())
        }
        fn rollback(&mut self, tokens: usize) -> Result<()> {
            self.1 -= tokens;
            Ok(())
        }
        fn ending(&mut self) -> Result<Ending> {
            Ok(Ending::Allowed)
        }
        fn fork(&self) -> Box<dyn Constraint> {
            Box::new(self.clone())
        }
    }
    let (budget, tokenizer) = budget(0);
    let [a, b] = ["a", "b"].map(|text| tokenizer.encode(text).expect("it encodes")[0]);
    let mut budget = budget.starting_inside().with(Some(Box::new(AbFirst(vec![a, b], 0))));
    let mut mask = TokenMask::new(tokenizer.logits_width());
    for id in [a, b] {
        assert!(budget.forced().expect("both agree").is_empty());
        mask.clear();
        budget.mask(&mut mask).expect("both agree");
        assert_eq!(mask.ids().collect::<Vec<_>>(), [id]);
        budget.commit(id).expect("it is let in");
    }
    assert_eq!(budget.forced().expect("both agree"), tokenizer.encode("\n</think>").expect("it encodes"));
}

#[test]
fn completion_ends_the_channel_with_its_marker() {
    let tokenizer = Arc::new(tokenizer());
    let spec = crate::ConstraintSpec::Lark {
        text: "start: TEXT marker_0 /\\[[0-9]{50}\\]/\nTEXT: /[a-z\\n]*/".to_owned(),
        markers: vec!["</think>".to_owned()],
    };
    let compiler = crate::GrammarCompiler::new(&tokenizer).expect("tables");
    let inner = compiler.compile(&spec).expect("it compiles").start();
    let (budget, _) = budget(2);
    let mut budget = budget.starting_inside().with(Some(inner));
    let text = |budget: &mut ChannelBudget| {
        let ids = budget.completion().expect("no error").expect("there is one");
        assert!(budget.completes(&ids).expect("no error"));
        ids.iter().flat_map(|&id| tokenizer.token_bytes(id).to_vec()).collect::<Vec<u8>>()
    };
    let end = format!("</think>[{}]", "0".repeat(50));
    assert_eq!(text(&mut budget), end.as_bytes());
    write(&mut budget, &tokenizer, "a");
    write(&mut budget, &tokenizer, "b");
    assert_eq!(text(&mut budget), format!("\n{end}").as_bytes());
}
