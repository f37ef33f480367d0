//! The context of a request: all data that its handler needs.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use brine_value::Value;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use parking_lot::Mutex;

use crate::Api;
use crate::auth::Authenticated;
use crate::error::ApiError;
use crate::format::{Format, Payload};
use crate::listener::Client;

/// The context of a request.
pub(crate) struct Context {
    pub api: Arc<Api>,
    pub client: Client,
    pub parts: Parts,
    /// The mutex only makes the context `Sync`, as the futures of handlers require. It is never locked: `get_mut`
    /// suffices.
    body: Mutex<Body>,
    /// The variable part of the path.
    pub param: Option<String>,
    /// The authenticated sender, if the resource requires one.
    authenticated: Option<Authenticated>,
}

impl Context {
    pub fn new(api: Arc<Api>, client: Client, parts: Parts, body: Body, param: Option<String>) -> Self {
        Context { api, client, parts, body: Mutex::new(body), param, authenticated: None }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Authenticates the request by its header or cookie.
    pub async fn authenticate(&mut self) -> Result<(), ApiError> {
        let is_upgrade = self.parts.headers.contains_key(header::UPGRADE);
        let allowed = &self.api.options.cors_origin;
        let (headers, method) = (&self.parts.headers, &self.parts.method);
        let found = self.api.auth.authenticate(headers, method, is_upgrade, allowed, self.client.address).await?;
        self.authenticated = Some(found);
        Ok(())
    }

    /// Returns the sender of a request to a resource that requires one.
    pub fn sender(&self) -> Result<&Authenticated, ApiError> {
        self.authenticated.as_ref().ok_or_else(ApiError::no_session)
    }

    /// Returns the variable part of the path.
    pub fn param(&self) -> &str {
        self.param.as_deref().unwrap_or_default()
    }

    /// Returns the parameters of the query, in order.
    pub fn query(&self) -> Vec<(String, String)> {
        let query = self.parts.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    /// Receives the body, within the limits on its size and time.
    async fn receive(&mut self) -> Result<Bytes, ApiError> {
        let most = self.api.options.max_request_body_size;
        let too_large = || {
            let message = format!("The body is larger than {most} bytes (max_request_body_size)");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let announced = self.parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > most as u64) {
            return Err(too_large());
        }
        let mut chunks = std::mem::take(self.body.get_mut()).into_data_stream();
        let receiving = async {
            let mut body = BytesMut::new();
            while let Some(chunk) = chunks.next().await {
                let chunk =
                    chunk.map_err(|error| ApiError::bad_request(format!("Reading the body failed: {error}")))?;
                if body.len() + chunk.len() > most {
                    return Err(too_large());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body.freeze())
        };
        let timed_out = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "Receiving the body timed out");
        let timeout = Duration::from_secs(self.api.options.body_timeout.max(1));
        tokio::time::timeout(timeout, receiving).await.map_err(timed_out)?
    }

    /// Receives and parses the body.
    pub async fn payload(&mut self) -> Result<Payload, ApiError> {
        let body = self.receive().await?;
        Payload::parse(&self.parts.headers, body).await
    }

    /// Receives the body without parsing it.
    pub async fn raw_body(&mut self) -> Result<Bytes, ApiError> {
        self.receive().await
    }

    /// Returns a response with data in the format that the client accepts.
    pub fn reply(&self, value: &Value) -> Result<Response, ApiError> {
        let format = Format::accepted(self.headers())?;
        let mut response = written(format, value);
        if self.authenticated.is_some() {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private"));
        }
        Ok(response)
    }
}

/// Returns a response with `value` in this format.
pub(crate) fn written(format: Format, value: &Value) -> Response {
    let mut response = Response::new(Body::from(format.write(value)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

/// Returns the response of an error in the format that the client accepts; JSON if it accepts none.
pub(crate) fn failed(headers: &HeaderMap, error: &ApiError) -> Response {
    let format = Format::accepted(headers).unwrap_or(Format::Json);
    let body = brine_value::map! {"status" => error.status.as_u16(), "return" => &error.message};
    let mut response = written(format, &body.into());
    *response.status_mut() = error.status;
    response
}
