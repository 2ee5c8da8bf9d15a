//! Prompts with pictures as input of a model.

use std::ops::Range;
use std::sync::Arc;

use lm_model::{
    AttentionKind, AttentionSpan, EncodedMedia, LoadedModel, LogitRows, MediaLayout, MediaPiece,
    MediaPositions, MediaRows, MediaSlice, PAGE_LEN, PictureOptions, Position, SequenceInput, TokenId,
    VisionEncoder,
};

use crate::golden::Golden;

/// Adjacent rows of a picture: rows of the prompt, the picture, its rows, and their attention.
type Run = (Range<usize>, Arc<EncodedMedia>, Range<usize>, AttentionKind);

/// A prompt with its pictures, as a model takes it.
pub struct Prompt {
    pub ids: Vec<TokenId>,
    pub positions: Vec<Position>,
    /// Position of the next token.
    pub next: u32,
    pub runs: Vec<Run>,
}

impl Prompt {
    pub fn new(golden: &Golden, model: &LoadedModel) -> Self {
        let vision = model.vision.as_deref().unwrap();
        let options = PictureOptions::default();
        let layouts: Vec<_> =
            golden.pictures.iter().map(|picture| vision.layout(picture.size(), &options).unwrap()).collect();
        let text = expanded(&golden.json.prompt, vision, &layouts);
        let ids = model.tokenizer.encode(&text).unwrap();
        let mut prompt = Self { ids, positions: Vec::new(), next: 0, runs: Vec::new() };
        let token = model.tokenizer.token_id(vision.token()).unwrap();
        for (picture, layout) in golden.pictures.iter().zip(&layouts) {
            let media = Arc::new(vision.encode(picture, &options).unwrap());
            assert_eq!(media.rows.rows(), layout.rows(), "{}", golden.name());
            let mut row = 0;
            for rows in layout.pieces.iter().filter_map(|piece| match piece {
                MediaPiece::Rows(rows) => Some(rows),
                MediaPiece::Text(_) => None,
            }) {
                prompt.put(&media, row, rows, token);
                row += rows.count;
            }
        }
        while prompt.positions.len() < prompt.ids.len() {
            prompt.put_text();
        }
        prompt
    }

    /// Gives the next `rows.count` ids `token` to rows of a picture from `row` on.
    pub fn put(&mut self, media: &Arc<EncodedMedia>, row: usize, rows: &MediaRows, token: TokenId) {
        while self.ids[self.positions.len()] != token {
            self.put_text();
        }
        let first = self.positions.len();
        let of_call = first..first + rows.count;
        assert!(self.ids[of_call.clone()].iter().all(|&id| id == token));
        let p = self.next;
        match rows.positions {
            MediaPositions::Sequential => {
                self.positions.extend((0..rows.count as u32).map(|i| Position::from(p + i)));
                self.next += rows.count as u32;
            }
            MediaPositions::Grid { rows: height, columns } => {
                let grid = (0..height as u32).flat_map(|y| (0..columns as u32).map(move |x| (y, x)));
                let at = |(y, x)| Position { temporal: p, height: p + y, width: p + x };
                self.positions.extend(grid.map(at));
                self.next += height.max(columns) as u32;
            }
        }
        self.runs.push((of_call, media.clone(), row..row + rows.count, rows.attention));
    }

    pub fn put_text(&mut self) {
        self.positions.push(self.next.into());
        self.next += 1;
    }

    /// The rows `part` as input for a call, over pages `0..`.
    pub fn input(&self, part: Range<usize>) -> SequenceInput {
        let pages: Vec<u32> = (0..part.end.div_ceil(PAGE_LEN) as u32).collect();
        let mut input = SequenceInput::ids(&self.ids[part.clone()], part.start, pages);
        input.positions = self.positions[part.clone()].to_vec();
        input.final_len = self.ids.len();
        for (rows, media, range, kind) in &self.runs {
            if rows.start >= part.start && rows.end <= part.end {
                let row = rows.start - part.start;
                let (media, range) = (media.clone(), range.clone());
                input.spans.push(AttentionSpan { rows: row..row + range.len(), kind: *kind });
                input.media.push(MediaSlice { row, media, range });
            }
        }
        input.logits = LogitRows::All;
        input
    }
}

/// The prompt with the texts and tokens of each picture in place of its placeholder.
pub fn expanded(prompt: &str, vision: &dyn VisionEncoder, layouts: &[MediaLayout]) -> String {
    let mut texts = prompt.split(vision.placeholder());
    let mut all = texts.next().unwrap().to_owned();
    for (text, layout) in texts.zip(layouts) {
        for piece in &layout.pieces {
            match piece {
                MediaPiece::Text(text) => all.push_str(text),
                MediaPiece::Rows(rows) => all.push_str(&vision.token().repeat(rows.count)),
            }
        }
        all.push_str(text);
    }
    all
}
