//! Models that requests name.

use crate::error::{ApiError, Result};

/// Longest part of an unknown name that an error repeats, in characters.
const SHOWN_CHARS: usize = 100;

/// Finds the model named `asked`, with or without Ollama's suffix `:latest`; the first model if `asked` is
/// `None`. `names` returns the names of a model.
///
/// # Errors
/// Status 404 if no model has that name; the message lists the known names.
///
/// # Panics
/// If `asked` is `None` and there is no model.
pub fn find_model<'a, T, N: Iterator<Item = &'a str>>(
    models: &'a [T],
    names: impl Fn(&'a T) -> N,
    asked: Option<&str>,
) -> Result<&'a T> {
    let Some(asked) = asked else { return Ok(&models[0]) };
    let is_asked = |name: &str| name == asked || asked.strip_suffix(":latest") == Some(name);
    models.iter().find(|model| names(model).any(is_asked)).ok_or_else(|| {
        let known: Vec<_> = models.iter().flat_map(&names).map(|name| format!("`{name}`")).collect();
        let shown: String = asked.chars().take(SHOWN_CHARS).collect();
        let message = format!("there is no model `{shown}`; the names of models are {}", known.join(", "));
        ApiError::refused(404, "not_found_error", message).with_param("model").with_code("model_not_found")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_found_by_each_name() {
        let models = [vec!["a", "b"], vec!["c"]];
        let find = |asked| find_model(&models, |names| names.iter().copied(), asked);
        for (asked, expected) in [(None, 0), (Some("b"), 0), (Some("c:latest"), 1)] {
            assert_eq!(find(asked), Ok(&models[expected]), "{asked:?}");
        }
        let error = find(Some(&"x".repeat(1000))).expect_err("is unknown");
        assert_eq!((error.status, error.code), (404, Some("model_not_found")));
        let expected =
            format!("there is no model `{}`; the names of models are `a`, `b`, `c`", "x".repeat(100));
        assert_eq!(error.message, expected);
    }
}
