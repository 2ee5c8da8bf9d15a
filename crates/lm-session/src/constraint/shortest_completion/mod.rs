//! Shortest completion of a text, computed from the rules of its grammar.
//!
//! The state of the library's parser is private. So a second parser follows the text: an Earley chart over
//! the compiled rules, with the library's own automata for the lexemes. Its sets give the cheapest
//! completion, at a cost that does not depend on the completion's length. Costs are estimated token counts;
//! the text found is then tokenized.

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

use chart::{Chart, Part};
use lexemes::{Kind, Lexemes};
use lm_tokenizer::TokenId;
use rules::{Cost, INFINITE_COST, Rules, Symbol};

/// Maximum length of a completion, in estimated tokens.
const MAX_COST: Cost = 1 << 18;
/// Number of tokens that are appended to the chart together.
const BATCH: usize = 32;

/// Rules of one grammar, and the shortest texts of its terminals.
pub(super) struct CompletionTables {
    rules: Rules,
    /// Lexemes at the start of a text; each text works on a copy.
    lexemes: Lexemes,
    chart: Chart,
    /// Shortest text of each terminal.
    texts: HashMap<Symbol, Text>,
    vocabulary: TokEnv,
}

/// A text or a special token, and its cost.
struct Text {
    piece: Piece,
    cost: Cost,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Token(TokenId),
}

/// Shortest-completion state of one text.
#[derive(Clone)]
pub(super) struct ShortestCompletion {
    tables: Arc<CompletionTables>,
    /// Tokens of the text; the chart holds a prefix of them.
    ids: Vec<TokenId>,
    /// Created when first needed; `Exhausted` after a bound was reached.
    state: State,
}

#[derive(Clone)]
enum State {
    Fresh,
    Live(Box<(Chart, Lexemes)>),
    Exhausted,
}

impl CompletionTables {
    /// Builds the tables of a compiled grammar, whose parser is at the start; `None` for unsupported
    /// features: conditions, lexemes with look-ahead, grammars beyond the bounds.
    pub fn from_parser(parser: &TokenParser) -> Option<Self> {
        let grammar = parser.parser.grammar();
        let vocabulary = parser.token_env.clone();
        if grammar.lexer_spec().has_stop {
            return None;
        }
        let mut rules = Rules::from_grammar(grammar)?;
        let mut lexemes = Lexemes::from_spec(grammar.lexer_spec(), &special_tokens(vocabulary.tok_trie()))?;
        let mut texts = HashMap::new();
        for (symbol, lexeme) in rules.terminals().collect::<Vec<_>>() {
            if let Some(piece) = shortest_piece(&mut lexemes, lexeme) {
                let cost = cost_of(&vocabulary, &piece);
                texts.insert(symbol, Text { piece, cost });
            }
        }
        rules.set_costs(|symbol| texts.get(&symbol).map_or(INFINITE_COST, |text| text.cost));
        let chart = Chart::new(&rules, &lexemes)?;
        Some(Self { rules, lexemes, chart, texts, vocabulary })
    }
}

impl CompletionTables {
    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let texts = self.texts.len() * size_of::<(Symbol, Text)>();
        self.rules.bytes() + self.lexemes.bytes() + self.chart.bytes() + texts
    }
}

/// Special tokens, which are not text.
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

impl ShortestCompletion {
    /// Creates the state at the start of a text.
    pub fn new(tables: Arc<CompletionTables>) -> Self {
        Self { tables, ids: Vec::new(), state: State::Fresh }
    }

    /// Approximate bytes of the state of this text.
    pub fn state_bytes(&self) -> usize {
        match &self.state {
            State::Fresh | State::Exhausted => 0,
            State::Live(live) => live.0.bytes() + live.1.bytes(),
        }
    }

    /// Appends a token.
    pub fn commit(&mut self, id: TokenId) {
        self.ids.push(id);
        let followed = match &self.state {
            State::Fresh => 0,
            State::Live(live) => live.0.len(),
            State::Exhausted => return,
        };
        if self.ids.len() - followed >= BATCH {
            self.follow();
        }
    }

    /// Removes the last `tokens`.
    pub fn rollback(&mut self, tokens: usize) {
        self.ids.truncate(self.ids.len().saturating_sub(tokens));
        if let State::Live(live) = &mut self.state {
            live.0.truncate(self.ids.len());
        }
    }

    /// Returns the shortest completion, up to the cost estimate; `None` without a completion, or when a bound
    /// was reached.
    pub fn completion(&mut self) -> Option<Vec<TokenId>> {
        self.follow();
        let Self { tables, state: State::Live(live), .. } = self else { return None };
        let (chart, lexemes) = &mut **live;
        let mut rests = HashMap::new();
        let parts = chart.cheapest_completion(&tables.rules, MAX_COST, &mut |terminal, state| {
            tables.rest(terminal, state, lexemes, &mut rests)
        })?;
        let mut ids = Vec::new();
        let mut bytes = Vec::new();
        for part in parts {
            let piece = match part {
                Part::Rest(state) => &Piece::Bytes(lexemes.shortest(state)?),
                Part::Terminal(symbol) => &tables.texts.get(&symbol)?.piece,
            };
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::Token(id) => {
                    ids.extend(tables.vocabulary.tokenize_bytes(&std::mem::take(&mut bytes)));
                    ids.push(*id);
                }
            }
        }
        ids.extend(tables.vocabulary.tokenize_bytes(&bytes));
        Some(ids)
    }

    /// Pushes the tokens that the chart does not hold yet.
    fn follow(&mut self) {
        let Self { tables, ids, state } = self;
        if let State::Fresh = state {
            *state = State::Live(Box::new((tables.chart.clone(), tables.lexemes.for_text())));
        }
        let State::Live(live) = state else { return };
        let (chart, lexemes) = &mut **live;
        let trie = tables.vocabulary.tok_trie();
        for &id in &ids[chart.len()..] {
            let bytes = trie.token(id);
            let bytes = if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) { &[] } else { bytes };
            if chart.push(id, bytes, &tables.rules, lexemes).is_none() {
                *state = State::Exhausted;
                return;
            }
        }
    }
}

impl CompletionTables {
    /// Cost of completing a terminal from a state.
    fn rest(
        &self,
        terminal: Symbol,
        state: Option<StateID>,
        lexemes: &mut Lexemes,
        known: &mut HashMap<StateID, Cost>,
    ) -> Cost {
        let whole = || self.texts.get(&terminal).map_or(INFINITE_COST, |text| text.cost);
        let (Some(state), Some(lexeme)) = (state, self.rules.lexeme(terminal)) else { return whole() };
        if matches!(lexemes.kind(lexeme), Kind::Text { start, .. } if *start == state) {
            return whole();
        }
        *known.entry(state).or_insert_with(|| {
            let rest = lexemes.shortest(state).map(Piece::Bytes);
            rest.map_or(INFINITE_COST, |rest| cost_of(&self.vocabulary, &rest))
        })
    }
}

impl fmt::Debug for ShortestCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortestCompletion").field("tokens", &self.ids.len()).finish_non_exhaustive()
    }
}
