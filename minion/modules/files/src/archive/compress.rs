//! `archive.gzip` and `archive.gunzip`: the programs on one file, which they replace.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::working_directory;
use brine_host::programs::argument;
use brine_system::user_files;
use brine_value::map;

use super::{limits, output_lines, rendered};
use crate::private_copy::PrivateCopy;

/// Execution functions of `archive`.
pub static FUNCTIONS: Functions<Context> = registry!("archive", [gzip, gunzip]);

/// Compress a file with gzip.
///
/// CLI Example:
///
///     salt '*' archive.gzip /tmp/sourcefile.txt
#[function]
pub fn gzip(
    context: &Context,
    /// Path of the file to compress.
    sourcefile: String,
    /// Template engine that renders the paths: `jinja`.
    template: Option<String>,
    /// User that the program runs as.
    runas: Option<String>,
    /// Further options of the program.
    options: Option<String>,
) -> CallResult {
    run_on_file(context, "gzip", options, sourcefile, template.as_deref(), runas)
}

/// Decompress a file with gunzip, up to `archive_max_size`.
///
/// CLI Example:
///
///     salt '*' archive.gunzip /tmp/sourcefile.txt.gz
#[function]
pub fn gunzip(
    context: &Context,
    /// Path of the file to decompress.
    gzipfile: String,
    /// Template engine that renders the paths: `jinja`.
    template: Option<String>,
    /// User that the program runs as.
    runas: Option<String>,
    /// Further options of the program.
    options: Option<String>,
) -> CallResult {
    run_on_file(context, "gunzip", options, gzipfile, template.as_deref(), runas)
}

fn run_on_file(
    context: &Context,
    program: &str,
    options: Option<String>,
    file: String,
    template: Option<&str>,
    runas: Option<String>,
) -> CallResult {
    let file = argument(&rendered(context, template, file)?)?;
    let mut words = vec![program.to_owned()];
    if let Some(options) = options.filter(|options| !options.is_empty()) {
        words.push(rendered(context, template, options)?);
    }
    let path = working_directory(None, runas.as_deref()).join(&file);
    let copy = if path.is_dir() { None } else { PrivateCopy::for_input(context, &path, runas.as_deref())? };
    words.push(PrivateCopy::path_or(copy.as_ref(), file));
    let output = limits::run(context, &words, &map! {"runas" => runas})?;
    let Some(copy) = copy else { return Ok(output_lines(&output.stdout).into()) };
    let overwrites = words[1..words.len() - 1].iter().any(|word| is_force(word));
    copy.hand_over_others(overwrites)?;
    if !copy.exists() {
        user_files::remove_file(&path)
            .map_err(|error| CallError::Execution(format!("removing {} failed: {error}", path.display())))?;
    }
    Ok(output_lines(&copy.shown(&output.stdout)).into())
}

/// Whether a word has the option `--force`.
fn is_force(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => long == "force",
        None => word.starts_with('-') && word.contains('f'),
    }
}
