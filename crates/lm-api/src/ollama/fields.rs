//! Fields of Ollama's requests.

use crate::request::FieldNames;
use crate::request_body::{
    BOOLEAN, BodyField, INTEGER, MODEL, OBJECTS, POSITIVE, RequestBody, STOP, TEXT, TEXTS_OR_TOKENS,
};
use crate::sampling::SAMPLING;

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    messages: "messages",
    tools: "tools",
    tool_name: "function.name",
    tool_schema: "function.parameters",
    tool_choice: "tools",
    format: "format",
    max_output_tokens: "options.num_predict",
    max_reasoning_tokens: "think",
    stop: "options.stop",
};

/// Body of `/api/chat`.
pub(super) const CHAT: RequestBody = RequestBody {
    name: "OllamaChatRequest",
    fields: &[
        &[
            MODEL,
            BodyField::new(
                "messages",
                OBJECTS,
                "Messages of the conversation, oldest first; without one the model is only loaded.",
            ),
        ],
        COMMON,
        UNSUPPORTED,
    ],
    required: &[&["messages"]],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "stream": false, "options": {"num_predict": 32}}"#,
};

/// Body of `/api/generate`.
pub(super) const GENERATE: RequestBody = RequestBody {
    name: "OllamaGenerateRequest",
    fields: &[
        &[
            MODEL,
            BodyField::new("prompt", TEXT, "Message of the user; without one the model is only loaded."),
            BodyField::new("system", TEXT, "Message of the system."),
            BodyField::new(
                "images",
                r#"{"type": "array", "items": {"type": "string", "contentEncoding": "base64"}}"#,
                "Images of the message, for models that read them.",
            ),
        ],
        COMMON,
        UNSUPPORTED,
    ],
    required: &[],
    example: r#"{"prompt": "Hello!", "stream": false, "options": {"num_predict": 32}}"#,
};

/// Body of `/api/embed`.
pub(super) const EMBED: RequestBody = RequestBody {
    name: "OllamaEmbedRequest",
    fields: &[&[
        MODEL,
        BodyField::new("input", TEXTS_OR_TOKENS, "Text or token ids, or an array of either."),
        BodyField::new("dimensions", POSITIVE, "Number of first elements to keep; all if absent."),
        KEEP_ALIVE,
    ]],
    required: &[&["input"]],
    example: r#"{"input": "Hello!"}"#,
};

/// `options` of a body.
pub(super) const OPTIONS: RequestBody = RequestBody {
    name: "OllamaOptions",
    fields: &[
        &[
            BodyField::new("num_predict", INTEGER, "Maximum number of output tokens; negative is no limit."),
            BodyField::new("stop", STOP, "Stop sequences."),
            BodyField::new(
                "repeat_penalty",
                r#"{"type": "number", "exclusiveMinimum": 0}"#,
                "Name of `repetition_penalty` in this API.",
            ),
        ],
        SAMPLING,
    ],
    required: &[],
    example: r#"{"num_predict": 32}"#,
};

const THINK: &str = r#"{"enum": [true, false, "low", "medium", "high"]}"#;
const FORMAT: &str = r#"{"anyOf": [{"enum": ["", "json"]}, {"type": "object"}]}"#;

const COMMON: &[BodyField] = &[
    BodyField::new("tools", OBJECTS, "Functions that the model may call."),
    BodyField::object("options", &OPTIONS, "Sampling parameters and limits; others are ignored."),
    BodyField::new("think", THINK, "Reasoning: on, off, or its effort."),
    BodyField::new("format", FORMAT, "Format of the answer: `json`, or a JSON Schema."),
    KEEP_ALIVE,
    BodyField::new("stream", BOOLEAN, "Streams the response as lines of JSON; true if absent."),
];

const KEEP_ALIVE: BodyField = BodyField::new(
    "keep_alive",
    r#"{"type": ["number", "string"]}"#,
    "Time for which the model stays in memory after the request: seconds, or text such as `10m`; 0 unloads it, negative keeps it.",
);

const NOTHING: &[&str] = &["false", r#""""#, "[]"];

const UNSUPPORTED: &[BodyField] = &[
    BodyField::unsupported("context", NOTHING),
    BodyField::unsupported("logprobs", NOTHING),
    BodyField::unsupported("raw", NOTHING),
    BodyField::unsupported("suffix", NOTHING),
    BodyField::unsupported("template", NOTHING),
];
