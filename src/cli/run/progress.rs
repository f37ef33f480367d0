//! The progress events of a runner function, shown while it runs.

use std::pin::pin;
use std::time::Duration;

use brine_event::{Event, SEQ, STAMP};
use brine_ids::Jid;
use brine_value::{Map, Value, map};

use super::super::client::{ClientError, Events, MasterClient};

/// The suffixes of events that are not progress: the start of a call, and the jobs of an orchestration.
const NOT_SHOWN: &[&str] = &["new", "args"];
/// The time to wait, after the result, for the event that ends the progress.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The subscription to the events of a call that is about to be made.
pub(super) struct Progress {
    events: Events,
    /// The tags of the events up to their suffix.
    prefix: String,
}

impl Progress {
    /// Subscribes to the events of a call. Returns `None` for a user who may not read events.
    pub async fn subscribe(client: &MasterClient, jid: &Jid) -> Option<Self> {
        let prefix = format!("salt/run/{jid}/");
        match client.events(&prefix).await {
            Ok(events) => Some(Progress { events, prefix }),
            Err(error) => {
                tracing::debug!(%error, "subscribing to progress events failed");
                None
            }
        }
    }

    /// Makes a call, and shows its events with the outputter that they name. Returns the reply.
    ///
    /// # Errors
    /// The error of the call, or of the output.
    pub async fn during(
        mut self,
        call: impl Future<Output = Result<Map, ClientError>>,
        mut show: impl FnMut(&Value, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Map> {
        let mut call = pin!(call);
        let mut is_open = true;
        let reply = loop {
            tokio::select! {
                reply = &mut call => break reply?,
                event = self.events.next(), if is_open => is_open = self.take(event, &mut show)?,
            }
        };
        // Events that precede the result may not have been read yet.
        let is_own = reply.get("tag").and_then(Value::as_str) == Some(self.prefix.trim_end_matches('/'));
        let rest = async {
            while is_open && is_own {
                let event = self.events.next().await;
                is_open = self.take(event, &mut show)?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(END_TIMEOUT, rest).await.unwrap_or(Ok(()))?;
        Ok(reply)
    }

    /// Shows an event. Returns whether others may follow.
    fn take(
        &self,
        event: Result<Event, ClientError>,
        show: &mut impl FnMut(&Value, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "reading progress events failed; no more are shown");
                return Ok(false);
            }
        };
        match event.tag().strip_prefix(&self.prefix) {
            Some("ret") => return Ok(false),
            Some(suffix) if !NOT_SHOWN.contains(&suffix) => {
                let (value, hint) = shown(suffix, event.data().clone());
                show(&value, &hint)?;
            }
            _ => {}
        }
        Ok(true)
    }
}

/// Returns the text of an event in Salt's form, and the name of its outputter.
fn shown(suffix: &str, mut data: Map) -> (Value, String) {
    data.shift_remove(SEQ);
    // The time of the event comes after the function's own fields.
    if let Some(stamp) = data.shift_remove(STAMP) {
        data.insert(STAMP.into(), stamp);
    }
    let named = |value: Option<&Value>| value.filter(|name| name.is_truthy()).map(ToString::to_string);
    let of_return = || named(data.get("return").and_then(|value| value.get("outputter")));
    let hint = named(data.get("outputter")).or_else(of_return).unwrap_or_else(|| "nested".to_owned());
    (map! {"suffix" => suffix, "event" => data}.into(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_shown_with_their_suffix_and_outputter() {
        for (data, outputter) in [
            (map! {"message" => "half"}, "nested"),
            (map! {"data" => 1, "outputter" => "json"}, "json"),
            (map! {"outputter" => Value::Nil, "return" => map! {"outputter" => "txt"}}, "txt"),
            (map! {"return" => "text"}, "nested"),
        ] {
            let mut sent = map! {STAMP => "2026-11-25T22:28:11.213977", SEQ => 7};
            sent.extend(data.clone());
            let (event, hint) = shown("progress", sent);
            let mut expected = data;
            expected.insert(STAMP.into(), "2026-11-25T22:28:11.213977".into());
            assert_eq!((event, hint.as_str()), (map! {"suffix" => "progress", "event" => expected}.into(), outputter));
        }
    }
}
