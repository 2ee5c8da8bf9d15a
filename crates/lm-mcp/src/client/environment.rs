//! Environment of started programs: a short list of the variables of this one, without those that may hold
//! secrets.

use std::ffi::{OsStr, OsString};

/// Variables of the search for programs, the user, the language, temporary files and certificates; on Windows
/// those of the system, too. [`CommandConfig`](crate::CommandConfig) documents them.
const NAMES: [&str; 29] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Of Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Addresses of proxies, which may contain a password.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// The variables that a server's program inherits.
pub(super) fn inherited(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, value)| is_inherited(name, value))
}

/// Names are compared without case: Windows has `Path`, and proxies are also written in lower case.
fn is_inherited(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let is_proxy = || PROXIES.contains(&name.as_str()) && !value.to_string_lossy().contains('@');
    NAMES.contains(&name.as_str()) || name.starts_with("LC_") || is_proxy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_are_not_inherited() {
        let kept = ["PATH", "Path", "HOME", "LANG", "LC_ALL", "TMPDIR"];
        let left_out = ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "PATHS", "MY_HOME", ""];
        let pairs = kept.iter().chain(&left_out).map(|name| (OsString::from(name), OsString::from("x")));
        let names: Vec<_> = inherited(pairs).map(|(name, _)| name).collect();
        assert_eq!(names, kept);
    }

    #[test]
    fn proxies_with_a_password_are_not_inherited() {
        let is_inherited = |name: &str, value: &str| is_inherited(name.as_ref(), value.as_ref());
        assert!(is_inherited("https_proxy", "http://proxy:3128") && is_inherited("NO_PROXY", "localhost"));
        assert!(!is_inherited("HTTPS_PROXY", "http://user:secret@proxy:3128"));
    }
}
