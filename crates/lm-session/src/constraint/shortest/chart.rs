//! Byte-by-byte Earley chart of a text, and the cheapest completion from its end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use llguidance::earley::regexvec::StateID;

use super::lexemes::{Kind, Lexemes};
use super::rules::{Cost, ENDLESS, Place, Rules, Symbol};
use crate::TokenId;

/// Maximum number of items in one Earley set, and in all.
const MAX_ROW_ITEMS: usize = 100_000;
const MAX_ITEMS: usize = 4_000_000;

/// An Earley item: a dotted rule and the row (Earley set) in which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    place: Place,
    origin: u32,
}

impl Item {
    /// The item with the dot moved past the next symbol.
    fn after(self) -> Self {
        Self { place: self.place + 1, ..self }
    }
}

/// A partially matched terminal.
#[derive(Clone, Copy, Debug)]
struct Thread {
    terminal: Symbol,
    /// State of its automaton; `None` when a token has to match it by id.
    state: Option<StateID>,
    /// Row in which it began.
    row: u32,
}

/// An Earley set, sorted so that items with the same next symbol are adjacent.
type Row = Vec<(Symbol, Item)>;

/// Earley chart of a text, with one row for each lexeme border.
///
/// The library cuts lexemes greedily, the longest first; the chart follows all ways to cut the text. So a completion found here
/// need not be accepted by the library, but every completion that the library accepts is found.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    rows: Vec<Row>,
    items: usize,
    now: Now,
    /// Checkpoints, one before each token.
    marks: Vec<Mark>,
}

/// Possible continuations.
#[derive(Clone, Debug, Default)]
struct Now {
    threads: Vec<Thread>,
    /// True if the text may end.
    complete: bool,
}

#[derive(Clone, Debug)]
struct Mark {
    rows: usize,
    now: Now,
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
        let mut chart = Self { rows: Vec::new(), items: 0, now: Now::default(), marks: Vec::new() };
        let first = rules.rules(rules.start).iter().map(|&place| Item { place, origin: 0 });
        let complete = rules.is_nullable(rules.start);
        chart.add_row(first.collect(), &[], rules, lexemes)?;
        chart.now.complete |= complete;
        Some(chart)
    }

    /// Number of tokens of the text.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Removes all tokens after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        if len < self.marks.len() {
            let Mark { rows, now } = self.marks[len].clone();
            self.drop_rows(rows);
            self.now = now;
            self.marks.truncate(len);
        }
    }

    fn drop_rows(&mut self, rows: usize) {
        self.items -= self.rows[rows..].iter().map(Vec::len).sum::<usize>();
        self.rows.truncate(rows);
    }

    /// Appends a token with these bytes, which are empty for a special token. Returns `None` when a bound is reached.
    pub fn push(&mut self, id: TokenId, bytes: &[u8], rules: &Rules, lexemes: &mut Lexemes) -> Option<()> {
        self.marks.push(Mark { rows: self.rows.len(), now: self.now.clone() });
        let takes = |terminal| rules.lexeme(terminal).is_some_and(|lexeme| lexemes.takes(lexeme, id));
        let by_id = |thread: &&Thread| thread.state.is_none() && takes(thread.terminal);
        let by_id: Vec<Thread> = self.now.threads.iter().filter(by_id).copied().collect();
        let mut now = std::mem::take(&mut self.now.threads);
        let mut ended = Vec::new();
        if bytes.is_empty() {
            now.clear();
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if at > 0 {
                self.next_row(&ended, rules, lexemes)?;
                now.append(&mut self.now.threads);
            }
            (now, ended) = after(&now, byte, rules, lexemes);
        }
        ended.extend(by_id);
        self.next_row(&ended, rules, lexemes)?;
        now.append(&mut self.now.threads);
        self.now.threads = now;
        (!lexemes.exhausted()).then_some(())
    }

    /// Adds the row after the completed lexemes (Earley scan), if there are any.
    fn next_row(&mut self, ended: &[Thread], rules: &Rules, lexemes: &Lexemes) -> Option<()> {
        self.now = Now::default();
        if ended.is_empty() {
            return Some(());
        }
        let (mut items, mut skipped) = (Vec::new(), Vec::new());
        for thread in ended {
            let row = &self.rows[thread.row as usize];
            items.extend(waiting(row, thread.terminal).map(Item::after));
            // A skipped lexeme leaves the items that expected a terminal in place.
            let before = row.iter().filter(|(next, _)| rules.skip(*next) == Some(thread.terminal));
            skipped.extend(before.map(|(_, item)| *item));
        }
        self.add_row(items, &skipped, rules, lexemes)
    }

    /// Adds a row with the closure of these items, and starts its terminals.
    fn add_row(
        &mut self,
        kernel: Vec<Item>,
        skipped: &[Item],
        rules: &Rules,
        lexemes: &Lexemes,
    ) -> Option<()> {
        let mut row = self.closure(kernel, rules)?;
        let mut terminals: Vec<Symbol> = row.iter().filter_map(|(next, _)| rules.skip(*next)).collect();
        row.extend(skipped.iter().filter_map(|item| Some((rules.next(item.place)?, *item))));
        row.sort_unstable_by_key(|(next, item)| (*next, item.place, item.origin));
        row.dedup();
        terminals.extend(row.iter().map(|(next, _)| *next).filter(|&next| rules.is_terminal(next)));
        terminals.sort_unstable();
        terminals.dedup();
        let current = self.rows.len() as u32;
        for terminal in terminals {
            let state = match rules.lexeme(terminal).map(|lexeme| lexemes.kind(lexeme)) {
                Some(Kind::Text { start, .. }) => Some(*start),
                Some(Kind::Token(_)) => None,
                Some(Kind::Never) | None => continue,
            };
            self.now.threads.push(Thread { terminal, state, row: current });
        }
        self.items += row.len();
        self.rows.push(row);
        (self.items <= MAX_ITEMS).then_some(())
    }

    /// Computes the closure (predict and complete) of the kernel items of the next row, without items at the end of their rule.
    fn closure(&mut self, kernel: Vec<Item>, rules: &Rules) -> Option<Row> {
        let current = self.rows.len() as u32;
        let mut row = Row::new();
        let (mut known, mut predicted): (HashSet<Item>, HashSet<Symbol>) = Default::default();
        let mut open: Vec<Item> = kernel.into_iter().filter(|item| known.insert(*item)).collect();
        while let Some(item) = open.pop() {
            let mut add = |item: Item| open.extend(known.insert(item).then_some(item));
            let Some(next) = rules.next(item.place) else {
                let of = rules.symbol_of(item.place);
                self.now.complete |= of == rules.start && item.origin == 0;
                // A symbol that completes in the row where it began is empty: it was passed over when it was predicted.
                if item.origin != current {
                    waiting(&self.rows[item.origin as usize], of).for_each(|item| add(item.after()));
                }
                continue;
            };
            row.push((next, item));
            if rules.is_nullable(next) {
                add(item.after());
            }
            if predicted.insert(next) {
                rules.rules(next).iter().for_each(|&place| add(Item { place, origin: current }));
            }
            if known.len() > MAX_ROW_ITEMS {
                return None;
            }
        }
        Some(row)
    }

    /// Returns the parts of the cheapest completion of the text; `None` when there is none, or its cost exceeds `limit`. `rest`
    /// is the cost of completing a terminal from a state.
    pub fn cheapest_end(
        &self,
        rules: &Rules,
        limit: Cost,
        rest: &mut dyn FnMut(Symbol, Option<StateID>) -> Cost,
    ) -> Option<Vec<Part>> {
        if self.now.complete {
            return Some(Vec::new());
        }
        let mut ways = Ways::default();
        for thread in &self.now.threads {
            let items = waiting(&self.rows[thread.row as usize], thread.terminal);
            let cost = rest(thread.terminal, thread.state);
            for item in items.filter(|_| cost != ENDLESS) {
                ways.add(cost, item, Before::Thread(*thread), rules);
            }
        }
        let mut settled = HashSet::new();
        while let Some(Reverse((cost, index))) = ways.heap.pop() {
            let Way { symbol, row, .. } = ways.all[index];
            if cost > limit {
                return None;
            }
            if symbol == rules.start && row == 0 {
                return Some(ways.parts(index, rules));
            }
            if settled.insert((symbol, row)) {
                for item in waiting(&self.rows[row as usize], symbol) {
                    ways.add(cost, item, Before::Way(index), rules);
                }
            }
        }
        None
    }
}

/// Items of a row whose next symbol is `symbol`.
fn waiting(row: &Row, symbol: Symbol) -> impl Iterator<Item = Item> + '_ {
    let first = row.partition_point(|(next, _)| *next < symbol);
    row[first..].iter().take_while(move |(next, _)| *next == symbol).map(|(_, item)| *item)
}

/// Advances the threads by `byte`; returns those that may continue, and those that may end after it.
fn after(threads: &[Thread], byte: u8, rules: &Rules, lexemes: &mut Lexemes) -> (Vec<Thread>, Vec<Thread>) {
    let (mut now, mut ended) = (Vec::new(), Vec::new());
    for thread in threads {
        let Some(state) = thread.state.and_then(|state| lexemes.after(state, byte)) else { continue };
        let thread = Thread { state: Some(state), ..*thread };
        let accepts = lexemes.accepts(state);
        let kind = rules.lexeme(thread.terminal).map(|lexeme| lexemes.kind(lexeme));
        let lazy = matches!(kind, Some(Kind::Text { lazy: true, .. }));
        if accepts {
            ended.push(thread);
        }
        if !(accepts && lazy) {
            now.push(thread);
        }
    }
    (now, ended)
}

/// State of the Dijkstra search for the cheapest completion, from the inner symbols to the outer ones.
#[derive(Default)]
struct Ways {
    all: Vec<Way>,
    heap: BinaryHeap<Reverse<(Cost, usize)>>,
}

/// A search node: `symbol`, which began in `row`, is complete.
struct Way {
    symbol: Symbol,
    row: u32,
    /// Position from which its rule is completed.
    place: Place,
    before: Before,
}

enum Before {
    Thread(Thread),
    Way(usize),
}

impl Ways {
    /// Adds the node that completes the rule of `item` after its next symbol.
    fn add(&mut self, cost: Cost, item: Item, before: Before, rules: &Rules) {
        let place = item.place + 1;
        let cost = cost.saturating_add(rules.rest_cost(place));
        if cost != ENDLESS {
            self.heap.push(Reverse((cost, self.all.len())));
            self.all.push(Way { symbol: rules.symbol_of(place), row: item.origin, place, before });
        }
    }

    /// Returns all parts up to the node `last`.
    fn parts(&self, last: usize, rules: &Rules) -> Vec<Part> {
        let (mut places, mut at) = (Vec::new(), last);
        let thread = loop {
            places.push(self.all[at].place);
            match &self.all[at].before {
                Before::Way(before) => at = *before,
                Before::Thread(thread) => break thread,
            }
        };
        let first = thread.state.map_or(Part::Terminal(thread.terminal), Part::Rest);
        let rest = places.iter().rev().flat_map(|&place| rules.cheapest_rest(place)).map(Part::Terminal);
        [first].into_iter().chain(rest).collect()
    }
}
