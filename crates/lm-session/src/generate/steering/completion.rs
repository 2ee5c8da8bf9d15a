//! Best-first search for a completion: tokens after which a text may end.
//!
//! The fallback for constraints without a completion of their own (`constraint/shortest_completion`):
//!
//! - grammars whose lexemes exceed the bounds of the chart. An `enum` may have 5,000 values and 1 MiB of
//!   text, more than the chart's automata have states. With the 2,500 texts of `enum_2500` in the dialects
//!   that end strings with a marker (`gemma4`, `functiongemma`), 129 searches in all cells of the conformance
//!   matrix found 127 completions;
//! - Lark grammars with conditions (`%if`), which a caller may pass: of 108 searches, the 90 with a
//!   completion that fitted found it;
//! - user-defined constraints.
//!
//! The grammars of tool calls otherwise do not need it: 0 searches in the sample of the matrix, in the random
//! calls and in the turns of all budgets (November 2026).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use cpu_time::ThreadTime;
use lm_tokenizer::{TokenKind, Tokenizer};

use super::tokens::{CLOSING, ClosingTokens};
use crate::constraint::{Constraint, Ending, TokenMask, continuation};
use crate::error::Result;
use lm_tokenizer::TokenId;

/// Maximum number of states of a search, and of states visited to improve a found completion.
const MAX_STATES: usize = 400;
const MORE_STATES: usize = 24;
/// Limit of the CPU time of a search. A state takes some microseconds, 1 ms at most with a large vocabulary.
const MAX_TIME: Duration = Duration::from_millis(50);
/// Maximum number of states without a closing step on one path: on the first path, and on the others.
const MAX_FILLERS: [usize; 2] = [40, 8];
/// Maximum number of allowed tokens of a mask when all are tried.
const FEW_TOKENS: usize = 32;
/// A mask that allows more than 1/8 of the vocabulary is treated as free text, which nearly any token can
/// continue.
const FREE_TEXT: usize = 8;
/// Penalty on the order of a step already seen in a state with the same mask: it probably leads to the same
/// completions.
const SEEN_BEFORE: usize = 64;
/// Maximum number of closing literals tried in a state, and of tokens of each kind.
const MAX_LITERALS: usize = 24;
const MAX_TOKENS: usize = 4;
/// Length of the text's tail, in bytes, that is searched for the start of a closing literal.
const TAIL_BYTES: usize = 64;

/// Search for completions of one constraint's texts.
///
/// Each state has a list of steps, the most promising first: forced tokens; added tokens; the rest of a
/// closing literal whose beginning the text ends with; tokens of closing characters; whole closing literals;
/// punctuation; and last, a few tokens of any kind. The search follows the first steps to an end, and then
/// tries alternatives in order of discrepancy from them (limited discrepancy search), last those already seen
/// in a state with the same mask. It is bounded in states and in time, so it need not find the shortest
/// completion, or any.
#[derive(Debug)]
pub(crate) struct Search {
    /// Closing literals, except blank ones and those that start with a letter or digit: names do not close a
    /// part.
    closing_literals: Vec<Vec<u8>>,
    /// Ids of closing literals and of their suffixes, encoded on demand.
    encoded: HashMap<Vec<u8>, Vec<TokenId>>,
    /// Mask of the current state.
    mask: TokenMask,
    /// Mask of the state after a closing literal, to check that it leaves free text.
    next_mask: TokenMask,
    /// Mask of free text that closing literals do not leave.
    dead_end_mask: TokenMask,
    /// Steps already seen in this search, with the fingerprint of the mask of their state.
    seen: HashSet<(u64, Vec<TokenId>)>,
    /// CPU time of the thread at the end of this search.
    deadline: Duration,
}

/// Context of a search: the constraint, the vocabulary and the text so far.
pub(crate) struct SearchContext<'a> {
    pub constraint: &'a mut dyn Constraint,
    pub tokenizer: &'a Tokenizer,
    pub tokens: &'a ClosingTokens,
    pub end_ids: &'a [TokenId],
    /// Tail of the text so far.
    pub tail: &'a [u8],
}

/// A queue entry: its priority (discrepancy, that is its departure from the first steps, plus its number of
/// steps; lower first), its number of steps, and its tokens.
type QueueEntry = Reverse<(usize, usize, Vec<TokenId>)>;

/// Steps from a state; `only_fill` is true if no step closes a part.
struct Steps {
    steps: Vec<Vec<TokenId>>,
    only_fill: bool,
}

impl Search {
    pub fn new(closing_literals: &[String], width: usize) -> Self {
        let closing_literals = closing_literals.iter().map(|text| text.clone().into_bytes());
        let closes = |text: &Vec<u8>| {
            text.first().is_some_and(|byte| !byte.is_ascii_alphanumeric())
                && !text.iter().all(u8::is_ascii_whitespace)
        };
        let closing_literals = closing_literals.filter(closes).collect();
        let (mask, encoded) = (TokenMask::new(width), HashMap::new());
        let (seen, deadline) = (HashSet::new(), Duration::ZERO);
        Self {
            closing_literals,
            encoded,
            next_mask: mask.clone(),
            dead_end_mask: mask.clone(),
            mask,
            seen,
            deadline,
        }
    }

    /// Bytes of the search's masks.
    pub fn mask_bytes(&self) -> usize {
        [&self.mask, &self.next_mask, &self.dead_end_mask].map(TokenMask::bytes).iter().sum()
    }

    /// Searches for up to `limit` tokens after which the text may end; leaves the constraint as it was.
    pub fn completion(
        &mut self,
        context: &mut SearchContext<'_>,
        limit: usize,
    ) -> Result<Option<Vec<TokenId>>> {
        let mut queue: BinaryHeap<QueueEntry> = BinaryHeap::from([Reverse((0, 0, Vec::new()))]);
        let (mut at, mut best) = (Vec::new(), None::<Vec<TokenId>>);
        let mut states = MAX_STATES;
        self.seen.clear();
        self.deadline = cpu_time() + MAX_TIME;
        while let Some(Reverse((order, depth, path))) = queue.pop().filter(|_| states > 0) {
            let limit = best.as_ref().map_or(limit, |best| best.len().saturating_sub(1));
            move_to(context.constraint, &mut at, &path)?;
            if let Some(end) =
                self.follow(context, &mut at, (order - depth, depth), limit, &mut queue, &mut states)?
            {
                best = Some([&at[..], &end].concat());
                states = states.min(MORE_STATES);
            }
        }
        move_to(context.constraint, &mut at, &[])?;
        Ok(best)
    }

    /// Follows the first steps from the state after `at`, and queues the others. Returns the tokens that end
    /// the text after `at` if an end is reached within `limit` tokens.
    fn follow(
        &mut self,
        context: &mut SearchContext<'_>,
        at: &mut Vec<TokenId>,
        (discrepancy, mut depth): (usize, usize),
        limit: usize,
        queue: &mut BinaryHeap<QueueEntry>,
        states: &mut usize,
    ) -> Result<Option<Vec<TokenId>>> {
        let mut fillers = MAX_FILLERS[usize::from(discrepancy > 0)];
        let (mut taken, mut filled) = (HashSet::new(), HashSet::new());
        while at.len() <= limit && *states > 0 && fillers > 0 {
            *states = if cpu_time() < self.deadline { *states - 1 } else { 0 };
            if let Some(end) = self.end(context)? {
                return Ok((at.len() + end.len() <= limit).then_some(end));
            }
            let Steps { mut steps, only_fill } = self.steps(context, at)?;
            new_marker_first(&mut steps, &taken, context.tokenizer);
            let state = fingerprint(&self.mask);
            if only_fill {
                new_filler_first(&mut steps, state, &filled);
                filled.extend(steps.first().map(|first| (state, first.clone())));
            }
            depth += 1;
            fillers -= usize::from(only_fill);
            for (rank, step) in steps.iter().enumerate() {
                let again = if self.seen.insert((state, step.clone())) { 0 } else { SEEN_BEFORE };
                let order = discrepancy + rank + again + depth;
                queue.extend((rank > 0).then(|| Reverse((order, depth, [&at[..], step].concat()))));
            }
            let Some(first) = steps.into_iter().next() else { return Ok(None) };
            let next = [&at[..], &first].concat();
            move_to(context.constraint, at, &next)?;
            taken.insert(first);
        }
        Ok(None)
    }

    /// Returns the tokens that end the text here: none, or an end token required by the constraint itself. If
    /// the text may not end without further tokens, the mask of the state is left in `self.mask`.
    fn end(&mut self, context: &mut SearchContext<'_>) -> Result<Option<Vec<TokenId>>> {
        if context.constraint.ending()? != Ending::Forbidden {
            return Ok(Some(Vec::new()));
        }
        self.mask.clear();
        context.constraint.mask(&mut self.mask)?;
        Ok(context.end_ids.iter().find(|&&id| self.mask.allows(id)).map(|&id| vec![id]))
    }

    /// Steps to try in the state after `path`, whose mask is `self.mask`.
    fn steps(&mut self, context: &mut SearchContext<'_>, path: &[TokenId]) -> Result<Steps> {
        let forced = context.constraint.forced()?;
        if !forced.is_empty() {
            return Ok(Steps { steps: vec![forced], only_fill: false });
        }
        let free = is_free(&self.mask);
        // If a marker is spelled out, its text is tried before added tokens, which may open a channel of free
        // text.
        let added = single_token_steps(context.tokens.added(&self.mask));
        let mut steps = if free { added.clone() } else { Vec::new() };
        if !free || self.mask != self.dead_end_mask {
            self.closing_steps(context, path, free, &mut steps)?;
        }
        if !free {
            steps.extend(added);
        }
        if free && steps.is_empty() {
            self.dead_end_mask.clone_from(&self.mask);
        }
        if !free {
            steps.extend(single_token_steps(context.tokens.joining(&self.mask)));
        }
        let only_fill = steps.is_empty();
        steps.extend(single_token_steps(context.tokens.fillers(&self.mask)));
        let blank = |id: &TokenId| context.tokenizer.token_bytes(*id).iter().all(u8::is_ascii_whitespace);
        let others = self.mask.ids().filter(|id| !blank(id));
        if free {
            steps.extend(single_token_steps(others));
        } else if self.mask.count() <= FEW_TOKENS {
            steps.extend(others.map(|id| vec![id]));
        } else {
            steps.extend(distinct_first_bytes(others, context.tokenizer));
        }
        if steps.is_empty() {
            steps.extend(single_token_steps(self.mask.ids()));
        }
        Ok(Steps { steps, only_fill })
    }

    /// Adds the rest of started closing literals, closing tokens, and whole literals.
    fn closing_steps(
        &mut self,
        context: &mut SearchContext<'_>,
        path: &[TokenId],
        free: bool,
        steps: &mut Vec<Vec<TokenId>>,
    ) -> Result<()> {
        let tail = tail_of(context, path);
        let started: Vec<_> =
            self.closing_literals.iter().flat_map(|literal| missing_suffixes(literal, &tail)).collect();
        let mut tried = 0;
        for literal in started {
            self.closing_literal(context, literal, free, &mut tried, steps)?;
        }
        for byte in CLOSING {
            let tokens: Vec<_> = context.tokens.closing(*byte, &self.mask).collect();
            let Some(&shortest) = tokens.last() else { continue };
            if !free || self.leaves_free_text(context, &[shortest])? {
                let longest = tokens.iter().copied().take(MAX_TOKENS - 1).filter(|&id| id != shortest);
                steps.extend(single_token_steps(longest.chain([shortest])));
            }
        }
        for literal in self.closing_literals.clone() {
            self.closing_literal(context, literal, free, &mut tried, steps)?;
        }
        Ok(())
    }

    /// Adds the rest of a closing literal, if it is allowed and, in free text, leaves it.
    fn closing_literal(
        &mut self,
        context: &mut SearchContext<'_>,
        rest: Vec<u8>,
        free: bool,
        tried: &mut usize,
        steps: &mut Vec<Vec<TokenId>>,
    ) -> Result<()> {
        let ids = self.encode(context.tokenizer, rest);
        let first = ids.first().is_some_and(|&id| self.mask.allows(id));
        if !first || *tried == MAX_LITERALS || context.constraint.valid_prefix(&ids)? < ids.len() {
            return Ok(());
        }
        *tried += 1;
        if !free || self.leaves_free_text(context, &ids)? {
            steps.push(ids);
        }
        Ok(())
    }

    /// Returns true if `ids` lead out of free text.
    fn leaves_free_text(&mut self, context: &mut SearchContext<'_>, ids: &[TokenId]) -> Result<bool> {
        for &id in ids {
            context.constraint.commit(id)?;
        }
        let ends = context.constraint.ending()? != Ending::Forbidden;
        self.next_mask.clear();
        if !ends {
            context.constraint.mask(&mut self.next_mask)?;
        }
        context.constraint.rollback(ids.len())?;
        Ok(ends || !is_free(&self.next_mask))
    }

    fn encode(&mut self, tokenizer: &Tokenizer, bytes: Vec<u8>) -> Vec<TokenId> {
        let encode = |bytes: &[u8]| continuation::encode(tokenizer, std::str::from_utf8(bytes).ok()?);
        self.encoded.entry(bytes).or_insert_with_key(|bytes| encode(bytes).unwrap_or_default()).clone()
    }
}

/// Moves the first untaken marker before a taken one: a marker that begins another call, say, would repeat
/// forever, and the one that ends them all is later in the list. A marker is an added token, or a step of
/// several tokens.
fn new_marker_first(steps: &mut [Vec<TokenId>], taken: &HashSet<Vec<TokenId>>, tokenizer: &Tokenizer) {
    let is_marker = |step: &[TokenId]| {
        step.len() > 1 || step.iter().any(|&id| tokenizer.token_kind(id) != TokenKind::Text)
    };
    if steps.first().is_some_and(|first| is_marker(first) && taken.contains(first))
        && let Some(new) = steps.iter().position(|step| is_marker(step) && !taken.contains(step))
    {
        steps[..=new].rotate_right(1);
    }
}

/// Moves the first step not yet taken in a state with this mask to the front: repetitions (`[0-9]+`) then
/// continue on another path.
fn new_filler_first(steps: &mut [Vec<TokenId>], state: u64, filled: &HashSet<(u64, Vec<TokenId>)>) {
    if let Some(new) = steps.iter().position(|step| !filled.contains(&(state, step.clone()))) {
        steps[..=new].rotate_right(1);
    }
}

/// One step for each distinct first byte of `ids`, [`FEW_TOKENS`] at most.
fn distinct_first_bytes(ids: impl Iterator<Item = TokenId>, tokenizer: &Tokenizer) -> Vec<Vec<TokenId>> {
    let mut seen = HashSet::new();
    let distinct = ids.filter(|&id| seen.insert(tokenizer.token_bytes(id).first().copied()));
    distinct.take(FEW_TOKENS).map(|id| vec![id]).collect()
}

/// CPU time of this thread so far: on a busy machine a search does the same work. 0 if the system does not
/// report it; then searches are bounded by their states alone.
fn cpu_time() -> Duration {
    ThreadTime::try_now().map_or(Duration::ZERO, |time| time.as_duration())
}

/// Hash of a mask.
fn fingerprint(mask: &TokenMask) -> u64 {
    let mut hasher = DefaultHasher::new();
    mask.hash(&mut hasher);
    hasher.finish()
}

fn is_free(mask: &TokenMask) -> bool {
    mask.count() > mask.width() / FREE_TEXT
}

/// Steps of one token each, [`MAX_TOKENS`] at most.
fn single_token_steps(ids: impl Iterator<Item = TokenId>) -> Vec<Vec<TokenId>> {
    ids.take(MAX_TOKENS).map(|id| vec![id]).collect()
}

/// Moves the constraint from the state after `at` to the one after `path`.
fn move_to(constraint: &mut dyn Constraint, at: &mut Vec<TokenId>, path: &[TokenId]) -> Result<()> {
    let common = at.iter().zip(path).take_while(|(a, b)| a == b).count();
    constraint.rollback(at.len() - common)?;
    at.truncate(common);
    for &id in &path[common..] {
        constraint.commit(id)?;
        at.push(id);
    }
    Ok(())
}

/// Tail of the text after `path`.
fn tail_of(context: &SearchContext<'_>, path: &[TokenId]) -> Vec<u8> {
    let recent = &path[path.len().saturating_sub(TAIL_BYTES)..];
    let mut tail = context.tail.to_vec();
    recent.iter().for_each(|&id| tail.extend_from_slice(context.tokenizer.token_bytes(id)));
    tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
    tail
}

/// Missing suffixes of `literal` if `tail` ends with a prefix of it, the longest prefix first.
fn missing_suffixes(literal: &[u8], tail: &[u8]) -> Vec<Vec<u8>> {
    let started = (1..literal.len()).rev().filter(|&len| tail.ends_with(&literal[..len]));
    started.map(|len| literal[len..].to_vec()).collect()
}
