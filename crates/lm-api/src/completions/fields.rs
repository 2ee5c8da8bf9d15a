//! Fields of a completion.

use crate::chat_completions::{FORMATS, NAMES as CHAT_NAMES, STREAM};
use crate::request::FieldNames;
use crate::request_body::{BOOLEAN, BodyField, COUNT, MODEL, POSITIVE, RequestBody, STOP, TEXTS_OR_TOKENS};
use crate::sampling::SAMPLING;

/// Names of the fields.
pub(super) const NAMES: FieldNames =
    FieldNames { messages: "prompt", max_output_tokens: "max_tokens", ..CHAT_NAMES };

/// Body of a completion.
pub(super) const BODY: RequestBody = RequestBody {
    name: "CompletionRequest",
    fields: &[&[MODEL], OWN, SAMPLING, FORMATS, STREAM],
    required: &[&["prompt"]],
    example: r#"{"prompt": "Once upon a time", "max_tokens": 16}"#,
};

const OWN: &[BodyField] = &[
    BodyField::new("prompt", TEXTS_OR_TOKENS, "Text or token ids, or an array of either."),
    BodyField::new("max_tokens", COUNT, "Maximum number of output tokens; 16 if absent. 0 needs `echo`."),
    BodyField::new("min_tokens", COUNT, "Number of tokens before which no token ends a text."),
    BodyField::new("n", POSITIVE, "Number of texts for each prompt; 1 if absent."),
    BodyField::new("best_of", COUNT, "1, or the same as `n`: all texts are returned."),
    BodyField::new("echo", BOOLEAN, "Begins each text with its prompt."),
    BodyField::new("logprobs", COUNT, "Number of most probable tokens at each position."),
    BodyField::new("stop", STOP, "Stop sequences."),
    BodyField::new("ignore_eos", BOOLEAN, "Excludes the tokens that end a text, as benchmarks do."),
    BodyField::unsupported("grammar", &[]),
    BodyField::unsupported("prompt_logprobs", &[]),
    BodyField::unsupported("suffix", &[r#""""#]),
];
