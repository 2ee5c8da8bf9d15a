//! The shortest completion of a text, from the rules of its grammar.
//!
//! Beside the library's parser, whose state is not public, a second one follows the text: an Earley chart over the compiled rules, with
//! the library's own automata for the lexemes. From its rows the cheapest way to the end is read, at a cost that does not depend on how long
//! that way is. It is found in estimated tokens; its text is then cut into real ones.

mod chart;
mod lexemes;
mod rules;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use llguidance::TokenParser;
use llguidance::earley::lexerspec::LexemeIdx;
use llguidance::earley::regexvec::StateID;
use llguidance::toktrie::{TokEnv, TokTrie};

use crate::TokenId;
use chart::{Chart, Part};
use lexemes::{Kind, Lexemes};
use rules::{Cost, ENDLESS, Rules, Symbol};

/// Tokens up to which a completion is written out.
const MAX_COST: Cost = 1 << 18;
/// Tokens that are taken over together.
const BATCH: usize = 32;

/// The rules of one grammar, and their shortest texts.
pub(super) struct Outline {
    rules: Rules,
    /// At the start of a text; each text works on a copy.
    lexemes: Lexemes,
    chart: Chart,
    /// The shortest text of each terminal.
    texts: HashMap<Symbol, Text>,
    vocabulary: TokEnv,
}

/// A text, or a token that is none, and its cost.
struct Text {
    piece: Piece,
    cost: Cost,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Token(TokenId),
}

/// What is followed of one text.
#[derive(Clone)]
pub(super) struct Shortest {
    outline: Arc<Outline>,
    /// The tokens of the text, of which the first ones are in the chart.
    ids: Vec<TokenId>,
    /// Made when it is needed first; none any more when a bound was reached.
    state: State,
}

#[derive(Clone)]
enum State {
    Fresh,
    Live(Box<(Chart, Lexemes)>),
    Lost,
}

impl Outline {
    /// The outline of a compiled grammar, whose parser is at the start; none for what it does not know: conditions, lexemes with
    /// look-ahead, grammars beyond its bounds.
    pub fn of(parser: &TokenParser) -> Option<Self> {
        let grammar = parser.parser.grammar();
        let vocabulary = parser.token_env.clone();
        if grammar.lexer_spec().has_stop {
            return None;
        }
        let mut rules = Rules::of(grammar)?;
        let mut lexemes = Lexemes::of(grammar.lexer_spec(), &special_tokens(vocabulary.tok_trie()))?;
        let mut texts = HashMap::new();
        for (symbol, lexeme) in rules.terminals().collect::<Vec<_>>() {
            if let Some(piece) = shortest_piece(&mut lexemes, lexeme) {
                let cost = cost_of(&vocabulary, &piece);
                texts.insert(symbol, Text { piece, cost });
            }
        }
        rules.set_costs(|symbol| texts.get(&symbol).map_or(ENDLESS, |text| text.cost));
        let chart = Chart::new(&rules, &lexemes)?;
        Some(Self { rules, lexemes, chart, texts, vocabulary })
    }
}

/// The tokens that are no text.
fn special_tokens(trie: &TokTrie) -> Vec<TokenId> {
    let special = |id: &TokenId| trie.token(*id).first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER);
    (0..trie.vocab_size() as TokenId).filter(special).collect()
}

fn shortest_piece(lexemes: &mut Lexemes, lexeme: LexemeIdx) -> Option<Piece> {
    match *lexemes.kind(lexeme) {
        Kind::Text { start, .. } => lexemes.shortest(start).map(Piece::Bytes),
        Kind::Token(id) => Some(Piece::Token(id)),
        Kind::Never => None,
    }
}

fn cost_of(vocabulary: &TokEnv, piece: &Piece) -> Cost {
    match piece {
        Piece::Bytes(bytes) => vocabulary.tok_trie().greedy_tokenize(bytes).len() as Cost,
        Piece::Token(_) => 1,
    }
}

impl Shortest {
    /// At the start of a text.
    pub fn new(outline: Arc<Outline>) -> Self {
        Self { outline, ids: Vec::new(), state: State::Fresh }
    }

    /// Goes on with a token.
    pub fn commit(&mut self, id: TokenId) {
        self.ids.push(id);
        let followed = match &self.state {
            State::Fresh => 0,
            State::Live(live) => live.0.len(),
            State::Lost => return,
        };
        if self.ids.len() - followed >= BATCH {
            self.follow();
        }
    }

    /// Takes the last `tokens` back.
    pub fn rollback(&mut self, tokens: usize) {
        self.ids.truncate(self.ids.len().saturating_sub(tokens));
        if let State::Live(live) = &mut self.state {
            live.0.truncate(self.ids.len());
        }
    }

    /// The shortest completion, as far as the rules tell; none when there is none, or a bound was reached.
    pub fn completion(&mut self) -> Option<Vec<TokenId>> {
        self.follow();
        let Self { outline, state: State::Live(live), .. } = self else { return None };
        let (chart, lexemes) = &mut **live;
        let mut rests = HashMap::new();
        let parts = chart.cheapest_end(&outline.rules, MAX_COST, &mut |terminal, state| {
            outline.rest(terminal, state, lexemes, &mut rests)
        })?;
        let mut ids = Vec::new();
        let mut bytes = Vec::new();
        for part in parts {
            let piece = match part {
                Part::Rest(state) => &Piece::Bytes(lexemes.shortest(state)?),
                Part::Terminal(symbol) => &outline.texts.get(&symbol)?.piece,
            };
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::Token(id) => {
                    ids.extend(outline.vocabulary.tokenize_bytes(&std::mem::take(&mut bytes)));
                    ids.push(*id);
                }
            }
        }
        ids.extend(outline.vocabulary.tokenize_bytes(&bytes));
        Some(ids)
    }

    /// Takes over the tokens that the chart does not have yet.
    fn follow(&mut self) {
        let Self { outline, ids, state } = self;
        if let State::Fresh = state {
            *state = State::Live(Box::new((outline.chart.clone(), outline.lexemes.for_text())));
        }
        let State::Live(live) = state else { return };
        let (chart, lexemes) = &mut **live;
        let trie = outline.vocabulary.tok_trie();
        for &id in &ids[chart.len()..] {
            let bytes = trie.token(id);
            let bytes = if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) { &[] } else { bytes };
            if chart.push(id, bytes, &outline.rules, lexemes).is_none() {
                *state = State::Lost;
                return;
            }
        }
    }
}

impl Outline {
    /// The cost of bringing a terminal to its end.
    fn rest(
        &self,
        terminal: Symbol,
        state: Option<StateID>,
        lexemes: &mut Lexemes,
        known: &mut HashMap<StateID, Cost>,
    ) -> Cost {
        let whole = || self.texts.get(&terminal).map_or(ENDLESS, |text| text.cost);
        let (Some(state), Some(lexeme)) = (state, self.rules.lexeme(terminal)) else { return whole() };
        if matches!(lexemes.kind(lexeme), Kind::Text { start, .. } if *start == state) {
            return whole();
        }
        *known.entry(state).or_insert_with(|| {
            let rest = lexemes.shortest(state).map(Piece::Bytes);
            rest.map_or(ENDLESS, |rest| cost_of(&self.vocabulary, &rest))
        })
    }
}

impl fmt::Debug for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shortest").field("tokens", &self.ids.len()).finish_non_exhaustive()
    }
}
