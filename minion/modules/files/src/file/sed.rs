//! Substitution with the program `sed`.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, function};
use brine_host::paths::expand;
use brine_system::files;
use brine_text::python_regex::{Regex, RegexError};
use brine_value::Value;

use super::changes::{keep, read};
use super::edit::{compile, template};
use crate::cmd::{self, split_options};

/// Edit a file with `sed`, and return its output. `file.replace` is more general.
///
/// CLI Example:
///
///     salt '*' file.sed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
#[function]
pub fn sed(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression of the text to replace.
    before: Value,
    /// Replacement.
    after: Value,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    #[default]
    limit: String,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
    /// Options of `sed`.
    #[default("-r -e".into())]
    options: String,
    /// Flags of the regular expression.
    #[default("g".into())]
    flags: String,
    /// Whether special characters of regular expressions in `before`, `after` and `limit` stand for themselves.
    #[default(false)]
    escape_all: bool,
    /// Whether the lines that do not match `limit` are edited.
    #[default(false)]
    negate_match: bool,
) -> CallResult {
    let file = expand(&path);
    if !file.exists() {
        return Ok(false.into());
    }
    let limit = if limit.is_empty() { limit } else { format!("/{}/ ", escaped(&limit, escape_all)) };
    let script = format!(
        "{limit}{}s/{}/{}/{flags}",
        if negate_match { "!" } else { "" },
        escaped(&before.to_string(), escape_all),
        escaped(&after.to_string(), escape_all),
    );
    let keep = if backup.is_truthy() { format!("-i{backup}") } else { "-i".to_owned() };
    let options = split_options(&options)?;
    let words: Vec<String> = ["sed".to_owned(), keep]
        .into_iter()
        .chain(options)
        .chain([script, "--".into(), file.display().to_string()])
        .collect();
    Ok(cmd::result_of_all(run(context, &words, &[])?).into())
}

/// Edit a file as `sed`, without the program. A backup is kept, with the suffix `backup`. `multi` is without effect: the
/// whole text is edited.
///
/// CLI Example:
///
///     salt '*' file.psed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
#[function]
pub fn psed(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression of the text to replace.
    before: Value,
    /// Replacement.
    after: Value,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    #[default]
    limit: String,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
    /// Flags of the regular expression.
    #[default("gMS".into())]
    flags: String,
    /// Whether special characters of regular expressions in `before` and `limit` stand for themselves.
    #[default(false)]
    escape_all: bool,
    /// Without effect: the whole text is edited.
    #[default(false)]
    multi: bool,
) -> CallResult {
    // Salt reads the first line character by character here; this reads the whole text, as intended.
    _ = multi;
    let file = expand(&path);
    let text = read(&file, "psed")?;
    let names = [('I', "IGNORECASE"), ('M', "MULTILINE"), ('S', "DOTALL"), ('X', "VERBOSE")];
    let names: Vec<&str> = names.iter().filter(|(letter, _)| flags.contains(*letter)).map(|(_, name)| *name).collect();
    let text_behind = match (limit.is_empty(), compile(&escaped(&limit, escape_all), &0.into())) {
        (true, _) => text.clone(),
        (false, Ok(regex)) => behind(&regex, &text).map_err(CallError::execution)?,
        (false, Err(error)) => return Err(CallError::Execution(error)),
    };
    let (before, after) = (escaped(&before.to_string(), escape_all), after.to_string());
    let regex = compile(&before, &names.into_iter().collect()).map_err(CallError::Execution)?;
    let with = template(&regex, &after).map_err(CallError::Execution)?;
    let count = usize::from(!flags.contains('g'));
    let replaced = regex.replace(&text_behind, &with, count).map_err(CallError::execution)?;
    keep(&file, &backup)?;
    files::rewrite(&file, replaced.as_bytes(), 0o644).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// Returns the text behind the first match of an expression, without the other matches.
fn behind(regex: &Regex, text: &str) -> Result<String, RegexError> {
    let mut matches = regex.captures_iter(text);
    let Some(first) = matches.next().transpose()? else { return Ok(String::new()) };
    let (mut out, mut at) = (String::new(), first.get(0).map_or(0, |whole| whole.end()));
    for captures in matches {
        let Some(whole) = captures?.get(0) else { continue };
        out.push_str(text.get(at..whole.start()).unwrap_or_default());
        at = whole.end();
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Ok(out)
}

/// Return whether `sed` would find a text in a file, in the lines that match `limit`.
///
/// CLI Example:
///
///     salt '*' file.sed_contains /etc/crontab 'mymaintenance.sh'
#[function]
pub fn sed_contains(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Text to search for.
    text: Value,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    #[default]
    limit: Value,
    /// Flags of the regular expression.
    #[default("g".into())]
    flags: String,
) -> CallResult {
    let file = expand(&path);
    if !file.exists() {
        return Ok(false.into());
    }
    let limit = if limit.is_truthy() { format!("/{}/ ", escaped(&limit.to_string(), false)) } else { String::new() };
    let script = format!("{limit}s/{}/$/p{flags}", escaped(&text.to_string(), false));
    let words = ["sed", "-n", "-r", "-e", &script, "--", &file.display().to_string()].map(str::to_owned);
    Ok((!run(context, &words, &[])?.stdout.is_empty()).into())
}

/// Escapes a string for a `sed` expression; with `all`, also the special characters of regular expressions.
fn escaped(text: &str, all: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\'' => escaped.push_str("'\"'\"'"),
            '/' => escaped.push_str("\\/"),
            special if all && "^.[$()|*+?{".contains(special) => escaped.extend(['\\', special]),
            other => escaped.push(other),
        }
    }
    escaped
}
