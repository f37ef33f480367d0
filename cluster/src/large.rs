//! Large values, stored on the servers in parts: returns that exceed the size of a message, so that the job cache of
//! every member has them, and the state of work that a successor resumes.

use brine_digest::Digest;
use brine_event::Event;
use brine_value::{FromValue, Value, map, msgpack};

use crate::error::{LinkError, nats};
use crate::link::token;
use crate::message::MAX_PAYLOAD;
use crate::metrics;
use crate::shared::{Shared, SharedError};

/// The maximum number of parts, which limits a value to 1 GiB.
const MAX_PARTS: u64 = 2048;

/// Returns the jid and the minion id in the tag of a return.
pub(crate) fn return_of(event: &Event) -> Option<(&str, &str)> {
    let (jid, id) = event.tag().strip_prefix("salt/job/")?.split_once("/ret/")?;
    (!jid.contains('/') && !id.contains('/')).then_some((jid, id))
}

/// Whether the event is a trimmed return, stored whole in the job cache of its member.
pub(crate) fn is_large(event: &Event) -> bool {
    let (name, value) = crate::NOT_CACHED;
    let mut is_large = false;
    // The body was validated when the event was published.
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some(name) {
            is_large = msgpack::unpack(entry.value).is_ok_and(|tag| tag == value.into());
        }
    });
    is_large
}

/// Returns the name of the return that a minion sent to this member. A minion that gets no answer sends its return to
/// another member, too, which stores one of its own.
pub(crate) fn return_name(member: &str, minion: &str) -> String {
    format!("{minion}/{member}")
}

impl Shared {
    fn subject_of(&self, owner: &str) -> String {
        format!("brine.{}.returns.{}", self.link.settings.name, token(owner))
    }

    fn part_subject(&self, owner: &str, name: &str, part: u64) -> String {
        format!("{}.{}.{part}", self.subject_of(owner), token(name))
    }

    /// Stores a large value on the servers until `history` has passed or newer values need the space: a return in the
    /// job `owner`, or a state of some work. The first part describes the others and is written last. Only this member
    /// writes a value with this `name`.
    ///
    /// # Errors
    /// The servers do not answer, or the value is too large.
    pub async fn put_large(&self, owner: &str, name: &str, whole: &[u8]) -> Result<(), SharedError> {
        let parts: Vec<&[u8]> = whole.chunks(MAX_PAYLOAD).collect();
        let count = parts.len() as u64;
        if count > MAX_PARTS {
            return Err(SharedError::TooLarge { size: whole.len(), limit: MAX_PARTS as usize * MAX_PAYLOAD });
        }
        self.link.resources().await?;
        let form = map! {"parts" => count, "digest" => Value::Bytes(Digest::Sha256.of(whole))};
        let head = msgpack::pack_map(&form);
        let numbered = parts.into_iter().zip(1..).chain([(&head[..], 0)]);
        for (part, number) in numbered {
            let subject = self.part_subject(owner, name, number);
            let sealed = self.link.seal(&subject, part);
            let stored = self.link.context().publish(subject, sealed).await;
            stored.map_err(|error| self.unavailable(error))?.await.map_err(|error| self.unavailable(error))?;
        }
        Ok(())
    }

    /// Returns a large value; `None` if the servers do not have it, or have already discarded it.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn get_large(&self, owner: &str, name: &str) -> Result<Option<Vec<u8>>, SharedError> {
        let Some(head) = self.part(owner, name, 0).await? else { return Ok(None) };
        let form = msgpack::unpack_map(&head).unwrap_or_default();
        let count = form.get("parts").and_then(u64::from_value).unwrap_or_default().min(MAX_PARTS);
        let mut whole = Vec::new();
        for number in 1..=count {
            let Some(part) = self.part(owner, name, number).await? else { return Ok(None) };
            whole.extend(part);
        }
        let expected = form.get("digest").and_then(Value::as_bytes).map(<[u8]>::to_vec);
        Ok((Some(Digest::Sha256.of(&whole)) == expected).then_some(whole))
    }

    /// Removes all values of an owner.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn remove_large(&self, owner: &str) -> Result<(), SharedError> {
        let resources = self.link.resources().await?;
        let purged = resources.returns.purge().filter(format!("{}.>", self.subject_of(owner))).await;
        purged.map(drop).map_err(|error| self.unavailable(error))
    }

    async fn part(&self, owner: &str, name: &str, part: u64) -> Result<Option<Vec<u8>>, SharedError> {
        use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
        let (resources, subject) = (self.link.resources().await?, self.part_subject(owner, name, part));
        let message = match resources.returns.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => message,
            Err(error) if error.kind() == NoMessageFound => return Ok(None),
            Err(error) => return Err(self.unavailable(error)),
        };
        let opened = self.link.open_any(&subject, &message.payload).ok();
        if opened.is_none() {
            metrics::VALUES_REFUSED.add(1);
            tracing::error!(
                owner,
                name,
                "part of a large value refused: it cannot be decrypted; the masters of a cluster need the same secret"
            );
        }
        Ok(opened.map(|opened| opened.plain))
    }
}

/// Returns whether an error means that the servers are away, so that a retry may succeed.
pub(crate) fn is_outage(error: &SharedError) -> bool {
    matches!(error, SharedError::Unavailable(_))
}

impl From<SharedError> for LinkError {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Unavailable(error) => error,
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
