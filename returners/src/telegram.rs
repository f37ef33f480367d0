//! `telegram`: sends each return to a chat of Telegram as a bot.

use brine_job::Return;

use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError, chat};

const NAME: &str = "telegram";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends each return to a chat of Telegram, cut off after 4,096 characters. Write-only.",
    options: &[
        BackendOption { name: "telegram.chat_id", default: None, doc: "The id of the chat. Required." },
        BackendOption { name: "telegram.token", default: None, doc: "The token of the bot. Required." },
        BackendOption {
            name: "telegram.api_url",
            default: Some("https://api.telegram.org"),
            doc: "The URL of the API.",
        },
    ],
    open: |options| Ok(Box::new(Telegram::new(options)?)),
    check: |options| Telegram::new(options).map(drop),
};

/// The maximum number of characters of a message.
const MAX_MESSAGE_LENGTH: usize = 4096;

struct Telegram {
    http: Http,
    token: String,
    chat: String,
}

impl Telegram {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let url: Option<String> = options.get(NAME, "api_url")?;
        let url = url.as_deref().unwrap_or("https://api.telegram.org");
        Ok(Telegram {
            http: Http::new(NAME, "api_url", url, Trust::default(), options)?,
            token: options.required(NAME, "token")?,
            chat: options.required::<brine_value::Value>(NAME, "chat_id")?.to_string(),
        })
    }
}

impl Returner for Telegram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let text = chat::cut(NAME, chat::text_of(job_return, &job_return.value().to_string()), MAX_MESSAGE_LENGTH);
            let form = [("chat_id", self.chat.as_str()), ("text", &text)];
            self.http.send("POST", &format!("/bot{}/sendMessage", self.token), &Body::Form(&form)).map(drop)
        })
    }

    fn stores_events(&self) -> bool {
        false
    }
}
