//! What the handlers of resources return.

use axum::body::Body;
use axum::http::header;
use axum::response::Response;

use crate::error::ApiError;

/// The response to a request, or the error that is sent in its place.
pub(crate) type Answer = Result<Response, ApiError>;

/// Returns a response with a body of this type.
pub(crate) fn typed(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
