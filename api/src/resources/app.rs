//! The configured single-page application and static files.

use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use tower::ServiceExt as _;
use tower_http::services::{ServeDir, ServeFile};

use crate::context::Context;
use crate::error::ApiError;
use crate::routes::Answer;

/// The content security policy of third-party applications, which may contain inline scripts and styles.
const POLICY: &str = "frame-ancestors 'self'; object-src 'none'; base-uri 'self'";

fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist")
}

/// Handles `GET /app`: returns the single-page application.
pub(crate) async fn application(context: Context) -> Answer {
    let path = context.api.options.app.clone();
    file(context, path.as_deref()).await
}

/// Handles `GET /favicon.ico`.
pub(crate) async fn icon(context: Context) -> Answer {
    let path = context.api.options.favicon.clone();
    file(context, path.as_deref()).await
}

async fn file(context: Context, path: Option<&Path>) -> Answer {
    let path = path.ok_or_else(not_found)?;
    let request = Request::from_parts(context.parts, Body::empty());
    finished(ServeFile::new(path).oneshot(request).await.map(|response| response.map(Body::new)))
}

/// Handles `GET /static/PATH`.
pub(crate) async fn static_file(context: Context) -> Answer {
    let root = context.api.options.static_dir.clone().ok_or_else(not_found)?;
    let mut parts = context.parts;
    let below = parts.uri.path().strip_prefix(&context.api.options.static_path).unwrap_or_default();
    // The path is still percent-encoded: the service decodes it, and rejects paths outside of the directory.
    parts.uri = below.parse().map_err(|_| not_found())?;
    let service = ServeDir::new(root).append_index_html_on_directories(false);
    finished(service.oneshot(Request::from_parts(parts, Body::empty())).await.map(|response| response.map(Body::new)))
}

fn finished(served: Result<Response, std::convert::Infallible>) -> Answer {
    let mut response = served.unwrap_or_else(|never| match never {});
    if response.status() == StatusCode::NOT_FOUND {
        return Err(not_found());
    }
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}
