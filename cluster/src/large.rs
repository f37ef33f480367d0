//! Returns that exceed the size of an event: whole on the servers, in parts, so that every member's job cache has them.

use brine_digest::Digest;
use brine_event::Event;
use brine_value::{FromValue, Value, map, msgpack};

use crate::link::{LinkError, nats, token};
use crate::message::ROOM;
use crate::metrics;
use crate::shared::{Shared, SharedError};

/// The maximum number of parts: a return has at most 1 GiB.
const PARTS: u64 = 2048;

/// Returns the job and the minion of a return.
pub(crate) fn return_of(event: &Event) -> Option<(&str, &str)> {
    let (jid, id) = event.tag().strip_prefix("salt/job/")?.split_once("/ret/")?;
    (!jid.contains('/') && !id.contains('/')).then_some((jid, id))
}

/// Returns whether the job cache of its member has a return whole, and its event is trimmed.
pub(crate) fn is_large(event: &Event) -> bool {
    let (name, value) = crate::NOT_CACHED;
    let mut is_large = false;
    // The body was validated when the event was published.
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some(name) {
            is_large = msgpack::unpack(entry.value).is_ok_and(|found| found == value.into());
        }
    });
    is_large
}

impl Shared {
    fn return_subject(&self, jid: &str, id: &str, part: u64) -> String {
        format!("brine.{}.returns.{}.{}.{part}", self.link.settings.name, token(jid), token(id))
    }

    /// Stores a whole return on the servers. The first part, which names the others, is the last one to be written.
    ///
    /// # Errors
    /// The servers do not answer, or the return is too large.
    pub(crate) async fn put_return(&self, jid: &str, id: &str, whole: &[u8]) -> Result<(), SharedError> {
        let parts: Vec<&[u8]> = whole.chunks(ROOM).collect();
        let count = parts.len() as u64;
        if count > PARTS {
            return Err(SharedError::TooLarge(whole.len()));
        }
        self.link.resources().await?;
        let form = map! {"parts" => count, "digest" => Value::Bytes(Digest::Sha256.of(whole))};
        let head = msgpack::pack_map(&form);
        let numbered = parts.into_iter().zip(1..).chain([(&head[..], 0)]);
        for (part, number) in numbered {
            let subject = self.return_subject(jid, id, number);
            let sealed = self.link.settings.seal.seal(&subject, part);
            let stored = self.link.context().publish(subject, sealed.into()).await;
            stored.map_err(|error| self.away(error))?.await.map_err(|error| self.away(error))?;
        }
        Ok(())
    }

    /// Returns a whole return; `None` if the servers do not have it, or not any more.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn get_return(&self, jid: &str, id: &str) -> Result<Option<Vec<u8>>, SharedError> {
        let Some(head) = self.return_part(jid, id, 0).await? else { return Ok(None) };
        let form = msgpack::unpack_map(&head).unwrap_or_default();
        let count = form.get("parts").and_then(u64::from_value).unwrap_or_default().min(PARTS);
        let mut whole = Vec::new();
        for number in 1..=count {
            let Some(part) = self.return_part(jid, id, number).await? else { return Ok(None) };
            whole.extend(part);
        }
        let expected = form.get("digest").and_then(Value::as_bytes).map(<[u8]>::to_vec);
        Ok((Some(Digest::Sha256.of(&whole)) == expected).then_some(whole))
    }

    async fn return_part(&self, jid: &str, id: &str, part: u64) -> Result<Option<Vec<u8>>, SharedError> {
        use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
        let (resources, subject) = (self.link.resources().await?, self.return_subject(jid, id, part));
        let message = match resources.returns.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => message,
            Err(error) if error.kind() == NoMessageFound => return Ok(None),
            Err(error) => return Err(self.away(error)),
        };
        let opened = self.link.settings.seal.open(&subject, &message.payload).ok();
        if opened.is_none() {
            metrics::VALUES_REFUSED.add(1);
            tracing::error!(jid, minion = id, "a part of a large return is refused: it is not of this cluster");
        }
        Ok(opened)
    }
}

/// Returns whether an error means that the servers are away, so that a retry may succeed.
pub(crate) fn is_outage(error: &SharedError) -> bool {
    matches!(error, SharedError::Away(_))
}

impl From<SharedError> for LinkError {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Away(error) => error,
            other => nats(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::Map;

    use super::*;

    #[test]
    fn returns_are_recognised_by_their_tags() {
        for (tag, expected) in [
            ("salt/job/20261120235852025555/ret/web1", Some(("20261120235852025555", "web1"))),
            ("salt/job/20261120235852025555/ret/web1/x", None),
            ("salt/job/20261120235852025555/new", None),
            ("salt/run/20261120235852025555/ret", None),
        ] {
            let event = Event::from_map(tag, &Map::new()).unwrap();
            assert_eq!(return_of(&event), expected, "{tag}");
        }
    }
}
