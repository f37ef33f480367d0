//! `file.patch`: files with a patch applied.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_host::process::{Output, split};
use brine_host::programs::which;
use brine_value::{Map, Value};

use super::{contents, source};
use crate::cmd::{self, Scratch};
use crate::file::patch::apply;

/// The arguments of `file.patch`.
#[derive(Args)]
pub struct PatchArgs {
    /// Path of the file or directory to patch.
    name: String,
    /// URL of the patch, or a list of them of which the first that exists is used.
    #[default]
    source: Value,
    #[args]
    expected: source::HashArgs,
    #[args]
    rendering: source::TemplateArgs,
    /// Further options of the program `patch`.
    #[default]
    options: String,
    /// Path of the file for rejected hunks.
    reject_file: Option<String>,
    /// Number of leading components to strip from paths in the patch.
    strip: Option<i64>,
    /// Environment of the file server; that of the SLS by default.
    saltenv: Option<String>,
    /// Further arguments, ignored; `hash` and `dry_run_first` with a warning.
    #[keywords(super::further::further_patch)]
    kwargs: Map,
}

/// Ensure that a patch is applied to a file, or to the files of a directory.
///
/// SLS Example:
///
///     /usr/lib/app/main.py:
///       file.patch:
///         - source: salt://app/fix.patch
///
///     /srv/app:
///       file.patch:
///         - source: salt://app/all.patch
///         - strip: 1
#[function]
pub fn patch(context: &StateContext, #[args] args: PatchArgs) -> CallResult {
    let warnings: Vec<String> = ["hash", "dry_run_first"]
        .iter()
        .filter(|key| args.kwargs.contains_key(**key))
        .map(|key| format!("The '{key}' argument is no longer used and has been ignored."))
        .collect();
    let context = StateContext { saltenv: args.saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
    let contents = contents::Contents {
        source: args.source,
        contents: Value::Nil,
        template: args.rendering.template,
        defaults: args.rendering.defaults,
        verify: args.expected.verify(),
        ..contents::Contents::inline_text(String::new())
    };
    let result =
        check(&args.name, &Desired { options: args.options, strip: args.strip, reject_file: args.reject_file.clone() })
            .and_then(|how| {
                let patch = contents.get(&context, &args.name)?.unwrap_or_default();
                state(&context, &args.name, &patch, how, args.reject_file.as_deref())
            });
    let mut outcome = result.unwrap_or_else(|error| StateReturn::failed(&args.name, error));
    if !warnings.is_empty() {
        outcome.more.insert("warnings".into(), warnings.into());
    }
    Ok(outcome.into())
}

/// Options of a patch.
pub(super) struct Desired {
    pub options: String,
    pub strip: Option<i64>,
    pub reject_file: Option<String>,
}

/// Options that would write elsewhere or revert a patch.
const REFUSED: [&str; 6] = ["-N", "--forward", "-r", "--reject-file", "-o", "--output"];

/// Validates the options before the patch is fetched, and returns those of `patch` and the strip count.
pub(super) fn check(name: &str, desired: &Desired) -> Result<(Vec<String>, Option<i64>), String> {
    if which("patch").is_none() {
        return Err("patch executable not found on minion".into());
    }
    match Path::new(name) {
        _ if name.is_empty() => return Err("A file/directory to be patched is required".into()),
        path if !path.is_absolute() => return Err(format!("{name} is not an absolute path")),
        path if !path.exists() => return Err(format!("{name} does not exist")),
        _ => {}
    }
    if let Some(file) = &desired.reject_file {
        let directory = Path::new(file).parent().unwrap_or(Path::new(""));
        if !directory.is_absolute() {
            return Err(format!("'{file}' is not an absolute path"));
        }
        if !directory.is_dir() {
            return Err(format!(
                "Parent directory for reject_file '{file}' either does not exist, or is not a directory"
            ));
        }
    }
    let words = split(&desired.options)
        .ok_or_else(|| format!("options are invalid: unclosed quote in '{}'", desired.options))?;
    let invalid =
        |option| format!("Invalid format for '{option}' CLI option. Consider using the 'strip' option for this state.");
    let (mut options, mut refused, mut strip) = (Vec::new(), Vec::new(), desired.strip);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if REFUSED.iter().any(|option| word.starts_with(option)) {
            refused.push(word.clone());
        }
        if let Some(number) = word.strip_prefix("-p") {
            strip = Some(number.parse().map_err(|_| invalid("-p"))?);
        } else if word.starts_with("--strip") {
            let number = word.rsplit_once('=').map(|(_, number)| number.to_owned()).or_else(|| words.next());
            strip = Some(number.and_then(|number| number.parse().ok()).ok_or_else(|| invalid("-strip"))?);
        } else {
            options.push(word);
        }
    }
    if !refused.is_empty() {
        return Err(format!("The following CLI options are not allowed: {}", refused.join(", ")));
    }
    Ok((options, strip))
}

/// Applies a patch, unless it is applied already.
pub(super) fn state(
    context: &StateContext,
    name: &str,
    patch: &[u8],
    (options, strip): (Vec<String>, Option<i64>),
    reject_file: Option<&str>,
) -> Result<StateReturn, String> {
    let target = Path::new(name);
    let scratch = |content: &[u8]| Scratch::new(content, None).map_err(|error| error.to_string());
    let (patch, rejected, output) = (scratch(patch)?, scratch(b"")?, scratch(b"")?);
    let rejects = reject_file.map_or(rejected.path(), Path::new);
    let patched = |patch: &Path, more: Vec<String>, dry_run| {
        let options = options.iter().cloned().chain(more).collect();
        apply(&context.call, target, patch, options, dry_run).map_err(|error| error.to_string())
    };
    let strip: Vec<String> = strip.filter(|_| target.is_dir()).map(|strip| format!("-p{strip}")).into_iter().collect();
    let path = |path: &Path| path.display().to_string();
    let mut first = vec!["-N".to_owned(), "-r".into(), path(rejects), "-o".into(), path(output.path())];
    first.extend(strip.clone());
    let tried = patched(patch.path(), first, false)?;
    if tried.retcode != 0 {
        if std::fs::metadata(rejects).map_or(0, |status| status.len()) == 0 || tried.retcode == 2 {
            return Ok(StateReturn::failed(name, tried.stderr));
        }
        // Rejected hunks are applied already if they can be reverted.
        if patched(rejects, vec!["-R".into(), "-f".into()], true)?.retcode == 0 {
            return Ok(StateReturn::ok(name, "Patch was already applied"));
        }
        return Ok(StateReturn::failed(name, would_not_apply(tried, reject_file.is_some())));
    }
    if context.test {
        return Ok(StateReturn::predicted(name, "The patch would be applied").with_changes(cmd::result_of_all(tried)));
    }
    let output = patched(patch.path(), strip, false)?;
    let applied = output.retcode == 0;
    let report = if applied {
        StateReturn::ok(name, "Patch successfully applied")
    } else {
        StateReturn::failed(name, "Failed to apply patch")
    };
    Ok(report.with_changes(cmd::result_of_all(output)))
}

fn would_not_apply(tried: Output, keeps_rejects: bool) -> String {
    let hint = " Run state again using the reject_file option to save rejects to a persistent file.";
    let lines: Map = cmd::result_of_all(tried);
    let lines: Vec<String> = lines.iter().map(|(key, value): (_, &Value)| format!("{key}: {value}")).collect();
    format!(
        "Patch would not apply cleanly, no changes made. Results of dry-run are below.{}\n\n{}",
        if keeps_rejects { "" } else { hint },
        lines.join("\n")
    )
}
