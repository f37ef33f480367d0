//! The configured single-page application and static files.

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use brine_runtime::executors::Executor;
use tower::ServiceExt as _;
use tower_http::services::{ServeDir, ServeFile};

use crate::answer::Answer;
use crate::context::RequestContext;
use crate::error::ApiError;

/// The content security policy of third-party applications, which may contain inline scripts and styles.
const POLICY: &str = "frame-ancestors 'self'; object-src 'none'; base-uri 'self'";

/// The size of the parts in which files are read, in bytes: each of many clients has a buffer of it.
const FILE_CHUNK: usize = 8 << 10;

fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist")
}

/// Handles `GET /app`: returns the single-page application.
pub(crate) async fn application(context: RequestContext) -> Answer {
    let path = context.api.options.app.clone();
    file(context, path.as_deref()).await
}

/// Handles `GET /favicon.ico`.
pub(crate) async fn icon(context: RequestContext) -> Answer {
    let path = context.api.options.favicon.clone();
    file(context, path.as_deref()).await
}

async fn file(context: RequestContext, path: Option<&Path>) -> Answer {
    let path = path.ok_or_else(not_found)?;
    let request = Request::from_parts(context.parts, Body::empty());
    finished(
        ServeFile::new(path)
            .with_buf_chunk_size(FILE_CHUNK)
            .oneshot(request)
            .await
            .map(|response| response.map(Body::new)),
    )
}

/// Handles `GET /static/PATH`.
pub(crate) async fn static_file(context: RequestContext) -> Answer {
    let root = context.api.options.static_dir.clone().ok_or_else(not_found)?;
    let mut parts = context.parts;
    let below = parts.uri.path().strip_prefix(&context.api.options.static_path).unwrap_or_default();
    let below = below.to_owned();
    // The path is still percent-encoded: the service decodes it, and rejects paths outside of the directory.
    parts.uri = below.parse().map_err(|_| not_found())?;
    if !is_within(root.clone(), below, context.api.limits.files()).await {
        return Err(not_found());
    }
    let service = ServeDir::new(root).append_index_html_on_directories(false).with_buf_chunk_size(FILE_CHUNK);
    finished(service.oneshot(Request::from_parts(parts, Body::empty())).await.map(|response| response.map(Body::new)))
}

/// Whether a percent-encoded path is that of a file in a directory, and not of a link out of it.
async fn is_within(root: PathBuf, path: String, files: &Executor) -> bool {
    let checked = files.run(move |_| {
        let encoded = path.trim_start_matches('/');
        let decoded = percent_decoded(encoded)?;
        let root = root.canonicalize().ok()?;
        let file = root.join(decoded.trim_start_matches('/')).canonicalize().ok()?;
        Some(file.starts_with(&root))
    });
    checked.await.ok().flatten().unwrap_or(false)
}

/// Decodes a percent-encoded path.
fn percent_decoded(path: &str) -> Option<String> {
    // In a query, `+` stands for a space.
    let query = format!("p={}", path.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(query.as_bytes()).next().map(|(_, value)| value.into_owned())
}

fn finished(served: Result<Response, std::convert::Infallible>) -> Answer {
    let mut response = served.unwrap_or_else(|never| match never {});
    if response.status() == StatusCode::NOT_FOUND {
        return Err(not_found());
    }
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}
