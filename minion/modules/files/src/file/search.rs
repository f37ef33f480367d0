//! Searches and compares files.

use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::arguments::refuse;
use brine_function::{CallError, CallResult, function};
use brine_host::paths::expand;
use brine_value::{Map, Value};

use super::changes::{Text, read};
use super::diff::unified;
use super::edit::compile_for_bytes;
use super::invalid;
use crate::cmd;

/// Return whether a regular expression matches anywhere in a file. `bufsize` and `multiline` are without effect: files are
/// read whole.
///
/// CLI Example:
///
///     salt '*' file.search /etc/crontab 'mymaintenance.sh'
#[function]
pub fn search(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression.
    pattern: String,
    /// Flags of the regular expression.
    #[default(8.into())]
    flags: Value,
    /// Without effect: files are read whole.
    #[default(1.into())]
    bufsize: Value,
    /// Whether a missing file is not an error.
    #[default(false)]
    ignore_if_missing: bool,
    /// Without effect: files are read whole.
    #[default(false)]
    multiline: bool,
) -> CallResult {
    // Files are read whole, and Salt's `multiline` is set in the flags already.
    _ = (bufsize, multiline);
    let file = Text::real(&path)?;
    if ignore_if_missing && !file.exists() {
        return Ok(false.into());
    }
    let text = read(&file, "search")?;
    let regex = compile_for_bytes(&pattern, &flags).map_err(CallError::Execution)?;
    Ok(regex.is_match(&text).map_err(CallError::execution)?.into())
}

/// Run `grep` on a file, or on the files that match a glob. Further arguments are options.
///
/// CLI Example:
///
///     salt '*' file.grep /etc/passwd nobody -i
#[function]
pub fn grep(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression.
    pattern: String,
    /// Options of `grep`.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let mut words = vec!["grep".to_owned()];
    for option in args.iter().map(ToString::to_string) {
        if option.contains(char::is_whitespace) {
            return Err(invalid(
                "grep",
                &format!(
                    "Passing multiple command line arguments in a single string is not supported, please pass the following arguments separately: {option}"
                ),
            ));
        }
        words.push(option);
    }
    words.extend(["-e".into(), pattern, "--".into()]);
    let path = expand(&path);
    let paths = brine_text::glob::paths(Path::new(""), &path.to_string_lossy());
    if paths.is_empty() {
        words.push(path.display().to_string());
    }
    words.extend(paths.iter().map(|path| path.display().to_string()));
    let output = run(context, &words, &[])?;
    // Without a match the status is 1, which is reported as the job's retcode, as in a shell.
    context.set_retcode(output.retcode);
    Ok(cmd::result_of_all(output).into())
}

/// Return the diff of two files of this host or of the file server. `template` is without effect: the diff of templates is
/// returned, too.
///
/// CLI Example:
///
///     salt '*' file.get_diff /home/fred/.vimrc salt://users/fred/.vimrc
#[function]
pub fn get_diff(
    context: &Context,
    /// First file.
    file1: String,
    /// Second file.
    file2: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Whether the diff names the files.
    #[default(true)]
    show_filenames: bool,
    /// Whether the diff is returned; otherwise only that there is one.
    #[default(true)]
    show_changes: bool,
    /// Without effect: the diff of templates is returned, too.
    #[default(false)]
    template: bool,
    /// `source_hash_file1`, `source_hash_file2` and `ignore_ordering` are refused.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let refused = [
        ("source_hash_file1", "fetch the file by cp.get_url, and compare the copy"),
        ("source_hash_file2", "fetch the file by cp.get_url, and compare the copy"),
        ("ignore_ordering", "the state file.managed has it"),
        ("ignore_whitespace", "the state file.managed has it"),
        ("ignore_comment_characters", "the state file.managed has it"),
    ];
    refuse("file.get_diff", &kwargs, &refused)?;
    // The option `obfuscate_templates` is not supported: the diff of templates is always returned.
    _ = template;
    let content = |name: &str| {
        if !name.contains("://") {
            let failed = |error| CallError::Execution(format!("Failed to read {name}: {}", super::reason(&error)));
            return std::fs::read(expand(name)).map_err(failed);
        }
        let content = brine_context::files::content(context, name, &saltenv).ok().flatten();
        content.ok_or_else(|| CallError::Execution("Failed to cache one or more files".into()))
    };
    let (old, new) = (content(&file1)?, content(&file2)?);
    if old == new {
        return Ok("".into());
    }
    if !show_changes {
        return Ok("<show_changes=False>".into());
    }
    let binary = |bytes: &[u8]| bytes.contains(&0);
    Ok(match (binary(&old), binary(&new)) {
        (true, true) => "Replace binary file".into(),
        (true, false) => "Replace binary file with text file".into(),
        (false, true) => "Replace text file with binary file".into(),
        (false, false) => {
            let report = unified(&String::from_utf8_lossy(&old), &String::from_utf8_lossy(&new));
            match report.strip_prefix("--- \n+++ \n") {
                Some(rest) if show_filenames => format!("--- {file1}\n+++ {file2}\n{rest}"),
                _ => report,
            }
        }
    }
    .into())
}
