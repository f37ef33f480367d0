//! `archive`: creates and extracts archives with the programs of the host; ZIP files are handled in this process.
//!
//! `contents.rs` lists archives, `limits.rs` limits what they extract, `private.rs` has the files of directories that others
//! can write, `zipped.rs` handles ZIP files.

mod compress;
mod contents;
mod limits;
mod pack;
pub(crate) mod state;
mod tar;
#[cfg(test)]
mod tests;
mod zipped;

use std::path::{Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, working_directory};
use brine_host::programs::argument;
use brine_system::user_files;
use brine_text::glob::{self, is_pattern};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

use crate::cmd::{self, CommandArgs, split_options};
use crate::file_cache;
use crate::private_copy::{Content, PrivateCopy};
use brine_function::arguments::names;
use contents::error_of_archive;
pub use contents::{Contents, Format, TAR_LISTING, contents, tar_listing};
pub use limits::LimitError;
use zipped::Unzip;
pub use zipped::needs_password;

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &compress::FUNCTIONS, &pack::FUNCTIONS, &tar::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `archive`.
pub static FUNCTIONS: Functions<Context> = registry!("archive", [list_, cmd_zip, cmd_unzip, unzip, is_encrypted]);

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
        return Err(error_of_archive(&cached, "'strip_components' must be a positive integer"));
    }
    let format = match args.archive_format.filter(|format| !format.is_empty()) {
        Some(format) => Format::named(&format)
            .ok_or_else(|| error_of_archive(&cached, &format!("Unsupported archive format '{format}'")))?,
        None => Format::guess(&args.name).ok_or_else(|| {
            error_of_archive(&cached, "Unable to guess archive format, please pass an 'archive_format' argument.")
        })?,
    };
    let contents = contents(context, &args.name, &cached, format, args.options.as_deref(), strip)?;
    if args.clean {
        _ = user_files::remove_file(&cached);
    }
    if !args.verbose {
        let mut all = [contents.dirs, contents.files, contents.links].concat();
        all.sort();
        return Ok(all.into());
    }
    Ok(map! {
        "top_level_dirs" => contents.top_level_dirs(),
        "top_level_files" => contents.top_level_files(),
        "top_level_links" => contents.top_level_links(),
        "dirs" => contents.dirs,
        "files" => contents.files,
        "links" => contents.links,
    }
    .into())
}

/// Create a ZIP archive with the program `zip`.
///
/// CLI Example:
///
///     salt '*' archive.cmd_zip /tmp/zipfile.zip '/tmp/sourcefile1,/tmp/sourcefile2'
#[function]
pub fn cmd_zip(
    context: &Context,
    /// Path of the archive to write.
    zip_file: String,
    /// Paths to add to the archive, as a list or with commas.
    sources: Value,
    /// Template engine that renders the paths: `jinja`.
    template: Option<String>,
    /// Working directory, which relative paths start from.
    cwd: Option<String>,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let render = |text: String| rendered(context, template.as_deref(), text);
    let zip_file = argument(&render(zip_file)?)?;
    let sources = rendered_operands(context, template.as_deref(), expand(&sources))?;
    let cwd = cwd.map(render).transpose()?;
    let directory = working_directory(cwd.as_deref().map(Path::new), runas.as_deref());
    let target = with_extension(directory.join(&zip_file), "zip");
    let copy = PrivateCopy::for_output(context, &target, runas.as_deref(), Content::Kept)?;
    let path = PrivateCopy::path_or(copy.as_ref(), zip_file);
    let mut words = vec!["zip".to_owned(), "-r".to_owned(), path];
    words.extend(sources);
    if copy.is_some() {
        // `zip` omits the archive that it writes, which is another file here.
        let below = target.strip_prefix(&directory).ok().into_iter().chain(target.strip_prefix("/").ok());
        words.push("-x".to_owned());
        words.extend(below.map(|path| path.display().to_string()));
    }
    let output = output(context, &words, &map! {"cwd" => cwd, "runas" => runas})?.stdout;
    let Some(copy) = copy else { return Ok(output_lines(&output).into()) };
    copy.hand_over()?;
    Ok(output_lines(&copy.shown(&output)).into())
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
    let template = args.template.as_deref();
    let zip_file = argument(&rendered(context, template, args.zip_file)?)?;
    let dest = argument(&rendered(context, template, args.dest)?)?;
    let excludes = rendered_operands(context, template, names(&args.excludes))?;
    let original = working_directory(None, args.runas.as_deref()).join(&zip_file);
    let copy = PrivateCopy::for_input(context, &original, args.runas.as_deref())?;
    let path = copy.as_ref().map_or(original.as_path(), PrivateCopy::path);
    let contents = zipped::contents(path)
        .map_err(|error| error_of_archive(&original, &format!("{zip_file} cannot be listed: {error}")))?;
    // `unzip` creates no devices, and sets the bits only with an option.
    contents.check_limits(context.config(), true).map_err(CallError::execution)?;
    let mut words = vec!["unzip".to_owned()];
    if args.password.is_truthy() {
        words.extend(["-P".to_owned(), args.password.to_string()]);
    }
    words.extend(split_options(args.options.as_deref().unwrap_or_default())?);
    words.extend([PrivateCopy::path_or(copy.as_ref(), zip_file), "-d".to_owned(), dest]);
    if !args.excludes.is_nil() {
        words.push("-x".to_owned());
        words.extend(excludes);
    }
    let output = limits::run(context, &words, &map! {"runas" => args.runas})?;
    let text = PrivateCopy::shown_or(copy.as_ref(), output.stdout);
    if output.retcode != 0 {
        return Err(CallError::Execution(text));
    }
    Ok(trimmed(output_lines(&text), &args.trim_output).into())
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
    /// URL or path of the archive.
    name: String,
    /// Whether the copy of the archive is removed afterwards.
    #[default(false)]
    clean: bool,
    /// Environment of the file server for a `salt://` URL.
    #[default("base".to_owned())]
    saltenv: String,
    /// Without effect, as for `archive.list`.
    #[default]
    source_hash: Value,
    /// Without effect, as for `archive.list`.
    #[default(false)]
    use_etag: bool,
) -> CallResult {
    _ = (source_hash, use_etag);
    let cached = cached(context, &name, &saltenv)?;
    let encrypted =
        needs_password(&cached).map_err(|_| error_of_archive(&cached, &format!("{name} is not a ZIP file")))?;
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
    rendering.render_template("path", &text, &Map::new(), "base").map_err(CallError::execution)
}

/// Runs a program and returns its output with its errors.
fn output(context: &Context, words: &[String], kwargs: &Map) -> Result<Output, CallError> {
    cmd::execute(context, &command_line(words), &arguments(kwargs)?)
}

fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// Returns arguments for a program without a shell, whose errors are part of its output.
fn arguments(kwargs: &Map) -> Result<CommandArgs, CallError> {
    let mut kwargs = kwargs.clone();
    kwargs.extend(map! {"python_shell" => false, "redirect_stderr" => true});
    CommandArgs::read(&kwargs)
}

fn output_lines(output: &str) -> Vec<String> {
    output.lines().map(str::to_owned).collect()
}

/// Returns a path with an extension that programs add to a name without a dot.
fn with_extension(path: PathBuf, extension: &str) -> PathBuf {
    let has_dot = path.file_name().is_some_and(|name| name.to_string_lossy().contains('.'));
    if has_dot { path } else { path.with_extension(extension) }
}

/// Renders paths with a template engine, if one is named, and checks that they are no options.
fn rendered_operands(context: &Context, template: Option<&str>, paths: Vec<String>) -> Result<Vec<String>, CallError> {
    paths.into_iter().map(|path| argument(&rendered(context, template, argument(&path)?)?)).collect()
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
        let report =
            || error_of_archive(Path::new(name), &format!("Failed to list contents of {name}: {missing}: '{name}'"));
        return Some(PathBuf::from(name)).filter(|path| path.is_file()).ok_or_else(report);
    };
    match protocol {
        "file" => Some(PathBuf::from(path)).filter(|path| path.is_file()).ok_or_else(failed),
        "salt" => {
            let target = file_cache::path_of(&context.config().cachedir, name, saltenv).ok_or_else(failed)?;
            let (path, saltenv) = in_environment(path, saltenv);
            let content = context.minion.files.read(path, saltenv).map_err(CallError::execution)?.ok_or_else(failed)?;
            brine_system::files::create_private_dir(target.parent().unwrap_or(&target))
                .map_err(CallError::execution)?;
            brine_system::files::write_atomic(&target, &content, 0o600).map_err(CallError::execution)?;
            Ok(target)
        }
        _ => Err(CallError::Execution(format!("{name}: archives come from this host or from salt://"))),
    }
}
