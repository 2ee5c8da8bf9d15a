//! A batch as the rows of one tensor: the sequences' new rows, concatenated.

use std::ops::Range;
use std::sync::Arc;

use lm_kernels::{CacheGroup, RaggedLayout, Retention, SequenceLayout};
use lm_tokenizer::TokenId;

use crate::batch::{AttentionKind, Batch, Input, MediaSlice, SequenceInput};
use crate::loader::AdaptedRows;
use crate::spec::BidirectionalLayers;

/// Builds the ragged layout of each cache group: each sequence's rows and the pages that hold its slots.
pub(crate) fn layouts(
    batch: &Batch,
    groups: &[CacheGroup],
    bidirectional: BidirectionalLayers,
) -> Vec<Arc<RaggedLayout>> {
    let groups = groups.iter().enumerate().map(|(index, group)| {
        let has_spans =
            bidirectional == BidirectionalLayers::All || matches!(group.retention, Retention::Window(_));
        Arc::new(layout(batch, index, has_spans))
    });
    groups.collect()
}

fn layout(batch: &Batch, group: usize, has_spans: bool) -> RaggedLayout {
    let mut end = 0;
    let mut sequence_layout = |sequence: &SequenceInput| {
        let start = end;
        end += sequence.rows();
        SequenceLayout {
            rows: start..end,
            cached_len: sequence.cached_len,
            block_table: sequence.block_tables[group].clone(),
            bidirectional: sequence
                .spans
                .iter()
                .filter(|span| has_spans && span.kind == AttentionKind::Bidirectional)
                .map(|span| span.rows.clone())
                .collect(),
            reach: None,
        }
    };
    RaggedLayout { sequences: batch.sequences.iter().map(&mut sequence_layout).collect() }
}

/// Returns the row ranges that use an adapter, each with the adapter.
pub(crate) fn adapted_rows(batch: &Batch) -> Vec<AdaptedRows> {
    let mut end = 0;
    let rows = batch.sequences.iter().filter_map(|sequence| {
        let start = end;
        end += sequence.rows();
        Some((start..end, sequence.adapter.clone()?))
    });
    rows.collect()
}

/// Returns the rows of the batch whose logits are requested, and their number for each sequence.
pub(crate) fn logit_rows(batch: &Batch) -> (Vec<i32>, Vec<usize>) {
    let (mut selected, mut counts, mut start) = (Vec::new(), Vec::new(), 0);
    for sequence in &batch.sequences {
        let rows = sequence.logits.indices(sequence.rows());
        counts.push(rows.len());
        selected.extend(rows.into_iter().map(|row| (start + row) as i32));
        start += sequence.rows();
    }
    (selected, counts)
}

/// Returns the rows of images: their rows of the batch, each with the slice that fills them.
pub(crate) fn media_rows(batch: &Batch) -> impl Iterator<Item = (Range<usize>, &MediaSlice)> {
    let mut end = 0;
    batch.sequences.iter().flat_map(move |sequence| {
        let start = end;
        end += sequence.rows();
        sequence.media.iter().map(move |slice| {
            let Range { start: first, end: last } = slice.rows();
            (start + first..start + last, slice)
        })
    })
}

/// Token ids of the batch's rows; `None` for rows of embeddings and images.
pub(crate) fn ids_of_rows(batch: &Batch) -> Vec<Option<TokenId>> {
    let of_sequence = |sequence: &SequenceInput| match &sequence.input {
        Input::Ids(ids) => ids.iter().copied().map(Some).collect(),
        Input::Embeddings(rows) => vec![None; rows.rows()],
    };
    let mut ids: Vec<_> = batch.sequences.iter().flat_map(of_sequence).collect();
    media_rows(batch).for_each(|(rows, _)| ids[rows].fill(None));
    ids
}
