//! File names of a Hugging Face model folder.

/// Settings of the model.
pub const CONFIG: &str = "config.json";
/// Generation parameters recommended by the authors.
pub const GENERATION_CONFIG: &str = "generation_config.json";
/// Tokenizer in the format of the `tokenizers` library.
pub const TOKENIZER: &str = "tokenizer.json";
/// Settings of the tokenizer: special tokens, chat template.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// Texts of the special tokens.
pub const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
/// Chat template on its own.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";
/// Chat template on its own, as JSON.
pub const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
/// Folder of additional chat templates, each a file `NAME.jinja`.
pub const ADDITIONAL_CHAT_TEMPLATES: &str = "additional_chat_templates";
/// Weights in one file.
pub const WEIGHTS: &str = "model.safetensors";
/// Index of weights in several files: tensor → file.
pub const WEIGHTS_INDEX: &str = "model.safetensors.index.json";
/// Model card.
pub const MODEL_CARD: &str = "README.md";
/// Modules of a model of sentence-transformers.
pub const MODULES: &str = "modules.json";
/// Prompts of a model of sentence-transformers.
pub const SENTENCE_TRANSFORMERS: &str = "config_sentence_transformers.json";
/// Settings of the first module of a model of sentence-transformers.
pub const SENTENCE_BERT: &str = "sentence_bert_config.json";
