//! Words of `--mcp` that are meant as addresses of servers.

use std::net::IpAddr;

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Returns true for an address of a server.
pub fn is_address(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.starts_with(scheme))
}

/// Checks that a word can be a program: an address with another scheme, or without one, cannot.
///
/// # Errors
/// Says what to write.
pub fn check_program(word: &str) -> Result<(), String> {
    if let Some((scheme, _)) = word.split_once("://") {
        return Err(format!("unknown scheme `{scheme}`: an address begins with http:// or https://"));
    }
    if let "http:" | "https:" = word {
        return Err(format!("`{word}` is not a complete address: expected {word}//HOST:PORT/mcp"));
    }
    let (authority, path) = word.split_at(word.find('/').unwrap_or(word.len()));
    if !is_authority(authority) {
        return Ok(());
    }
    let scheme = if authority.ends_with(":443") { "https" } else { "http" };
    let path = if path.len() > 1 { path } else { "/mcp" };
    Err(format!("an address begins with http:// or https://: did you mean `{scheme}://{authority}{path}`?"))
}

/// Returns true for `HOST:PORT`, an IP address and `localhost`.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, true),
        _ => (text, false),
    };
    let is_ip = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_name = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    is_ip || host == "localhost" || (port && is_name && !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_scheme_are_completed() {
        for (word, meant) in [
            ("127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
            ("localhost:8000/mcp", "http://localhost:8000/mcp"),
            ("localhost:8000/", "http://localhost:8000/mcp"),
            ("localhost", "http://localhost/mcp"),
            ("[::1]:80/x?a=b", "http://[::1]:80/x?a=b"),
            ("10.0.0.1/mcp", "http://10.0.0.1/mcp"),
            ("tools.example.com:443", "https://tools.example.com:443/mcp"),
        ] {
            let expected = format!("an address begins with http:// or https://: did you mean `{meant}`?");
            assert_eq!(check_program(word), Err(expected));
        }
    }

    #[test]
    fn programs_are_not_addresses() {
        for word in
            ["npx", "server.py", "./bin/server", "/opt/x:y/server", "C:\\server.exe", "x:y", ":80", "-"]
        {
            assert_eq!(check_program(word), Ok(()), "{word}");
        }
    }

    #[test]
    fn only_http_is_supported() {
        for scheme in ["htp", "ws", "HTTP", ""] {
            let expected = format!("unknown scheme `{scheme}`: an address begins with http:// or https://");
            assert_eq!(check_program(&format!("{scheme}://example.com/mcp")), Err(expected));
        }
    }
}
