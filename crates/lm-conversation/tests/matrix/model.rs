//! The models of the matrix: random logits over two vocabularies.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lm_conversation::{Engine, EngineSettings, TokenId};
use lm_model::testing::FakeLm;
use lm_model::{
    Batch, CausalLm, Embeddings, GenerationConfig, KvPool, LoadedModel, Logits, ModelInfo, Result, Tokenizer,
};
use lm_processors::{CallBody, Count, Family, PythonList};

/// Tokens of the context: the budget of a turn without a limit, less the prompt.
const CONTEXT_LEN: usize = 1_536;
/// Tokens of the context in which refusals are judged: the longest of the shortest calls fit.
const LONG_CONTEXT_LEN: usize = 4_096;
/// Added to the logit of an id that the model is to say.
const CERTAIN: f32 = 100.0;

/// A vocabulary that the cells run over.
pub struct Vocabulary {
    pub name: &'static str,
    tokenizer: Arc<Tokenizer>,
}

impl Vocabulary {
    /// The small one of the tests, and one of 152k tokens where the shared data is there.
    pub fn all() -> Vec<Self> {
        let small = Self { name: "small", tokenizer: Arc::new(lm_model::testing::tokenizer()) };
        [small]
            .into_iter()
            .chain(large().map(|tokenizer| Self { name: "large", tokenizer: Arc::new(tokenizer) }))
            .collect()
    }

    /// An engine whose model begins a call of the family when it is asked to, and else writes what chance gives.
    pub fn engine(&self, family: &Family) -> Opened {
        let opener = self.tokenizer.encode(&opener(family)).expect("a marker can be encoded");
        let width = self.tokenizer.logits_width();
        let script = Arc::new(Mutex::new(Script::default()));
        let engine = |context_len| {
            let noise = FakeLm::noise(7, width).with_context_len(context_len);
            let loaded = LoadedModel {
                model: Arc::new(Opening { noise, script: Arc::clone(&script) }),
                tokenizer: Arc::clone(&self.tokenizer),
                chat_template: None,
                generation_config: GenerationConfig::default(),
                name: "random".to_owned(),
            };
            Engine::new(loaded, EngineSettings::default()).expect("an engine")
        };
        Opened { engine: engine(CONTEXT_LEN), long: engine(LONG_CONTEXT_LEN), script, opener }
    }
}

/// An engine and the ids with which its model begins a call.
#[derive(Clone)]
pub struct Opened {
    pub engine: Engine,
    long: Engine,
    script: Arc<Mutex<Script>>,
    opener: Vec<TokenId>,
}

impl Opened {
    /// The same with the longer context.
    pub fn longer(&self) -> Self {
        Self { engine: self.long.clone(), ..self.clone() }
    }

    /// Lets the model begin its replies to a prompt of `prompt_len` tokens with a call, or not.
    pub fn begin_with_call(&self, prompt_len: usize, begins: bool) {
        let ids = if begins { self.opener.clone() } else { Vec::new() };
        *self.script.lock().expect("the model does not panic") = Script { ids, first: prompt_len };
    }
}

/// Ids that the model says, the first of them at the position `first`.
#[derive(Default)]
struct Script {
    ids: Vec<TokenId>,
    first: usize,
}

/// Random logits, in which the ids of a script are certain.
struct Opening {
    noise: FakeLm,
    script: Arc<Mutex<Script>>,
}

impl CausalLm for Opening {
    fn info(&self) -> &ModelInfo {
        self.noise.info()
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        self.noise.new_cache(num_pages)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.noise.cache_bytes_per_page()
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        let logits = self.noise.forward(batch, cache)?;
        let script = self.script.lock().expect("the model does not panic");
        let width = logits.width();
        let (mut values, mut rows) = (Vec::new(), Vec::new());
        for (index, input) in batch.sequences.iter().enumerate() {
            let first_value = values.len();
            logits.sequence(index).rows().for_each(|row| values.extend_from_slice(row));
            rows.push((values.len() - first_value) / width);
            let next = (input.cached_len + input.rows()).checked_sub(script.first);
            if let (Some(&id), true) =
                (next.and_then(|next| script.ids.get(next)), values.len() > first_value)
            {
                let last_row = values.len() - width;
                values[last_row + id as usize] += CERTAIN;
            }
        }
        Ok(Logits::new(values, width, rows))
    }

    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings> {
        self.noise.embed(ids)
    }
}

/// The text with which the family's calls begin; empty where a call begins with its tool's name.
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
    let root = std::env::var_os("LM_SHARED").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = root.join("tokenizers/qwen2-tokenizer.json");
    let Ok(bytes) = std::fs::read(&path) else {
        println!("skipped: {} not found", path.display());
        return None;
    };
    let tokenizer = Tokenizer::from_json(&bytes).expect("a tokenizer");
    let width = tokenizer.logits_width().next_multiple_of(256);
    let end = tokenizer.token_id("<|im_end|>").expect("an end token");
    Some(tokenizer.with_end_ids([end]).with_logits_width(width))
}
