#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

/// The model's display name.
pub const NAME: &str = "pocket";

/// Model card, with the licence of the package.
const CARD: &str =
    concat!("---\nlicense: ", env!("CARGO_PKG_LICENSE"), "\n---\n\n", include_str!("../README.md"));

/// Files of the model folder, by name: a complete Hugging Face folder, with bf16 weights.
pub const FILES: &[(&str, &[u8])] = &[
    ("config.json", include_bytes!("../model/config.json")),
    ("generation_config.json", include_bytes!("../model/generation_config.json")),
    ("tokenizer.json", include_bytes!("../model/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../model/tokenizer_config.json")),
    ("chat_template.jinja", include_bytes!("../model/chat_template.jinja")),
    ("README.md", CARD.as_bytes()),
    ("model.safetensors", include_bytes!("../model/model.safetensors")),
];
