//! An answer against the schema that was asked for, where the grammar could not say all of it.

use jsonschema::Validator;
use lm_template::Value;

use crate::error::{Error, Result};

/// The schema of an answer.
#[derive(Debug)]
pub(crate) struct AnswerCheck(Validator);

impl AnswerCheck {
    /// Compiles the schema; nothing is fetched for it.
    pub(crate) fn new(schema: &Value) -> Result<Self> {
        let compiled = jsonschema::options().offline().build(schema);
        compiled.map(Self).map_err(|error| Error::UnusableSchema { message: shorten(&error.to_string()) })
    }

    /// Checks the text of an answer.
    pub(crate) fn check(&self, text: &str) -> Result<()> {
        let unfit = |path: String, message: String| Error::UnfitAnswer {
            text: text.to_owned(),
            path,
            message: shorten(&message),
        };
        let value = serde_json::from_str(text).map_err(|error| unfit(String::new(), error.to_string()))?;
        match self.0.iter_errors(&value).next() {
            None => Ok(()),
            Some(error) => Err(unfit(error.instance_path().to_string(), error.to_string())),
        }
    }
}

/// A complaint may quote the value, and the value may be a book.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(200) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_place_that_does_not_fit_is_named() {
        let check = AnswerCheck::new(&json!({"properties": {"a": {"items": {"not": {"const": 3}}}}}));
        let check = check.expect("a schema");
        assert!(check.check(r#"{"a": [1, 2]}"#).is_ok());
        for (text, wanted) in [(r#"{"a": [1, 3]}"#, "/a/1"), (r#"{"a": "#, "")] {
            let Err(Error::UnfitAnswer { path, .. }) = check.check(text) else { panic!("{text} fits") };
            assert_eq!(path, wanted);
        }
        assert!(matches!(AnswerCheck::new(&json!({"type": 7})), Err(Error::UnusableSchema { .. })));
    }
}
