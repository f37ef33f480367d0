//! One request, and its event: the headers, without credentials, and the body.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_value::{Map, Value, map};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use crate::PublishError;
use crate::metrics;
use crate::publisher::Publisher;

/// The prefix of the tags.
const TAG: &str = "salt/engines/hook/";
/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 1024;
/// The maximum size of a body, in bytes, if `max_event_size` is larger; and that of the bodies of all requests.
const MAX_BODY: usize = 16 << 20;
const MAX_BODIES: usize = 64 << 20;
/// The unit in which memory is reserved, in bytes.
const UNIT: usize = 1024;
/// The timeouts of a body, and of publishing its event.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that are left out of the event, because many users can read events. Signatures stay: reactions verify them.
const SECRET_HEADERS: &[&str] = &["authorization", "cookie", "proxy-authorization", "x-auth-token"];

/// The handler of requests.
pub(super) struct Hook {
    publisher: Arc<dyn Publisher>,
    max_body: usize,
    /// The memory for bodies that is left, in units.
    memory: Semaphore,
}

impl Hook {
    pub fn new(publisher: Arc<dyn Publisher>) -> Self {
        let max_body = publisher.max_event_size().min(MAX_BODY);
        Hook { publisher, max_body, memory: Semaphore::new(MAX_BODIES / UNIT) }
    }

    /// Publishes a request, and returns its response.
    pub async fn answer(&self, request: Request<Incoming>, peer: IpAddr) -> Response<String> {
        let status = match self.publish(request).await {
            Ok(()) => StatusCode::OK,
            Err((status, error)) => {
                metrics::WEBHOOKS_REFUSED.add(1);
                tracing::warn!(%peer, status = status.as_u16(), "a request of the engine webhook is refused: {error}");
                status
            }
        };
        let mut response = Response::new(String::new());
        *response.status_mut() = status;
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }

    async fn publish(&self, request: Request<Incoming>) -> Result<(), (StatusCode, String)> {
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "it is not a POST".to_owned()));
        }
        let (head, body) = request.into_parts();
        let path = path(head.uri.path()).ok_or_else(|| (StatusCode::BAD_REQUEST, "its path is invalid".to_owned()))?;
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let size = if body.size_hint().exact().is_some() { announced } else { self.max_body };
        if size > self.max_body {
            return Err(too_large());
        }
        let busy = || (StatusCode::SERVICE_UNAVAILABLE, "there are too many large requests".to_owned());
        let units = u32::try_from(size.div_ceil(UNIT)).map_err(|_| too_large())?;
        let _memory = self.memory.try_acquire_many(units).map_err(|_| busy())?;
        let read = tokio::time::timeout(BODY_TIMEOUT, collect(body, self.max_body)).await;
        let body = read.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "its body took too long".to_owned()))??;
        let body = String::from_utf8(body).map_or_else(|error| Value::from(error.into_bytes()), Value::from);
        let event = map! {"headers" => headers(&head.headers), "body" => body};
        let published = self.publisher.publish(format!("{TAG}{path}"), event);
        match tokio::time::timeout(PUBLISH_TIMEOUT, published).await {
            Ok(Ok(())) => Ok(()),
            // A repetition would be in vain.
            Ok(Err(PublishError::Refused(why))) => Err((StatusCode::BAD_REQUEST, why)),
            Ok(Err(PublishError::Unavailable(why))) => Err((StatusCode::SERVICE_UNAVAILABLE, why)),
            Err(_) => Err((StatusCode::SERVICE_UNAVAILABLE, "publishing its event took too long".to_owned())),
        }
    }
}

fn too_large() -> (StatusCode, String) {
    (StatusCode::PAYLOAD_TOO_LARGE, "its body is larger than max_event_size".to_owned())
}

/// Reads a body up to a size.
async fn collect(mut body: Incoming, max: usize) -> Result<Vec<u8>, (StatusCode, String)> {
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        let data: Bytes = frame.into_data().unwrap_or_default();
        if all.len() + data.len() > max {
            return Err(too_large());
        }
        all.extend_from_slice(&data);
    }
    Ok(all)
}

/// Returns the path of a request, decoded, for its tag; `None` for control characters or a long path.
fn path(encoded: &str) -> Option<String> {
    let mut bytes = encoded.strip_prefix('/').unwrap_or(encoded).bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok().filter(|path| path.len() <= MAX_PATH && !path.contains(char::is_control))
}

/// Returns the headers of a request, with names spelt as in Salt's events: `X-My-Header`. Repeated ones are joined.
fn headers(headers: &HeaderMap) -> Map {
    let names = headers.keys().filter(|name| !SECRET_HEADERS.contains(&name.as_str()));
    let spelt = |name: &str| {
        let words = name.split('-').map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        });
        words.collect::<Vec<_>>().join("-")
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    names
        .map(|name| {
            let values: Vec<String> = headers.get_all(name).iter().map(text).collect();
            (spelt(name.as_str()).into(), values.join(",").into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_and_control_characters_are_refused() {
        for (encoded, decoded) in [
            ("/", Some("")),
            ("/a/b", Some("a/b")),
            ("/a%2Fb%20c+d%C3%A9", Some("a/b c+d\u{e9}")),
            ("/a%0A%0Ax", None),
            ("/a%00", None),
            ("/%ff", None),
            ("/%4", None),
            ("/%zz", None),
        ] {
            assert_eq!(path(encoded).as_deref(), decoded, "{encoded}");
        }
        assert_eq!(path(&format!("/{}", "x".repeat(MAX_PATH + 1))), None);
    }

    #[test]
    fn headers_have_salts_names_and_no_credentials() {
        let fields =
            [("x-hub-signature", "s"), ("accept", "a"), ("accept", "b"), ("cookie", "c"), ("authorization", "d")];
        let mut headers_given = HeaderMap::new();
        for (name, value) in fields {
            headers_given.append(name, value.parse().unwrap());
        }
        assert_eq!(headers(&headers_given), map! {"X-Hub-Signature" => "s", "Accept" => "a,b"});
    }
}
