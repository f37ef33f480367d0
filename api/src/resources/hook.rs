//! Webhooks: publishes requests as events.

use axum::http::{HeaderMap, StatusCode};
use brine_event::Event;
use brine_value::{Map, Value, map};
use brine_wire::HookEvent;

use crate::context::Context;
use crate::error::ApiError;
use crate::format::Payload;
use crate::metrics;
use crate::routes::Answer;
use crate::webhook::Signature;

/// The prefix of the tags.
const TAG: &str = HookEvent::PREFIX;
/// Headers that are left out of the event, because many users can read events.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-auth-token",
    "x-signature",
    "x-signature-256",
    "x-hub-signature",
    "x-hub-signature-256",
];

/// Handles `POST /hook/...`.
pub(crate) async fn publish(mut context: Context) -> Answer {
    let path = context.param().trim_matches('/').to_owned();
    if !context.api.options.webhook_disable_auth && !context.api.secrets.has(&path) {
        context.authenticate().await?;
    }
    let body = context.raw_body().await?;
    if context.api.secrets.check(&path, context.headers(), &body) == Signature::Invalid {
        metrics::UNAUTHENTICATED.add(1);
        tracing::warn!(peer = %context.client.address, path, "a webhook is refused: its signature is missing or wrong");
        return Err(ApiError::unauthorized("The signature of the body is missing or wrong"));
    }
    let payload = Payload::parse(context.headers(), body).await?;
    let tag = if path.is_empty() { TAG.to_owned() } else { format!("{TAG}/{path}") };
    let mut headers = headers(context.headers());
    headers.insert("Remote-Addr".into(), context.client.address.to_string().into());
    let post = payload.data.filter(Value::is_truthy).unwrap_or_else(Value::map);
    let body =
        map! {"body" => String::from_utf8_lossy(&payload.raw).into_owned(), "post" => post, "headers" => headers};
    let event = Event::from_map(&tag, &body)
        .map_err(|error| ApiError::bad_request(format!("The path is not valid in a tag: {error}")))?;
    if event.frame().len() > context.api.max_event_size {
        let message = "The event would be larger than max_event_size";
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    context.api.master.publish_hook(&tag, &body).await?;
    context.reply(&map! {"success" => true}.into())
}

/// Returns the headers of a request, with names spelt as in Salt's events: `X-My-Header`.
fn headers(headers: &HeaderMap) -> Map {
    let shown = headers.iter().filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
    shown
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
        let given: HeaderMap =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(headers(&given), map! {"X-My-Secret-Key" => "F0f", "Host" => "h"});
    }
}
