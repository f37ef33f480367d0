//! `rsync`: copies of files and directories by the program `rsync`.

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `rsync`.
pub static FUNCTIONS: Functions<Context> = registry!("rsync", [rsync, version, config]);

/// The arguments of `rsync.rsync`. Options of the configuration, such as `rsync.src`, are their defaults.
#[derive(Args)]
pub struct RsyncArgs {
    /// Source: a path, an rsync URL, or a file or directory under `salt://`.
    #[default]
    src: String,
    /// Destination.
    #[default]
    dst: String,
    /// Whether files that the source does not have are deleted.
    #[default(false)]
    delete: bool,
    /// Whether directories that are not empty are deleted.
    #[default(false)]
    force: bool,
    /// Whether files that are newer at the destination are kept.
    #[default(false)]
    update: bool,
    /// File with the password of an rsync daemon.
    passwordfile: Option<String>,
    /// Pattern of files to leave out, or a list of patterns.
    #[default]
    exclude: Value,
    /// File with patterns of files to leave out, which replaces `exclude`.
    excludefrom: Option<String>,
    /// Whether nothing is changed.
    #[default(false)]
    dryrun: bool,
    /// Remote shell.
    rsh: Option<String>,
    /// List of further options.
    #[default]
    additional_opts: Value,
    /// Environment of files under `salt://`.
    #[default("base".into())]
    saltenv: String,
}

/// Copy files with rsync, and return its exit status and output.
///
/// CLI Example:
///
///     salt '*' rsync.rsync /path/to/src /path/to/dest delete=True update=True exclude=exclude/dir
///     salt '*' rsync.rsync salt://site /srv/www additional_opts='["--bwlimit=5000"]'
#[function(name = "rsync")]
pub fn rsync(context: &Context, #[args] args: RsyncArgs) -> CallResult {
    check_installed(context)?;
    let option = |name: &str| {
        let option = context.call("config.option", Args::positional([format!("rsync.{name}").into()]));
        option.ok().filter(Value::is_truthy)
    };
    let text = |argument: &str, name: &str| match argument {
        "" => option(name).map(|value| value.to_string()).unwrap_or_default(),
        argument => argument.to_owned(),
    };
    let flag = |argument: bool, name: &str| argument || option(name).is_some();
    let named = |argument: &Option<String>, name: &str| {
        argument.clone().filter(|text| !text.is_empty()).or_else(|| option(name).map(|value| value.to_string()))
    };
    let (mut src, dst) = (text(&args.src, "src"), text(&args.dst, "dst"));
    if src.is_empty() || dst.is_empty() {
        return Err(CallError::Execution("src and dst cannot be empty".into()));
    }
    let fetched = fetch_source(context, &src, &args.saltenv)?;
    if let Some((_, path)) = &fetched {
        src.clone_from(path);
    }
    let mut words = vec!["rsync".to_owned(), "-avz".to_owned()];
    for (is_set, name) in [(args.delete, "delete"), (args.force, "force"), (args.update, "update")] {
        words.extend(flag(is_set, name).then(|| format!("--{name}")));
    }
    words.extend(named(&args.rsh, "rsh").map(|shell| format!("--rsh={shell}")));
    if let Some(file) = named(&args.passwordfile, "passwordfile") {
        words.extend(["--password-file".to_owned(), file]);
    }
    if let Some(file) = named(&args.excludefrom, "excludefrom") {
        words.extend(["--exclude-from".to_owned(), file]);
    } else {
        let patterns = match &args.exclude {
            Value::List(patterns) => patterns.iter().map(ToString::to_string).collect(),
            one if one.is_truthy() => vec![one.to_string()],
            _ => option("exclude").map(|patterns| names(&patterns)).unwrap_or_default(),
        };
        words.extend(patterns.into_iter().flat_map(|pattern| ["--exclude".to_owned(), pattern]));
    }
    words.extend(flag(args.dryrun, "dryrun").then(|| "--dry-run".to_owned()));
    words.extend(args.additional_opts.as_list().unwrap_or_default().iter().map(ToString::to_string));
    words.extend([argument(&src)?, argument(&dst)?]);
    let output = run(context, &words, &[])?;
    context.set_retcode(output.retcode);
    Ok(crate::cmd::result_of_all(output).into())
}

/// Fetches a file or directory under `salt://` to a temporary directory, which is deleted when the result is dropped.
/// Returns that directory and the source path for rsync; `None` for other sources.
fn fetch_source(context: &Context, src: &str, saltenv: &str) -> Result<Option<(tempfile::TempDir, String)>, CallError> {
    let Some(path) = src.strip_prefix("salt://") else { return Ok(None) };
    let directory = tempfile::tempdir().map_err(CallError::execution)?;
    let call = |function: &str, args: Vec<Value>| {
        context.call(function, Args { positional: args, keyword: map! {"saltenv" => saltenv} })
    };
    let is_directory = call("cp.list_master_dirs", Vec::new())?.as_list().is_some_and(|all| all.contains(&path.into()));
    let (function, target) = if is_directory {
        ("cp.get_dir", directory.path().to_path_buf())
    } else {
        ("cp.get_file", directory.path().join(Path::new(path).file_name().unwrap_or_default()))
    };
    let target = target.to_string_lossy().into_owned();
    if !call(function, vec![src.into(), target.as_str().into()])?.is_truthy() {
        return Err(CallError::Execution(format!("{src} does not exist")));
    }
    // With a trailing slash, rsync copies the content of the temporary directory, not the directory itself.
    let slash = if is_directory { "/" } else { "" };
    Ok(Some((directory, format!("{target}{slash}"))))
}

/// Return the version of rsync.
///
/// CLI Example:
///
///     salt '*' rsync.version
#[function]
pub fn version(context: &Context) -> CallResult {
    check_installed(context)?;
    let output = run(context, &["rsync".to_owned(), "--version".to_owned()], &[])?;
    let version = output.stdout.lines().next().and_then(|line| line.split_whitespace().nth(2));
    version.map(Into::into).ok_or_else(|| CallError::Execution("Unable to determine rsync version".into()))
}

/// Return the content of the configuration of the rsync daemon.
///
/// CLI Example:
///
///     salt '*' rsync.config
#[function]
pub fn config(
    _context: &Context,
    /// Path of the configuration.
    #[default("/etc/rsyncd.conf".into())]
    conf_path: String,
) -> CallResult {
    use std::io::ErrorKind;
    let failed = |error: std::io::Error| {
        CallError::Execution(match error.kind() {
            ErrorKind::NotFound => format!("{conf_path} does not exist"),
            ErrorKind::PermissionDenied => format!("Unable to read {conf_path}, access denied"),
            ErrorKind::IsADirectory => format!("Unable to read {conf_path}, path is a directory"),
            _ => format!("Unable to read {conf_path}: {error}"),
        })
    };
    std::fs::read_to_string(&conf_path).map(Into::into).map_err(failed)
}

fn check_installed(context: &Context) -> Result<(), CallError> {
    if context.minion.programs.find("rsync").is_some() {
        return Ok(());
    }
    Err(CallError::Execution(
        "The rsync execution module cannot be loaded: the rsync binary is not in the path.".into(),
    ))
}

#[cfg(test)]
mod tests;
