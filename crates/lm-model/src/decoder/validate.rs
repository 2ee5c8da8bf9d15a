//! Validation of a whole batch before any of it runs.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use lm_kernels::{CacheGroup, KvPool, NO_PAGE, PAGE_LEN, PageId};

use crate::batch::{Batch, Embeddings, Input, LogitRows, MediaSlice, SequenceInput};
use crate::causal_lm::ModelInfo;
use crate::error::{BatchProblem, Error, Result};
use crate::loader::{Adapter, ModelShape};
use crate::spec::Direction;

/// Limits of a model and a pool.
#[derive(Clone, Debug)]
pub(crate) struct BatchLimits {
    /// Number of embedding rows; valid ids are below it.
    pub(crate) vocab_rows: usize,
    pub(crate) hidden_size: usize,
    pub(crate) context_len: usize,
    pub(crate) num_layers: usize,
    pub(crate) direction: Direction,
    /// Shape of the model for adapters; `None` if it does not support adapters.
    pub(crate) adapters: Option<ModelShape>,
    /// Groups of the cache, each with the number of pages of its space.
    pub(crate) groups: Vec<(CacheGroup, usize)>,
}

impl BatchLimits {
    /// Limits of a model that takes no adapters.
    pub(crate) fn new(info: &ModelInfo, cache: &KvPool) -> Self {
        let groups = cache.layout().groups().iter().map(|&group| (group, cache.num_pages(group.space)));
        let ModelInfo { logits_width, hidden_size, context_len, num_layers, direction, .. } = *info;
        let groups = groups.collect();
        Self {
            vocab_rows: logits_width,
            hidden_size,
            context_len,
            num_layers,
            direction,
            adapters: None,
            groups,
        }
    }
}

/// Fails on the first sequence that cannot run.
pub(crate) fn check_batch(batch: &Batch, limits: &BatchLimits) -> Result<()> {
    for (sequence, input) in batch.sequences.iter().enumerate() {
        check_sequence(input, limits).map_err(|problem| Error::Batch { sequence, problem })?;
    }
    check_written_pages(batch, limits)
}

fn check_sequence(input: &SequenceInput, limits: &BatchLimits) -> Result<(), BatchProblem> {
    let rows = input.rows();
    check_input(&input.input, limits)?;
    if rows == 0 {
        return Err(BatchProblem::Empty);
    }
    if limits.direction == Direction::Bidirectional && input.cached_len > 0 {
        return Err(BatchProblem::NotWhole { cached_len: input.cached_len });
    }
    let fits = |adapter: &Adapter| limits.adapters.is_some_and(|model| adapter.fits(model));
    if let Some(adapter) = input.adapter.as_ref().filter(|adapter| !fits(adapter)) {
        return Err(BatchProblem::ForeignAdapter { adapter: adapter.info().name.clone() });
    }
    check_places(input, rows, limits)?;
    let spans = input.spans.iter().map(|span| span.rows.clone());
    check_apart(spans, rows).map_err(|Range { start, end }| BatchProblem::Span { start, end, rows })?;
    check_media(&input.media, rows, limits)?;
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
        Input::Embeddings(embeddings) => check_embeddings(embeddings, limits.hidden_size),
    }
}

/// Checks that rows have the width `expected`.
pub(crate) fn check_embeddings(rows: &Embeddings, expected: usize) -> Result<(), BatchProblem> {
    let (values, hidden_size) = (rows.values.len(), rows.hidden_size);
    if hidden_size == expected && values % expected == 0 {
        Ok(())
    } else {
        Err(BatchProblem::EmbeddingWidth { values, hidden_size, expected })
    }
}

/// Checks positions, slots and pages.
fn check_places(input: &SequenceInput, rows: usize, limits: &BatchLimits) -> Result<(), BatchProblem> {
    let context_len = limits.context_len;
    if input.positions.len() != rows {
        return Err(BatchProblem::PositionCount { positions: input.positions.len(), rows });
    }
    if let Some((row, &position)) =
        input.positions.iter().enumerate().find(|(_, p)| p.max() as usize >= context_len)
    {
        return Err(BatchProblem::Position { row, position: position.max(), context_len });
    }
    let slots = input.cached_len.saturating_add(rows);
    if slots > context_len {
        return Err(BatchProblem::ContextFull { slots, context_len });
    }
    let (tables, expected) = (input.block_tables.len(), limits.groups.len());
    if tables != expected {
        return Err(BatchProblem::BlockTables { tables, expected });
    }
    let mut tables = input.block_tables.iter().zip(&limits.groups);
    tables.try_for_each(|(table, (group, num_pages))| check_table(table, input, group, *num_pages))
}

/// Checks the pages that a group needs or writes.
fn check_table(
    table: &[PageId],
    input: &SequenceInput,
    group: &CacheGroup,
    num_pages: usize,
) -> Result<(), BatchProblem> {
    let slots = input.cached_len + input.rows();
    let (pages, expected) = (table.len(), slots.div_ceil(PAGE_LEN));
    if pages < expected {
        return Err(BatchProblem::BlockTable { pages, slots, expected });
    }
    let needed = group.retention.first_retained_page(input.cached_len)..input.cached_len.div_ceil(PAGE_LEN);
    let mut used = needed.chain(group.retention.written(input.cached_len, input.rows()));
    if let Some(index) = used.find(|&index| table[index] == NO_PAGE) {
        return Err(BatchProblem::MissingPage { index });
    }
    match table.iter().find(|&&page| page != NO_PAGE && page as usize >= num_pages) {
        Some(&page) => Err(BatchProblem::PageOutsidePool { page, num_pages }),
        None => Ok(()),
    }
}

/// Fails with the first range that is empty, ends after `rows` or overlaps another.
fn check_apart(ranges: impl Iterator<Item = Range<usize>>, rows: usize) -> Result<(), Range<usize>> {
    let mut ordered: Vec<_> = ranges.collect();
    ordered.sort_by_key(|range| range.start);
    let mut free_from = 0;
    for range in ordered {
        if range.is_empty() || range.start < free_from || range.end > rows {
            return Err(range);
        }
        free_from = range.end;
    }
    Ok(())
}

/// Checks the rows of images, in the call and in the images.
fn check_media(slices: &[MediaSlice], rows: usize, limits: &BatchLimits) -> Result<(), BatchProblem> {
    let calls = slices.iter().map(MediaSlice::rows);
    check_apart(calls, rows).map_err(|Range { start, end }| BatchProblem::MediaRows { start, end, rows })?;
    for MediaSlice { media, range, .. } in slices {
        let (layers, expected) = (media.deep.len(), limits.num_layers);
        if layers > expected {
            return Err(BatchProblem::MediaLayers { layers, expected });
        }
        for embeddings in iter::once(&media.rows).chain(&media.deep) {
            check_embeddings(embeddings, limits.hidden_size)?;
            let (Range { start, end }, rows) = (range.clone(), embeddings.rows());
            if end > rows {
                return Err(BatchProblem::MediaRange { start, end, rows });
            }
        }
    }
    Ok(())
}

/// Checks that a written page occurs only once in the batch, written or read.
fn check_written_pages(batch: &Batch, limits: &BatchLimits) -> Result<()> {
    let mut users: HashMap<(usize, PageId), (usize, bool)> = HashMap::new();
    for (sequence, input) in batch.sequences.iter().enumerate() {
        let end = (input.cached_len + input.rows()).div_ceil(PAGE_LEN);
        for (table, (group, _)) in input.block_tables.iter().zip(&limits.groups) {
            let written = group.retention.written(input.cached_len, input.rows());
            let pages = table[..end].iter().enumerate().filter(|&(_, &page)| page != NO_PAGE);
            for (index, &page) in pages {
                let writes = written.clone().any(|written| written == index);
                if let Some(&(other, other_writes)) = users.get(&(group.space, page))
                    && (writes || other_writes)
                {
                    return Err(Error::Batch { sequence, problem: BatchProblem::SharedPage { page, other } });
                }
                users.insert((group.space, page), (sequence, writes));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AttentionKind, AttentionSpan, EncodedMedia, Retention};

    fn limits(retention: &[Retention]) -> BatchLimits {
        let group =
            |&retention| (CacheGroup { retention, space: usize::from(retention == Retention::State) }, 6);
        let groups = retention.iter().map(group).collect();
        BatchLimits {
            vocab_rows: 10,
            hidden_size: 4,
            context_len: 100,
            num_layers: 2,
            direction: Direction::Causal,
            adapters: None,
            groups,
        }
    }

    fn check(sequences: Vec<SequenceInput>, expected: Option<(usize, BatchProblem)>) {
        check_with(&limits(&[Retention::All]), sequences, expected);
    }

    fn check_with(
        limits: &BatchLimits,
        sequences: Vec<SequenceInput>,
        expected: Option<(usize, BatchProblem)>,
    ) {
        let got = match check_batch(&Batch { sequences }, limits) {
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
    fn valid_batches_are_accepted() {
        check(vec![], None);
        check(vec![good(), SequenceInput::ids([9], 32, [0, 2])], None);
        let mut spare_page = good();
        spare_page.block_tables[0].push(4);
        check(vec![spare_page], None);
        check(
            vec![SequenceInput::embeddings(Embeddings { values: vec![0.; 8], hidden_size: 4 }, 0, [3])],
            None,
        );
    }

    #[test]
    fn each_problem_has_its_error() {
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
        bad(|s| s.positions = vec![40.into()], BatchProblem::PositionCount { positions: 1, rows: 3 });
        bad(
            |s| s.positions[2].width = 100,
            BatchProblem::Position { row: 2, position: 100, context_len: 100 },
        );
        bad(|s| s.cached_len = 98, BatchProblem::ContextFull { slots: 101, context_len: 100 });
        bad(|s| s.cached_len = usize::MAX, BatchProblem::ContextFull { slots: usize::MAX, context_len: 100 });
        bad(|s| s.block_tables[0] = vec![0], BatchProblem::BlockTable { pages: 1, slots: 43, expected: 2 });
        bad(|s| s.block_tables[0][0] = 6, BatchProblem::PageOutsidePool { page: 6, num_pages: 6 });
        bad(|s| s.block_tables.push(vec![2, 3]), BatchProblem::BlockTables { tables: 2, expected: 1 });
        bad(|s| s.block_tables[0][0] = NO_PAGE, BatchProblem::MissingPage { index: 0 });
        bad(|s| s.block_tables[0] = vec![1, 1], BatchProblem::SharedPage { page: 1, other: 1 });
        bad(|s| s.logits = LogitRows::Rows(vec![0, 3]), BatchProblem::LogitRow { row: 3, rows: 3 });
    }

    #[test]
    fn spans_are_in_range_and_disjoint() {
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
    fn image_rows_are_in_range_and_disjoint() {
        let embeddings =
            |rows: usize, width| Embeddings { values: vec![0.; rows * width], hidden_size: width };
        let encoded = |rows, deep: &[usize]| EncodedMedia {
            rows: embeddings(rows, 4),
            deep: deep.iter().map(|&rows| embeddings(rows, 4)).collect(),
        };
        let slice = |row, media: EncodedMedia, range| MediaSlice { row, media: Arc::new(media), range };
        let mut input = good();
        input.media = vec![slice(2, encoded(5, &[5, 5]), 4..5), slice(0, encoded(2, &[]), 0..2)];
        check(vec![input], None);
        let place = |start, end| BatchProblem::MediaRows { start, end, rows: 3 };
        let wide = EncodedMedia { rows: embeddings(4, 5), deep: vec![] };
        for (media, problem) in [
            (vec![slice(1, encoded(3, &[]), 0..3)], place(1, 4)),
            (vec![slice(1, encoded(3, &[]), 2..2)], place(1, 1)),
            (vec![slice(usize::MAX, encoded(3, &[]), 0..2)], place(usize::MAX, usize::MAX)),
            (vec![slice(0, encoded(2, &[]), 0..2), slice(1, encoded(2, &[]), 0..2)], place(1, 3)),
            (vec![slice(0, encoded(2, &[]), 1..3)], BatchProblem::MediaRange { start: 1, end: 3, rows: 2 }),
            (vec![slice(0, encoded(3, &[2]), 1..3)], BatchProblem::MediaRange { start: 1, end: 3, rows: 2 }),
            (vec![slice(0, encoded(1, &[1; 3]), 0..1)], BatchProblem::MediaLayers { layers: 3, expected: 2 }),
            (
                vec![slice(0, wide, 0..1)],
                BatchProblem::EmbeddingWidth { values: 20, hidden_size: 5, expected: 4 },
            ),
        ] {
            bad(|s| s.media = media, problem);
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

    #[test]
    fn unneeded_pages_may_be_missing() {
        let limits = limits(&[Retention::All, Retention::Window(9), Retention::State]);
        let tables = |input, tables: [[PageId; 3]; 3]| SequenceInput {
            block_tables: tables.map(|table| table.to_vec()).to_vec(),
            ..input
        };
        let rows = || SequenceInput::ids([1; 30], 40, []); // Reads slots 32.. through the window, writes pages 1 and 2.
        let full = [0, 1, 2];
        check_with(&limits, vec![tables(rows(), [full, [NO_PAGE, 4, 5], [NO_PAGE, 1, 2]])], None);
        for (window, state, index) in [
            ([NO_PAGE, NO_PAGE, 5], [NO_PAGE, 1, 2], 1),
            ([NO_PAGE, 4, 5], [0, NO_PAGE, 2], 1),
            ([NO_PAGE, 4, 5], [0, 1, NO_PAGE], 2),
        ] {
            let missing = Some((0, BatchProblem::MissingPage { index }));
            check_with(&limits, vec![tables(rows(), [full, window, state])], missing);
        }
        // Pages of one space must not be shared; those of two spaces are independent.
        let shared = Some((0, BatchProblem::SharedPage { page: 1, other: 0 }));
        check_with(&limits, vec![tables(rows(), [full, [NO_PAGE, 1, 5], [NO_PAGE, 1, 2]])], shared);
    }
}
