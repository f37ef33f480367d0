//! The event stream of one subscriber: which events it requests, and which of them its user may see.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{self, Poll};

use brine_text::glob::Glob;
use brine_value::Value;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Api;
use crate::auth::{Authenticated, User};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::hub::{Item, KEEP_ALIVE, Start, Subscription, TURN, WakePolicy};
use crate::limits::{Owner, Reservation};
use crate::metrics;
use crate::visibility::Visibility;

/// The maximum number of tag patterns in a query.
const MAX_PATTERNS: usize = 64;

/// The query of a subscriber.
#[derive(Debug)]
pub(crate) struct EventQuery {
    pub start: Start,
    patterns: Vec<Glob>,
    /// Whether state is requested instead of events (`format_events`).
    pub is_formatted: bool,
}

impl EventQuery {
    /// Parses the query and `Last-Event-ID`. As in Salt, a token in the query is rejected, because queries are logged.
    pub fn read(context: &RequestContext) -> Result<Self, ApiError> {
        let last = context.headers().get("last-event-id").and_then(|value| value.to_str().ok());
        let after = last.and_then(|last| last.trim().parse::<u64>().ok());
        let start = after.map_or(Start::Now, |last| Start::Since(Value::from(last.saturating_add(1))));
        let mut query = EventQuery { start, patterns: Vec::new(), is_formatted: false };
        for (name, value) in context.query() {
            match name.as_str() {
                // A browser that reconnects repeats the query: the header is newer.
                "since" if after.is_some() => {}
                "since" => query.start = Start::Since(point(&value)?),
                "tag" => {
                    for pattern in value.split(',').filter(|pattern| !pattern.is_empty()) {
                        let wrong =
                            |error: &dyn std::fmt::Display| ApiError::bad_request(format!("'tag' is invalid: {error}"));
                        query.patterns.push(Glob::new(pattern).map_err(|error| wrong(&error))?);
                        if query.patterns.len() > MAX_PATTERNS {
                            return Err(wrong(&format!("expected at most {MAX_PATTERNS} patterns")));
                        }
                    }
                }
                "format_events" => query.is_formatted = true,
                "token" | "salt_token" => {
                    return Err(ApiError::bad_request(
                        "A token in the query is refused, because queries are logged: send it as X-Auth-Token or as the cookie of the session",
                    ));
                }
                other => {
                    let names = "since, tag";
                    return Err(ApiError::bad_request(format!(
                        "'{other}' is not a parameter: expected one of {names}"
                    )));
                }
            }
        }
        Ok(query)
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

/// Counts an open stream in the metrics until it is dropped.
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
    /// No event for a while: a keep-alive is due.
    Silence,
    /// The user has logged out, or the token is no longer valid.
    End,
}

/// The event stream of one subscriber: the requested events that its user may see, for as long as its token is valid.
pub(crate) struct Stream {
    api: Arc<Api>,
    subscription: Subscription,
    patterns: Box<[Glob]>,
    visibility: Arc<Visibility>,
    user: Arc<User>,
    token: Arc<str>,
    ended: CancellationToken,
    /// The time of the next revalidation of the token.
    check: Instant,
    _counted: Counted,
}

impl Stream {
    pub fn new(api: &Arc<Api>, sender: &Authenticated, query: EventQuery) -> Self {
        Stream {
            api: Arc::clone(api),
            subscription: api.hub.subscribe(query.start, WakePolicy::Paced),
            patterns: query.patterns.into(),
            visibility: api.auth.events_of(&sender.user),
            user: Arc::clone(&sender.user),
            token: Arc::clone(&sender.token),
            ended: sender.ended.clone(),
            // In the hub's next turn for this stream, which is within `KEEP_ALIVE`.
            check: Instant::now() + 2 * TURN,
            _counted: Counted::new(),
        }
    }

    /// Returns the next item. Cancel safe.
    pub async fn next(&mut self) -> Next {
        loop {
            let next = match poll_fn(|context| self.poll(context)).await {
                Some(next) => Some(next),
                None => Box::pin(self.work()).await,
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// Polls the next item. Returns `None` if [`Self::work`] has to run first.
    pub fn poll(&mut self, context: &mut task::Context<'_>) -> Poll<Option<Next>> {
        loop {
            // The hub wakes an idle stream at about this interval.
            if self.is_check_due() {
                return Poll::Ready(None);
            }
            let item = self.subscription.poll(context);
            // Checked after the poll: the end of a stream wakes only tasks that have registered a waker.
            if self.ended.is_cancelled() || self.user.remaining().is_zero() {
                return Poll::Ready(Some(Self::end("expired")));
            }
            if self.api.hub.is_ended() {
                return Poll::Ready(Some(Self::end("stopped")));
            }
            match item {
                Poll::Ready(Some(item)) if self.is_for_user(&item) => return Poll::Ready(Some(Next::Event(item))),
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_check_due(&self) -> bool {
        Instant::now() + TURN >= self.check
    }

    /// Revalidates the token, or reads events that are no longer in the ring. Called rarely, and its future is large:
    /// box it.
    pub async fn work(&mut self) -> Option<Next> {
        if !self.is_check_due() {
            self.subscription.read_journal().await;
            return None;
        }
        // Tokens may be revoked elsewhere. A master that does not answer does not end the stream.
        let user = self.api.auth.user(&self.token).await;
        self.check = Instant::now() + KEEP_ALIVE;
        Some(if matches!(user, Ok(None)) { Self::end("expired") } else { Next::Silence })
    }

    /// Returns the next event if it is available without waiting.
    pub fn ready(&mut self) -> Option<Arc<Item>> {
        loop {
            let item = self.subscription.ready()?;
            if self.is_for_user(&item) {
                return Some(item);
            }
        }
    }

    /// Whether the stream has ended, checked while the client does not read. Registers the task to be woken when it
    /// ends.
    pub fn is_ended(&self, context: &mut task::Context<'_>) -> bool {
        self.subscription.register_waker(context);
        self.ended.is_cancelled() || self.api.hub.is_ended()
    }

    /// Reserves memory for bytes that the client does not read, until the returned future is dropped. It completes when
    /// the stream has to end in favour of others: of its user's streams, the one whose client has not read for longest.
    /// The client can continue with `Last-Event-ID`. Returns `None` if the bytes alone exceed the limit.
    pub fn hold(&self, bytes: usize) -> Option<BoxFuture<'static, ()>> {
        let user = self.user.identity.username().as_str();
        let reserved = self.api.limits.unread.begin(Owner::User(user.into()));
        if !reserved.resize_at_once(bytes) {
            closed_unread(user);
            return None;
        }
        let user = user.to_owned();
        Some(Box::pin(async move {
            reserved.ended().await;
            closed_unread(&user);
        }))
    }

    /// Begins the reservation of memory for the state of a subscriber.
    pub fn state(&self) -> Reservation {
        let reserved = self.api.limits.authenticated.begin(Owner::User(self.user.identity.username().as_str().into()));
        reserved.arrived();
        reserved
    }

    /// Continues after the event with this number. Call it when the client does not read: the events after it are
    /// released.
    pub fn rewind(&mut self, seq: u64) {
        self.subscription.rewind(seq);
    }

    fn is_for_user(&self, item: &Item) -> bool {
        let tag = item.event.tag();
        let is_wanted = self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.is_match(tag));
        is_wanted && self.visibility.permits(&item.event, &item.subject)
    }

    fn end(reason: &'static str) -> Next {
        metrics::SUBSCRIBERS_CLOSED.with(&[reason]).add(1);
        Next::End
    }
}

fn closed_unread(user: &str) {
    metrics::SUBSCRIBERS_CLOSED.with(&["unread"]).add(1);
    tracing::warn!(user, "an event stream is closed: the streams of its user do not read");
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
