//! Byte-by-byte Earley chart of a text, and the cheapest completion from its end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use llguidance::earley::regexvec::StateID;

use super::lexemes::{Kind, Lexemes};
use super::rules::{Cost, DotPosition, INFINITE_COST, Rules, Symbol};
use lm_tokenizer::TokenId;

/// Maximum number of items in one Earley set, and in all.
const MAX_SET_ITEMS: usize = 100_000;
const MAX_ITEMS: usize = 4_000_000;

/// An Earley item: a dotted rule and the Earley set of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    dot: DotPosition,
    origin: u32,
}

impl Item {
    /// The item with the dot moved past the next symbol.
    fn advanced(self) -> Self {
        Self { dot: self.dot + 1, ..self }
    }
}

/// A partially matched terminal.
#[derive(Clone, Copy, Debug)]
struct PartialTerminal {
    terminal: Symbol,
    /// State of its automaton; `None` when a token has to match it by id.
    state: Option<StateID>,
    /// Set of its start.
    set: u32,
}

/// An Earley set, sorted so that items with the same next symbol are adjacent.
type EarleySet = Vec<(Symbol, Item)>;

/// Earley chart of a text, with one Earley set for each lexeme boundary.
///
/// The library splits lexemes greedily, the longest first; the chart follows all ways to split the text. So a
/// completion found here need not be accepted by the library, but every completion that the library accepts
/// is found.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    sets: Vec<EarleySet>,
    items: usize,
    frontier: Frontier,
    /// Checkpoints, one before each token.
    checkpoints: Vec<Checkpoint>,
}

/// Possible continuations.
#[derive(Clone, Debug, Default)]
struct Frontier {
    partials: Vec<PartialTerminal>,
    /// True if the text may end.
    complete: bool,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    sets: usize,
    frontier: Frontier,
}

/// A part of a completion: the rest of a partially matched lexeme, or a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Rest(StateID),
    Terminal(Symbol),
}

impl Chart {
    /// Creates the chart of the empty text; `None` when the grammar is too large.
    pub fn new(rules: &Rules, lexemes: &Lexemes) -> Option<Self> {
        let mut chart =
            Self { sets: Vec::new(), items: 0, frontier: Frontier::default(), checkpoints: Vec::new() };
        let first = rules.rules(rules.start).iter().map(|&dot| Item { dot, origin: 0 });
        let complete = rules.is_nullable(rules.start);
        chart.add_set(first.collect(), &[], rules, lexemes)?;
        chart.frontier.complete |= complete;
        Some(chart)
    }

    /// Approximate bytes of the Earley sets and the checkpoints.
    pub fn bytes(&self) -> usize {
        let partials = |frontier: &Frontier| size_of_val(&*frontier.partials);
        let checkpoints: usize =
            self.checkpoints.iter().map(|checkpoint| partials(&checkpoint.frontier)).sum();
        self.items * size_of::<(Symbol, Item)>() + checkpoints + partials(&self.frontier)
    }

    /// Number of tokens of the text.
    pub fn len(&self) -> usize {
        self.checkpoints.len()
    }

    /// Removes all tokens after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        if len < self.checkpoints.len() {
            let Checkpoint { sets, frontier } = self.checkpoints[len].clone();
            self.drop_sets(sets);
            self.frontier = frontier;
            self.checkpoints.truncate(len);
        }
    }

    fn drop_sets(&mut self, sets: usize) {
        self.items -= self.sets[sets..].iter().map(Vec::len).sum::<usize>();
        self.sets.truncate(sets);
    }

    /// Appends a token with these bytes, which are empty for a special token. Returns `None` when a bound is
    /// reached.
    pub fn push(&mut self, id: TokenId, bytes: &[u8], rules: &Rules, lexemes: &mut Lexemes) -> Option<()> {
        self.checkpoints.push(Checkpoint { sets: self.sets.len(), frontier: self.frontier.clone() });
        let matches =
            |terminal| rules.lexeme(terminal).is_some_and(|lexeme| lexemes.matches_token(lexeme, id));
        let by_id = |partial: &&PartialTerminal| partial.state.is_none() && matches(partial.terminal);
        let by_id: Vec<PartialTerminal> = self.frontier.partials.iter().filter(by_id).copied().collect();
        let mut partials = std::mem::take(&mut self.frontier.partials);
        let mut ended = Vec::new();
        if bytes.is_empty() {
            partials.clear();
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if at > 0 {
                self.next_set(&ended, rules, lexemes)?;
                partials.append(&mut self.frontier.partials);
            }
            (partials, ended) = advance(&partials, byte, rules, lexemes);
        }
        ended.extend(by_id);
        self.next_set(&ended, rules, lexemes)?;
        partials.append(&mut self.frontier.partials);
        self.frontier.partials = partials;
        (!lexemes.exhausted()).then_some(())
    }

    /// Adds the set after the completed lexemes (Earley scan), if any.
    fn next_set(&mut self, ended: &[PartialTerminal], rules: &Rules, lexemes: &Lexemes) -> Option<()> {
        self.frontier = Frontier::default();
        if ended.is_empty() {
            return Some(());
        }
        let (mut items, mut skipped) = (Vec::new(), Vec::new());
        for partial in ended {
            let set = &self.sets[partial.set as usize];
            items.extend(items_expecting(set, partial.terminal).map(Item::advanced));
            // A skipped lexeme leaves the items that expected a terminal in place.
            let before = set.iter().filter(|(next, _)| rules.skip(*next) == Some(partial.terminal));
            skipped.extend(before.map(|(_, item)| *item));
        }
        self.add_set(items, &skipped, rules, lexemes)
    }

    /// Adds a set with the closure of these items, and starts its terminals.
    fn add_set(
        &mut self,
        kernel: Vec<Item>,
        skipped: &[Item],
        rules: &Rules,
        lexemes: &Lexemes,
    ) -> Option<()> {
        let mut set = self.closure(kernel, rules)?;
        let mut terminals: Vec<Symbol> = set.iter().filter_map(|(next, _)| rules.skip(*next)).collect();
        set.extend(skipped.iter().filter_map(|item| Some((rules.next(item.dot)?, *item))));
        set.sort_unstable_by_key(|(next, item)| (*next, item.dot, item.origin));
        set.dedup();
        terminals.extend(set.iter().map(|(next, _)| *next).filter(|&next| rules.is_terminal(next)));
        terminals.sort_unstable();
        terminals.dedup();
        let current = self.sets.len() as u32;
        for terminal in terminals {
            let state = match rules.lexeme(terminal).map(|lexeme| lexemes.kind(lexeme)) {
                Some(Kind::Text { start, .. }) => Some(*start),
                Some(Kind::Token(_)) => None,
                Some(Kind::Never) | None => continue,
            };
            self.frontier.partials.push(PartialTerminal { terminal, state, set: current });
        }
        self.items += set.len();
        self.sets.push(set);
        (self.items <= MAX_ITEMS).then_some(())
    }

    /// Computes the closure (predict and complete) of the kernel items of the next set, without items at the
    /// end of their rule.
    fn closure(&mut self, kernel: Vec<Item>, rules: &Rules) -> Option<EarleySet> {
        let current = self.sets.len() as u32;
        let mut set = EarleySet::new();
        let (mut known, mut predicted): (HashSet<Item>, HashSet<Symbol>) = Default::default();
        let mut open: Vec<Item> = kernel.into_iter().filter(|item| known.insert(*item)).collect();
        while let Some(item) = open.pop() {
            let mut add = |item: Item| open.extend(known.insert(item).then_some(item));
            let Some(next) = rules.next(item.dot) else {
                let lhs = rules.lhs(item.dot);
                self.frontier.complete |= lhs == rules.start && item.origin == 0;
                // A symbol that completes in the set of its start is empty: it was skipped when it was
                // predicted.
                if item.origin != current {
                    items_expecting(&self.sets[item.origin as usize], lhs)
                        .for_each(|item| add(item.advanced()));
                }
                continue;
            };
            set.push((next, item));
            if rules.is_nullable(next) {
                add(item.advanced());
            }
            if predicted.insert(next) {
                rules.rules(next).iter().for_each(|&dot| add(Item { dot, origin: current }));
            }
            if known.len() > MAX_SET_ITEMS {
                return None;
            }
        }
        Some(set)
    }

    /// Returns the parts of the cheapest completion of the text; `None` without a completion, or if its cost
    /// exceeds `limit`. `rest` is the cost of completing a terminal from a state.
    pub fn cheapest_completion(
        &self,
        rules: &Rules,
        limit: Cost,
        rest: &mut dyn FnMut(Symbol, Option<StateID>) -> Cost,
    ) -> Option<Vec<Part>> {
        if self.frontier.complete {
            return Some(Vec::new());
        }
        let mut search = Search::default();
        for partial in &self.frontier.partials {
            let items = items_expecting(&self.sets[partial.set as usize], partial.terminal);
            let cost = rest(partial.terminal, partial.state);
            for item in items.filter(|_| cost != INFINITE_COST) {
                search.add(cost, item, Predecessor::Partial(*partial), rules);
            }
        }
        let mut settled = HashSet::new();
        while let Some(Reverse((cost, index))) = search.heap.pop() {
            let SearchNode { symbol, set, .. } = search.nodes[index];
            if cost > limit {
                return None;
            }
            if symbol == rules.start && set == 0 {
                return Some(search.parts(index, rules));
            }
            if settled.insert((symbol, set)) {
                for item in items_expecting(&self.sets[set as usize], symbol) {
                    search.add(cost, item, Predecessor::Node(index), rules);
                }
            }
        }
        None
    }
}

/// Items of a set whose next symbol is `symbol`.
fn items_expecting(set: &EarleySet, symbol: Symbol) -> impl Iterator<Item = Item> + '_ {
    let first = set.partition_point(|(next, _)| *next < symbol);
    set[first..].iter().take_while(move |(next, _)| *next == symbol).map(|(_, item)| *item)
}

/// Advances the partial terminals by `byte`; returns the terminals that may continue, and those that may end
/// after it.
fn advance(
    partials: &[PartialTerminal],
    byte: u8,
    rules: &Rules,
    lexemes: &mut Lexemes,
) -> (Vec<PartialTerminal>, Vec<PartialTerminal>) {
    let (mut continuing, mut ended) = (Vec::new(), Vec::new());
    for partial in partials {
        let Some(state) = partial.state.and_then(|state| lexemes.transition(state, byte)) else { continue };
        let partial = PartialTerminal { state: Some(state), ..*partial };
        let accepts = lexemes.accepts(state);
        let kind = rules.lexeme(partial.terminal).map(|lexeme| lexemes.kind(lexeme));
        let lazy = matches!(kind, Some(Kind::Text { lazy: true, .. }));
        if accepts {
            ended.push(partial);
        }
        if !(accepts && lazy) {
            continuing.push(partial);
        }
    }
    (continuing, ended)
}

/// State of the Dijkstra search for the cheapest completion, from the inner symbols to the outer ones.
#[derive(Default)]
struct Search {
    nodes: Vec<SearchNode>,
    heap: BinaryHeap<Reverse<(Cost, usize)>>,
}

/// A search node: `symbol`, which started in `set`, is complete.
struct SearchNode {
    symbol: Symbol,
    set: u32,
    /// Position where the completion of its rule starts.
    dot: DotPosition,
    predecessor: Predecessor,
}

enum Predecessor {
    Partial(PartialTerminal),
    Node(usize),
}

impl Search {
    /// Adds the node that completes the rule of `item` after its next symbol.
    fn add(&mut self, cost: Cost, item: Item, predecessor: Predecessor, rules: &Rules) {
        let dot = item.dot + 1;
        let cost = cost.saturating_add(rules.rest_cost(dot));
        if cost != INFINITE_COST {
            self.heap.push(Reverse((cost, self.nodes.len())));
            self.nodes.push(SearchNode { symbol: rules.lhs(dot), set: item.origin, dot, predecessor });
        }
    }

    /// Returns all parts up to the node `last`.
    fn parts(&self, last: usize, rules: &Rules) -> Vec<Part> {
        let (mut dots, mut at) = (Vec::new(), last);
        let partial = loop {
            dots.push(self.nodes[at].dot);
            match &self.nodes[at].predecessor {
                Predecessor::Node(index) => at = *index,
                Predecessor::Partial(partial) => break partial,
            }
        };
        let first = partial.state.map_or(Part::Terminal(partial.terminal), Part::Rest);
        let rest = dots.iter().rev().flat_map(|&dot| rules.cheapest_rest(dot)).map(Part::Terminal);
        [first].into_iter().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use llguidance::ParserFactory;
    use llguidance::api::TopLevelGrammar;

    use super::super::super::vocabulary::Vocabulary;
    use super::super::CompletionTables;

    #[test]
    fn removed_tokens_leave_no_items() {
        let tokenizer = Arc::new(crate::testing::tokenizer());
        let factory = ParserFactory::new_simple(&Vocabulary::env(&tokenizer)).expect("tables");
        let grammar = TopLevelGrammar::from_lark("start: (\"a\" | \"b\")* \"c\"".to_owned());
        let parser = factory.create_parser(grammar).expect("it compiles");
        let CompletionTables { rules, mut lexemes, mut chart, .. } =
            CompletionTables::from_parser(&parser).expect("supported features");
        let empty = chart.bytes();
        for _ in 0..3 {
            for id in tokenizer.encode("abba").expect("it encodes") {
                chart.push(id, tokenizer.token_bytes(id), &rules, &mut lexemes).expect("within the bounds");
            }
            assert!(chart.bytes() > empty);
            chart.truncate(0);
            assert_eq!(chart.bytes(), empty);
        }
    }
}
