//! `webhook`: sends each return and each event as JSON to a URL.

use brine_event::Event;
use brine_job::Return;
use brine_value::{Map, Value, map};

use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "webhook";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends each return, and each event as a mapping with `tag` and `data`, as JSON to a URL. Brine only.",
    options: &[
        BackendOption { name: "webhook.url", default: None, doc: "The URL. Required." },
        BackendOption { name: "webhook.method", default: Some("POST"), doc: "The method: POST or PUT." },
        BackendOption { name: "webhook.headers", default: None, doc: "A mapping of further headers." },
        BackendOption { name: "webhook.username", default: None, doc: "The user name." },
        BackendOption { name: "webhook.password", default: None, doc: "The password." },
        BackendOption {
            name: "webhook.verify_ssl",
            default: Some("True"),
            doc: "Whether the certificate is verified.",
        },
    ],
    open: |options| Ok(Box::new(Webhook::new(options)?)),
    check: |options| Webhook::new(options).map(drop),
};

struct Webhook {
    http: Http,
    method: String,
}

impl Webhook {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let url: String = options.required(NAME, "url")?;
        let trust = Trust { skip_verification: !options.get(NAME, "verify_ssl")?.unwrap_or(true), ..Trust::default() };
        let mut http = Http::new(NAME, "url", &url, trust, options)?;
        for (name, value) in options.get::<Map>(NAME, "headers")?.unwrap_or_default() {
            http = http.with_header(&name.to_string(), value.to_string());
        }
        if let Some(user) = options.get::<String>(NAME, "username")? {
            http = http.with_login(&user, &options.get::<String>(NAME, "password")?.unwrap_or_default());
        }
        let method: String = options.get(NAME, "method")?.unwrap_or_else(|| "POST".to_owned());
        if !matches!(method.as_str(), "POST" | "PUT") {
            let reason = format!("'{method}' is unknown: expected POST or PUT");
            return Err(ReturnerError::Option { option: "webhook.method".to_owned(), reason });
        }
        Ok(Webhook { http, method })
    }

    fn send(&self, body: &Value) -> Result<(), ReturnerError> {
        self.http.send(&self.method, "", &Body::Json(body)).map(drop)
    }
}

impl Returner for Webhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| self.send(&job_return.map().clone().into()))
    }

    fn stores_events_together(&self) -> bool {
        false
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        events.iter().try_for_each(|event| self.send(&map! {"tag" => event.tag(), "data" => event.data()}.into()))
    }
}
