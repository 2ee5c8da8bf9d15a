//! Checks a batch whole, before any of it runs.

use std::collections::HashMap;

use crate::{
    AttentionSpan, Batch, BatchProblem, Error, Input, LogitRows, PAGE_LEN, PageId, Result, SequenceInput,
};

/// What a model and a pool can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Ids below this one have an embedding row.
    pub(crate) vocab_rows: usize,
    pub(crate) hidden_size: usize,
    pub(crate) context_len: usize,
    pub(crate) num_pages: usize,
}

/// Fails on the first sequence that cannot run.
pub(crate) fn check_batch(batch: &Batch, limits: &BatchLimits) -> Result<()> {
    for (sequence, input) in batch.sequences.iter().enumerate() {
        check_sequence(input, limits).map_err(|problem| Error::Batch { sequence, problem })?;
    }
    check_written_pages(batch)
}

fn check_sequence(input: &SequenceInput, limits: &BatchLimits) -> Result<(), BatchProblem> {
    let rows = input.rows();
    check_input(&input.input, limits)?;
    if rows == 0 {
        return Err(BatchProblem::Empty);
    }
    if let Some(adapter) = input.adapter {
        return Err(BatchProblem::UnknownAdapter { adapter: adapter.0 });
    }
    check_places(input, rows, limits)?;
    check_spans(&input.spans, rows)?;
    match &input.logits {
        LogitRows::Rows(wanted) => match wanted.iter().find(|&&row| row >= rows) {
            Some(&row) => Err(BatchProblem::LogitRow { row, rows }),
            None => Ok(()),
        },
        LogitRows::None | LogitRows::Last | LogitRows::All => Ok(()),
    }
}

fn check_input(input: &Input, limits: &BatchLimits) -> Result<(), BatchProblem> {
    match input {
        Input::Ids(ids) => match ids.iter().enumerate().find(|(_, id)| **id as usize >= limits.vocab_rows) {
            Some((row, &id)) => Err(BatchProblem::UnknownToken { row, id, rows: limits.vocab_rows }),
            None => Ok(()),
        },
        Input::Embeddings(embeddings) => {
            let (values, hidden_size, expected) =
                (embeddings.values.len(), embeddings.hidden_size, limits.hidden_size);
            if hidden_size == expected && values % expected == 0 {
                Ok(())
            } else {
                Err(BatchProblem::EmbeddingWidth { values, hidden_size, expected })
            }
        }
    }
}

/// Positions, slots and pages.
fn check_places(input: &SequenceInput, rows: usize, limits: &BatchLimits) -> Result<(), BatchProblem> {
    let context_len = limits.context_len;
    if input.positions.len() != rows {
        return Err(BatchProblem::PositionCount { positions: input.positions.len(), rows });
    }
    if let Some((row, &position)) =
        input.positions.iter().enumerate().find(|(_, p)| **p as usize >= context_len)
    {
        return Err(BatchProblem::Position { row, position, context_len });
    }
    let slots = input.cached_len.saturating_add(rows);
    if slots > context_len {
        return Err(BatchProblem::ContextFull { slots, context_len });
    }
    let (pages, expected) = (input.block_table.len(), slots.div_ceil(PAGE_LEN));
    if pages < expected {
        return Err(BatchProblem::BlockTable { pages, slots, expected });
    }
    match input.block_table.iter().find(|&&page| page as usize >= limits.num_pages) {
        Some(&page) => Err(BatchProblem::PageOutsidePool { page, num_pages: limits.num_pages }),
        None => Ok(()),
    }
}

fn check_spans(spans: &[AttentionSpan], rows: usize) -> Result<(), BatchProblem> {
    let mut ordered: Vec<_> = spans.iter().map(|span| span.rows.clone()).collect();
    ordered.sort_by_key(|span| span.start);
    let mut free_from = 0;
    for span in ordered {
        if span.is_empty() || span.start < free_from || span.end > rows {
            return Err(BatchProblem::Span { start: span.start, end: span.end, rows });
        }
        free_from = span.end;
    }
    Ok(())
}

/// A page that gets new rows stands nowhere else in the batch: neither written nor read.
fn check_written_pages(batch: &Batch) -> Result<()> {
    let mut users: HashMap<PageId, (usize, bool)> = HashMap::new();
    for (sequence, input) in batch.sequences.iter().enumerate() {
        let slots = input.cached_len + input.rows();
        let written = input.cached_len / PAGE_LEN..slots.div_ceil(PAGE_LEN);
        for (index, &page) in input.block_table[..written.end].iter().enumerate() {
            let writes = written.contains(&index);
            if let Some(&(other, other_writes)) = users.get(&page)
                && (writes || other_writes)
            {
                return Err(Error::Batch { sequence, problem: BatchProblem::SharedPage { page, other } });
            }
            users.insert(page, (sequence, writes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdapterId, AttentionKind, Embeddings};

    const LIMITS: BatchLimits =
        BatchLimits { vocab_rows: 10, hidden_size: 4, context_len: 100, num_pages: 6 };

    fn check(sequences: Vec<SequenceInput>, expected: Option<(usize, BatchProblem)>) {
        let got = match check_batch(&Batch { sequences }, &LIMITS) {
            Ok(()) => None,
            Err(Error::Batch { sequence, problem }) => Some((sequence, problem)),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(got, expected);
    }

    fn good() -> SequenceInput {
        SequenceInput::ids([1, 2, 3], 40, [0, 1])
    }

    fn bad(change: impl FnOnce(&mut SequenceInput), problem: BatchProblem) {
        let mut input = good();
        change(&mut input);
        check(vec![SequenceInput::ids([1], 0, [5]), input], Some((1, problem)));
    }

    #[test]
    fn good_batches_pass() {
        check(vec![], None);
        check(vec![good(), SequenceInput::ids([9], 32, [0, 2])], None);
        let mut spare_page = good();
        spare_page.block_table.push(4);
        check(vec![spare_page], None);
        check(
            vec![SequenceInput::embeddings(Embeddings { values: vec![0.; 8], hidden_size: 4 }, 0, [3])],
            None,
        );
    }

    #[test]
    fn each_problem_has_its_name() {
        bad(|s| *s = SequenceInput::ids([], 0, []), BatchProblem::Empty);
        bad(
            |s| s.input = Input::Ids(vec![1, 10, 3]),
            BatchProblem::UnknownToken { row: 1, id: 10, rows: 10 },
        );
        bad(
            |s| s.input = Input::Embeddings(Embeddings { values: vec![0.; 9], hidden_size: 3 }),
            BatchProblem::EmbeddingWidth { values: 9, hidden_size: 3, expected: 4 },
        );
        bad(
            |s| s.input = Input::Embeddings(Embeddings { values: vec![0.; 10], hidden_size: 4 }),
            BatchProblem::EmbeddingWidth { values: 10, hidden_size: 4, expected: 4 },
        );
        bad(|s| s.positions = vec![40], BatchProblem::PositionCount { positions: 1, rows: 3 });
        bad(|s| s.positions[2] = 100, BatchProblem::Position { row: 2, position: 100, context_len: 100 });
        bad(|s| s.cached_len = 98, BatchProblem::ContextFull { slots: 101, context_len: 100 });
        bad(|s| s.cached_len = usize::MAX, BatchProblem::ContextFull { slots: usize::MAX, context_len: 100 });
        bad(|s| s.block_table = vec![0], BatchProblem::BlockTable { pages: 1, slots: 43, expected: 2 });
        bad(|s| s.block_table[0] = 6, BatchProblem::PageOutsidePool { page: 6, num_pages: 6 });
        bad(|s| s.block_table = vec![1, 1], BatchProblem::SharedPage { page: 1, other: 1 });
        bad(|s| s.logits = LogitRows::Rows(vec![0, 3]), BatchProblem::LogitRow { row: 3, rows: 3 });
        bad(|s| s.adapter = Some(AdapterId(7)), BatchProblem::UnknownAdapter { adapter: 7 });
    }

    #[test]
    fn spans_are_inside_and_apart() {
        let span = |rows| AttentionSpan { rows, kind: AttentionKind::Bidirectional };
        let mut input = good();
        input.spans = vec![span(2..3), span(0..2)];
        check(vec![input], None);
        for (spans, start, end) in
            [(vec![span(1..1)], 1, 1), (vec![span(0..4)], 0, 4), (vec![span(0..2), span(1..3)], 1, 3)]
        {
            bad(|s| s.spans = spans, BatchProblem::Span { start, end, rows: 3 });
        }
    }

    #[test]
    fn written_pages_belong_to_one_sequence() {
        check(
            vec![good(), SequenceInput::ids([1], 0, [1])],
            Some((1, BatchProblem::SharedPage { page: 1, other: 0 })),
        );
        check(
            vec![good(), SequenceInput::ids([1], 0, [0])],
            Some((1, BatchProblem::SharedPage { page: 0, other: 0 })),
        );
        check(
            vec![good(), SequenceInput::ids([1], 64, [0, 1, 2])],
            Some((1, BatchProblem::SharedPage { page: 1, other: 0 })),
        );
    }
}
