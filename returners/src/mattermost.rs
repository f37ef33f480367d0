//! `mattermost`: posts each return and event by an incoming webhook of Mattermost.

use brine_event::Event;
use brine_job::Return;
use brine_value::{Map, json, map};

use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError, chat};

const NAME: &str = "mattermost";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Posts each return and event by an incoming webhook of a Mattermost server. Write-only.",
    options: &[
        BackendOption { name: "mattermost.api_url", default: None, doc: "The URL of the server. Required." },
        BackendOption { name: "mattermost.hook", default: None, doc: "The key of the webhook. Required." },
        BackendOption {
            name: "mattermost.channel",
            default: None,
            doc: "The channel, if it is not the webhook's own.",
        },
        BackendOption { name: "mattermost.username", default: None, doc: "The name that is shown." },
    ],
    open: |options| Ok(Box::new(Mattermost::new(options)?)),
    check: |options| Mattermost::new(options).map(drop),
};

/// The maximum number of characters of a message.
const MAX_MESSAGE_LENGTH: usize = 16_383;

struct Mattermost {
    http: Http,
    hook: String,
    channel: Option<String>,
    username: Option<String>,
}

impl Mattermost {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let url: String = options.required(NAME, "api_url")?;
        Ok(Mattermost {
            http: Http::new(NAME, "api_url", &url, Trust::default(), options)?,
            hook: options.required(NAME, "hook")?,
            channel: options.get(NAME, "channel")?,
            username: options.get(NAME, "username")?,
        })
    }

    fn post(&self, text: String) -> Result<(), ReturnerError> {
        let mut payload = Map::new();
        for (name, value) in [("channel", &self.channel), ("username", &self.username)] {
            payload.extend(value.as_ref().map(|value| (name.into(), value.as_str().into())));
        }
        payload.extend(map! {"text" => chat::preformatted(&chat::cut(NAME, text, MAX_MESSAGE_LENGTH - 6))});
        let payload = json::to_json(&payload.into());
        let path = format!("/hooks/{}", self.hook);
        self.http.send("POST", &path, &Body::Form(&[("payload", &payload)])).map(drop)
    }
}

impl Returner for Mattermost {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| self.post(chat::text_of(job_return, &job_return.value().to_string())))
    }

    fn stores_events_together(&self) -> bool {
        false
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        events.iter().try_for_each(|event| {
            let mut text = format!("tag: {}\r\n", event.tag());
            for (name, value) in event.data() {
                text += &format!("{name}: {value}\r\n");
            }
            self.post(text)
        })
    }
}
