//! Reference data, read in place.

use std::path::{Path, PathBuf};

use lm_conversation::{GenerationPrompt, Map, PromptTemplate, Value};
use lm_template::{Prompt, RenderInput};
use lm_tokenizer::Tokenizer;
use tokenizers::AddedToken;

use crate::shared::json;

pub const TOKENIZERS: [&str; 4] = ["llama-bpe", "phi-3", "qwen2", "smollm2"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A published chat template.
pub struct Published {
    pub id: String,
    pub source: String,
    /// Variables that the model's tokenizer provides: `bos_token` and the like.
    pub context: Map<String, Value>,
}

impl Published {
    pub fn all(shared: &Path) -> Vec<Self> {
        let folder = shared.join("goldens/templates");
        let index = json(folder.join("index.json"));
        let rows = index["templates"].as_array().expect("a list of templates");
        rows.iter().map(|row| Self::read(&folder, row)).collect()
    }

    fn read(folder: &Path, row: &Value) -> Self {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let source = folder.join(format!("{}.jinja", text("id")));
        let source = std::fs::read_to_string(&source).unwrap_or_else(|error| panic!("{source:?}: {error}"));
        let context = row["context"].as_object().expect("an object").clone();
        Self { id: text("id"), source, context }
    }

    pub fn compile(&self) -> PromptTemplate {
        let template =
            PromptTemplate::new(&self.source).unwrap_or_else(|error| panic!("{}: {error}", self.id));
        let now = "2025-03-14T15:09:26".parse().expect("a time");
        template.with_context(self.context.clone()).with_time(now)
    }
}

/// A real tokenizer with additional added tokens.
pub fn tokenizer(shared: &Path, name: &str, added: &[AddedToken]) -> Tokenizer {
    let path = shared.join(format!("tokenizers/{name}-tokenizer.json"));
    let mut library =
        tokenizers::Tokenizer::from_file(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    library.add_tokens(added.iter().cloned()).expect("more tokens can be added");
    let json = library.to_string(false).expect("the library writes what it reads");
    Tokenizer::from_json(json.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Renders a conversation; `None` if the template rejects it.
pub fn render(
    template: &PromptTemplate,
    messages: &[Value],
    tools: &Value,
    generation_prompt: GenerationPrompt,
    extra_context: &Map<String, Value>,
) -> Option<Prompt> {
    template.render(&RenderInput { messages, tools, generation_prompt, extra_context }).ok()
}
