//! Next steps after errors of MCP servers.

use std::error::Error;
use std::io::ErrorKind;

use serde_json::json;

/// Next step after an error of a connection, if there is one.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref()? {
        lm_mcp::Error::Start { command, source, .. } if source.kind() == ErrorKind::NotFound => {
            about_command(command)
        }
        lm_mcp::Error::Ended { .. } => Some(
            "is it an MCP server? LM_LOG=lm_mcp=info shows all of its stderr; it gets few variables of the environment, and `env` in a \
             file of servers adds others"
                .to_owned(),
        ),
        lm_mcp::Error::StartTimeout { .. } => {
            Some("is it an MCP server? --mcp-start-timeout SECONDS gives it more time".to_owned())
        }
        lm_mcp::Error::Unauthorized { server, url, .. } => Some(format!(
            "`lm mcp login {url}` logs in, or `lm mcp login {server} --mcp-config FILE` at a server of a file"
        )),
        lm_mcp::Error::NoRegistration { .. } => Some(
            "--client-id ID names a client that is registered there, as does \"oauth\": {\"clientId\": …} in a file of servers"
                .to_owned(),
        ),
        lm_mcp::Error::DuplicateTool { .. } => {
            Some("--mcp NAME=… puts `NAME_` before the names of a server's tools".to_owned())
        }
        lm_mcp::Error::NoClient => Some(
            "an MCP client starts this program and writes to its standard input; --http PORT serves over HTTP"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Hint for a file of servers whose `command` has the arguments, too.
fn about_command(command: &str) -> Option<String> {
    let words = shlex::split(command)?;
    let (program, args) = words.split_first().filter(|(_, args)| !args.is_empty())?;
    let (program, args) = (json!(program), json!(args));
    Some(format!(
        "`command` is a program without arguments, which go into `args`: \"command\": {program}, \"args\": {args}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn missing_command_hints_at_its_arguments() {
        let hint = |command: &str, kind: ErrorKind| {
            let (server, command) = ("a".to_owned(), command.to_owned());
            hint(&lm_mcp::Error::Start { server, command, source: kind.into() })
        };
        let expected = "`command` is a program without arguments, which go into `args`: \"command\": \"npx\", \"args\": [\"foo\"]";
        assert_eq!(hint("npx foo", ErrorKind::NotFound).as_deref(), Some(expected));
        assert_eq!(hint("npx foo", ErrorKind::PermissionDenied), None);
        assert_eq!(hint("npx", ErrorKind::NotFound), None);
    }

    #[test]
    fn start_timeout_hint_names_the_option() {
        let (server, timeout, output) = ("a".to_owned(), Duration::from_secs(60), String::new());
        let error = lm_mcp::Error::StartTimeout { server, timeout, output };
        assert_eq!(
            hint(&error).as_deref(),
            Some("is it an MCP server? --mcp-start-timeout SECONDS gives it more time")
        );
    }
}
