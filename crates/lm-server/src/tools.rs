//! Tools that a server runs for its clients.

use std::fmt;
use std::sync::Arc;

use lm_tools::Toolset;

/// Tools that a server runs for its clients: they list the declarations at `/v1/tools`, give them to a model
/// in their requests, and have the calls run at `/v1/tools/call`. No call runs unless a client asks for it.
/// Default: none.
///
/// ```
/// use lm_server::{ServedTools, ServerConfig};
///
/// let config = ServerConfig { tools: ServedTools::new(lm_tools::demo), ..ServerConfig::default() };
/// # assert!(format!("{config:?}").contains("get_weather"));
/// ```
#[derive(Clone)]
pub struct ServedTools(Arc<dyn Fn() -> Toolset + Send + Sync>);

impl ServedTools {
    /// Creates the tools from a function that returns the current ones; it is called for each request and
    /// must not block.
    pub fn new(tools: impl Fn() -> Toolset + Send + Sync + 'static) -> Self {
        Self(Arc::new(tools))
    }

    /// The tools of now.
    pub(crate) fn toolset(&self) -> Toolset {
        (self.0)()
    }
}

impl Default for ServedTools {
    fn default() -> Self {
        Self::new(Toolset::new)
    }
}

impl fmt::Debug for ServedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.toolset().fmt(f)
    }
}
