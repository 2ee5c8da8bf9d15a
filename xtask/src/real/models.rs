//! The trained models, as their publishers name the files.

/// A trained model.
pub struct Model {
    pub name: &'static str,
    pub file: &'static str,
    /// Its template declares tools.
    pub calls: bool,
    /// It has a chat template.
    pub chats: bool,
}

/// All models that are measured.
pub const ALL: &[Model] = &[
    Model { name: "SmolLM2 135M", file: "smollm2-135m-instruct-q4_1.gguf", calls: false, chats: true },
    Model { name: "Gemma 3 270M (base)", file: "gemma-3-270m-q4_k_m.gguf", calls: false, chats: false },
    Model {
        name: "Qwen2.5-Coder 0.5B",
        file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        calls: true,
        chats: true,
    },
    Model {
        name: "Qwen2.5-Coder 1.5B",
        file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        calls: true,
        chats: true,
    },
];
