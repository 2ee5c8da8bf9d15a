//! Argument of `--mcp`: a command or an address, perhaps with a name.

use std::path::Path;
use std::str::FromStr;

use lm_mcp::ServerConfig;

use super::address::{check_program, is_address};

/// Argument of `--mcp`.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSource(ServerConfig);

impl FromStr for McpSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, target) = split_name(text)?;
        let mut server = server(target.trim())?;
        match name {
            Some(name) => (server.name, server.prefix) = (name.to_owned(), name.to_owned()),
            None => server.prefix = String::new(),
        }
        Ok(Self(server))
    }
}

/// Splits `NAME=TARGET`. There may be no name, and a `=` in the target.
fn split_name(text: &str) -> Result<(Option<&str>, &str), String> {
    match text.split_once('=') {
        Some((name, target)) if is_name(name.trim()) => Ok((Some(name.trim()), target)),
        Some((name, _)) if is_meant_as_name(name) => Err(format!(
            "`{name}` cannot be the name of a server: a name has one or more of the letters a-z and A-Z, digits, `_` and `-`"
        )),
        _ => Ok((None, text)),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns false if a text before `=` is the beginning of an address or of a command, such as
/// `docker run -e KEY` or `env KEY`: it has a path, an option, a quote, or a program and an argument.
fn is_meant_as_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_command =
        words.len() > 1 && (words.iter().any(|word| word.starts_with('-')) || is_program(words[0]));
    !is_command && !text.contains(['/', '\\', '\'', '"'])
}

/// Returns true if `PATH` has the program, or if that is not known.
fn is_program(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH").filter(|_| cfg!(unix)) else { return true };
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Describes a server by its command or address, with a name for messages.
fn server(target: &str) -> Result<ServerConfig, String> {
    if is_address(target) {
        let host = target.split("//").nth(1).and_then(|rest| rest.split(['/', '?']).next());
        return Ok(ServerConfig::http(host.unwrap_or(target), target));
    }
    let words = shlex::split(target).ok_or("a quote is not closed")?;
    let (program, args) = words.split_first().ok_or("expected a command or an address")?;
    check_program(program)?;
    let name = Path::new(program).file_stem().unwrap_or(program.as_ref());
    Ok(ServerConfig::command(name.to_string_lossy(), program.as_str(), args.iter().cloned()))
}

/// The servers of several arguments: those without a given name get distinct ones.
pub fn named_apart(sources: &[McpSource]) -> Vec<ServerConfig> {
    let mut servers: Vec<ServerConfig> = Vec::with_capacity(sources.len());
    for McpSource(server) in sources {
        let mut server = server.clone();
        let is_taken = |name: &str| servers.iter().any(|other| other.name == name);
        if server.prefix.is_empty() && is_taken(&server.name) {
            let numbered = (2..).map(|number| format!("{}-{number}", server.name));
            server.name = numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        }
        servers.push(server);
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> ServerConfig {
        text.parse::<McpSource>().expect("a source").0
    }

    #[test]
    fn commands_and_addresses_accept_a_name() {
        let npx = ServerConfig::command("npx", "npx", ["-y", "a b"]);
        assert_eq!(source("npx -y 'a b'"), ServerConfig { prefix: String::new(), ..npx.clone() });
        assert_eq!(
            source("files=npx -y 'a b'"),
            ServerConfig { name: "files".into(), prefix: "files".into(), ..npx }
        );
        let http = ServerConfig::http("example.com:80", "http://example.com:80/mcp?key=a");
        assert_eq!(
            source("http://example.com:80/mcp?key=a"),
            ServerConfig { prefix: String::new(), ..http.clone() }
        );
        let named = ServerConfig { name: "web".into(), prefix: "web".into(), ..http };
        assert_eq!(source("web=http://example.com:80/mcp?key=a"), named);
        assert_eq!(source("/opt/x/server.py --a=b").name, "server");
        assert_eq!("".parse::<McpSource>(), Err("expected a command or an address".to_owned()));
        assert_eq!("a 'b".parse::<McpSource>(), Err("a quote is not closed".to_owned()));
    }

    #[test]
    fn name_has_only_letters_digits_underscores_and_hyphens() {
        for name in ["", " ", "bad name", "bad.name", "naïve"] {
            let expected = format!(
                "`{name}` cannot be the name of a server: a name has one or more of the letters a-z and A-Z, digits, `_` and `-`"
            );
            assert_eq!(format!("{name}=true").parse::<McpSource>(), Err(expected));
        }
        assert_eq!(source(" files = npx").name, "files");
    }

    #[test]
    fn command_arguments_accept_values() {
        for command in ["docker run -e KEY=a image", "./serve key=a", "no-program --key=a", "'a b' key=a"] {
            assert_eq!(source(command).prefix, "", "{command}");
        }
        assert_eq!(source("env KEY=a npx").name, "env");
    }

    #[test]
    fn servers_of_the_same_program_are_numbered() {
        let sources = ["npx a", "npx b", "c=npx c", "npx d"].map(|text| text.parse().expect("a source"));
        let names: Vec<_> = named_apart(&sources).into_iter().map(|server| server.name).collect();
        assert_eq!(names, ["npx", "npx-2", "c", "npx-3"]);
    }
}
