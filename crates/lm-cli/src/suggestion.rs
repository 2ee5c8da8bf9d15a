//! Suggestions for mistyped names.

/// Least similarity of a suggested name, from 0 to 1.
const LEAST_SIMILARITY: f64 = 0.8;

/// Returns " (did you mean `NAME`?)" with the known name that is most similar to `typed`, after `prefix`;
/// empty if none is similar.
pub fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>, prefix: &str) -> String {
    let similarity = |name: &str| strsim::jaro_winkler(typed, name);
    let closest = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    closest
        .filter(|name| similarity(name) >= LEAST_SIMILARITY)
        .map_or_else(String::new, |name| format!(" (did you mean `{prefix}{name}`?)"))
}

/// Message of an error of JSON, with the known name that is most similar to an unknown key or value.
pub fn of_json(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // The library has no other access to the names: "unknown field `a`, expected one of `b`, `c`".
    let parts = ["field", "variant"].into_iter().find_map(|kind| {
        message.strip_prefix("unknown ")?.strip_prefix(kind)?.strip_prefix(" `")?.rsplit_once("`, expected ")
    });
    match parts {
        Some((typed, known)) => {
            message.clone() + &did_you_mean(typed, known.split('`').skip(1).step_by(2), "")
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let meant = |typed| {
            did_you_mean(typed, ["max-tokens", "min-p", "temperature", "top-k", "top-p"].into_iter(), "/")
        };
        for (typed, name) in [
            ("top_p", "top-p"),
            ("temp", "temperature"),
            ("temprature", "temperature"),
            ("max_token", "max-tokens"),
        ] {
            assert_eq!(meant(typed), format!(" (did you mean `/{name}`?)"));
        }
        assert_eq!(meant("colour"), "");
    }

    #[test]
    fn unknown_key_lists_the_known_ones() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Line {
            #[serde(rename = "messages")]
            _messages: Option<u8>,
            #[serde(rename = "tools")]
            _tools: Option<Kind>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            Exact,
        }
        let message = |json: &str| of_json(&serde_json::from_str::<Line>(json).expect_err("is refused"));
        assert!(message("{\"mesages\": 1}").ends_with("(did you mean `messages`?)"));
        assert!(message("{\"tools\": \"exat\"}").contains("unknown variant `exat`"));
        for (key, is_near) in [("a`b", false), ("x`, expected `tool", false), ("tool", true)] {
            let message = message(&serde_json::json!({key: 1}).to_string());
            assert!(message.contains(key) && message.contains("did you mean") == is_near, "{message}");
        }
    }
}
