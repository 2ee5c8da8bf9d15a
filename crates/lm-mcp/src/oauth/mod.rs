//! Authorization at servers over HTTP: OAuth 2.1 as the protocol has it, with rmcp's client of it.

mod entry;
mod http;
mod kept;
mod login;
mod redirect;
mod store;

pub use login::Login;
pub use store::TokenStore;

pub(crate) use kept::authorized;
