//! Checks of requests before their routes.

mod draining;
mod error_form;
mod host;
mod key;
mod origin;
mod request_id;

pub(crate) use draining::{draining, ending};
pub(crate) use error_form::{error_form, error_schema};
pub(crate) use host::host;
pub(crate) use key::{key, key_digest};
pub(crate) use origin::{cors, origin, own_page};
pub(crate) use request_id::request_id;
