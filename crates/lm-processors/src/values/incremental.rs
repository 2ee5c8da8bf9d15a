//! Whole and incremental conversion, compared.

/// Converts `text` to JSON text, read whole and by character; both must agree, and certain text must only
/// grow.
pub(super) fn whole_and_by_character<R>(
    text: &str,
    new: impl Fn() -> R,
    follow: impl Fn(&mut R, &str) -> Result<Option<usize>, String>,
    certain: fn(&R) -> &str,
) -> Result<String, String> {
    let result = |reader: &R, progress| match progress {
        Ok(Some(end)) if end == text.len() => Ok(certain(reader).to_owned()),
        Ok(Some(end)) => Err(format!("ends at {end}")),
        Ok(None) => Err("open".to_owned()),
        Err(reason) => Err(reason),
    };
    let mut whole = new();
    let progress = follow(&mut whole, text);
    let expected = result(&whole, progress);
    let (mut pieces, mut progress, mut before) = (new(), Ok(None), String::new());
    for (at, c) in text.char_indices() {
        progress = follow(&mut pieces, &text[..at + c.len_utf8()]);
        assert!(certain(&pieces).starts_with(&before), "{text}: {before} became {}", certain(&pieces));
        before = certain(&pieces).to_owned();
        if progress != Ok(None) {
            break;
        }
    }
    assert_eq!(result(&pieces, progress), expected, "{text}");
    expected
}
