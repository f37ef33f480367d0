//! `/events`: events of the bus as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use brine_auth::{EventPermissions, may_see};
use brine_text::glob::Glob;
use brine_value::Value;
use bytes::Bytes;
use futures::stream;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::Api;
use crate::auth::Authenticated;
use crate::context::Context;
use crate::error::ApiError;
use crate::hub::{Item, Start, Subscription};
use crate::metrics;
use crate::routes::{Answer, typed};

/// The interval of keep-alives on a silent stream, after which the token is checked again.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The maximum number of patterns of tags.
const PATTERNS: usize = 64;

/// The query of a subscriber.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub start: Start,
    patterns: Vec<Glob>,
    /// Whether state is requested instead of events (`format_events`).
    pub is_formatted: bool,
}

impl Wanted {
    /// Parses the query and `Last-Event-ID`. As in Salt, a token in the query is refused: queries are logged.
    pub fn read(context: &Context) -> Result<Self, ApiError> {
        let last = context.headers().get("last-event-id").and_then(|value| value.to_str().ok());
        let after = last.and_then(|last| last.trim().parse::<u64>().ok());
        let start = after.map_or(Start::Now, |last| Start::Since(Value::from(last.saturating_add(1))));
        let mut wanted = Wanted { start, patterns: Vec::new(), is_formatted: false };
        for (name, value) in context.query() {
            match name.as_str() {
                // A browser that reconnects repeats the query: the header is newer.
                "since" if after.is_some() => {}
                "since" => wanted.start = Start::Since(point(&value)?),
                "tag" => {
                    for pattern in value.split(',').filter(|pattern| !pattern.is_empty()) {
                        let wrong =
                            |error: &dyn std::fmt::Display| ApiError::bad_request(format!("'tag' is invalid: {error}"));
                        wanted.patterns.push(Glob::new(pattern).map_err(|error| wrong(&error))?);
                        if wanted.patterns.len() > PATTERNS {
                            return Err(wrong(&format!("expected at most {PATTERNS} patterns")));
                        }
                    }
                }
                "format_events" => wanted.is_formatted = true,
                "token" | "salt_token" => {
                    return Err(ApiError::bad_request(
                        "A token in the query is refused, because queries are logged: send it as X-Auth-Token or as the cookie of the session",
                    ));
                }
                other => {
                    let known = "since, tag";
                    return Err(ApiError::bad_request(format!(
                        "'{other}' is not a parameter: expected one of {known}"
                    )));
                }
            }
        }
        Ok(wanted)
    }

    fn takes(&self, tag: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.is_match(tag))
    }
}

/// Parses a point in the past: a sequence number, a time, or a time span such as `10m`.
fn point(text: &str) -> Result<Value, ApiError> {
    let wrong = || {
        ApiError::bad_request(format!(
            "'since' is invalid: expected a sequence number, a time such as 2026-11-21T10:00:00Z or a span such as 10m, got '{text}'"
        ))
    };
    if let Ok(seq) = text.parse::<u64>() {
        return Ok(Value::from(seq));
    }
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let span = units.iter().find_map(|(unit, seconds)| {
        let number: i64 = text.strip_suffix(*unit)?.parse().ok().filter(|number| *number >= 0)?;
        Some(jiff::SignedDuration::from_secs(number.saturating_mul(*seconds)))
    });
    if let Some(span) = span {
        let time = jiff::Timestamp::now().checked_sub(span).map_err(|_| wrong())?;
        return Ok(time.to_string().into());
    }
    let is_time = text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok();
    if is_time { Ok(text.into()) } else { Err(wrong()) }
}

/// Counts an open stream.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::SUBSCRIBERS.add(1);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::SUBSCRIBERS.sub(1);
    }
}

/// The next item of a stream.
pub(crate) enum Next {
    Event(Arc<Item>),
    /// No event for a while.
    Silence,
    /// The user has logged out, or the token is no longer valid.
    End,
}

/// The events of one subscriber: the requested and permitted ones, while its token is valid.
pub(crate) struct Stream {
    api: Arc<Api>,
    subscription: Subscription,
    wanted: Wanted,
    permissions: EventPermissions,
    token: String,
    ended: CancellationToken,
    expires: Instant,
    checks: Interval,
    _counted: Counted,
}

impl Stream {
    pub fn new(api: &Arc<Api>, sender: &Authenticated, wanted: Wanted) -> Self {
        let mut checks = tokio::time::interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Stream {
            api: Arc::clone(api),
            subscription: api.hub.subscribe(wanted.start.clone()),
            wanted,
            permissions: api.auth.events_of(&sender.user),
            token: sender.token.clone(),
            ended: sender.ended.clone(),
            expires: Instant::now() + sender.user.remaining(),
            checks,
            _counted: Counted::new(),
        }
    }

    /// Returns the next item. Cancel safe.
    pub async fn next(&mut self) -> Next {
        loop {
            if self.ended.is_cancelled() || Instant::now() >= self.expires {
                return Self::end();
            }
            tokio::select! {
                biased;
                () = self.ended.cancelled() => return Self::end(),
                () = tokio::time::sleep_until(self.expires) => return Self::end(),
                _ = self.checks.tick() => {
                    // Tokens can be revoked elsewhere. If the master does not answer, the stream continues.
                    if matches!(self.api.auth.user(&self.token).await, Ok(None)) {
                        return Self::end();
                    }
                    return Next::Silence;
                }
                item = self.subscription.next() => {
                    if self.wanted.takes(item.event.tag()) && may_see(&self.permissions, item.event.tag()) {
                        return Next::Event(item);
                    }
                }
            }
        }
    }

    fn end() -> Next {
        metrics::SUBSCRIBERS_CLOSED.with(&["expired"]).add(1);
        Next::End
    }
}

/// `GET /events`
pub(crate) async fn follow(context: Context) -> Answer {
    let wanted = Wanted::read(&context)?;
    let stream = Stream::new(&context.api, context.sender()?, wanted);
    let chunks = stream::unfold((stream, true), |(mut stream, is_first)| async move {
        if is_first {
            return Some((Ok::<_, Infallible>(Bytes::from_static(b"retry: 400\n")), (stream, false)));
        }
        let chunk = match stream.next().await {
            Next::Event(item) => item.server_sent(),
            Next::Silence => Bytes::from_static(b":\n\n"),
            Next::End => return None,
        };
        Some((Ok(chunk), (stream, false)))
    });
    let mut response = typed("text/event-stream;charset=utf-8", Body::from_stream(chunks));
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
    // Proxies such as nginx would buffer events.
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_the_past_are_numbers_times_and_spans() {
        for same in ["5", "2026-11-21T10:00:00", "2026-11-21T10:00:00Z"] {
            assert_eq!(point(same).unwrap().to_string(), same);
        }
        let ago: jiff::Timestamp = point("10m").unwrap().as_str().unwrap().parse().unwrap();
        let seconds = jiff::Timestamp::now().as_second() - ago.as_second();
        assert!((599..=602).contains(&seconds), "{seconds}");
        for wrong in ["", "yesterday", "-5m", "99999999999999999999d"] {
            assert_eq!(point(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }
}
