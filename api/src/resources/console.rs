//! The console: files that are part of the binary.

use axum::http::{HeaderValue, StatusCode, header};

use crate::context::Context;
use crate::error::ApiError;
use crate::routes::{Answer, typed};

/// A file of the console.
struct Asset {
    /// The path below `/console`.
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

/// All files, in `api/console`. The page is the one with the empty path.
const ASSETS: &[Asset] =
    &[Asset { path: "", content_type: "text/html; charset=utf-8", bytes: include_bytes!("../../console/index.html") }];

/// The policy of the console: it loads its own files alone and asks no other server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// `GET /console` and `GET /console/PATH`
pub(crate) async fn asset(context: Context) -> Answer {
    let asset = ASSETS.iter().find(|asset| asset.path == context.param());
    let asset = asset.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist"))?;
    let mut response = typed(asset.content_type, asset.bytes);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
