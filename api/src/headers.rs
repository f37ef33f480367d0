//! Headers of all responses: cross-origin access, and restrictions for browsers.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;

use crate::error::ApiError;

/// The content security policy of data responses: nothing is loaded or framed.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// The request headers and methods that pages of other origins may use, as in Salt.
const ALLOWED_HEADERS: &str = "Content-Type, X-Auth-Token, X-Requested-With";
const ALLOWED_METHODS: &str = "GET, POST";

fn set(headers: &mut HeaderMap, name: &'static str, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

/// Adds the headers of all responses. Pages of any origin may read responses to requests with a token in the header;
/// only pages of `allowed` origins may use the cookie. `hsts` is the header `Strict-Transport-Security`, by TLS.
pub(crate) fn complete(
    response: &mut Response,
    origin: Option<&HeaderValue>,
    allowed: &[String],
    hsts: Option<&HeaderValue>,
) {
    let headers = response.headers_mut();
    let is_allowed = |origin: &HeaderValue| allowed.iter().any(|one| one == "*" || one.as_bytes() == origin.as_bytes());
    match origin.filter(|origin| is_allowed(origin)) {
        Some(origin) => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            set(headers, "access-control-allow-credentials", "true");
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        None => set(headers, "access-control-allow-origin", "*"),
    }
    set(headers, "access-control-expose-headers", "GET, POST, X-Auth-Token");
    headers.append(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if let Some(hsts) = hsts {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
    }
    set(headers, "x-content-type-options", "nosniff");
    set(headers, "referrer-policy", "no-referrer");
    set(headers, "content-security-policy", DATA_POLICY);
}

/// Returns the header `Strict-Transport-Security`, unless TLS or the header is disabled.
pub(crate) fn hsts(is_tls: bool, max_age: u64) -> Option<HeaderValue> {
    let value = (is_tls && max_age > 0).then(|| HeaderValue::from_str(&format!("max-age={max_age}")));
    value.and_then(Result::ok)
}

/// Returns the error of a request that names no host, or several ones: a proxy could choose another one than this server.
pub(crate) fn wrong_host(version: Version, headers: &HeaderMap) -> Option<ApiError> {
    match headers.get_all(header::HOST).iter().count() {
        1 => None,
        0 if version < Version::HTTP_11 => None,
        0 => Some(ApiError::bad_request("The header Host is missing")),
        _ => Some(ApiError::bad_request("The header Host is repeated")),
    }
}

/// Returns the response to a browser's CORS preflight request, which names a method, and to any other request `OPTIONS`
/// of another origin; `None` for other requests.
pub(crate) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD);
    if *method != Method::OPTIONS || (requested.is_none() && !headers.contains_key(header::ORIGIN)) {
        return None;
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::OK;
    if ["GET", "POST", "HEAD"]
        .iter()
        .any(|allowed| requested.is_some_and(|requested| requested.as_bytes() == allowed.as_bytes()))
    {
        set(response.headers_mut(), "access-control-allow-methods", ALLOWED_METHODS);
        set(response.headers_mut(), "access-control-allow-headers", ALLOWED_HEADERS);
        set(response.headers_mut(), "access-control-max-age", "1400");
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_origins_may_use_the_cookie() {
        let allowed = ["https://gui.example".to_owned()];
        for (origin, allowed, expected, credentials) in [
            (None, &allowed[..], "*", false),
            (Some("https://gui.example"), &allowed, "https://gui.example", true),
            (Some("https://evil.example"), &allowed, "*", false),
            (Some("https://gui.example"), &[], "*", false),
            (Some("https://any.example"), &["*".to_owned()], "https://any.example", true),
        ] {
            let mut response = Response::default();
            let origin = origin.map(HeaderValue::from_static);
            complete(&mut response, origin.as_ref(), allowed, None);
            let headers = response.headers();
            assert!(!headers.contains_key("strict-transport-security"));
            assert_eq!(headers["access-control-allow-origin"], expected);
            assert_eq!(headers.contains_key("access-control-allow-credentials"), credentials);
            assert!(headers.contains_key("content-security-policy"));
        }
    }

    #[test]
    fn preflight_requests_are_answered() {
        let headers: HeaderMap =
            [(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"))].into_iter().collect();
        let response = preflight(&Method::OPTIONS, &headers).unwrap();
        assert_eq!(
            (response.status(), &response.headers()["access-control-max-age"]),
            (StatusCode::OK, &"1400".parse().unwrap())
        );
        assert!(preflight(&Method::GET, &headers).is_none());
        assert!(preflight(&Method::OPTIONS, &HeaderMap::new()).is_none());
    }

    #[test]
    fn responses_by_tls_ask_for_tls() {
        let mut response = Response::default();
        complete(&mut response, None, &[], hsts(true, 300).as_ref());
        assert_eq!(response.headers()["strict-transport-security"], "max-age=300");
        assert!(hsts(false, 300).is_none() && hsts(true, 0).is_none());
    }

    #[test]
    fn requests_name_one_host() {
        let hosts = |count: usize| -> HeaderMap {
            let mut headers = HeaderMap::new();
            for _ in 0..count {
                headers.append(header::HOST, HeaderValue::from_static("a"));
            }
            headers
        };
        for (version, count, is_right) in [
            (Version::HTTP_11, 1, true),
            (Version::HTTP_10, 0, true),
            (Version::HTTP_11, 0, false),
            (Version::HTTP_11, 2, false),
            (Version::HTTP_10, 2, false),
        ] {
            assert_eq!(wrong_host(version, &hosts(count)).is_none(), is_right, "{version:?} {count}");
        }
    }
}
