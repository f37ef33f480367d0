//! `/events`: events of the bus as server-sent events.

use std::sync::Arc;

use axum::http::header;

use crate::answer::{Answer, typed};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::handover::Handover;
use crate::stream::{EventQuery, Stream};

/// Handles `GET /events`.
pub(crate) async fn follow(context: RequestContext) -> Answer {
    let query = EventQuery::read(&context)?;
    let stream = Stream::new(&context.api, context.sender()?, query);
    let body = match context.parts.extensions.get::<Arc<Handover>>() {
        Some(handover) => handover.body(stream, context.parts.version),
        None => return Err(ApiError::internal()),
    };
    let mut response = typed("text/event-stream;charset=utf-8", body);
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
    // Disables buffering in proxies such as nginx.
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    Ok(response)
}
