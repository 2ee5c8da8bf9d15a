//! Fingerprint of a loaded model.

use std::sync::OnceLock;

use lm_tokenizer::{TokenId, Tokenizer};
use sha2::{Digest, Sha256};

use lm_model::{Adapter, CausalLm};

/// Number of tokens whose embeddings are part of the fingerprint.
const SAMPLED: usize = 16;

/// SHA-256 of a model's properties, settings and a sample of its weights; the tokenizer is added on request.
pub(crate) struct Fingerprint {
    model: Sha256,
    whole: OnceLock<String>,
}

impl Fingerprint {
    /// Computes the part of the model and of the adapters loaded with it.
    pub fn new(model: &dyn CausalLm, adapters: &[Adapter]) -> Self {
        let info = model.info();
        let mut sum = Sha256::new();
        let sizes = (info.context_len, info.hidden_size, info.num_layers, info.logits_width, info.parameters);
        let bytes = (info.weight_bytes, model.cache_bytes_per_page(), info.format, info.device);
        let adapters: Vec<_> = adapters.iter().map(Adapter::info).collect();
        sum.update(format!("{} {:x} {sizes:?} {bytes:?} {adapters:?}", info.architecture, info.checksum));
        let step = (info.logits_width / SAMPLED).max(1);
        let ids: Vec<TokenId> =
            (0..info.logits_width).step_by(step).take(SAMPLED).map(|id| id as TokenId).collect();
        // Logits may be wider than the table of embeddings.
        let sample = ids.iter().filter_map(|id| model.embed(&[*id]).ok());
        sample.flat_map(|row| row.values).for_each(|value| sum.update(value.to_le_bytes()));
        Self { model: sum, whole: OnceLock::new() }
    }

    /// Fingerprint of the model with its tokenizer, in hexadecimal.
    pub fn with_tokenizer(&self, tokenizer: &Tokenizer) -> &str {
        self.whole.get_or_init(|| {
            let mut sum = self.model.clone();
            for id in 0..tokenizer.vocab_size() as TokenId {
                let bytes = tokenizer.token_bytes(id);
                sum.update((bytes.len() as u64).to_le_bytes());
                sum.update(bytes);
            }
            hex(&sum.finalize())
        })
    }
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
