//! Models of the matrix: random logits over two vocabularies.

use std::sync::{Arc, Mutex};

use lm_conversation::{Engine, EngineSettings, TokenId};
use lm_model::testing::{FakeLm, HookedLm};
use lm_model::{Batch, CrossEncoderConfig, GenerationConfig, LoadedModel, Logits};
use lm_processors::{CallBody, Count, Family, PythonList};
use lm_tokenizer::Tokenizer;

use crate::shared;

/// Context length: the budget of a turn without a limit, less the prompt.
const CONTEXT_LEN: usize = 1_536;
/// Context length in which refusals are judged: the longest of the shortest calls fit.
const LONG_CONTEXT_LEN: usize = 4_096;
/// Bias of the logit of a scripted id.
const CERTAIN: f32 = 100.0;

/// A vocabulary of the matrix.
pub struct Vocabulary {
    pub name: &'static str,
    tokenizer: Arc<Tokenizer>,
}

impl Vocabulary {
    /// The small vocabulary of the tests, and one of 152k tokens if the shared data is available.
    pub fn all() -> Vec<Self> {
        let small = Self { name: "small", tokenizer: Arc::new(lm_model::testing::tokenizer()) };
        [small]
            .into_iter()
            .chain(large().map(|tokenizer| Self { name: "large", tokenizer: Arc::new(tokenizer) }))
            .collect()
    }

    /// Creates an engine whose model begins a call of the family on request, and otherwise has random logits.
    pub fn engine(&self, family: &Family) -> Opened {
        let opener = self.tokenizer.encode(&opener(family)).expect("a marker can be encoded");
        let width = self.tokenizer.logits_width();
        let script = Arc::new(Mutex::new(Script::default()));
        let engine = |context_len| {
            let noise = FakeLm::noise(7, width).with_context_len(context_len);
            let script = Arc::clone(&script);
            let scripted = move |batch: Option<&Batch>, logits: Logits| match batch {
                Some(batch) => follow(&script.lock().expect("no test panics with it"), batch, &logits),
                None => logits,
            };
            let loaded = LoadedModel {
                model: Arc::new(HookedLm::new(Arc::new(noise)).map_logits(scripted)),
                tokenizer: Arc::clone(&self.tokenizer),
                chat_template: None,
                generation_config: GenerationConfig::default(),
                embedding: Arc::default(),
                cross_encoder: CrossEncoderConfig::default(),
                name: "random".to_owned(),
                adapters: Vec::new(),
                adapter_loader: None,
                audio_adapter: None,
                vision: None,
                audio: None,
            };
            Engine::new(loaded, EngineSettings::default()).expect("an engine")
        };
        Opened { engine: engine(CONTEXT_LEN), long: engine(LONG_CONTEXT_LEN), script, opener }
    }
}

/// An engine, and the first ids of a call of its model.
#[derive(Clone)]
pub struct Opened {
    pub engine: Engine,
    long: Engine,
    script: Arc<Mutex<Script>>,
    opener: Vec<TokenId>,
}

impl Opened {
    /// Returns the engine with the longer context.
    pub fn longer(&self) -> Self {
        Self { engine: self.long.clone(), ..self.clone() }
    }

    /// Number of tokens at the start of a call.
    pub fn opener_len(&self) -> usize {
        self.opener.len()
    }

    /// Sets whether the model begins its replies to a prompt of `prompt_len` tokens with a call.
    pub fn begin_with_call(&self, prompt_len: usize, begins: bool) {
        let ids = if begins { self.opener.clone() } else { Vec::new() };
        *self.script.lock().expect("the model does not panic") = Script { ids, first: prompt_len };
    }
}

/// Scripted ids, the first of them at position `first`.
#[derive(Default)]
struct Script {
    ids: Vec<TokenId>,
    first: usize,
}

/// Raises the logits of scripted ids.
fn follow(script: &Script, batch: &Batch, logits: &Logits) -> Logits {
    let (mut values, mut rows) = (Vec::new(), Vec::new());
    for (index, input) in batch.sequences.iter().enumerate() {
        let wanted = input.logits.indices(input.rows());
        for (row, logits) in wanted.iter().zip(logits.sequence(index).rows()) {
            let first_value = values.len();
            values.extend_from_slice(logits);
            let next = (input.cached_len + row + 1).checked_sub(script.first);
            if let Some(&id) = next.and_then(|next| script.ids.get(next)) {
                values[first_value + id as usize] += CERTAIN;
            }
        }
        rows.push(wanted.len());
    }
    Logits::new(values, logits.width(), rows)
}

/// Text that begins the family's calls; empty where a call begins with its tool's name.
fn opener(family: &Family) -> String {
    let Some(syntax) = family.processor.dialect().and_then(|dialect| dialect.calls.first()) else {
        return String::new();
    };
    let marker = if syntax.section.open.is_empty() { syntax.call.open } else { syntax.section.open };
    let bare = match &syntax.body {
        CallBody::Json(json) if json.count == Count::One => "{",
        CallBody::Json(_) => "[",
        CallBody::Python(python) if python.list == PythonList::Brackets => "[",
        _ => "",
    };
    (if marker.is_empty() { bare } else { marker }).to_owned()
}

/// A published vocabulary of 152k tokens.
fn large() -> Option<Tokenizer> {
    let bytes = std::fs::read(shared::path("tokenizers/qwen2-tokenizer.json")?).expect("can be read");
    let tokenizer = Tokenizer::from_json(&bytes).expect("a tokenizer");
    let width = tokenizer.logits_width().next_multiple_of(256);
    let end = tokenizer.token_id("<|im_end|>").expect("an end token");
    Some(tokenizer.with_end_ids([end]).with_logits_width(width))
}
