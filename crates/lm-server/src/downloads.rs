//! Downloads of models that clients ask for.

use std::fmt;
use std::sync::Arc;

use crate::models::ServedModel;

/// Progress of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Name of the file that is received.
    pub file: String,
    /// Bytes that are here, of all files of the model.
    pub done_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}

type Download = dyn Fn(&str, &mut dyn FnMut(DownloadProgress)) -> Result<ServedModel, String> + Send + Sync;

/// Downloads models by name, for `POST /api/pull` and the page; the server then serves them.
///
/// ```
/// use lm_server::{ServedDownloads, ServerConfig};
///
/// let downloads = ServedDownloads::new(|name, _progress| Err(format!("there is no hub, and no `{name}`")));
/// let config = ServerConfig { downloads: Some(downloads), ..ServerConfig::default() };
/// # assert!(config.downloads.is_some());
/// ```
#[derive(Clone)]
pub struct ServedDownloads(Arc<Download>);

impl ServedDownloads {
    /// Creates the downloads from a function that gets the name of a model and reports its progress. It runs
    /// on a thread that may block, also after the client has left. Its errors are answers to clients.
    pub fn new(
        download: impl Fn(&str, &mut dyn FnMut(DownloadProgress)) -> Result<ServedModel, String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(download))
    }

    /// Downloads a model.
    pub(crate) fn run(
        &self,
        name: &str,
        progress: &mut dyn FnMut(DownloadProgress),
    ) -> Result<ServedModel, String> {
        (self.0)(name, progress)
    }
}

impl fmt::Debug for ServedDownloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServedDownloads")
    }
}
