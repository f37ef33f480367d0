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
use crate::auth::{Authenticated, Origins};
use crate::client::Client;
use crate::error::ApiError;
use crate::format::{Format, Payload};
use crate::limits::{self, LOGIN_BODY_TIMEOUT, MAX_LOGIN_BODY, Owner, Reservation};
use crate::lowstate::RawChunk;
use crate::metrics;

/// The size of a body in bytes from which the arguments in it are parsed on another thread.
const LARGE_LOWSTATE: usize = 4 << 10;

/// The context of a request.
pub(crate) struct RequestContext {
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
    /// The memory of the body and its value.
    reserved: Option<Reservation>,
}

impl RequestContext {
    pub fn new(api: Arc<Api>, client: Client, parts: Parts, body: Body, param: Option<String>) -> Self {
        RequestContext { api, client, parts, body: Mutex::new(body), param, authenticated: None, reserved: None }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Authenticates the request by its header or cookie.
    pub async fn authenticate(&mut self) -> Result<(), ApiError> {
        let is_upgrade = self.parts.headers.contains_key(header::UPGRADE);
        let (headers, method, peer) = (&self.parts.headers, &self.parts.method, self.client.address);
        let origins = Origins::of(&self.api.options.cors_origin, self.api.is_tls, peer, headers);
        let sender = self.api.auth.authenticate(headers, method, is_upgrade, origins, peer).await?;
        self.authenticated = Some(sender);
        self.client.slot.authenticate();
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

    /// Returns the owner of what the request occupies.
    pub fn owner(&self) -> Owner {
        match &self.authenticated {
            Some(authenticated) => Owner::User(authenticated.user.identity.username().as_str().into()),
            None => Owner::of_address(self.client.address),
        }
    }

    /// Returns the maximum memory of the value of a body.
    fn value_limit(&self, body: usize) -> usize {
        limits::value_limit(body, self.authenticated.is_some())
    }

    /// Receives the body, of at most `most` bytes, within the limits on its size, time and memory.
    async fn receive(&mut self, most: usize, timeout: Duration) -> Result<Bytes, ApiError> {
        let too_large = |limit: &str| {
            metrics::BODIES_REFUSED.with(&["size"]).add(1);
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {most} bytes{limit}"))
        };
        let named = if most == self.api.options.max_request_body_size { " (max_request_body_size)" } else { "" };
        let announced = self.parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > most as u64) {
            return Err(too_large(named));
        }
        let limits = &self.api.limits;
        let memory = if self.authenticated.is_some() { &limits.authenticated } else { &limits.unauthenticated };
        let reserved = memory.begin(self.owner());
        let mut chunks = std::mem::take(self.body.get_mut()).into_data_stream();
        let receiving = async {
            let mut body = BytesMut::new();
            while let Some(chunk) = chunks.next().await {
                let chunk =
                    chunk.map_err(|error| ApiError::bad_request(format!("Reading the body failed: {error}")))?;
                if body.len() + chunk.len() > most {
                    return Err(too_large(named));
                }
                let needed = body.len() + chunk.len();
                if needed > body.capacity() {
                    let capacity = needed.max(2 * body.capacity());
                    reserved.resize(capacity).await;
                    body.reserve(capacity - body.len());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body.freeze())
        };
        let refused = |reason: &'static str, status, message: &str| {
            metrics::BODIES_REFUSED.with(&[reason]).add(1);
            Err(ApiError::new(status, message))
        };
        let received = tokio::select! {
            received = receiving => received?,
            () = reserved.ended() => {
                let message = "Receiving the body took too long while others waited for memory";
                return refused("memory", StatusCode::SERVICE_UNAVAILABLE, message).map_err(ApiError::retried);
            }
            () = tokio::time::sleep(timeout) => {
                return refused("time", StatusCode::REQUEST_TIMEOUT, "Receiving the body timed out");
            }
        };
        reserved.arrived();
        self.reserved = Some(reserved);
        Ok(received)
    }

    fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.api.options.body_timeout.max(1))
    }

    /// Receives and parses the body.
    pub async fn payload(&mut self) -> Result<Payload, ApiError> {
        let body = self.raw_body().await?;
        self.parse(body).await
    }

    /// Receives and parses a body that contains little more than a password.
    pub async fn login_payload(&mut self) -> Result<Payload, ApiError> {
        let most = MAX_LOGIN_BODY.min(self.api.options.max_request_body_size);
        let body = self.receive(most, self.body_timeout().min(LOGIN_BODY_TIMEOUT)).await?;
        self.parse(body).await
    }

    /// Receives the body without parsing it.
    pub async fn raw_body(&mut self) -> Result<Bytes, ApiError> {
        self.receive(self.api.options.max_request_body_size, self.body_timeout()).await
    }

    /// Parses a body, and reserves the memory of its value until the request ends.
    pub async fn parse(&mut self, body: Bytes) -> Result<Payload, ApiError> {
        let (size, limit) = (body.len(), self.value_limit(body.len()));
        let parsed = Payload::parse(&self.parts.headers, body, &self.api.limits.parsers, self.owner(), limit).await?;
        self.reserve(size + parsed.memory).await?;
        Ok(parsed)
    }

    /// Receives and parses a lowstate and its arguments.
    pub async fn lowstate(&mut self) -> Result<Vec<RawChunk>, ApiError> {
        let payload = self.payload().await?;
        let (size, before, mut left) = (payload.raw.len(), payload.memory, payload.left);
        let chunks = payload.lowstate()?;
        let limit = left;
        let read = move || RawChunk::parse(chunks, &mut left).map(|chunks| (chunks, left));
        let (chunks, left) =
            if size < LARGE_LOWSTATE { read()? } else { self.api.limits.parsers.run(self.owner(), read).await?? };
        // The bytes of the body are released.
        self.reserve(before + limit - left).await?;
        Ok(chunks)
    }

    /// Runs a lowstate.
    pub async fn run(&self, lowstate: Vec<RawChunk>, token: Option<&str>) -> Result<Vec<Value>, ApiError> {
        self.api.run((self.client.address, &self.client.slot), lowstate, token).await
    }

    /// Changes the memory that is reserved until the request ends, and waits for it.
    pub async fn reserve(&self, bytes: usize) -> Result<(), ApiError> {
        let Some(reserved) = &self.reserved else { return Ok(()) };
        let resized = tokio::time::timeout(self.body_timeout(), reserved.resize(bytes)).await;
        resized.map_err(|_| {
            metrics::BODIES_REFUSED.with(&["memory"]).add(1);
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Too many requests are being handled").retried()
        })
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
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
