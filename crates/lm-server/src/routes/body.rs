//! Bodies of requests.

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use futures_util::StreamExt as _;
use lm_api::ApiError;
use serde_json::Value;

use crate::guards::ending;
use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Body of a request as JSON; its `Content-Type` is ignored.
pub(crate) struct JsonBody(pub Value);

/// Body of a request as it is.
pub(crate) struct RawBody(pub Vec<u8>);

impl FromRequest<SharedApp> for JsonBody {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, ErrorResponse> {
        let RawBody(bytes) = RawBody::from_request(request, app).await?;
        let json = lm_api::json_from_slice(&bytes);
        Ok(Self(json.map_err(|error| ApiError::invalid_request(format!("the body is not JSON: {error}")))?))
    }
}

impl FromRequest<SharedApp> for RawBody {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, ErrorResponse> {
        let limits = &app.config.limits;
        let too_large = || {
            let message = format!("the body has more than {} bytes", limits.body_bytes);
            ApiError::refused(413, "invalid_request_error", message)
        };
        plain(&request)?;
        let expects_answer = request.headers().contains_key(EXPECT);
        if expects_answer && announced(&request).is_some_and(|bytes| bytes > limits.body_bytes as u64) {
            return Err(too_large().into());
        }
        let read = tokio::time::timeout(limits.body_time, read(request, limits.body_bytes));
        let read = tokio::select! {
            read = read => read,
            () = app.ending() => return Err(ending().into()),
        };
        let Ok(read) = read else {
            let message = format!("the body did not arrive within {} s", limits.body_time.as_secs());
            return Err(ApiError::refused(408, "invalid_request_error", message).into());
        };
        let cut_off = |_| ApiError::invalid_request("the body could not be read to its end");
        Ok(Self(read.map_err(cut_off)?.ok_or_else(too_large)?))
    }
}

/// Reads a body; `None` if it has more bytes than `limit`. It is then read but dropped: most clients read no
/// response before they have sent all, and a connection that is closed before that is an error without a
/// reason to them. A body of more than four times the limit is not read to its end.
async fn read(request: Request, limit: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let (mut bytes, mut len) = (Vec::new(), 0_usize);
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await.transpose()? {
        len = len.saturating_add(piece.len());
        match len {
            _ if len > limit.saturating_mul(4) => break,
            _ if len > limit => bytes = Vec::new(),
            _ => bytes.extend_from_slice(&piece),
        }
    }
    Ok((len <= limit).then_some(bytes))
}

/// Refuses a compressed body: its size in memory would not be bounded by that of the request.
fn plain(request: &Request) -> Result<(), ApiError> {
    let mut encodings = request.headers().get_all(CONTENT_ENCODING).iter();
    match encodings.find(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(encoding) => {
            let message = format!("the body has the encoding {encoding:?}, expected none (`identity`)");
            Err(ApiError::refused(415, "invalid_request_error", message))
        }
    }
}

/// Length of the body, if the client says it.
fn announced(request: &Request) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
