//! `slack_webhook`: posts a summary of each return by an incoming webhook of Slack.

use brine_event::Event;
use brine_job::{Return, retcode};
use brine_value::{Map, Value, json, list, map, python};
use brine_yaml::Style;

use crate::http::{Body, Http, Trust, excerpt};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "slack_webhook";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Posts a summary of each return by an incoming webhook of Slack: the value, or the counts of a state run. Events are \
          posted if their data is a return. Titles may contain names of grains, such as `{id}`.",
    options: &[
        BackendOption {
            name: "slack_webhook.webhook",
            default: None,
            doc: "The webhook: what follows `https://hooks.slack.com/services/`, or a whole URL. Required.",
        },
        BackendOption {
            name: "slack_webhook.success_title",
            default: Some("{id} | Succeeded"),
            doc: "The title of a successful return.",
        },
        BackendOption {
            name: "slack_webhook.failure_title",
            default: Some("{id} | Failed"),
            doc: "The title of a failed return.",
        },
        BackendOption { name: "slack_webhook.author_icon", default: None, doc: "The URL of an image of 16x16 pixels." },
        BackendOption {
            name: "slack_webhook.show_tasks",
            default: Some("False"),
            doc: "Whether changed and failed states are listed.",
        },
    ],
    open: |options| Ok(Box::new(SlackWebhook::new(options)?)),
    check: |options| SlackWebhook::new(options).map(drop),
};

/// The maximum number of states that a message lists, of each kind.
const MAX_LISTED_STATES: usize = 100;
/// The maximum number of characters of a value that a message shows.
const MAX_VALUE_LENGTH: usize = 3000;

struct SlackWebhook {
    http: Http,
    success: String,
    failure: String,
    icon: String,
    shows_tasks: bool,
    options: Options,
}

impl SlackWebhook {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let webhook: String = options.required(NAME, "webhook")?;
        let url = if webhook.contains("://") {
            webhook
        } else {
            format!("https://hooks.slack.com/services/{}", webhook.trim_start_matches('/'))
        };
        let text = |name: &str, default: &str| {
            Ok::<_, ReturnerError>(options.get::<String>(NAME, name)?.unwrap_or_else(|| default.to_owned()))
        };
        Ok(SlackWebhook {
            http: Http::new(NAME, "webhook", &url, Trust::default(), options)?,
            success: text("success_title", "{id} | Succeeded")?,
            failure: text("failure_title", "{id} | Failed")?,
            icon: text("author_icon", "")?,
            shows_tasks: options.get(NAME, "show_tasks")?.unwrap_or(false),
            options: options.clone(),
        })
    }

    /// Returns the message about a return of this author.
    fn payload(&self, fields: &Map, author: &str) -> Value {
        let field = |name: &str| fields.get(name).unwrap_or(&Value::Nil);
        let is_success = !field("retcode").is_nil() && retcode(fields) == 0;
        let title = self.options.with_grains_in(if is_success { &self.success } else { &self.failure });
        let mut text = format!("Function: {}\n", field("fun"));
        if field("fun_args").is_truthy() {
            let args = field("fun_args").as_list().unwrap_or_default().iter().map(|one| one.to_string().into());
            text += &format!("Function Args: {}\n", python::repr(&args.collect::<Vec<Value>>().into()));
        }
        text += &format!("JID: {}\n", field("jid"));
        let value = field("return");
        let mut more = Vec::new();
        if let Some(run) = run_of(value) {
            text += &format!("Total: {}\nDuration: {:.2} secs", run.total, run.milliseconds / 1000.0);
            let unchanged = run.total.saturating_sub(run.changed.len() + run.failed.len());
            more.push(map! {"color" => "good", "title" => format!("Unchanged: {unchanged}")}.into());
            more.push(self.tasks("Changed", "warning", &run.changed));
            more.push(self.tasks("Failed", "danger", &run.failed));
        } else {
            let text = match value {
                Value::Map(_) => format!("\n{}", brine_yaml::dump(value, Style::BLOCK)),
                other => other.to_string(),
            };
            let text = crate::chat::cut(NAME, text, MAX_VALUE_LENGTH);
            let color = if is_success { "good" } else { "danger" };
            more.push(map! {"color" => color, "title" => format!("Return: {text}")}.into());
        }
        let head = map! {
            "fallback" => title.as_str(), "color" => "#272727", "author_name" => author,
            "author_link" => self.options.with_grains_in("{localhost}"), "author_icon" => self.icon.as_str(),
            "title" => format!("Success: {}", if is_success { "True" } else { "False" }), "text" => text,
        };
        let mut attachments = list![Value::Map(head)];
        if let Value::List(attachments) = &mut attachments {
            attachments.extend(more);
        }
        map! {"attachments" => attachments}.into()
    }

    /// Returns an attachment with the number of states, and with their names if these are requested.
    fn tasks(&self, title: &str, color: &str, tasks: &[String]) -> Value {
        let mut attachment = map! {"color" => color, "title" => format!("{title}: {}", tasks.len())};
        if self.shows_tasks && !tasks.is_empty() {
            let fields = tasks
                .iter()
                .take(MAX_LISTED_STATES)
                .map(|task| map! {"value" => task.as_str(), "short" => false}.into());
            attachment.insert("fields".into(), fields.collect::<Vec<Value>>().into());
        }
        attachment.into()
    }

    fn post(&self, fields: &Map, author: &str) -> Result<(), ReturnerError> {
        let payload = json::to_json(&self.payload(fields, author));
        let reply = self.http.send("POST", "", &Body::Form(&[("payload", &payload)]))?;
        if reply.text.trim() == "ok" { Ok(()) } else { Err(self.http.failed(excerpt(&reply.text), false)) }
    }
}

/// The counts of a state run.
#[derive(Default)]
struct StateRun {
    total: usize,
    milliseconds: f64,
    changed: Vec<String>,
    failed: Vec<String>,
}

/// Returns the counts of a state run; `None` if the value is not that of a state run.
fn run_of(value: &Value) -> Option<StateRun> {
    let states =
        value.as_map().filter(|states| states.values().next().is_some_and(|one| one.get("__id__").is_some()))?;
    let mut states: Vec<(&str, &Map)> =
        states.iter().filter_map(|(key, state)| Some((key.as_str()?, state.as_map()?))).collect();
    states.sort_by_key(|(_, state)| state.get("__run_num__").and_then(Value::as_i64).unwrap_or_default());
    let mut run = StateRun::default();
    for (key, state) in states {
        let id = key.split("_|-").nth(1).unwrap_or(key);
        let task = format!("{}.sls | {id}", state.get("__sls__").unwrap_or(&Value::Nil));
        run.total += 1;
        run.milliseconds += state.get("duration").and_then(Value::as_f64).unwrap_or_default();
        if state.get("result").is_some_and(|result| !result.is_truthy()) {
            run.failed.push(task.clone());
        }
        if state.get("changes").is_some_and(Value::is_truthy) {
            run.changed.push(task);
        }
    }
    Some(run)
}

impl Returner for SlackWebhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| self.post(job_return.map(), &self.options.with_grains_in("{id}")))
    }

    fn stores_events_together(&self) -> bool {
        false
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        // Salt fails at events that are not returns; internal jobs are not posted to the channel.
        let is_return = |data: &Map| {
            let fun = data.get("fun").and_then(Value::as_str);
            data.contains_key("return") && fun.is_some_and(|fun| fun != "saltutil.find_job")
        };
        events.iter().map(Event::data).filter(is_return).try_for_each(|data| {
            let author = data.get("id").map(ToString::to_string).unwrap_or_default();
            self.post(&data, &author)
        })
    }
}

#[cfg(test)]
mod tests;
