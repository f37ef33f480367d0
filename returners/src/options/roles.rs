//! What an option of a returner means for credentials: a server that a job names never receives a credential of the
//! configuration.

/// The meaning of an option for credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Decides who receives the data and credentials, or who can read them on their way: a server, its TLS, or an
    /// account. Also the role of options that are not listed here.
    Destination,
    /// A password, a token or a key.
    Credential,
    /// Neither: a place within the server, or the form of the data.
    Neutral,
}

/// Credentials. `hook` and `webhook` are addresses that are secrets themselves, and `headers` may hold `Authorization`.
const CREDENTIALS: &[&str] = &[
    "api_key",
    "headers",
    "hook",
    "pass",
    "passwd",
    "password",
    "smtp_password",
    "ssl_cert",
    "ssl_key",
    "sslcert",
    "sslkey",
    "token",
    "webhook",
];

/// Options that change neither the server nor the account. `profile` and `returner` name a set of the configuration,
/// which has a server and credentials of its own.
const NEUTRAL: &[&str] = &[
    "as_user",
    "author_icon",
    "changes",
    "channel",
    "chat_id",
    "connect_timeout",
    "db",
    "encode_values",
    "event_topic",
    "exchange",
    "facility",
    "failure_title",
    "fields",
    "from",
    "functions_blacklist",
    "index",
    "index_date",
    "indexes",
    "jetstream",
    "keep_jobs_seconds",
    "level",
    "master_event_index",
    "master_job_cache_index",
    "message_max_bytes",
    "method",
    "metric_base_pattern",
    "mode",
    "multi_returner",
    "number_of_replicas",
    "number_of_shards",
    "only_show_failed",
    "options",
    "profile",
    "renderer",
    "report_changes",
    "report_delivery",
    "report_everything",
    "report_failures",
    "report_format",
    "returner",
    "returner_read_profile",
    "returner_root",
    "returner_write_profile",
    "show_tasks",
    "skip_on_error",
    "smtp_failure_subject",
    "smtp_recipients",
    "smtp_sender",
    "smtp_success_subject",
    "sourcetype",
    "states_count",
    "states_order_output",
    "states_single_index",
    "subject",
    "success_title",
    "tag",
    "template",
    "timeout",
    "to",
    "topic",
    "ttl",
    "vhost",
    "yaml_format",
];

/// Returns the role of an option by its name without the prefix of the returner.
pub(super) fn role(name: &str) -> Role {
    match name {
        _ if CREDENTIALS.contains(&name) => Role::Credential,
        _ if NEUTRAL.contains(&name) => Role::Neutral,
        _ => Role::Destination,
    }
}
