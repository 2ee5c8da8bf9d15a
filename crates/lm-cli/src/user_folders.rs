//! Folders of the user, by the conventions of the system.

use std::env;
use std::path::PathBuf;

/// Folder for caches, which may be deleted at any time.
pub fn cache() -> Option<PathBuf> {
    if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))
    }
}

/// Folder for configuration files of the user.
pub fn config() -> Option<PathBuf> {
    if cfg!(any(windows, target_os = "macos")) {
        state()
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))
    }
}

/// Folder for what the user keeps, such as conversations.
pub fn data() -> Option<PathBuf> {
    if cfg!(any(windows, target_os = "macos")) {
        state()
    } else {
        folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))
    }
}

/// Folder for state that outlives the program, such as histories.
pub fn state() -> Option<PathBuf> {
    if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))
    }
}

/// Absolute path in an environment variable.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
