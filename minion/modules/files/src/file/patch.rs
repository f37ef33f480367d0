//! Applies patches with the program `patch`.

use std::path::Path;
use std::sync::atomic::Ordering;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_host::process::{Output, split};
use brine_host::programs::which;
use brine_system::user_files;

use crate::cmd;
use crate::private_copy::{Content, PrivateCopy};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!("file", [patch]);

/// Apply a patch to a file, or to the files of a directory, and return the result as `cmd.run_all`. With `dry_run`,
/// nothing is written.
///
/// CLI Example:
///
///     salt '*' file.patch /opt/file.txt /tmp/file.txt.patch
#[function]
pub fn patch(
    context: &Context,
    /// Path of the file or directory to patch.
    originalfile: String,
    /// Path of the patch.
    patchfile: String,
    /// Options of `patch`, as on a command line.
    #[default]
    options: String,
    /// Whether the files are left as they are.
    #[default(false)]
    dry_run: bool,
) -> CallResult {
    let options = split(&options)
        .ok_or_else(|| CallError::Execution(format!("options are invalid: unclosed quote in '{options}'")))?;
    let output = apply(context, &expand(&originalfile), Path::new(&patchfile), options, dry_run)?;
    context.job.retcode.store(output.retcode, Ordering::Relaxed);
    Ok(cmd::result_of_all(output).into())
}

/// Runs `patch` without prompts, and without reject files unless an option requests them.
pub fn apply(
    context: &Context,
    target: &Path,
    patch: &Path,
    options: Vec<String>,
    dry_run: bool,
) -> Result<Output, CallError> {
    let missing =
        || CallError::Execution("patch executable not found. Is the distribution's patch package installed?".into());
    let has = |options: &[String], names: &[&str]| {
        options
            .iter()
            .any(|option| names.iter().any(|name| option == name || name.len() > 2 && option.starts_with(name)))
    };
    let mut words = vec![which("patch").ok_or_else(missing)?.display().to_string()];
    let strips = options.iter().any(|option| option.starts_with("-p") || option.starts_with("--strip="));
    words.extend(options);
    if dry_run {
        words.push("--dry-run".into());
    }
    if !has(&words, &["-N", "--forward"]) {
        words.push("--forward".into());
    }
    if !has(&words, &["-r", "--reject-file"]) {
        words.push("--reject-file=-".into());
    }
    words.extend(["-i".into(), patch.display().to_string()]);
    if target.is_dir() {
        words.extend(["-d".into(), target.display().to_string()]);
        if !strips {
            words.push("--strip=0".into());
        }
        return run(context, &words, &[]);
    }
    // The program reads the file by its path again and again.
    let Some(copy) = PrivateCopy::for_output(context, target, None, Content::Kept)? else {
        words.extend(["--".into(), target.display().to_string()]);
        return run(context, &words, &[]);
    };
    words.extend(["--".into(), copy.path().display().to_string()]);
    let content = || copy.exists().then(|| user_files::read(copy.path())).transpose().map_err(CallError::execution);
    let before = content()?;
    let output = run(context, &words, &[])?;
    let after = content()?;
    if after != before {
        match after {
            Some(_) => copy.hand_over_without_set_id()?,
            None => user_files::remove_file(target).map_err(CallError::execution)?,
        }
    }
    copy.hand_over_others(true)?;
    Ok(Output { stdout: copy.shown(&output.stdout), stderr: copy.shown(&output.stderr), ..output })
}
