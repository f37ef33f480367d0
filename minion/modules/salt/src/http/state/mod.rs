//! `http`: states that check responses of web servers.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_text::python_regex::Regex;
use brine_value::{FromValue, Map, Value};

/// State functions of `http`.
pub static FUNCTIONS: Functions<StateContext> = registry!("http", [query, wait_for_successful_query]);

/// Query a web server, and check the status, a pattern of the body, or both.
///
/// At least one of `match` and `status` is given. Nothing is changed on the host; the state is for requisites of
/// others.
///
/// SLS Example:
///
///     https://app.example.com/health:
///       http.query:
///         - status: 200
///         - match: '"ok"'
///
///     deploy_hook:
///       http.query:
///         - name: https://ci.example.com/hooks/deploy
///         - method: POST
///         - data: '{"version": "1.2"}'
///         - header_dict:
///             Content-Type: application/json
///         - status: [200, 202]
///         - status_type: list
#[function]
pub fn query(
    context: &StateContext,
    /// URL.
    name: String,
    /// Text or regular expression that the body must match.
    #[default]
    r#match: Value,
    /// How `match` is compared: `string` or `pcre`.
    #[default("string".to_owned())]
    match_type: String,
    /// Expected status, or a list of them, such as 200.
    #[default]
    status: Value,
    /// How `status` is compared: `string`, `list` or `pcre`.
    #[default("string".to_owned())]
    status_type: String,
    /// Seconds for which the query is repeated until it succeeds.
    #[default]
    wait_for: Value,
    /// Further arguments of the execution function `http.query`: `method`, `data`, `header_dict`, `username`,
    /// `password`, `verify_ssl` and others.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let desired = Desired { text: r#match, text_type: match_type, status, status_type };
    desired.state(context, &name, &wait_for, kwargs)
}

/// Query a web server as `query`, repeatedly until the check succeeds, for up to `wait_for` seconds.
///
/// SLS Example:
///
///     http://localhost:8080/health:
///       http.wait_for_successful_query:
///         - status: 200
///         - wait_for: 60
///         - request_interval: 5
///         - require:
///           - service: app
#[function]
pub fn wait_for_successful_query(
    context: &StateContext,
    /// URL.
    name: String,
    /// Seconds for which the query is repeated.
    #[default(300.0)]
    wait_for: f64,
    /// Arguments of `http.query`, and `request_interval`, the seconds between queries.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let interval = kwargs.get("request_interval").and_then(f64::from_value).unwrap_or(1.0);
    let end = std::time::Instant::now() + brine_runtime::seconds::within(0.0..=1e6, wait_for);
    loop {
        let mut args = kwargs.clone();
        args.insert("name".into(), name.as_str().into());
        let outcome = context.call.minion.states.call(context, "http.query", Args::keyword(args))?;
        let pause = brine_runtime::seconds::within(0.01..=3600.0, interval);
        let is_over = outcome.get("result").is_some_and(Value::is_truthy) || std::time::Instant::now() > end;
        if is_over || brine_host::process::cancelled_within(&context.call.job.cancel, pause) {
            return Ok(outcome);
        }
    }
}

/// The expected response.
struct Desired {
    text: Value,
    text_type: String,
    status: Value,
    status_type: String,
}

fn fits(pattern: &Value, text: &str) -> Result<bool, CallError> {
    Regex::new(&pattern.to_string()).and_then(|regex| regex.is_match(text)).map_err(CallError::execution)
}

impl Desired {
    fn state(&self, context: &StateContext, name: &str, wait: &Value, mut args: Map) -> Result<Value, CallError> {
        if self.text.is_nil() && self.status.is_nil() {
            let mut failed =
                StateReturn::failed(name, " Either match text (match) or a status code (status) is required.");
            failed.more.insert("data".into(), Value::map());
            return Ok(failed.into());
        }
        args.entry("decode".into()).or_insert(false.into());
        args.insert("text".into(), true.into());
        args.insert("status".into(), true.into());
        if context.test {
            args.insert("test".into(), true.into());
        }
        let test_url = args.get("test_url").cloned();
        let function = if wait.is_truthy() { "http.wait_for_successful_query" } else { "http.query" };
        if wait.is_truthy() {
            args.insert("wait_for".into(), wait.clone());
        }
        args.insert("url".into(), name.into());
        let data = context.call.call(function, Args::keyword(args))?;
        let (mut good, mut comments) = (None, Vec::new());
        self.check_text(&data, &mut good, &mut comments)?;
        self.check_status(&data, &mut good, &mut comments)?;
        let mut comment = comments.join(" ");
        if context.test {
            good = None;
            comment += " (TEST MODE";
            comment += &test_url.map(|url| format!(", TEST URL WAS: {url}")).unwrap_or_default();
            comment += ")";
        }
        let mut outcome = StateReturn { result: good, ..StateReturn::ok(name, comment) };
        outcome.more.insert("data".into(), data);
        Ok(outcome.into())
    }

    fn check_text(&self, data: &Value, good: &mut Option<bool>, comments: &mut Vec<String>) -> Result<(), CallError> {
        if self.text.is_nil() {
            return Ok(());
        }
        let have = data.get("text").map(ToString::to_string).unwrap_or_default();
        let (what, is_match) = match self.text_type.as_str() {
            "string" => ("text", have.contains(&self.text.to_string())),
            "pcre" => ("pattern", fits(&self.text, &have)?),
            _ => return Ok(()),
        };
        *good = Some(is_match);
        let verb = if is_match { "was" } else { "was not" };
        comments.push(format!("Match {what} \"{}\" {verb} found.", self.text));
        Ok(())
    }

    fn check_status(&self, data: &Value, good: &mut Option<bool>, comments: &mut Vec<String>) -> Result<(), CallError> {
        if self.status.is_nil() {
            return Ok(());
        }
        let have = data.get("status").map(ToString::to_string).unwrap_or_default();
        let status = &self.status;
        let (what, is_match) = match self.status_type.as_str() {
            "list" => {
                let all = Vec::<String>::from_value(status).unwrap_or_default();
                let same: Vec<&String> = all.iter().filter(|status| **status == have).collect();
                comments.extend(same.iter().map(|status| format!("Status {status} was found.")));
                if same.is_empty() || *good == Some(false) {
                    comments.push(format!("Statuses {status} were not found."));
                    *good = Some(false);
                }
                *good = good.or(Some(true));
                return Ok(());
            }
            "pcre" => (format!("Status pattern \"{status}\""), fits(status, &have)?),
            "string" => (format!("Status {status}"), have == status.to_string()),
            _ => return Ok(()),
        };
        comments.push(format!("{what} {} found.", if is_match { "was" } else { "was not" }));
        if is_match {
            *good = good.or(Some(true));
        } else {
            *good = Some(false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
