//! Timed runs with an image.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use lm_media::{DecodeLimits, Image};
use lm_model::{ImageOptions, LoadedModel, VisionEncoder};
use lm_session::{Engine, Media, Prompt, PromptPiece, TextSegment, TokenId};

use super::runs;

/// An image and the encoder of a model.
pub struct ImageBench {
    encoder: Arc<dyn VisionEncoder>,
    bytes: Vec<u8>,
    image: Image,
}

impl ImageBench {
    /// Reads the image in `file`.
    pub fn open(file: &Path, loaded: &LoadedModel) -> Result<Self> {
        let encoder = loaded.vision.clone().context("--image: the model has no vision encoder")?;
        let bytes = fs::read(file).with_context(|| format!("--image {}", file.display()))?;
        let image = Image::decode(&bytes, &DecodeLimits::default())
            .with_context(|| format!("--image {}", file.display()))?;
        Ok(Self { encoder, bytes, image })
    }

    /// The image in an engine of the same model.
    pub fn media(&self, engine: &Engine) -> Result<Arc<Media>> {
        Ok(engine.image(self.bytes.clone(), &ImageOptions::default())?)
    }

    /// Milliseconds of preprocessing, encoder and projector.
    pub fn encode(&self) -> Result<f64> {
        let started = Instant::now();
        self.encoder.encode(&self.image, &ImageOptions::default())?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }
}

/// Ids of an image after a token that differs in each call, so that the prefix cache has none of its rows;
/// then the ids of a question.
pub fn prompt(engine: &Engine, media: &Media) -> Result<Vec<TokenId>> {
    let mut ids = runs::prompt(engine, 1);
    for piece in media.pieces() {
        match piece {
            PromptPiece::Text(text) => {
                ids.extend(engine.tokenizer().encode_segments(&[TextSegment::Template(text)])?);
            }
            PromptPiece::Rows(rows) => ids.extend(rows),
        }
    }
    ids.extend(runs::prompt(engine, runs::TURN));
    Ok(ids)
}

/// Prompt tokens per second of an image and a question, the encoding of the image included.
pub fn prefill(engine: &Engine, media: &Arc<Media>) -> Result<f64> {
    let ids = prompt(engine, media)?;
    let prompt = Prompt { ids: &ids, media: std::slice::from_ref(media) };
    let stats = runs::open(engine, 1)?.prefill(prompt)?;
    Ok(ids.len() as f64 / stats.elapsed.as_secs_f64())
}
