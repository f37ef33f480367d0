//! `git.config_set` and `config_unset`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_value::{FromValue, Map, Value, map, python};

/// Selects a repository's or the user's configuration.
pub(super) struct ConfigScope {
    repo: Option<String>,
    user: Option<String>,
    global: bool,
}

impl ConfigScope {
    pub fn new(repo: Option<String>, user: Option<String>, kwargs: &Map) -> Self {
        ConfigScope { repo, user, global: kwargs.get("global").is_some_and(Value::is_truthy) }
    }

    /// Returns the failed state if no configuration is selected.
    fn check(&self, name: &str) -> Result<(), Box<StateReturn>> {
        if !self.global && self.repo.as_ref().is_none_or(String::is_empty) {
            let comment = "Non-global config options require the 'repo' argument to be set";
            return Err(Box::new(StateReturn::failed(name, comment)));
        }
        Ok(())
    }

    fn call(&self, context: &StateContext, function: &str, more: Map) -> Result<Value, CallError> {
        let mut args = map! {
            "cwd" => self.repo.clone(), "user" => self.user.clone(), "global" => self.global, "ignore_retcode" => true,
        };
        args.extend(more);
        context.call.call(function, Args::keyword(args))
    }

    /// Returns the values of all matching keys.
    fn matching(&self, context: &StateContext, key: &str, values: Option<&str>) -> Result<Map, CallError> {
        let settings = self.call(context, "git.config_get_regexp", map! {"key" => key, "value_regex" => values})?;
        Ok(settings.as_map().cloned().unwrap_or_default())
    }
}

pub(super) fn set(
    context: &StateContext,
    name: &str,
    value: Option<String>,
    multivar: &Value,
    scope: ConfigScope,
) -> Result<StateReturn, CallError> {
    if value.is_some() && !multivar.is_nil() {
        return Ok(StateReturn::failed(name, "Only one of 'value' and 'multivar' is permitted"));
    }
    if value.is_none() && multivar.is_nil() {
        return Ok(StateReturn::failed(name, "One of 'value' and 'multivar' is required"));
    }
    if let Err(failed) = scope.check(name) {
        return Ok(*failed);
    }
    let several: Vec<String> = match multivar {
        Value::List(values) => values.iter().map(ToString::to_string).collect(),
        Value::Nil => Vec::new(),
        text => text.to_string().split(',').map(str::to_owned).collect(),
    };
    let desired: Vec<String> = value.clone().map_or_else(|| several.clone(), |value| vec![value]);
    let report = match &value {
        Some(value) => format!("'{value}'"),
        None => python::repr(&desired.clone().into()),
    };
    let (key, of) =
        if scope.global { (format!("Global key '{name}'"), "global key ") } else { (format!("'{name}'"), "") };
    let pre = scope.call(context, "git.config_get", map! {"key" => name, "all" => true})?;
    let desired = Value::from(desired);
    if pre == desired {
        return Ok(StateReturn::ok(name, format!("{key} is already set to {report}")));
    }
    let how = if pre.is_nil() { "added as" } else { "set to" };
    if context.test {
        let changes = map! {"old" => pre, "new" => desired};
        return Ok(StateReturn::predicted(name, format!("{key} would be {how} {report}")).with_changes(changes));
    }
    let args = map! {"key" => name, "value" => value, "multivar" => if multivar.is_nil() { Value::Nil } else { several.into() }};
    let post = match scope.call(context, "git.config_set", args) {
        Ok(post) => post,
        Err(CallError::Execution(error)) => {
            let error = error.split_once("' failed: ").map_or(error.as_str(), |(_, report)| report);
            return Ok(StateReturn::failed(name, format!("Failed to set {of}'{name}' to {report}: {error}")));
        }
        Err(error) => return Err(error),
    };
    let changes = if pre == post {
        Map::new()
    } else {
        map! {name => map! {"old" => pre, "new" => post.clone()}}
    };
    let outcome = if post == desired {
        StateReturn::ok(name, format!("{key} was {how} {report}"))
    } else {
        StateReturn::failed(name, format!("Failed to set {of}'{name}' to {report}"))
    };
    Ok(outcome.with_changes(changes))
}

fn values(value: &Value) -> Vec<String> {
    Vec::from_value(value).unwrap_or_default()
}

fn listed<'m>(entries: impl Iterator<Item = (&'m Value, &'m Value)>) -> String {
    entries.map(|(key, list)| format!("{key} ({})", values(list).join(", "))).collect::<Vec<_>>().join("; ")
}

pub(super) fn unset(
    context: &StateContext,
    name: &str,
    value_regex: Option<String>,
    all: bool,
    scope: ConfigScope,
) -> Result<StateReturn, CallError> {
    if let Err(failed) = scope.check(name) {
        return Ok(*failed);
    }
    let key = format!("^{}$", name.trim_start_matches('^').trim_end_matches('$'));
    let matching = scope.matching(context, &key, value_regex.as_deref())?;
    if matching.is_empty() {
        return Ok(StateReturn::ok(name, "No matching keys are set"));
    }
    let several = listed(matching.iter().filter(|(_, list)| values(list).len() > 1));
    if !all && !several.is_empty() {
        let what = match value_regex {
            Some(_) => "Multiple values are matched by value_regex for the following keys",
            None => "Multivar(s) matched by the key expression",
        };
        return Ok(StateReturn::failed(name, format!("{what} (set 'all' to True to force removal): {several}")));
    }
    if context.test {
        let comment = format!("{} key(s) would have value(s) unset", matching.len());
        return Ok(StateReturn::predicted(name, comment).with_changes(matching));
    }
    let pre = scope.matching(context, &key, None)?;
    let mut failed = Vec::new();
    for (key, _) in &matching {
        // The state's name is a regular expression, but `config_unset` takes a key.
        let args = map! {"key" => key.clone(), "value_regex" => value_regex.clone(), "all" => all};
        match scope.call(context, "git.config_unset", args) {
            Ok(_) => {}
            Err(CallError::Execution(error)) => {
                tracing::error!(key = %key, error, "unsetting a key of git's configuration failed");
                failed.push(key.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    if !failed.is_empty() {
        let comment = format!(
            "Error(s) occurred unsetting values for the following keys (see the minion log for details): {}",
            failed.join(", ")
        );
        return Ok(StateReturn::failed(name, comment));
    }
    let post = scope.matching(context, &key, None)?;
    let mut changes = Map::new();
    for (key, before) in &pre {
        let after = post.get(key).map(values).unwrap_or_default();
        let gone: Vec<String> = values(before).into_iter().filter(|value| !after.contains(value)).collect();
        if !gone.is_empty() {
            changes.insert(key.clone(), gone.into());
        }
    }
    let left = scope.matching(context, &key, value_regex.as_deref())?;
    let outcome = if left.is_empty() {
        StateReturn::ok(name, "Value(s) successfully unset")
    } else {
        StateReturn::failed(name, format!("Failed to unset value(s): {}", listed(left.iter())))
    };
    Ok(outcome.with_changes(changes))
}
