//! Fields of other servers' requests that would change the answer and are not supported: they are refused by
//! name. Fields without effect on the answer are in no table, and ignored.

/// A field, with the values that ask for nothing as JSON texts; null always does.
pub(crate) type UnsupportedField = (&'static str, &'static [&'static str]);

const OFF: &[&str] = &["false"];
const ON: &[&str] = &["true"];
const ZERO: &[&str] = &["0", "0.0"];
const ONE: &[&str] = &["1", "1.0"];
const NONE: &[&str] = &["[]", "{}", r#""""#, "false"];

/// Sampling and output of vLLM, llama.cpp and Ollama, in no API here.
pub(crate) const SAMPLING: &[UnsupportedField] = &[
    ("adaptive_target", &["-1", "-1.0"]),
    ("allowed_token_ids", NONE),
    ("bad_words", NONE),
    ("chat_template", NONE),
    ("dynatemp_range", ZERO),
    ("guided_whitespace_pattern", NONE),
    ("include_reasoning", ON),
    ("include_stop_str_in_output", OFF),
    ("logits_processors", NONE),
    ("lora", NONE),
    ("media_io_kwargs", NONE),
    ("min_keep", &["0", "1"]),
    ("mirostat", ZERO),
    ("mm_processor_kwargs", NONE),
    ("moderation", NONE),
    ("n_cmpl", ONE),
    ("n_indent", ZERO),
    ("n_probs", ZERO),
    ("penalize_newline", ON),
    ("post_sampling_probs", OFF),
    ("prompt_logprobs", OFF),
    ("reasoning_budget_message", NONE),
    ("reasoning_format", &[r#""auto""#, r#""deepseek""#]),
    ("response_fields", NONE),
    ("return_token_ids", OFF),
    ("return_tokens", OFF),
    ("return_tokens_as_token_ids", OFF),
    ("samplers", NONE),
    ("skip_special_tokens", ON),
    ("structural_tag", NONE),
    ("t_max_predict_ms", &["0", "-1"]),
    ("t_max_prompt_ms", &["0", "-1"]),
    ("tfs_z", ONE),
    ("truncate_prompt_tokens", NONE),
    ("use_beam_search", OFF),
    ("vllm_xargs", NONE),
];

/// Fields of the output of chat completions and completions, in the other APIs.
pub(crate) const OUTPUT: &[UnsupportedField] = &[
    ("grammar", NONE),
    ("guided_choice", NONE),
    ("guided_grammar", NONE),
    ("guided_json", NONE),
    ("guided_regex", NONE),
    ("json_schema", NONE),
    ("min_tokens", ZERO),
    ("n", ONE),
    ("response_format", &[r#"{"type":"text"}"#]),
    ("stop_token_ids", NONE),
    ("structured_outputs", NONE),
];

/// Field of the end of a reply of chat completions, completions and responses, in the other APIs.
pub(crate) const END: &[UnsupportedField] = &[("ignore_eos", OFF)];

/// Fields of messages and reasoning of chat completions, in the other APIs.
pub(crate) const MESSAGES: &[UnsupportedField] = &[
    ("add_generation_prompt", ON),
    ("add_special_tokens", OFF),
    ("chat_template_kwargs", NONE),
    ("continue_final_message", OFF),
    ("documents", NONE),
    ("echo", OFF),
    ("function_call", &[]),
    ("functions", NONE),
    ("logprobs", OFF),
    ("reasoning_effort", &[]),
    ("stop", NONE),
    ("suffix", NONE),
    ("thinking_token_budget", &[]),
];
