//! Suggestions for mistyped names.

/// Least similarity of a suggested name, from 0 to 1.
const LEAST_SIMILARITY: f64 = 0.8;

/// Returns " (did you mean `NAME`?)" with the known name that is most similar to `typed`, after `prefix`; empty if none is similar.
pub fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>, prefix: &str) -> String {
    let similarity = |name: &str| strsim::jaro_winkler(typed, name);
    let closest = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    closest
        .filter(|name| similarity(name) >= LEAST_SIMILARITY)
        .map_or_else(String::new, |name| format!(" (did you mean `{prefix}{name}`?)"))
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
}
