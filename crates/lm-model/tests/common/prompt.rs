//! Prompts with images and audio as input of a model.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ops::Range;
use std::sync::Arc;

use lm_media::{Audio, Image};
use lm_model::{
    Adapter, AttentionKind, AttentionSpan, AudioEncoder, CausalLm, EncodedMedia, ImageOptions, KvPool,
    LoadedModel, LogitRows, MediaLayout, MediaPiece, MediaPositions, MediaRows, MediaSlice, PAGE_LEN,
    Position, SequenceInput, TokenId, VisionEncoder,
};

use crate::common::{assert_same, forward};

/// Adjacent rows of a media item: rows of the prompt, the media item, its rows, and their attention.
type Run = (Range<usize>, Arc<EncodedMedia>, Range<usize>, AttentionKind);

/// An encoded image or audio, and how it appears in a prompt.
pub struct MediaItem {
    placeholder: String,
    token: String,
    layout: MediaLayout,
    pub encoded: Arc<EncodedMedia>,
}

impl MediaItem {
    pub fn image(vision: &dyn VisionEncoder, image: &Image, options: &ImageOptions) -> Self {
        let layout = vision.layout(image.size(), options).unwrap();
        Self::new([vision.placeholder(), vision.token()], layout, vision.encode(image, options).unwrap())
    }

    pub fn audio(encoder: &dyn AudioEncoder, audio: &Audio) -> Self {
        let layout = encoder.layout(audio.samples().len()).unwrap();
        Self::new([encoder.placeholder(), encoder.token()], layout, encoder.encode(audio).unwrap())
    }

    fn new(texts: [&str; 2], layout: MediaLayout, encoded: EncodedMedia) -> Self {
        assert_eq!(encoded.rows.rows(), layout.rows());
        let [placeholder, token] = texts.map(str::to_owned);
        Self { placeholder, token, layout, encoded: Arc::new(encoded) }
    }
}

/// A prompt with its media, as input of a model.
pub struct Prompt {
    pub ids: Vec<TokenId>,
    pub positions: Vec<Position>,
    /// Position of the next token.
    pub next: u32,
    pub runs: Vec<Run>,
    /// The adapter to apply.
    pub adapter: Option<Adapter>,
}

impl Prompt {
    /// `text` has a placeholder for each of `media`, in their order.
    pub fn new(text: &str, model: &LoadedModel, media: &[MediaItem]) -> Self {
        let ids = model.tokenizer.encode(&expanded(text, media)).unwrap();
        let mut prompt = Self { ids, positions: Vec::new(), next: 0, runs: Vec::new(), adapter: None };
        for item in media {
            let token = model.tokenizer.token_id(&item.token).unwrap();
            let mut row = 0;
            for rows in item.layout.pieces.iter().filter_map(|piece| match piece {
                MediaPiece::Rows(rows) => Some(rows),
                MediaPiece::Text(_) => None,
            }) {
                prompt.put(&item.encoded, row, rows, token);
                row += rows.count;
            }
        }
        while prompt.positions.len() < prompt.ids.len() {
            prompt.put_text();
        }
        prompt
    }

    /// Gives the next `rows.count` ids `token` to rows of a media item from `row` on.
    fn put(&mut self, media: &Arc<EncodedMedia>, row: usize, rows: &MediaRows, token: TokenId) {
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

    fn put_text(&mut self) {
        self.positions.push(self.next.into());
        self.next += 1;
    }

    /// The rows `part` as input for a call, over pages `0..`.
    pub fn input(&self, part: Range<usize>) -> SequenceInput {
        let pages: Vec<u32> = (0..part.end.div_ceil(PAGE_LEN) as u32).collect();
        let mut input = SequenceInput::ids(&self.ids[part.clone()], part.start, pages);
        input.positions = self.positions[part.clone()].to_vec();
        input.final_len = self.ids.len();
        input.adapter = self.adapter.clone();
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

    /// A cache for the prompt and `more` tokens.
    pub fn cache(&self, model: &dyn CausalLm, more: usize) -> KvPool {
        model.new_cache((self.ids.len() + more).div_ceil(PAGE_LEN)).unwrap()
    }

    /// Logits of the prompt and `count` greedy tokens after it.
    pub fn greedy(&self, model: &dyn CausalLm, count: usize) -> (Vec<Vec<f32>>, Vec<TokenId>) {
        let mut pool = self.cache(model, count);
        let whole = forward(model, &mut pool, vec![self.input(0..self.ids.len())]).remove(0);
        let mut tokens = vec![best(whole.last().unwrap())];
        while tokens.len() < count {
            let cached = self.ids.len() + tokens.len() - 1;
            let pages: Vec<u32> = (0..(cached + 1).div_ceil(PAGE_LEN) as u32).collect();
            let mut input = SequenceInput::ids([*tokens.last().unwrap()], cached, pages);
            input.positions = vec![(self.next + tokens.len() as u32 - 1).into()];
            input.adapter = self.adapter.clone();
            tokens.push(best(&forward(model, &mut pool, vec![input]).remove(0)[0]));
        }
        (whole, tokens)
    }

    /// Asserts that the prompt, cut before and after each run of rows, has the logits of the whole.
    pub fn check_in_pieces(&self, model: &dyn CausalLm, whole: &[Vec<f32>], name: &str) {
        let mut pool = self.cache(model, 0);
        let borders = self.runs.iter().flat_map(|(rows, ..)| [rows.start, rows.end]);
        let (mut logits, mut first) = (Vec::new(), 0);
        for border in borders.chain([self.ids.len()]).filter(|&border| border > 0) {
            if border > first {
                logits.extend(forward(model, &mut pool, vec![self.input(first..border)]).remove(0));
                first = border;
            }
        }
        assert_same(model, &logits, whole, name);
    }
}

fn best(logits: &[f32]) -> TokenId {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.unwrap().0 as TokenId
}

/// The prompt with the texts and tokens of each media item in place of its placeholder.
fn expanded(prompt: &str, media: &[MediaItem]) -> String {
    let (mut all, mut rest) = (String::new(), prompt);
    for item in media {
        let (before, after) = rest.split_once(&item.placeholder).unwrap();
        all.push_str(before);
        for piece in &item.layout.pieces {
            match piece {
                MediaPiece::Text(text) => all.push_str(text),
                MediaPiece::Rows(rows) => all.push_str(&item.token.repeat(rows.count)),
            }
        }
        rest = after;
    }
    all + rest
}
