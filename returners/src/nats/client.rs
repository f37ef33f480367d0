//! The client. Each batch has its own connection, and ends when the server has confirmed it.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use brine_event::Event;
use brine_job::Return;
use brine_value::{json, map};
use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};

use super::NAME;
use crate::connection::TIMEOUT;
use crate::{Options, Returner, ReturnerError, encoding};

/// The timeout of a batch.
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of messages that are published to JetStream before their acknowledgements are awaited.
const PAGE: usize = 256;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let text = |name: &str| options.get::<String>(NAME, name);
    let flag = |name: &str| Ok::<bool, ReturnerError>(options.get(NAME, name)?.unwrap_or(false));
    let url = text("url")?.unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned());
    let invalid = |name: &str, reason: String| ReturnerError::Option { option: format!("{NAME}.{name}"), reason };
    if url.parse::<async_nats::ServerAddr>().is_err() {
        return Err(invalid("url", "it is invalid: expected a URL such as nats://host:4222".to_owned()));
    }
    let subject = text("subject")?.unwrap_or_else(|| "salt".to_owned());
    if subject.is_empty() || subject.split('.').any(str::is_empty) || subject.contains([' ', '*', '>']) {
        return Err(invalid("subject", "it is invalid: expected names separated by dots".to_owned()));
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let start = url.find("://").map_or(0, |at| at + 3);
    let host = url[start..].rsplit('@').next().unwrap_or_default();
    Ok(Box::new(Nats {
        server: format!("nats server {host}"),
        url,
        subject,
        login: text("username")?.zip(text("password")?),
        token: text("token")?,
        tls: flag("tls")?,
        authorities: options.ca_bundle()?,
        uses_jetstream: flag("jetstream")?,
        runtime: runtime.map_err(|error| ReturnerError::Refused { returner: NAME, reason: error.to_string() })?,
    }))
}

struct Nats {
    /// The server, for messages.
    server: String,
    url: String,
    subject: String,
    login: Option<(String, String)>,
    token: Option<String>,
    tls: bool,
    authorities: Option<PathBuf>,
    uses_jetstream: bool,
    runtime: Runtime,
}

/// A subject and a payload.
type Message = (String, String);

impl Nats {
    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new().name("brine").connection_timeout(TIMEOUT).require_tls(self.tls);
        if let Some((user, password)) = &self.login {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.authorities {
            options = options.add_root_certificates(path.clone());
        }
        options
    }

    fn failed(&self, reason: impl ToString, is_outage: bool) -> ReturnerError {
        ReturnerError::Server { returner: NAME, server: self.server.clone(), reason: reason.to_string(), is_outage }
    }

    /// Publishes messages and waits until the server has confirmed them.
    fn publish(&self, messages: Vec<Message>) -> Result<(), ReturnerError> {
        if messages.is_empty() {
            return Ok(());
        }
        let publish = async {
            let client = self.options().connect(self.url.as_str()).await.map_err(|error| {
                let is_refusal =
                    matches!(error.kind(), ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation);
                self.failed(&error, !is_refusal)
            })?;
            let limit = client.server_info().max_payload;
            if let Some((subject, payload)) = messages.iter().find(|(_, payload)| payload.len() > limit) {
                let length = payload.len();
                return Err(
                    self.failed(format!("the message to {subject} has {length} bytes; it takes {limit}"), false)
                );
            }
            let sent = if self.uses_jetstream { store(client, messages).await } else { send(client, messages).await };
            sent.map_err(|error| self.failed(error, false))
        };
        let result = self.runtime.block_on(async { tokio::time::timeout(BATCH_TIMEOUT, publish).await });
        result.unwrap_or_else(|_| Err(self.failed("the server does not answer", true)))
    }
}

/// Publishes messages, followed by one to itself: its arrival proves that the server has received the others.
async fn send(client: Client, messages: Vec<Message>) -> Result<(), BoxError> {
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(inbox.clone()).await?;
    for (subject, payload) in messages {
        client.publish(subject, payload.into()).await?;
    }
    client.publish(inbox, "".into()).await?;
    client.flush().await?;
    match replies.next().await {
        Some(_) => Ok(()),
        None => Err("the connection has ended".into()),
    }
}

/// Publishes messages to JetStream, and waits for the acknowledgements.
async fn store(client: Client, messages: Vec<Message>) -> Result<(), BoxError> {
    let stream = async_nats::jetstream::new(client);
    let mut messages = messages.into_iter().peekable();
    while messages.peek().is_some() {
        let mut waiting = Vec::new();
        for (subject, payload) in messages.by_ref().take(PAGE) {
            waiting.push(stream.publish(subject, payload.into()).await?);
        }
        for acknowledgement in waiting {
            acknowledgement.await?;
        }
    }
    Ok(())
}

impl Returner for Nats {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        // Ids may contain characters that are special in subjects.
        let part = |id: &str| id.replace(|c: char| c.is_whitespace() || matches!(c, '.' | '*' | '>'), "_");
        let message =
            |one: &Return| (format!("{}.ret.{}", self.subject, part(one.id().as_str())), encoding::of_map(one.map()));
        self.publish(returns.iter().map(message).collect())
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let subject = format!("{}.event", self.subject);
        let message = |event: &Event| {
            (subject.clone(), json::to_json(&map! {"tag" => event.tag(), "data" => event.data()}.into()))
        };
        self.publish(events.iter().map(message).collect())
    }
}
