//! Webhooks: publishes requests as events.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use brine_event::{Event, EventError};
use brine_value::{Map, Value, map};
use brine_wire::HookEvent;

use crate::answer::Answer;
use crate::auth;
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::metrics;
use crate::webhook::Signature;
use crate::webhook::replays::Claim;

/// The number of copies of a body until its event is sent.
const COPIES: usize = 5;
/// The prefix of the tags.
const TAG: &str = HookEvent::PREFIX;
/// Headers that are left out of the event, because many users can read events.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-auth-token",
    "x-brine-signature",
    "x-signature",
    "x-signature-256",
    "x-hub-signature",
    "x-hub-signature-256",
];

/// Handles `POST /hook/...`. The response reports success when the journal has stored the event.
pub(crate) async fn publish(mut context: RequestContext) -> Answer {
    let path = context.param().trim_matches('/').to_owned();
    if !context.api.options.webhook_disable_auth && !context.api.secrets.has(&path) {
        context.authenticate().await?;
    }
    let body = context.raw_body().await?;
    if body.len() > context.api.max_event_size {
        return Err(too_large());
    }
    let api = Arc::clone(&context.api);
    let mark = match api.secrets.check(&path, context.headers(), &body, auth::now() as u64) {
        Signature::NotNeeded => None,
        Signature::Valid(mark) => {
            context.client.slot.authenticate();
            mark
        }
        Signature::Invalid(reason) => {
            metrics::UNAUTHENTICATED.add(1);
            tracing::warn!(peer = %context.client.address, path, reason, "a webhook is refused");
            return Err(ApiError::unauthorized("The signature is missing, wrong or too old"));
        }
    };
    let claimed = match mark.map(|mark| api.replays.claim(mark)) {
        None => None,
        Some(Claim::New(claimed)) => Some(claimed),
        Some(Claim::Published) => {
            metrics::WEBHOOKS_REPEATED.add(1);
            tracing::info!(peer = %context.client.address, path, "a webhook is ignored: it has been published before");
            return context.reply(&map! {"success" => true, "duplicate" => true}.into());
        }
        Some(Claim::Pending) => return Err(unavailable("The same webhook is being published")),
        Some(Claim::TooOld) => return Err(ApiError::unauthorized("The signature is missing, wrong or too old")),
    };
    let size = body.len();
    let payload = context.parse(body).await?;
    // The event contains the body as text and as data, and exists several times until it is sent.
    context.reserve(COPIES * size + payload.memory).await?;
    let tag = if path.is_empty() { TAG.to_owned() } else { format!("{TAG}/{path}") };
    let mut headers = headers(context.headers());
    headers.insert("Remote-Addr".into(), context.client.address.to_string().into());
    let post = payload.data.filter(Value::is_truthy).unwrap_or_else(Value::map);
    let body =
        map! {"body" => String::from_utf8_lossy(&payload.raw).into_owned(), "post" => post, "headers" => headers};
    let event = Event::from_map(&tag, &body).map_err(|error| match error {
        EventError::TooDeep(error) => ApiError::bad_request(format!("The event is refused: {error}")),
        error => ApiError::bad_request(format!("The path is not valid in a tag: {error}")),
    })?;
    if event.frame().len() > api.max_event_size {
        return Err(too_large());
    }
    if let Err(error) = api.master.publish_hook(&tag, &body).await {
        tracing::warn!(peer = %context.client.address, path, %error, "a webhook is not published: its sender may repeat it");
        return Err(unavailable("The master cannot store the event now"));
    }
    if let Some(claimed) = claimed {
        claimed.published();
    }
    context.reply(&map! {"success" => true}.into())
}

fn too_large() -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "The event would be larger than max_event_size")
}

fn unavailable(message: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).retried()
}

/// Returns the headers of a request, with names spelt as in Salt's events: `X-My-Header`.
fn headers(headers: &HeaderMap) -> Map {
    let visible = headers.iter().filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
    visible
        .map(|(name, value)| {
            let words = name.as_str().split('-').map(|word| {
                let mut letters = word.chars();
                letters
                    .next()
                    .map(|first| format!("{}{}", first.to_ascii_uppercase(), letters.as_str()))
                    .unwrap_or_default()
            });
            let name = words.collect::<Vec<_>>().join("-");
            (name.into(), String::from_utf8_lossy(value.as_bytes()).into_owned().into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_salts_names_and_no_secrets() {
        let pairs = [("x-my-secret-key", "F0f"), ("host", "h"), ("cookie", "session_id=1"), ("x-auth-token", "1")];
        let request_headers: HeaderMap =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(headers(&request_headers), map! {"X-My-Secret-Key" => "F0f", "Host" => "h"});
    }
}
