//! `highstate`: a report of a state run as HTML, JSON or YAML, in a file or by mail.

mod html;
mod report;

use std::path::PathBuf;

use brine_job::Return;
use brine_value::{Value, json};
use brine_yaml::Style;
use lettre::message::header::ContentType;

use crate::mail::{Mailer, OptionNames};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "highstate";

const NAMES: OptionNames = OptionNames {
    returner: NAME,
    host: "smtp_server",
    port: "smtp_port",
    tls: "smtp_tls",
    user: "smtp_username",
    password: "smtp_password",
    from: "smtp_sender",
    to: "smtp_recipients",
};

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Reports state runs as HTML, JSON or YAML, in a file or by mail. Returns of other functions are not reported. \
          Titles and paths may contain names of grains, such as `{id}` and `{host}`.",
    options: &[
        BackendOption {
            name: "highstate.report_everything",
            default: Some("False"),
            doc: "Whether every run is reported.",
        },
        BackendOption {
            name: "highstate.report_changes",
            default: Some("True"),
            doc: "Whether runs with changes are reported.",
        },
        BackendOption {
            name: "highstate.report_failures",
            default: Some("True"),
            doc: "Whether runs with failed states are reported.",
        },
        BackendOption {
            name: "highstate.report_format",
            default: Some("yaml"),
            doc: "The format: `html`, `json` or `yaml`.",
        },
        BackendOption {
            name: "highstate.report_delivery",
            default: Some("file"),
            doc: "Where the report goes: `file` or `smtp`.",
        },
        BackendOption {
            name: "highstate.file_output",
            default: Some("/tmp/test.rpt"),
            doc: "The path of the file, which each report replaces.",
        },
        BackendOption { name: "highstate.smtp_sender", default: None, doc: "The address of the sender." },
        BackendOption {
            name: "highstate.smtp_recipients",
            default: None,
            doc: "The addresses of the recipients, separated by commas.",
        },
        BackendOption {
            name: "highstate.smtp_success_subject",
            default: Some("Installation success"),
            doc: "The subject of the mail of a successful run.",
        },
        BackendOption {
            name: "highstate.smtp_failure_subject",
            default: Some("Installation failure"),
            doc: "The subject of the mail of a run with failed states.",
        },
        BackendOption { name: "highstate.smtp_server", default: None, doc: "The host name of the mail server." },
        BackendOption { name: "highstate.smtp_port", default: Some("25"), doc: "The port of the mail server." },
        BackendOption {
            name: "highstate.smtp_tls",
            default: Some("False"),
            doc: "Whether TLS is required (STARTTLS), with a verified certificate.",
        },
        BackendOption { name: "highstate.smtp_username", default: None, doc: "The user name at the mail server." },
        BackendOption { name: "highstate.smtp_password", default: None, doc: "The password at the mail server." },
    ],
    open: |options| Ok(Box::new(Highstate::new(options)?)),
    check: |options| Highstate::new(options).map(drop),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Json,
    Yaml,
}

enum Delivery {
    File(PathBuf),
    Mail { mailer: Box<Mailer>, success: String, failure: String },
}

struct Highstate {
    reports: report::ReportedRuns,
    format: Format,
    delivery: Delivery,
}

impl Highstate {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let text = |name: &str| options.get::<String>(NAME, name);
        let unknown = |name: &str, value: &str, expected: &str| ReturnerError::Option {
            option: format!("{NAME}.{name}"),
            reason: format!("'{value}' is unknown: expected {expected}"),
        };
        for name in ["success_function", "failure_function"] {
            if let Some(function) = text(name)? {
                tracing::warn!(
                    option = name,
                    function,
                    "the option is not supported: highstate reports call no functions; remove it"
                );
            }
        }
        let format = match text("report_format")?.as_deref() {
            None | Some("yaml") => Format::Yaml,
            Some("json") => Format::Json,
            Some("html") => Format::Html,
            Some(other) => return Err(unknown("report_format", other, "html, json or yaml")),
        };
        let delivery = match text("report_delivery")?.as_deref() {
            None | Some("file") => {
                let path = text("file_output")?.unwrap_or_else(|| "/tmp/test.rpt".to_owned());
                Delivery::File(options.with_grains_in(&path).into())
            }
            Some("smtp") => {
                let subject = |name: &str, default: &str| {
                    Ok::<_, ReturnerError>(options.with_grains_in(text(name)?.as_deref().unwrap_or(default)))
                };
                Delivery::Mail {
                    mailer: Box::new(Mailer::new(options, &NAMES)?),
                    success: subject("smtp_success_subject", "Installation success")?,
                    failure: subject("smtp_failure_subject", "Installation failure")?,
                }
            }
            Some(other) => return Err(unknown("report_delivery", other, "file or smtp")),
        };
        let reports = report::ReportedRuns {
            everything: options.get(NAME, "report_everything")?.unwrap_or(false),
            changes: options.get(NAME, "report_changes")?.unwrap_or(true),
            failures: options.get(NAME, "report_failures")?.unwrap_or(true),
        };
        Ok(Highstate { reports, format, delivery })
    }
}

impl Format {
    fn write(self, report: &Value) -> String {
        match self {
            Format::Html => html::page(report),
            Format::Json => json::to_json(report),
            Format::Yaml => brine_yaml::dump(report, Style::BLOCK),
        }
    }

    fn content_type(self) -> ContentType {
        match self {
            Format::Html => ContentType::TEXT_HTML,
            Format::Json | Format::Yaml => ContentType::TEXT_PLAIN,
        }
    }
}

impl Returner for Highstate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let Some(report) = report::build(job_return, self.reports) else { return Ok(()) };
            let text = self.format.write(&report.value);
            match &self.delivery {
                // Reports contain changes and comments, which may be secret; other users may be able to read the directory.
                Delivery::File(path) => brine_system::files::write_soon(path, text.as_bytes(), 0o600)
                    .map_err(|error| ReturnerError::Refused { returner: NAME, reason: error.to_string() }),
                Delivery::Mail { mailer, success, failure } => {
                    let subject = if report.has_failed { failure } else { success };
                    mailer.send(subject, text, self.format.content_type())
                }
            }
        })
    }

    fn stores_events(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
