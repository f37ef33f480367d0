//! The console: static files embedded in the program, and their response headers.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use brine_digest::{Digest, hex};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The content security policy of the console: scripts, styles and requests only from its own server, no frames, no
/// inline code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

struct Asset {
    name: &'static str,
    content_type: &'static str,
    body: &'static [u8],
}

macro_rules! assets {
    ($($name:literal $content_type:expr;)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            body: include_bytes!(concat!("../../console/", $name)),
        }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "index.html" HTML;
    "console.css" STYLE;
    "icon.svg" "image/svg+xml";
    "api.js" SCRIPT;
    "app.js" SCRIPT;
    "bus.js" SCRIPT;
    "causality.js" SCRIPT;
    "chart.js" SCRIPT;
    "complete.js" SCRIPT;
    "dom.js" SCRIPT;
    "graph.js" SCRIPT;
    "histogram.js" SCRIPT;
    "jobs.js" SCRIPT;
    "keys.js" SCRIPT;
    "list.js" SCRIPT;
    "minions.js" SCRIPT;
    "overview.js" SCRIPT;
    "plans.js" SCRIPT;
    "reactor.js" SCRIPT;
    "returns.js" SCRIPT;
    "run.js" SCRIPT;
    "time.js" SCRIPT;
    "value.js" SCRIPT;
};

/// The files as browsers get them, in the order of [`ASSETS`].
static SERVED: LazyLock<Vec<Bytes>> = LazyLock::new(|| ASSETS.iter().map(served).collect());

/// Returns a file without what only its readers need: indentation, and comments that fill lines.
fn served(asset: &Asset) -> Bytes {
    let Ok(text) = std::str::from_utf8(asset.body) else { return Bytes::from_static(asset.body) };
    if ![SCRIPT, STYLE].contains(&asset.content_type) {
        return Bytes::from_static(asset.body);
    }
    let mut short = String::with_capacity(text.len());
    let mut is_comment = false;
    for line in text.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/*");
        if is_comment {
            is_comment = !line.ends_with("*/");
        } else if !line.starts_with("//") && !line.is_empty() {
            short.push_str(line);
            short.push('\n');
        }
    }
    short.into()
}

/// The entity tag of all files: they belong together, so that a change makes browsers reload all of them.
static TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut all = Vec::new();
    for asset in ASSETS {
        all.extend_from_slice(asset.name.as_bytes());
        all.extend_from_slice(asset.body);
    }
    let digest = hex(Digest::Sha256.of(&all));
    // A weak tag, since compressed and plain bodies share it.
    HeaderValue::try_from(format!("W/\"{}\"", &digest[..16])).unwrap_or(HeaderValue::from_static("W/\"console\""))
});

/// The gzip-compressed files, in the order of [`ASSETS`].
static COMPRESSED: LazyLock<Vec<Bytes>> =
    LazyLock::new(|| SERVED.iter().map(|body| gzip(body).unwrap_or_default().into()).collect());

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body)?;
    encoder.finish()
}

/// Whether a client accepts gzip-compressed bodies.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let lines = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && weight.trim().parse().is_ok_and(|weight: f32| weight > 0.0)
    })
}

/// Returns the response with a file of the console, `index.html` for an empty name; `None` if the file does not exist.
pub(crate) fn response(name: &str, request: &HeaderMap) -> Option<Response> {
    let name = if name.is_empty() { "index.html" } else { name };
    let (index, asset) = ASSETS.iter().enumerate().find(|(_, asset)| asset.name == name)?;
    let tags = request.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    let own = TAG.to_str().unwrap_or_default().trim_start_matches("W/");
    let is_known = tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == own);
    let compressed = COMPRESSED.get(index).filter(|body| accepts_gzip(request) && !body.is_empty());
    let mut response = Response::new(Body::empty());
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if let Some(body) = compressed {
        *response.body_mut() = Body::from(body.clone());
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    } else {
        *response.body_mut() = Body::from(SERVED.get(index)?.clone());
    }
    let headers = response.headers_mut();
    headers.insert(header::ETAG, TAG.clone());
    for (name, value) in [
        (header::CONTENT_TYPE, asset.content_type),
        // Browsers revalidate their copy, so that an update of the program takes effect with the next load.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

#[cfg(test)]
mod tests;
