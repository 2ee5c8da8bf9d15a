//! Automata of a grammar's lexemes, and their shortest matches.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llguidance::api::ParserLimits;
use llguidance::earley::lexerspec::{LexemeIdx, LexerSpec};
use llguidance::earley::regexvec::{NextByte, RegexVec, StateID};

use lm_tokenizer::TokenId;

/// Maximum number of states of all automata together.
const MAX_STATES: usize = 30_000;
/// Fuel for the states of a grammar's shortest texts, and for those of one text, in the library's units of
/// about 100 ns.
const GRAMMAR_FUEL: u64 = 5_000_000;
const TEXT_FUEL: u64 = 2_000_000;

/// Kind of a lexeme's match.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Text, from the automaton's start state. `lazy`: the shortest match.
    Text { start: StateID, lazy: bool },
    /// One of several tokens; this is the first of them.
    Token(TokenId),
    /// No match.
    Never,
}

/// Lexemes of one grammar.
#[derive(Clone, Debug)]
pub(super) struct Lexemes {
    spec: Arc<LexerSpec>,
    kinds: Arc<[Kind]>,
    /// Automata of all lexemes, whose states are built lazily.
    automata: RegexVec,
    /// One byte of each byte equivalence class.
    bytes: Arc<[u8]>,
    /// Length and first byte of the shortest match, by state.
    shortest_steps: HashMap<StateID, (usize, u8)>,
}

impl Lexemes {
    /// Builds the lexemes of `spec`; `None` when the library rejects them. `tokens` can be matched by id.
    pub fn from_spec(spec: &LexerSpec, tokens: &[TokenId]) -> Option<Self> {
        let mut automata = spec.to_regex_vec(&mut ParserLimits::default()).ok()?;
        automata.set_max_states(MAX_STATES);
        automata.set_fuel(GRAMMAR_FUEL);
        let lazy = spec.lazy_lexemes();
        let kind = |at: usize| {
            let lexeme = LexemeIdx::new(at);
            let mut alone = spec.alloc_lexeme_set();
            alone.add(lexeme);
            if !spec.token_range_lexemes(&alone).is_empty() {
                let token = tokens.iter().find(|&&id| spec.lexeme_spec(lexeme).contains_token(id));
                return token.map_or(Kind::Never, |&id| Kind::Token(id));
            }
            let start = automata.initial_state(&alone);
            if start.is_dead() { Kind::Never } else { Kind::Text { start, lazy: lazy.contains(lexeme) } }
        };
        let kinds = (0..spec.lexemes.len()).map(kind).collect();
        let mut classes = HashSet::new();
        let bytes = by_preference().filter(|&byte| classes.insert(automata.alpha().map(byte))).collect();
        Some(Self { spec: Arc::new(spec.clone()), kinds, automata, bytes, shortest_steps: HashMap::new() })
    }

    /// Creates a copy for one text, with its own fuel.
    pub fn for_text(&self) -> Self {
        let mut copy = self.clone();
        copy.automata.set_fuel(TEXT_FUEL);
        copy
    }

    /// Approximate bytes of the automata.
    pub fn bytes(&self) -> usize {
        self.automata.num_bytes() + self.shortest_steps.len() * size_of::<(StateID, (usize, u8))>()
    }

    pub fn kind(&self, lexeme: LexemeIdx) -> &Kind {
        &self.kinds[lexeme.as_usize()]
    }

    /// Returns true if a token matches a lexeme by its id.
    pub fn matches_token(&self, lexeme: LexemeIdx, token: TokenId) -> bool {
        self.spec.lexeme_spec(lexeme).contains_token(token)
    }

    /// Returns the state after `byte`; `None` if the lexeme cannot continue with it.
    pub fn transition(&mut self, state: StateID, byte: u8) -> Option<StateID> {
        if self.automata.has_error() {
            return None;
        }
        let next = self.automata.transition(state, byte);
        (!next.is_dead() && !self.automata.has_error()).then_some(next)
    }

    /// Returns true if the lexeme may end in this state.
    pub fn accepts(&self, state: StateID) -> bool {
        self.automata.state_desc(state).greedy_accepting.is_some()
    }

    /// Returns true if a limit was exceeded: all states are invalid.
    pub fn exhausted(&self) -> bool {
        self.automata.has_error()
    }

    /// Returns the shortest text that completes the lexeme from `state`; `None` when the limits prevent
    /// finding it.
    pub fn shortest(&mut self, state: StateID) -> Option<Vec<u8>> {
        if !self.shortest_steps.contains_key(&state) && !self.accepts(state) {
            self.search(state)?;
        }
        let (mut text, mut at) = (Vec::new(), state);
        while !self.accepts(at) {
            let &(_, byte) = self.shortest_steps.get(&at)?;
            text.push(byte);
            at = self.transition(at, byte)?;
        }
        Some(text)
    }

    /// Finds the shortest path from `from` to an accepting state, breadth first, and records it for all
    /// states on it.
    fn search(&mut self, from: StateID) -> Option<()> {
        let mut came_from = HashMap::from([(from, None)]);
        let (mut level, mut depth) = (vec![from], 0);
        // Best path so far: its total length, and the state whose remaining path is known.
        let mut best: Option<(usize, StateID)> = None;
        while !level.is_empty() && best.is_none_or(|(len, _)| len > depth + 1) {
            depth += 1;
            level = self.next_level(&level, &mut came_from);
            let ends = level.iter().filter_map(|&state| Some((depth + self.rest_len(state)?, state)));
            best = best.into_iter().chain(ends).min_by_key(|(len, _)| *len);
        }
        let (_, mut at) = best?;
        let mut rest = self.rest_len(at)?;
        while let Some(&Some((before, byte))) = came_from.get(&at) {
            rest += 1;
            self.shortest_steps.insert(before, (rest, byte));
            at = before;
        }
        Some(())
    }

    /// Unvisited successors of the states of `level`, up to the first accepting one.
    fn next_level(
        &mut self,
        level: &[StateID],
        came_from: &mut HashMap<StateID, Option<(StateID, u8)>>,
    ) -> Vec<StateID> {
        let mut next = Vec::new();
        for &state in level {
            for byte in self.bytes_after(state) {
                let Some(after) = self.transition(state, byte) else { continue };
                if let Entry::Vacant(entry) = came_from.entry(after) {
                    entry.insert(Some((state, byte)));
                    next.push(after);
                    if self.accepts(after) {
                        return next;
                    }
                }
            }
        }
        next
    }

    /// Length of the shortest text from a state, if known.
    fn rest_len(&self, state: StateID) -> Option<usize> {
        if self.accepts(state) { Some(0) } else { self.shortest_steps.get(&state).map(|step| step.0) }
    }

    /// Bytes to try in a state: one of each class, or the forced one.
    fn bytes_after(&mut self, state: StateID) -> Vec<u8> {
        match self.automata.next_byte(state) {
            NextByte::ForcedByte(byte) => vec![byte],
            NextByte::ForcedEOI | NextByte::Dead => Vec::new(),
            _ => self.bytes.to_vec(),
        }
    }
}

/// All bytes in order of preference: letters first, then digits, so that free text becomes a word.
fn by_preference() -> impl Iterator<Item = u8> {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b'!'..=b'~' => 3,
        b' ' => 4,
        0x80.. => 5,
        _ => 6,
    };
    let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
    bytes.sort_by_key(|&byte| (kind(byte), byte));
    bytes.into_iter()
}
