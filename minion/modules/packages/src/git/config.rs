//! `git.config_*`: git's configuration of a repository or of the user.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::command::flag;
use super::{Git, strings};
use brine_function::arguments::names;

/// Execution functions of `git`.
pub static FUNCTIONS: Functions<Context> =
    registry!("git", [config_get, config_get_regexp, config_get_regex, config_set, config_unset]);

/// Return a value of git's configuration; with `all`, all values of the key; with `global`, from the user's
/// configuration.
///
/// CLI Example:
///
///     salt '*' git.config_get user.name cwd=/path/to/repo
#[function]
pub fn config_get(
    context: &Context,
    /// Key of the setting, such as `user.email`.
    key: String,
    /// Directory of the checkout.
    cwd: Option<String>,
    /// `all`, `global`, and the arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let output = config(context, cwd.as_deref(), &kwargs, &["--get-all", &argument(&key)?])?;
    let Some(output) = output else { return Ok(Value::Nil) };
    let all: Vec<String> = output.lines().map(str::to_owned).collect();
    Ok(if flag(&kwargs, "all") { all.into() } else { all.last().cloned().unwrap_or_default().into() })
}

/// The arguments of `git.config_get_regexp` and `git.config_get_regex`.
#[derive(Args)]
pub struct PatternArgs {
    /// Regular expression of the keys.
    key: String,
    /// Regular expression of the values.
    value_regex: Option<String>,
    /// Directory of the checkout.
    cwd: Option<String>,
    /// `global` selects the user's configuration; other arguments are those of every function of `git`.
    #[keywords]
    kwargs: Map,
}

/// Return the values of all keys of git's configuration that match a regular expression.
///
/// CLI Example:
///
///     salt '*' git.config_get_regexp 'foo.ba[rz]' cwd=/path/to/repo
#[function]
pub fn config_get_regexp(context: &Context, #[args] args: PatternArgs) -> CallResult {
    let key = argument(&args.key)?;
    let mut words = vec!["--get-regexp", &key];
    words.extend(args.value_regex.as_deref());
    let output = config(context, args.cwd.as_deref(), &args.kwargs, &words)?.unwrap_or_default();
    let mut values: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (name, value) in output.lines().filter_map(|line| line.split_once(char::is_whitespace)) {
        values.entry(name).or_default().push(value.to_owned());
    }
    Ok(values.into_iter().map(|(name, values)| (name.into(), values.into())).collect::<Map>().into())
}

/// Return the values of all keys of git's configuration that match a regular expression, as `config_get_regexp`.
///
/// CLI Example:
///
///     salt '*' git.config_get_regex 'foo.ba[rz]' cwd=/path/to/repo
#[function]
pub fn config_get_regex(context: &Context, #[args] args: PatternArgs) -> CallResult {
    config_get_regexp(context, args)
}

/// Set a value of git's configuration, or several with `multivar`; with `add`, add a value.
///
/// CLI Example:
///
///     salt '*' git.config_set user.email me@example.org cwd=/path/to/repo
#[function]
pub fn config_set(
    context: &Context,
    /// Key of the setting, such as `user.email`.
    key: String,
    /// New value.
    value: Option<String>,
    /// List of values, for a key with several.
    #[default]
    multivar: Value,
    /// Directory of the checkout.
    cwd: Option<String>,
    /// `add`, `global`, and the arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if value.is_some() && !multivar.is_nil() {
        return Err(CallError::Execution("Only one of 'value' and 'multivar' is permitted".into()));
    }
    let git = config_place(context, cwd.as_deref(), &kwargs)?;
    let mut prefix = vec!["config"];
    prefix.extend(flag(&kwargs, "global").then_some("--global"));
    // Git reads no options after the key.
    let key = argument(&key)?;
    let values = value.map_or_else(|| names(&multivar), |value| vec![value]);
    for (number, value) in values.iter().enumerate() {
        let how = if number > 0 || flag(&kwargs, "add") { "--add" } else { "--replace-all" };
        git.plain(&[&prefix[..], &[how, &key, value]].concat())?;
    }
    let mut kwargs = kwargs;
    kwargs.insert("all".into(), true.into());
    config_get(context, key, cwd, kwargs)
}

/// Unset a value of git's configuration; with `all`, all values of the key.
///
/// CLI Example:
///
///     salt '*' git.config_unset /path/to/repo foo.bar
#[function]
pub fn config_unset(
    context: &Context,
    /// Key of the setting, such as `user.email`.
    key: String,
    /// Regular expression of the values that are removed.
    value_regex: Option<String>,
    /// Directory of the checkout.
    cwd: Option<String>,
    /// `all`, `global`, and the arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let git = config_place(context, cwd.as_deref(), &kwargs)?;
    let what = if flag(&kwargs, "all") { "--unset-all" } else { "--unset" };
    let scope = if flag(&kwargs, "global") { "--global" } else { "--local" };
    let mut words = strings(&["config", what, scope, &argument(&key)?]);
    words.extend(value_regex.clone());
    let output = git.output(&words, false)?;
    let report = match output.retcode {
        0 => return Ok(true.into()),
        1 => "Section or key is invalid".to_owned(),
        5 if config_get(context, key.clone(), cwd, kwargs)?.is_nil() => format!("Key '{key}' does not exist"),
        5 if value_regex.is_some() => {
            format!("Multiple values exist for key '{key}' and value_regex matches multiple values")
        }
        5 => format!("Multiple values exist for key '{key}'"),
        6 => "The value_regex is invalid".to_owned(),
        other => format!("Failed to unset key '{key}', git config returned exit code {other}; {}", output.stderr),
    };
    Err(CallError::Execution(report))
}

fn config_place<'c>(context: &'c Context, cwd: Option<&str>, kwargs: &Map) -> Result<Git<'c>, CallError> {
    if cwd.is_none() && !flag(kwargs, "global") {
        return Err(CallError::Execution("'cwd' argument required unless global=True".into()));
    }
    Ok(Git::new(context, cwd, kwargs))
}

/// Returns the output of `git config`; `None` if there is no such key.
fn config(context: &Context, cwd: Option<&str>, kwargs: &Map, words: &[&str]) -> Result<Option<String>, CallError> {
    let scope = if flag(kwargs, "global") { "--global" } else { "--local" };
    let words = strings(&[&["config", scope], words].concat());
    let output = config_place(context, cwd, kwargs)?.output(&words, false)?;
    Ok((output.retcode != 1).then_some(output.stdout))
}
