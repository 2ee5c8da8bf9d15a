//! URLs of files of this machine, which desktops give for files that are dropped or copied.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Path of a file: an unchanged path, or the path of a `file:` URL.
///
/// # Errors
/// For a URL of the web: nothing is fetched.
pub fn local(path: &Path) -> Result<PathBuf> {
    let Some((scheme, rest)) = path.to_str().and_then(|text| text.split_once("://")) else {
        return Ok(path.to_owned());
    };
    match &*scheme.to_ascii_lowercase() {
        "file" => path_of(rest),
        "http" | "https" => bail!("URLs are not fetched; download the file and name its path"),
        _ => Ok(path.to_owned()),
    }
}

/// Path in a `file:` URL, given without the scheme.
fn path_of(rest: &str) -> Result<PathBuf> {
    let host = rest.split('/').next().unwrap_or_default();
    let path = match host {
        "" | "localhost" => &rest[host.len()..],
        // Relative paths, and drives.
        _ if host.starts_with(['.', '~']) || cfg!(windows) => rest,
        _ => bail!("the URL names the machine `{host}`, expected file:///PATH of this one"),
    };
    Ok(percent_decoded(path).into())
}

/// Decodes a percent-encoded text; bytes that are not UTF-8 become U+FFFD.
pub fn percent_decoded(text: &str) -> String {
    String::from_utf8_lossy(&decoded(text.as_bytes())).into_owned()
}

/// Decodes percent-encoded bytes; a `%` without two hexadecimal digits stays.
fn decoded(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        let code = if *first == b'%' { rest.first_chunk().and_then(byte_of) } else { None };
        bytes.push(code.unwrap_or(*first));
        text = if code.is_some() { &rest[2..] } else { rest };
    }
    bytes
}

/// Byte of two hexadecimal digits.
fn byte_of(digits: &[u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_of_files_are_paths() {
        for (text, expected) in [
            ("a cat.png", "a cat.png"),
            ("/tmp/100%25.png", "/tmp/100%25.png"),
            ("file:///tmp/a%20cat.png", "/tmp/a cat.png"),
            ("FILE://localhost/tmp/caf%C3%A9.png", "/tmp/café.png"),
            ("file:///tmp/100%25%.png", "/tmp/100%%.png"),
            ("file:///tmp/%+1%2", "/tmp/%+1%2"),
        ] {
            assert_eq!(local(Path::new(text)).expect("a file"), Path::new(expected), "{text}");
        }
    }

    #[test]
    #[cfg(not(windows))]
    fn remote_file_urls_are_rejected() {
        let error = local(Path::new("file://host/tmp/x.png")).expect_err("is refused").to_string();
        assert!(error.contains("`host`"), "{error}");
    }

    #[test]
    fn web_urls_are_rejected() {
        for text in ["https://example.com/cat.png", "HTTP://example.com/cat.png"] {
            let error = local(Path::new(text)).expect_err("is refused").to_string();
            assert!(error.contains("not fetched"), "{error}");
        }
    }
}
