//! `slack`: posts each return to a channel of Slack as a bot.

use brine_job::Return;
use brine_value::{Map, Value, python};
use brine_yaml::Style;

use crate::http::{Body, Http, Trust, excerpt};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError, chat};

const NAME: &str = "slack";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Posts each return to a channel of Slack, by `chat.postMessage`. Write-only.",
    options: &[
        BackendOption { name: "slack.api_key", default: None, doc: "The token of the bot. Required." },
        BackendOption { name: "slack.channel", default: Some("#general"), doc: "The channel." },
        BackendOption { name: "slack.username", default: None, doc: "The name that is shown. Required." },
        BackendOption {
            name: "slack.as_user",
            default: None,
            doc: "Whether the message is shown as that of the bot's user. Required.",
        },
        BackendOption {
            name: "slack.profile",
            default: None,
            doc: "The name of a mapping in the configuration that has `slack.api_key`.",
        },
        BackendOption {
            name: "slack.changes",
            default: Some("False"),
            doc: "Whether only states with changes and failed states are shown.",
        },
        BackendOption {
            name: "slack.only_show_failed",
            default: Some("False"),
            doc: "Whether only failed states are shown.",
        },
        BackendOption { name: "slack.yaml_format", default: Some("False"), doc: "Whether the value is shown as YAML." },
        BackendOption { name: "slack.api_url", default: Some("https://slack.com/api"), doc: "The URL of the API." },
    ],
    open: |options| Ok(Box::new(Slack::new(options)?)),
    check: |options| Slack::new(options).map(drop),
};

struct Slack {
    http: Http,
    channel: String,
    username: String,
    as_user: String,
    changes: bool,
    failed: bool,
    is_yaml: bool,
}

impl Slack {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let url: Option<String> = options.get(NAME, "api_url")?;
        let flag = |name: &str| Ok::<bool, ReturnerError>(options.get(NAME, name)?.unwrap_or(false));
        let (changes, failed) = (flag("changes")?, flag("only_show_failed")?);
        if changes && failed {
            return Err(ReturnerError::Option {
                option: "slack.only_show_failed".to_owned(),
                reason: "it excludes slack.changes: leave one of them out".to_owned(),
            });
        }
        let profile = match options.get::<String>(NAME, "profile")? {
            Some(profile) => options.setting::<Map>(&profile)?.unwrap_or_default(),
            None => Map::new(),
        };
        let of_profile = profile.get("slack.api_key").filter(|_| !options.is_redirected(NAME)).map(ToString::to_string);
        let key = of_profile.map_or_else(|| options.required(NAME, "api_key"), Ok)?;
        let url = url.as_deref().unwrap_or("https://slack.com/api");
        Ok(Slack {
            http: Http::new(NAME, "api_url", url, Trust::default(), options)?
                .with_header("Authorization", format!("Bearer {key}")),
            channel: options.get(NAME, "channel")?.unwrap_or_else(|| "#general".to_owned()),
            username: options.required(NAME, "username")?,
            as_user: options.required::<Value>(NAME, "as_user")?.to_string(),
            changes,
            failed,
            is_yaml: flag("yaml_format")?,
        })
    }

    /// Returns the value without the states that are not shown.
    fn shown(&self, value: &Value) -> Value {
        let is_shown = |state: &Value| {
            let has_failed = state.get("result") != Some(&true.into());
            has_failed || self.changes && state.get("changes").is_some_and(Value::is_truthy)
        };
        match value.as_map() {
            Some(states) if self.changes || self.failed => {
                let states = states.iter().filter(|(_, state)| is_shown(state));
                Value::Map(states.map(|(id, state)| (id.clone(), state.clone())).collect())
            }
            _ => value.clone(),
        }
    }
}

impl Returner for Slack {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let value = self.shown(job_return.value());
            let value_text = if self.is_yaml { brine_yaml::dump(&value, Style::BLOCK) } else { python::repr(&value) };
            let text = chat::preformatted(&chat::text_of(job_return, &value_text));
            let form = [
                ("channel", self.channel.as_str()),
                ("username", &self.username),
                ("as_user", &self.as_user),
                ("text", &text),
            ];
            let reply = self.http.send("POST", "/chat.postMessage", &Body::Form(&form))?;
            if self.http.json(&reply)?.get("ok") == Some(&true.into()) {
                return Ok(());
            }
            Err(self.http.failed(excerpt(&reply.text), false))
        })
    }

    fn stores_events(&self) -> bool {
        false
    }
}
