//! `smtp`: sends each return, and each event, as a mail.

use brine_event::Event;
use brine_jinja::{Context, Host, Limits, Template};
use brine_job::Return;
use brine_value::Map;
use lettre::message::header::ContentType;

use crate::mail::{Mailer, OptionNames};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "smtp";

const NAMES: OptionNames = OptionNames {
    returner: NAME,
    host: "host",
    port: "port",
    tls: "tls",
    user: "username",
    password: "password",
    from: "from",
    to: "to",
};

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends each return, and each event, as a mail. Its subject and body are Jinja templates with the fields of the \
          return, or of the event's data, as variables.",
    options: &[
        BackendOption { name: "smtp.from", default: None, doc: "The address of the sender. Required." },
        BackendOption {
            name: "smtp.to",
            default: None,
            doc: "The addresses of the recipients, separated by commas. Required.",
        },
        BackendOption {
            name: "smtp.host",
            default: None,
            doc: "The host name or address of the mail server. Required.",
        },
        BackendOption { name: "smtp.port", default: Some("25"), doc: "The port of the mail server." },
        BackendOption { name: "smtp.username", default: None, doc: "The user name at the mail server." },
        BackendOption { name: "smtp.password", default: None, doc: "The password at the mail server." },
        BackendOption {
            name: "smtp.tls",
            default: Some("False"),
            doc: "Whether TLS is required (STARTTLS). The certificate is verified with the host's authorities, or those of \
                  `ca_bundle`.",
        },
        BackendOption { name: "smtp.subject", default: Some("Email from Salt"), doc: "The template of the subject." },
        BackendOption {
            name: "smtp.fields",
            default: None,
            doc: "The fields, separated by commas, whose values follow the subject.",
        },
        BackendOption { name: "smtp.template", default: None, doc: "The path of a template of the body." },
        BackendOption {
            name: "smtp.renderer",
            default: Some("jinja"),
            doc: "The renderer of both: only `jinja` is supported.",
        },
    ],
    open: |options| Ok(Box::new(Smtp::new(options)?)),
    check: |options| Smtp::new(options).map(drop),
};

/// The body without a template.
const BODY: &str =
    "id: {{id}}\r\nfunction: {{fun}}\r\nfunction args: {{fun_args}}\r\njid: {{jid}}\r\nreturn: {{return}}\r\n";

struct Smtp {
    mailer: Mailer,
    subject: String,
    fields: Vec<String>,
    template: Option<String>,
}

impl Smtp {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let text = |name: &str| options.get::<String>(NAME, name);
        let invalid = |name: &str, reason: &str| ReturnerError::Option {
            option: format!("{NAME}.{name}"),
            reason: reason.to_owned(),
        };
        if text("gpgowner")?.is_some() {
            // A mail in plain text would be worse than none.
            return Err(invalid(
                "gpgowner",
                "encrypted mail is not supported: leave it out, or choose another returner",
            ));
        }
        if text("renderer")?.is_some_and(|renderer| renderer != "jinja") {
            return Err(invalid("renderer", "only jinja is supported: leave it out"));
        }
        let fields = text("fields")?.unwrap_or_default();
        Ok(Smtp {
            mailer: Mailer::new(options, &NAMES)?,
            subject: text("subject")?.unwrap_or_else(|| "Email from Salt".to_owned()),
            fields: fields.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            template: text("template")?,
        })
    }

    fn send(&self, data: &Map) -> Result<(), ReturnerError> {
        let mut subject = render("smtp.subject", &self.subject, data)?;
        // Appended after rendering: values must not be rendered as templates.
        for value in self.fields.iter().filter_map(|name| data.get(name.as_str())) {
            subject = format!("{subject} {value}");
        }
        let body = match &self.template {
            None => render("smtp.template", BODY, data)?,
            Some(path) => {
                let template = std::fs::read_to_string(path).map_err(|error| ReturnerError::Option {
                    option: "smtp.template".to_owned(),
                    reason: format!("reading {path} failed: {error}"),
                })?;
                render(path, &template, data)?
            }
        };
        self.mailer.send(&subject, body, ContentType::TEXT_PLAIN)
    }
}

/// Renders a template without functions and files: its only variables are the fields. Missing fields of the default
/// body are empty.
fn render(name: &str, template: &str, data: &Map) -> Result<String, ReturnerError> {
    let mut variables: Map =
        ["id", "fun", "fun_args", "jid", "return"].iter().map(|name| ((*name).into(), "".into())).collect();
    variables.extend(data.clone());
    let mut context = Context::new("base");
    context.set_limits(Limits::default()).set_all(&variables);
    let rendered = Template::compile(name, template).and_then(|template| template.render(&context, &Host::new()));
    rendered.map_err(|error| ReturnerError::Refused { returner: NAME, reason: error.to_string() })
}

impl Returner for Smtp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| self.send(job_return.map()))
    }

    fn stores_events_together(&self) -> bool {
        false
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        events.iter().map(Event::data).filter(|data| !data.is_empty()).try_for_each(|data| self.send(&data))
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn templates_have_the_fields_of_the_return() {
        let data =
            map! {"id" => "web1", "fun" => "test.arg", "fun_args" => list!["{{ 1 }}"], "jid" => "7", "return" => true};
        let body = render("body", BODY, &data).unwrap();
        assert_eq!(body, "id: web1\r\nfunction: test.arg\r\nfunction args: ['{{ 1 }}']\r\njid: 7\r\nreturn: True\n");
        assert!(render("body", "{{ salt['cmd.run']('id') }}", &data).is_err());
        assert!(render("body", "{{ act }}", &data).unwrap_err().to_string().contains("act"));
    }

    #[test]
    fn invalid_options_are_named() {
        let valid = map! {"from" => "a@example.org", "to" => "b@example.org, C <c@example.org>", "host" => "h"};
        let error = |more: Map| {
            let mut options = valid.clone();
            options.extend(more);
            Smtp::new(&Options::new(&map! {"smtp" => options}, None)).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(error(map! {}), Ok(()));
        for (name, value, expected) in [
            ("from", "", "it is required"),
            ("to", "b@example.org, nobody", "' nobody' is not a mail address: "),
            ("host", "", "it is required"),
            ("port", "x", "expected an integer"),
            ("gpgowner", "fred", "encrypted mail is not supported: "),
            ("renderer", "mako", "only jinja is supported: "),
        ] {
            let message = error(map! {name => value}).unwrap_err();
            assert!(message.starts_with(&format!("option 'smtp.{name}': {expected}")), "{message}");
        }
        let message = error(map! {"username" => "u"}).unwrap_err();
        assert_eq!(message, "option 'smtp.password': it is required with username");
    }
}
