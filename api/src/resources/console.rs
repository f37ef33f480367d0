//! The console: `/console`, the files below it, and what its log-in needs to know.

use axum::http::{StatusCode, header};
use brine_value::{Value, map};

use crate::answer::Answer;
use crate::console;
use crate::context::RequestContext;
use crate::error::ApiError;

/// Handles `GET /console` and `GET /console/FILE`.
pub(crate) async fn asset(context: RequestContext) -> Answer {
    let response = console::response(context.param(), context.headers());
    response.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist"))
}

/// Handles `GET /console/systems`: returns the names of the systems by which users log in.
pub(crate) async fn systems(context: RequestContext) -> Answer {
    let names: Value = context.api.systems.iter().map(String::as_str).collect();
    let mut response = context.reply(&map! {"return" => names}.into())?;
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}
