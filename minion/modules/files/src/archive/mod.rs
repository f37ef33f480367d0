//! `archive`: creates and extracts archives with the programs of the host; ZIP files are handled in this process.
//!
//! `contents.rs` lists archives, `zipped.rs` handles ZIP files.

mod contents;
mod pack;
pub(crate) mod state;
mod zipped;

use std::path::{Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::user_files;
use brine_text::glob::{self, is_pattern};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

use super::cmd::{self, CommandArgs};
use super::cp::file_cache;
use brine_function::arguments::names;
use contents::at;
pub use contents::{Contents, Format, contents, tar_listing};
use zipped::Unzip;
pub use zipped::needs_password;

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS, &pack::FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `archive`.
pub static FUNCTIONS: Functions<Context> =
    registry!("archive", [list_, tar, gzip, gunzip, cmd_zip, cmd_unzip, unzip, is_encrypted]);

/// The arguments of `archive.list_`.
#[derive(Args)]
pub struct ListArgs {
    /// Path or URL of the archive.
    name: String,
    /// `tar`, `rar` or `zip`; that of the file name by default.
    archive_format: Option<String>,
    /// Command that decompresses a `tar` archive to standard output, such as `xz --decompress --stdout`.
    options: Option<String>,
    /// Number of leading components to strip from paths.
    #[default]
    strip_components: Value,
    /// Whether the listed file is removed afterwards: the copy in the cache or, for a local path, the archive itself.
    #[default(false)]
    clean: bool,
    /// Whether directories, files and links are returned separately.
    #[default(false)]
    verbose: bool,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Without effect: the copy in the cache is compared with the server's file.
    #[default]
    source_hash: Value,
    /// Without effect: the copy in the cache is compared with the server's file.
    #[default(false)]
    use_etag: bool,
}

/// Return the content of an archive on this host or under `salt://`: a list, or with `verbose` directories, files
/// and links separately.
///
/// CLI Example:
///
///     salt '*' archive.list /path/to/myfile.tar.gz strip_components=1
#[function(name = "list")]
pub fn list_(context: &Context, #[args] args: ListArgs) -> CallResult {
    _ = (args.source_hash, args.use_etag);
    let cached = cached(context, &args.name, &args.saltenv)?;
    let strip = u32::from_value(&args.strip_components).filter(|count| *count > 0);
    if args.strip_components.is_truthy() && strip.is_none() {
        return Err(at(&cached, "'strip_components' must be a positive integer"));
    }
    let format = match args.archive_format.filter(|format| !format.is_empty()) {
        Some(format) => {
            Format::named(&format).ok_or_else(|| at(&cached, &format!("Unsupported archive format '{format}'")))?
        }
        None => Format::guess(&args.name)
            .ok_or_else(|| at(&cached, "Unable to guess archive format, please pass an 'archive_format' argument."))?,
    };
    let found = contents(context, &args.name, &cached, format, args.options.as_deref(), strip)?;
    if args.clean {
        _ = user_files::remove_file(&cached);
    }
    if !args.verbose {
        let mut all = [found.dirs, found.files, found.links].concat();
        all.sort();
        return Ok(all.into());
    }
    Ok(map! {
        "top_level_dirs" => found.top_level_dirs(),
        "top_level_files" => found.top_level_files(),
        "top_level_links" => found.top_level_links(),
        "dirs" => found.dirs,
        "files" => found.files,
        "links" => found.links,
    }
    .into())
}

/// Run `tar` with these options on an archive.
///
/// CLI Example:
///
///     salt '*' archive.tar cjvf /tmp/salt.tar.bz2 '/tmp/file_1,/tmp/file_2'
#[function]
pub fn tar(
    context: &Context,
    options: String,
    tarfile: String,
    #[default] sources: Value,
    dest: Option<String>,
    cwd: Option<String>,
    template: Option<String>,
    runas: Option<String>,
) -> CallResult {
    if options.is_empty() {
        return Err(CallError::Execution("Tar options can not be empty".into()));
    }
    let mut words = vec!["tar".to_owned()];
    words.extend(options.split_whitespace().map(str::to_owned));
    words.push(argument(&tarfile)?);
    words.extend(dest.into_iter().flat_map(|dest| ["-C".to_owned(), dest]));
    words.extend(operands(expand(&sources))?);
    lines(context, &words, &map! {"cwd" => cwd, "template" => template, "runas" => runas})
}

/// Compress a file with gzip.
///
/// CLI Example:
///
///     salt '*' archive.gzip /tmp/sourcefile.txt
#[function]
pub fn gzip(
    context: &Context,
    sourcefile: String,
    template: Option<String>,
    runas: Option<String>,
    options: Option<String>,
) -> CallResult {
    run_on_file(context, "gzip", options, sourcefile, template, runas)
}

/// Decompress a file with gunzip.
///
/// CLI Example:
///
///     salt '*' archive.gunzip /tmp/sourcefile.txt.gz
#[function]
pub fn gunzip(
    context: &Context,
    gzipfile: String,
    template: Option<String>,
    runas: Option<String>,
    options: Option<String>,
) -> CallResult {
    run_on_file(context, "gunzip", options, gzipfile, template, runas)
}

/// Create a ZIP archive with the program `zip`.
///
/// CLI Example:
///
///     salt '*' archive.cmd_zip /tmp/zipfile.zip '/tmp/sourcefile1,/tmp/sourcefile2'
#[function]
pub fn cmd_zip(
    context: &Context,
    zip_file: String,
    sources: Value,
    template: Option<String>,
    cwd: Option<String>,
    runas: Option<String>,
) -> CallResult {
    let mut words = vec!["zip".to_owned(), "-r".to_owned(), argument(&zip_file)?];
    words.extend(operands(expand(&sources))?);
    lines(context, &words, &map! {"cwd" => cwd, "template" => template, "runas" => runas})
}

/// The arguments of `archive.cmd_unzip`; `archive.unzip` has one more.
#[derive(Args)]
pub struct ZipArgs {
    /// Path of the archive.
    zip_file: String,
    /// Directory to extract into.
    dest: String,
    /// Paths of the archive to leave out.
    #[default]
    excludes: Value,
    /// Further options of the program `unzip`, which `archive.unzip` does not run.
    options: Option<String>,
    /// Template engine that renders the paths.
    template: Option<String>,
    /// User to extract as; only for `archive.cmd_unzip`.
    runas: Option<String>,
    /// Highest number of returned files, or `true` for 100.
    #[default(false.into())]
    trim_output: Value,
    /// Password of the archive.
    #[default]
    password: Value,
}

/// Extract a ZIP archive with the program `unzip`.
///
/// CLI Example:
///
///     salt '*' archive.cmd_unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2
#[function]
pub fn cmd_unzip(context: &Context, #[args] args: ZipArgs) -> CallResult {
    let mut words = vec!["unzip".to_owned()];
    if args.password.is_truthy() {
        words.extend(["-P".to_owned(), args.password.to_string()]);
    }
    words.extend(split_options(args.options.as_deref().unwrap_or_default())?);
    words.extend([argument(&args.zip_file)?, "-d".to_owned(), argument(&args.dest)?]);
    if !args.excludes.is_nil() {
        words.push("-x".to_owned());
        words.extend(operands(names(&args.excludes))?);
    }
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ") + " 2>&1";
    let output = cmd::execute(
        context,
        &command,
        &CommandArgs::read(&map! {"template" => args.template, "runas" => args.runas, "python_shell" => true})?,
    )?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stdout));
    }
    Ok(trimmed(output.stdout.lines().map(str::to_owned).collect(), &args.trim_output).into())
}

/// The arguments of `archive.unzip`.
#[derive(Args)]
pub struct UnzipArgs {
    #[args]
    archive: ZipArgs,
    /// Whether files get the permissions stored in the archive.
    #[default(true)]
    extract_perms: bool,
    /// Whether these permissions include set-uid and set-gid bits.
    #[default(false)]
    special_files: bool,
}

/// Extract a ZIP archive. `options` is without effect.
///
/// CLI Example:
///
///     salt '*' archive.unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2
#[function]
pub fn unzip(context: &Context, #[args] args: UnzipArgs) -> CallResult {
    _ = args.archive.options;
    let render = |text: String| rendered(context, args.archive.template.as_deref(), text);
    if args.archive.runas.is_some() {
        return Err(CallError::Execution(
            "archive.unzip works as the minion's own user: use archive.cmd_unzip with runas".into(),
        ));
    }
    let (zip_file, dest, excludes) =
        (render(args.archive.zip_file)?, render(args.archive.dest)?, names(&args.archive.excludes));
    let password = args.archive.password.is_truthy().then(|| args.archive.password.to_string());
    let how = Unzip {
        excludes: &excludes,
        password: password.as_deref(),
        keep_modes: args.extract_perms,
        keep_set_id: args.special_files,
        max_size: context.config().archive_max_size,
        max_entries: context.config().archive_max_entries,
    };
    let files = how
        .unpack(Path::new(&zip_file), Path::new(&dest))
        .map_err(|error| CallError::Execution(format!("Exception encountered unpacking zipfile: {error}")))?;
    Ok(trimmed(files, &args.archive.trim_output).into())
}

/// Return whether a ZIP archive requires a password. `source_hash` and `use_etag` are without effect, as for `archive.list`.
///
/// CLI Example:
///
///     salt '*' archive.is_encrypted /path/to/myfile.zip
#[function]
pub fn is_encrypted(
    context: &Context,
    name: String,
    #[default(false)] clean: bool,
    #[default("base".to_owned())] saltenv: String,
    #[default] source_hash: Value,
    #[default(false)] use_etag: bool,
) -> CallResult {
    _ = (source_hash, use_etag);
    let cached = cached(context, &name, &saltenv)?;
    let encrypted = needs_password(&cached).map_err(|_| at(&cached, &format!("{name} is not a ZIP file")))?;
    if clean {
        _ = user_files::remove_file(&cached);
    }
    Ok(encrypted.into())
}

/// Returns a path as it is, or rendered if a template engine is named.
fn rendered(context: &Context, template: Option<&str>, text: String) -> Result<String, CallError> {
    if template.is_none() {
        return Ok(text);
    }
    let rendering = brine_state::Source::new(context, context.pillar());
    rendering.render_template("path", &text, &Map::new(), "base").map_err(CallError::Execution)
}

/// Runs a program and returns the lines of its output.
fn lines(context: &Context, words: &[String], kwargs: &Map) -> Result<Value, CallError> {
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let mut kwargs: Map = kwargs.clone();
    kwargs.insert("python_shell".into(), false.into());
    Ok(cmd::output(context, &command, &CommandArgs::read(&kwargs)?)?
        .to_string()
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into())
}

fn run_on_file(
    context: &Context,
    program: &str,
    options: Option<String>,
    file: String,
    template: Option<String>,
    runas: Option<String>,
) -> Result<Value, CallError> {
    let mut words = vec![program.to_owned()];
    words.extend(options.filter(|options| !options.is_empty()));
    words.push(argument(&file)?);
    lines(context, &words, &map! {"template" => template, "runas" => runas})
}

/// Returns the names, with wildcards expanded to matching paths.
fn expand(sources: &Value) -> Vec<String> {
    let paths = |name: String| {
        if !is_pattern(&name) {
            return vec![name];
        }
        glob::paths(Path::new(""), &name).into_iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
    };
    names(sources).into_iter().flat_map(paths).collect()
}

/// Checks that paths are no options.
fn operands(paths: Vec<String>) -> Result<Vec<String>, CallError> {
    paths.iter().map(|path| argument(path)).collect()
}

/// Splits options into arguments.
pub fn split_options(options: &str) -> Result<Vec<String>, CallError> {
    brine_host::process::split(options)
        .ok_or_else(|| CallError::Execution(format!("options are invalid: unclosed quote in '{options}'")))
}

/// Returns the first files, followed by a note with the number of omitted ones.
fn trimmed(mut files: Vec<String>, trim: &Value) -> Vec<String> {
    let count = match trim {
        Value::Bool(false) => return files,
        Value::Bool(true) => 100,
        number => usize::from_value(number).unwrap_or(100),
    };
    if files.len() > count {
        files.truncate(count);
        files.push(format!("List trimmed after {count} files."));
    }
    files
}

/// Returns the local path of an archive; a `salt://` URL is copied into the cache.
fn cached(context: &Context, name: &str, saltenv: &str) -> Result<PathBuf, CallError> {
    let failed = || CallError::Execution(format!("Failed to cache {name}"));
    let Some((protocol, path)) = name.split_once("://") else {
        let missing = "[Errno 2] No such file or directory";
        let report = || at(Path::new(name), &format!("Failed to list contents of {name}: {missing}: '{name}'"));
        return Some(PathBuf::from(name)).filter(|path| path.is_file()).ok_or_else(report);
    };
    match protocol {
        "file" => Some(PathBuf::from(path)).filter(|path| path.is_file()).ok_or_else(failed),
        "salt" => {
            let target = file_cache::path_of(&context.config().cachedir, name, saltenv).ok_or_else(failed)?;
            let (path, saltenv) = in_environment(path, saltenv);
            let content = context.minion.files.read(path, saltenv).map_err(CallError::Execution)?.ok_or_else(failed)?;
            brine_system::files::create_private_dir(target.parent().unwrap_or(&target))
                .map_err(CallError::execution)?;
            brine_system::files::write_atomic(&target, &content, 0o600).map_err(CallError::execution)?;
            Ok(target)
        }
        _ => Err(CallError::Execution(format!("{name}: archives come from this host or from salt://"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_config::MinionConfig;

    use std::fs;

    use super::*;
    use crate::testing;

    #[test]
    fn saltenv_does_not_lead_out_of_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let mut minion = testing::minion(&[("a.tar", "content")]);
        let own = Arc::get_mut(&mut minion).unwrap();
        own.config = Arc::new(MinionConfig { cachedir: directory.path().join("cache"), ..(*own.config).clone() });
        let context = testing::context_of(minion);
        let path = cached(&context, "salt://a.tar", "dev").unwrap();
        assert_eq!(path, directory.path().join("cache/files/dev/a.tar"));
        assert_eq!(fs::read_to_string(path).unwrap(), "content");
        for (name, saltenv) in [("salt://a.tar", "../../out"), ("salt://a.tar?saltenv=../../out", "base")] {
            assert!(cached(&context, name, saltenv).unwrap_err().to_string().contains("Failed to cache"));
            assert!(!directory.path().join("out").exists(), "{name}");
        }
    }

    #[test]
    fn names_of_files_never_become_options() {
        const OPTION: &str = "--checkpoint-action=exec=touch /tmp/x";
        let context = testing::context_with(brine_testing::debian(), testing::Scripted::new(""));
        for (function, keyword) in [
            ("archive.tar", map! {"options" => "cf", "tarfile" => "/tmp/a", "sources" => OPTION}),
            ("archive.tar", map! {"options" => "x", "tarfile" => OPTION}),
            ("archive.gzip", map! {"sourcefile" => OPTION}),
            ("archive.gunzip", map! {"gzipfile" => OPTION}),
            ("archive.cmd_zip", map! {"zip_file" => OPTION, "sources" => "a"}),
            ("archive.cmd_zip", map! {"zip_file" => "/tmp/a", "sources" => brine_value::list!["a", OPTION]}),
            ("archive.cmd_unzip", map! {"zip_file" => OPTION, "dest" => "/tmp"}),
            ("archive.cmd_unzip", map! {"zip_file" => "/tmp/a", "dest" => "/tmp", "excludes" => OPTION}),
        ] {
            let error = context.call(function, Args::keyword(keyword)).unwrap_err().to_string();
            assert!(error.contains("cannot be used: it starts with '-'"), "{function}: {error}");
        }
    }
}
