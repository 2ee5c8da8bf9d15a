//! Names in paths.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use lm_api::ApiError;

use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// The two names in a path, as [`PathName`].
pub(crate) struct PathNames(pub String, pub String);

impl FromRequestParts<SharedApp> for PathNames {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, ErrorResponse> {
        let Path((first, second)) = Path::from_request_parts(parts, app).await.map_err(|_| invalid())?;
        Ok(Self(first, second))
    }
}

fn invalid() -> ApiError {
    ApiError::invalid_request("the name in the path is not valid UTF-8")
}

/// The name in a path, decoded; its errors have the form of the API, unlike axum's own.
pub(crate) struct PathName(pub String);

impl FromRequestParts<SharedApp> for PathName {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, ErrorResponse> {
        let name = Path::from_request_parts(parts, app).await;
        Ok(Self(name.map_err(|_| invalid())?.0))
    }
}
