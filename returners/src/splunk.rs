//! `splunk`: sends returns and events to a Splunk HTTP event collector.

use brine_event::Event;
use brine_job::Return;
use brine_value::{Map, Value, json, map};

use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "splunk";
/// The prefix of the options, which differs from the returner's name in Salt.
const PREFIX: &str = "splunk_http_forwarder";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends each return and event to the HTTP event collector of a Splunk server. Write-only.",
    options: &[
        BackendOption {
            name: "splunk_http_forwarder.indexer",
            default: None,
            doc: "The host name or address of the server, whose port is 8088, or a URL such as `https://splunk:8443`. \
                  Required.",
        },
        BackendOption { name: "splunk_http_forwarder.token", default: None, doc: "The token. Required." },
        BackendOption { name: "splunk_http_forwarder.index", default: None, doc: "The index of the data." },
        BackendOption { name: "splunk_http_forwarder.sourcetype", default: None, doc: "The source type of the data." },
        BackendOption {
            name: "splunk_http_forwarder.verify_ssl",
            default: Some("True"),
            doc: "Whether the certificate is verified.",
        },
    ],
    open: |options| Ok(Box::new(Splunk::new(options)?)),
    check: |options| Splunk::new(options).map(drop),
};

/// The size of a request, in bytes, from which on no further event is added. The server's default limit is 800 MB.
const PAGE_BYTES: usize = 1 << 20;

struct Splunk {
    http: Http,
    index: Value,
    sourcetype: Value,
    host: String,
}

impl Splunk {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let indexer: String = options.required(PREFIX, "indexer")?;
        let url = if indexer.contains("://") { indexer } else { format!("https://{indexer}:8088") };
        let trust =
            Trust { skip_verification: !options.get(PREFIX, "verify_ssl")?.unwrap_or(true), ..Trust::default() };
        let token: String = options.required(PREFIX, "token")?;
        let http = Http::new(NAME, "indexer", &url, trust, options)?;
        let text = |name: &str| Ok::<Value, ReturnerError>(options.get::<String>(PREFIX, name)?.into());
        Ok(Splunk {
            http: http.with_header("Authorization", format!("Splunk {token}")),
            index: text("index")?,
            sourcetype: text("sourcetype")?,
            host: options.own_id().unwrap_or_default(),
        })
    }

    /// Sends events, several in one request: the collector accepts concatenated documents.
    fn send(&self, events: impl Iterator<Item = Value>) -> Result<(), ReturnerError> {
        let time = brine_clock::now().timestamp().as_second().to_string();
        let mut text = String::new();
        for event in events {
            let document = map! {
                "time" => time.as_str(), "index" => self.index.clone(), "sourcetype" => self.sourcetype.clone(),
                "event" => event, "host" => self.host.as_str(),
            };
            // The collector refuses an index and a source type that are null.
            let document: Map = document.into_iter().filter(|(_, value)| !value.is_nil()).collect();
            text += &json::to_json(&document.into());
            if text.len() >= PAGE_BYTES {
                self.post(std::mem::take(&mut text))?;
            }
        }
        if text.is_empty() { Ok(()) } else { self.post(text) }
    }

    fn post(&self, text: String) -> Result<(), ReturnerError> {
        self.http.send("POST", "/services/collector/event", &Body::Text("application/json", text)).map(drop)
    }
}

impl Returner for Splunk {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        self.send(returns.iter().map(|one| one.map().clone().into()))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        self.send(events.iter().map(|event| map! {"tag" => event.tag(), "data" => event.data()}.into()))
    }
}
