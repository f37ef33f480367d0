//! The client. The first batch connects it, and it stays connected until a batch fails.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use brine_event::Event;
use brine_job::Return;
use brine_value::{Value, json, map};
use parking_lot::Mutex;
use rskafka::chrono::DateTime;
use rskafka::client::error::{Error, ProtocolError, RequestError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use rskafka::{BackoffConfig, BackoffError, ConnectionError};
use tokio::runtime::{Builder, Runtime};
use tracing::subscriber::NoSubscriber;

use super::NAME;
use super::partitions::{Message, batches};
use crate::connection::TIMEOUT;
use crate::{Options, Returner, ReturnerError, encoding};

/// The prefix of the options, which are Salt's.
const PREFIX: &str = "returner.kafka";
/// The port of servers that are configured without one.
const DEFAULT_PORT: u16 = 9092;
/// The timeout of a batch.
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The lifetime of connections and of known partitions, as in librdkafka.
const REFRESH_INTERVAL: Duration = Duration::from_secs(300);
/// The largest reply of a server, in bytes: the description of all topics.
const MAX_REPLY: usize = 32 << 20;
/// The default and the maximum of `message_max_bytes`.
const MESSAGE_MAX_BYTES: (usize, usize) = (1_000_000, 100_000_000);
/// The longest name of a topic, in bytes.
const MAX_TOPIC_NAME: usize = 249;

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let invalid = |name: &str, expected: &str| ReturnerError::Option {
        option: format!("{PREFIX}.{name}"),
        reason: format!("it is invalid: expected {expected}"),
    };
    let with_port =
        |server: &str| if server.contains(':') { server.to_owned() } else { format!("{server}:{DEFAULT_PORT}") };
    let servers: Vec<String> = match options.required::<Value>(PREFIX, "bootstrap")? {
        Value::List(servers) => servers.iter().map(|server| with_port(&server.to_string())).collect(),
        servers => crate::split(&servers.to_string()).map(with_port).collect(),
    };
    let is_server = |server: &String| {
        server.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    if servers.is_empty() || !servers.iter().all(is_server) {
        return Err(invalid("bootstrap", "servers such as kafka1:9092"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let checked = |name: &str, topic: String| {
        let is_valid = topic.len() <= MAX_TOPIC_NAME && topic.chars().all(is_allowed) && topic.contains(|c| c != '.');
        if is_valid { Ok(topic) } else { Err(invalid(name, "letters, digits, hyphens, underscores and periods")) }
    };
    let topic = checked("topic", options.required(PREFIX, "topic")?)?;
    let event_topic = options.get(PREFIX, "event_topic")?.map(|topic| checked("event_topic", topic)).transpose()?;
    let limit = options.get(PREFIX, "message_max_bytes")?.unwrap_or(MESSAGE_MAX_BYTES.0);
    if limit == 0 || limit > MESSAGE_MAX_BYTES.1 {
        return Err(invalid("message_max_bytes", "1 to 100000000 bytes"));
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ReturnerError::Refused { returner: NAME, reason: error.to_string() })?;
    Ok(Box::new(Kafka {
        event_topic: event_topic.unwrap_or_else(|| topic.clone()),
        servers,
        topic,
        limit,
        runtime,
        connected: Mutex::new(None),
    }))
}

struct Kafka {
    servers: Vec<String>,
    topic: String,
    event_topic: String,
    /// The maximum size of a message, in bytes.
    limit: usize,
    runtime: Runtime,
    /// The client, used by one batch at a time.
    connected: Mutex<Option<Connected>>,
}

impl Kafka {
    fn failed(&self, reason: impl ToString, is_outage: bool) -> ReturnerError {
        let server = format!("kafka server {}", self.servers.join(","));
        ReturnerError::Server { returner: NAME, server, reason: reason.to_string(), is_outage }
    }

    /// Publishes messages and waits until the servers have confirmed them.
    fn publish(&self, topic: &str, messages: Vec<Message>) -> Result<(), ReturnerError> {
        if messages.is_empty() {
            return Ok(());
        }
        if let Some(large) = messages.iter().find(|message| message.size() > self.limit) {
            let (key, size, limit) = (&large.key, large.size(), self.limit);
            return Err(self.failed(
                format!("the message of '{key}' has {size} bytes; {PREFIX}.message_max_bytes permits {limit}"),
                false,
            ));
        }
        let mut slot = self.connected.lock();
        let previous = slot.take().filter(|connected| connected.since.elapsed() < REFRESH_INTERVAL);
        let publish = async {
            let mut connected = match previous {
                Some(connected) => connected,
                None => Connected::to(&self.servers).await?,
            };
            connected.send(topic, messages, self.limit).await?;
            Ok::<_, Error>(connected)
        };
        // The client logs each of its attempts; the result reports the error once.
        let result = tracing::subscriber::with_default(NoSubscriber::new(), || {
            self.runtime.block_on(async { tokio::time::timeout(BATCH_TIMEOUT, publish).await })
        });
        match result {
            Ok(Ok(connected)) => {
                *slot = Some(connected);
                Ok(())
            }
            Ok(Err(error)) => {
                let error = last(error);
                Err(self.failed(reason(&error, topic), is_outage(&error)))
            }
            Err(_) => Err(self.failed("the server does not answer", true)),
        }
    }
}

/// A client and its cache of topics.
struct Connected {
    client: Client,
    since: Instant,
    topics: HashMap<String, Topic>,
}

/// The partitions of a topic, sorted, and those that have been written to, each with its connection.
struct Topic {
    partitions: Vec<i32>,
    writers: HashMap<i32, PartitionClient>,
}

impl Connected {
    async fn to(servers: &[String]) -> Result<Self, Error> {
        let retries = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
            deadline: Some(TIMEOUT),
        };
        let builder = ClientBuilder::new(servers.to_vec()).client_id("brine").max_message_size(MAX_REPLY);
        let client = builder.backoff_config(retries).build().await?;
        Ok(Connected { client, since: Instant::now(), topics: HashMap::new() })
    }

    /// Publishes messages to the partitions of a topic. The batches of one partition are sent one after the other.
    async fn send(&mut self, name: &str, messages: Vec<Message>, limit: usize) -> Result<(), Error> {
        let Connected { client, topics, .. } = self;
        let topic = match topics.entry(name.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(unknown) => {
                let partitions = partitions(client, name).await?;
                unknown.insert(Topic { partitions, writers: HashMap::new() })
            }
        };
        let now = DateTime::from_timestamp_millis(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
        let record = |message: Message| Record {
            key: Some(message.key.into_bytes()),
            value: Some(message.value.into_bytes()),
            headers: BTreeMap::new(),
            timestamp: now,
        };
        for (partition, batches) in batches(messages, &topic.partitions, limit) {
            let writer = match topic.writers.entry(partition) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(unknown) => {
                    unknown.insert(client.partition_client(name, partition, UnknownTopicHandling::Error).await?)
                }
            };
            for batch in batches {
                writer.produce(batch.into_iter().map(record).collect(), Compression::NoCompression).await?;
            }
        }
        Ok(())
    }
}

/// Returns the numbers of a topic's partitions, sorted. A missing topic is created, if the servers allow that.
async fn partitions(client: &Client, name: &str) -> Result<Vec<i32>, Error> {
    let partitions_of = |topics: Vec<rskafka::topic::Topic>| {
        let topic = topics.into_iter().find(|topic| topic.name == name);
        topic.map(|topic| topic.partitions.into_iter().collect::<Vec<i32>>()).filter(|numbers| !numbers.is_empty())
    };
    if let Some(partitions) = partitions_of(client.list_topics().await?) {
        return Ok(partitions);
    }
    // A request for the topic by its name creates it, which may take a moment.
    client.partition_client(name, 0, UnknownTopicHandling::Retry).await?;
    Ok(partitions_of(client.list_topics().await?).unwrap_or_else(|| vec![0]))
}

/// Returns the last error of a retried request.
fn last(error: Error) -> Error {
    match error {
        Error::RetryFailed(BackoffError::DeadlineExceded { deadline, source }) => match source.downcast::<Error>() {
            Ok(inner) => last(*inner),
            Err(source) => Error::RetryFailed(BackoffError::DeadlineExceded { deadline, source }),
        },
        error => error,
    }
}

/// Returns the message of an error.
fn reason(error: &Error, topic: &str) -> String {
    if let Error::ServerError { protocol_error, .. } = error {
        return match protocol_error {
            ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge => format!(
                "topic '{topic}' refuses a message because of its size: set {PREFIX}.message_max_bytes to the server's \
                 message.max.bytes"
            ),
            ProtocolError::UnknownTopicOrPartition => {
                format!("topic '{topic}' does not exist and the server does not create it: create it")
            }
            ProtocolError::TopicAuthorizationFailed | ProtocolError::ClusterAuthorizationFailed => {
                format!("the server does not permit clients without a login to write to topic '{topic}'")
            }
            other => format!("topic '{topic}': {other:?}"),
        };
    }
    if let Error::Connection(ConnectionError::RetryFailed(BackoffError::DeadlineExceded { source, .. })) = error {
        return source.to_string();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Whether a later retry may succeed.
fn is_outage(error: &Error) -> bool {
    match error {
        Error::Connection(_)
        | Error::Request(RequestError::IO(_) | RequestError::Poisoned(_))
        | Error::RetryFailed(_)
        | Error::Timeout => true,
        Error::ServerError { protocol_error, .. } => matches!(
            protocol_error,
            ProtocolError::LeaderNotAvailable
                | ProtocolError::NotLeaderOrFollower
                | ProtocolError::RequestTimedOut
                | ProtocolError::BrokerNotAvailable
                | ProtocolError::ReplicaNotAvailable
                | ProtocolError::NetworkException
                | ProtocolError::NotEnoughReplicas
                | ProtocolError::NotEnoughReplicasAfterAppend
                | ProtocolError::KafkaStorageError
                | ProtocolError::ThrottlingQuotaExceeded
        ),
        _ => false,
    }
}

impl Returner for Kafka {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let message = |one: &Return| Message { key: one.id().as_str().to_owned(), value: encoding::of_map(one.map()) };
        self.publish(&self.topic, returns.iter().map(message).collect())
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let message = |event: &Event| Message {
            key: event.tag().to_owned(),
            value: json::to_json(&map! {"tag" => event.tag(), "data" => event.data()}.into()),
        };
        self.publish(&self.event_topic, events.iter().map(message).collect())
    }
}
