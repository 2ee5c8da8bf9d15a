//! The web page at `/`: files of `page/`, embedded in the program.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;

use crate::state::SharedApp;

/// Only files and responses of this server: model text that became markup could not run or fetch anything.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Builds the table of the files in `page/`: path, content type, content.
macro_rules! files {
    ($($path:literal, $kind:ident, $name:literal;)*) => {
        &[$(($path, $kind, include_str!(concat!("../page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files! {
    "/", HTML, "index.html";
    "/page/api.js", SCRIPT, "api.js";
    "/page/assistant_view.js", SCRIPT, "assistant_view.js";
    "/page/base.css", CSS, "base.css";
    "/page/branch_switch.js", SCRIPT, "branch_switch.js";
    "/page/calculator.js", SCRIPT, "calculator.js";
    "/page/call_view.js", SCRIPT, "call_view.js";
    "/page/chat.css", CSS, "chat.css";
    "/page/chats.js", SCRIPT, "chats.js";
    "/page/composer.js", SCRIPT, "composer.js";
    "/page/demo_tools.js", SCRIPT, "demo_tools.js";
    "/page/dom.js", SCRIPT, "dom.js";
    "/page/full_context.js", SCRIPT, "full_context.js";
    "/page/german.js", SCRIPT, "german.js";
    "/page/icon.svg", SVG, "icon.svg";
    "/page/keyboard.js", SCRIPT, "keyboard.js";
    "/page/main.js", SCRIPT, "main.js";
    "/page/markdown_view.js", SCRIPT, "markdown_view.js";
    "/page/media.js", SCRIPT, "media.js";
    "/page/models_panel.js", SCRIPT, "models_panel.js";
    "/page/panels.js", SCRIPT, "panels.js";
    "/page/passages.js", SCRIPT, "passages.js";
    "/page/remember.js", SCRIPT, "remember.js";
    "/page/runner.js", SCRIPT, "runner.js";
    "/page/settings.js", SCRIPT, "settings.js";
    "/page/sidebar.js", SCRIPT, "sidebar.js";
    "/page/spaced.js", SCRIPT, "spaced.js";
    "/page/sse.js", SCRIPT, "sse.js";
    "/page/stats.js", SCRIPT, "stats.js";
    "/page/storage.js", SCRIPT, "storage.js";
    "/page/text.js", SCRIPT, "text.js";
    "/page/text_file.js", SCRIPT, "text_file.js";
    "/page/theme.js", SCRIPT, "theme.js";
    "/page/thread.js", SCRIPT, "thread.js";
    "/page/tools.js", SCRIPT, "tools.js";
    "/page/transfer.js", SCRIPT, "transfer.js";
    "/page/tree.js", SCRIPT, "tree.js";
    "/page/user_view.js", SCRIPT, "user_view.js";
};

/// Routes of the page. They need no key: the page asks for it when the API does.
pub(crate) fn routes() -> Router<SharedApp> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, content)| {
        router.route(path, get(async move || (headers(kind), content)))
    })
}

const fn headers(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served_once() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let entries = std::fs::read_dir(folder).expect("it is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .map(|name| if name == "index.html" { "/".to_owned() } else { format!("/page/{name}") })
            .collect();
        names.sort_unstable();
        assert_eq!(FILES.iter().map(|(path, ..)| *path).collect::<Vec<_>>(), names);
    }
}
