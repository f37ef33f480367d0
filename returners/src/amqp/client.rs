//! The client. Each batch has its own connection and is a transaction, whose commit the server confirms.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amqprs::BasicProperties;
use amqprs::channel::{BasicPublishArguments, Channel, ExchangeDeclareArguments};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::error::Error;
use amqprs::tls::TlsAdaptor;
use brine_event::Event;
use brine_job::Return;
use brine_value::{json, map};
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;

use super::NAME;
use crate::connection::TIMEOUT;
use crate::{Options, Returner, ReturnerError, encoding};

/// The timeout of a batch.
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest routing key, in bytes.
const MAX_ROUTING_KEY: usize = 255;
/// The longest name of an exchange, in bytes.
const MAX_EXCHANGE_NAME: usize = 127;

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let text = |name: &str, default: &str| {
        Ok::<String, ReturnerError>(options.get(NAME, name)?.unwrap_or_else(|| default.to_owned()))
    };
    let uses_tls = options.get(NAME, "tls")?.unwrap_or(false);
    let exchange = text("exchange", "salt")?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if exchange.is_empty() || exchange.len() > MAX_EXCHANGE_NAME || !exchange.chars().all(is_allowed) {
        let reason = "it is invalid: expected letters, digits, hyphens, underscores, periods and colons".to_owned();
        return Err(ReturnerError::Option { option: format!("{NAME}.exchange"), reason });
    }
    for name in ["host", "username", "password", "vhost"] {
        if text(name, "")?.len() > MAX_ROUTING_KEY {
            let reason = format!("it is invalid: expected at most {MAX_ROUTING_KEY} bytes");
            return Err(ReturnerError::Option { option: format!("{NAME}.{name}"), reason });
        }
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    Ok(Box::new(Amqp {
        host: text("host", "localhost")?,
        port: options.get(NAME, "port")?.unwrap_or(if uses_tls { 5671 } else { 5672 }),
        login: (text("username", "guest")?, text("password", "guest")?),
        vhost: text("vhost", "/")?,
        exchange,
        uses_tls,
        authorities: options.ca_bundle()?,
        runtime: runtime.map_err(|error| ReturnerError::Refused { returner: NAME, reason: error.to_string() })?,
    }))
}

struct Amqp {
    host: String,
    port: u16,
    login: (String, String),
    vhost: String,
    exchange: String,
    uses_tls: bool,
    authorities: Option<PathBuf>,
    runtime: Runtime,
}

/// A routing key and a payload.
type Message = (String, String);

impl Amqp {
    fn failed(&self, reason: impl ToString, is_outage: bool) -> ReturnerError {
        let server = format!("amqp server {}:{}", self.host, self.port);
        ReturnerError::Server { returner: NAME, server, reason: reason.to_string(), is_outage }
    }

    fn tls(&self) -> Result<TlsAdaptor, String> {
        let roots = brine_tls::roots(self.authorities.as_deref()).map_err(|error| error.to_string())?;
        let config = ClientConfig::builder_with_provider(brine_tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(TlsAdaptor::new(TlsConnector::from(Arc::new(config)), self.host.clone()))
    }

    async fn connect(&self) -> Result<Connection, ReturnerError> {
        let (user, password) = &self.login;
        let mut arguments = OpenConnectionArguments::new(&self.host, self.port, user, password);
        arguments.virtual_host(&self.vhost).connection_name("brine");
        if self.uses_tls {
            arguments.tls_adaptor(self.tls().map_err(|reason| self.failed(reason, false))?);
        }
        let connected = tokio::time::timeout(TIMEOUT, Connection::open(&arguments)).await;
        let connected = connected.map_err(|_| self.failed("the server does not answer", true))?;
        connected.map_err(|error| {
            // Servers refuse a login by closing the connection, often without a reason.
            let is_outage = matches!(error, Error::NetworkError(_));
            let is_closed = error.to_string().contains("reset by peer");
            let hint = if is_closed { "; check amqp.username, amqp.password and amqp.vhost" } else { "" };
            self.failed(format!("{error}{hint}"), is_outage)
        })
    }

    /// Publishes messages and waits until the server has confirmed them.
    fn publish(&self, messages: Vec<Message>) -> Result<(), ReturnerError> {
        if messages.is_empty() {
            return Ok(());
        }
        let publish = async {
            let connection = self.connect().await?;
            let sent = self.send(&connection, messages).await;
            let is_open = connection.is_open();
            // The transaction is over. A connection that cannot be closed properly is closed when it is dropped.
            _ = connection.close().await;
            sent.map_err(|reason| self.failed(reason, !is_open))
        };
        let result = self.runtime.block_on(async { tokio::time::timeout(BATCH_TIMEOUT, publish).await });
        result.unwrap_or_else(|_| Err(self.failed("the server does not answer", true)))
    }

    async fn send(&self, connection: &Connection, messages: Vec<Message>) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let channel: Channel = connection.open_channel(None).await.map_err(text)?;
        let exchange = ExchangeDeclareArguments::new(&self.exchange, "topic").durable(true).finish();
        channel.exchange_declare(exchange).await.map_err(|error| {
            let name = &self.exchange;
            format!(
                "declaring the topic exchange '{name}' failed: {error}; it has another type, or the user may not use it"
            )
        })?;
        channel.tx_select().await.map_err(text)?;
        let properties =
            BasicProperties::default().with_content_type("application/json").with_persistence(true).finish();
        for (key, payload) in messages {
            let arguments = BasicPublishArguments::new(&self.exchange, &key);
            channel.basic_publish(properties.clone(), payload.into_bytes(), arguments).await.map_err(text)?;
        }
        channel.tx_commit().await.map_err(text)?;
        channel.close().await.map_err(text)
    }
}

/// Cuts a routing key at a character.
fn routing_key(mut key: String) -> String {
    while key.len() > MAX_ROUTING_KEY {
        key.pop();
    }
    key
}

impl Returner for Amqp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let key = |one: &Return| routing_key(format!("ret.{}", one.id().as_str().replace('.', "_")));
        self.publish(returns.iter().map(|one| (key(one), encoding::of_map(one.map()))).collect())
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let message = |event: &Event| {
            let payload = json::to_json(&map! {"tag" => event.tag(), "data" => event.data()}.into());
            (routing_key(format!("event.{}", event.tag().replace('/', "."))), payload)
        };
        self.publish(events.iter().map(message).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_keys_are_cut_at_a_character() {
        assert_eq!(routing_key("ret.web1".to_owned()), "ret.web1");
        let key = routing_key(format!("{}ü", "x".repeat(254)));
        assert_eq!(key, "x".repeat(254));
    }
}
