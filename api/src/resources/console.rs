//! The console: `/console` and the files below it.

use axum::http::StatusCode;

use crate::answer::Answer;
use crate::console;
use crate::context::Context;
use crate::error::ApiError;

/// Handles `GET /console` and `GET /console/FILE`.
pub(crate) async fn asset(context: Context) -> Answer {
    let response = console::response(context.param(), context.headers());
    response.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "The resource does not exist"))
}
