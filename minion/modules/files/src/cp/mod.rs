//! `cp`: copies, caches and lists files of the file server, of web servers and of this host.
//!
//! [`crate::file_cache`] owns the cache.

mod cached;
mod copies;
mod lists;
pub mod push;
pub mod recv;

use std::path::{Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_state::Source;
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value, map};

use crate::file;
use crate::file::state::Selection;
use crate::file_cache::{self, Remote};
use copies::{content, copied, fetched, has_directory_for, last_name, within};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS, &push::FUNCTIONS, &recv::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `cp`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "cp",
    [
        get_file,
        get_dir,
        get_url,
        get_template,
        get_file_str,
        cache_file,
        cache_files,
        cache_dir,
        cache_master,
        cache_local_file,
        cached::cache_dest,
        cached::is_cached,
        cached::list_minion,
        lists::hash_file,
        lists::stat_file,
        lists::list_master_symlinks,
        lists::list_states,
        lists::list_master,
        lists::list_master_dirs,
        lists::envs
    ]
);

/// The arguments for rendering source and target paths.
#[derive(Args)]
pub struct RenderingArgs {
    /// Template engine that renders the paths, such as `jinja`.
    template: Option<String>,
    /// Without effect: files are transferred uncompressed.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    gzip: Value,
    /// Further arguments: `pillarenv` and `pillar` override the pillar of the template.
    #[keywords]
    kwargs: Map,
}

impl RenderingArgs {
    /// Returns a path, rendered if a template engine is named.
    fn of(&self, context: &Context, text: String, saltenv: &str) -> Result<String, CallError> {
        let Some(template) = self.template.as_deref().filter(|template| !template.is_empty()) else { return Ok(text) };
        if template != "jinja" {
            let error = format!("Attempted to render file paths with unavailable engine {template}");
            return Err(CallError::Execution(error));
        }
        let (pillarenv, over) = (self.kwargs.get("pillarenv"), self.kwargs.get("pillar"));
        let pillar = if pillarenv.is_none() && over.is_none() {
            context.pillar()
        } else {
            let over = over.and_then(Value::as_map).cloned().unwrap_or_default();
            let pillarenv = pillarenv.and_then(Value::as_str).or(context.config().pillarenv.as_deref());
            let pillar = context.minion.upstream.pillar(Some(saltenv), pillarenv, &over);
            pillar.map_err(CallError::execution)?.into()
        };
        let variables = map! {"saltenv" => saltenv};
        Source::new(context, pillar).render_template(&text, &text, &variables, saltenv).map_err(CallError::execution)
    }
}

/// Copy a file of the file server to a path or into a directory, and return the path. Returns an empty string if
/// there is no such file, false if the directory does not exist. With `template`, source and target paths are
/// rendered.
///
/// CLI Example:
///
///     salt '*' cp.get_file salt://path/to/file /minion/dest
#[function]
pub fn get_file(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Path of the copy.
    #[required]
    dest: Option<String>,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Whether missing parent directories of the copy are created.
    #[default(false)]
    makedirs: bool,
    #[args] rendering: RenderingArgs,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let (path, dest) =
        (rendering.of(context, path, &saltenv)?, dest.map(|dest| rendering.of(context, dest, &saltenv)).transpose()?);
    let (name, saltenv) = below_salt(&path, &saltenv)?;
    if context.minion.files.hash(name, saltenv).map_err(CallError::execution)?.is_none() {
        return Ok("".into());
    }
    match dest.filter(|dest| !dest.is_empty()) {
        Some(dest) => copied(context, name, saltenv, &dest, makedirs),
        None => Ok(path_or_false(
            file_cache::cache(context, &format!("salt://{name}"), saltenv, &Remote::default())
                .map_err(CallError::Execution)?,
        )),
    }
}

/// Copy a directory of the file server with all its files into a local one, and return the paths.
///
/// CLI Example:
///
///     salt '*' cp.get_dir salt://path/to/dir/ /minion/dest
#[function]
pub fn get_dir(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Path of the copy.
    dest: String,
    /// Environment of the file server.
    saltenv: Option<String>,
    #[args] rendering: RenderingArgs,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let (path, dest) = (rendering.of(context, path, &saltenv)?, rendering.of(context, dest, &saltenv)?);
    let (name, saltenv) = below_salt(&path, &saltenv)?;
    let name = name.trim_end_matches('/');
    let above = name.rsplit_once('/').map_or("", |(above, _)| above);
    let client = &context.minion.files;
    let target = |file: &String| {
        let is_below = !name.is_empty() && file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        is_below.then(|| format!("{dest}/{}", file[above.len()..].trim_start_matches('/')))
    };
    let mut made = Vec::new();
    for file in client.list(saltenv).map_err(CallError::execution)? {
        let Some(target) = target(&file) else { continue };
        made.push(copied(context, &file, saltenv, &target, true)?.to_string());
    }
    for directory in client.empty_directories(saltenv).map_err(CallError::execution)? {
        let Some(target) = target(&directory) else { continue };
        user_files::create_dir_all(&target).map_err(|error| file::error_at(&target, &error))?;
        made.push(target);
    }
    made.sort();
    Ok(made.into())
}

/// Fetch a file by its URL (`salt://`, `http://`, `https://`, `file://`, or a path) to a path or into the cache,
/// and return the path. With `None` as path, return the content. Returns false if the file server has no such file,
/// an empty string if the directory does not exist.
///
/// CLI Example:
///
///     salt '*' cp.get_url salt://my/file /tmp/this_file_is_mine
#[function]
pub fn get_url(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Path of the copy.
    #[default("".into())]
    dest: Value,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Whether missing parent directories of the copy are created.
    #[default(false)]
    makedirs: bool,
    /// Expected checksum of the file.
    source_hash: Option<String>,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let remote = Remote { hash: source_hash, ..Remote::default() };
    let is_web = path.starts_with("http://") || path.starts_with("https://");
    let dest = match &dest {
        Value::Str(dest) if !dest.is_empty() && (is_web || path.starts_with("salt://")) => dest.clone(),
        Value::Str(_) => {
            return Ok(path_or_false(
                file_cache::cache(context, &path, &saltenv, &remote).map_err(CallError::Execution)?,
            ));
        }
        _ => return content(context, &path, &saltenv),
    };
    if !is_web {
        let (name, saltenv) = below_salt(&path, &saltenv)?;
        return copied(context, name, saltenv, &dest, makedirs);
    }
    let target = within(&dest, last_name(&path));
    if !has_directory_for(&target, makedirs)? {
        return Ok("".into());
    }
    fetched(context, &path, target)
}

/// Render a file as a template, write it to a path or into the cache, and return the path. Further keyword
/// arguments are variables of the template. Returns an empty string if there is no such file, directory or template
/// engine.
///
/// CLI Example:
///
///     salt '*' cp.get_template salt://path/to/template /minion/dest
#[function]
pub fn get_template(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Path of the copy.
    #[required]
    dest: Option<String>,
    /// Template engine that renders the file, such as `jinja`.
    #[default("jinja".into())]
    template: String,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Whether missing parent directories of the copy are created.
    #[default(false)]
    makedirs: bool,
    /// Variables of the template.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let cached_file = file_cache::cache(context, &path, &saltenv, &Remote::default()).map_err(CallError::Execution)?;
    let Some(text) = cached_file.and_then(|file| std::fs::read_to_string(file).ok()) else { return Ok("".into()) };
    if template != "jinja" {
        tracing::error!(template, "unknown template engine: expected jinja");
        return Ok("".into());
    }
    let mut variables = kwargs;
    if let Some(Value::Map(more)) = variables.shift_remove("context") {
        variables.extend(more);
    }
    let (_, environment) = in_environment(&path, &saltenv);
    let text = match Source::new(context, context.pillar()).render_template(&path, &text, &variables, environment) {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(path, %error, "rendering a template failed");
            return Ok("".into());
        }
    };
    let cached = || file_cache::external(&context.config().cachedir, &path, &saltenv);
    let is_given = dest.as_ref().is_some_and(|dest| !dest.is_empty());
    let dest = if is_given {
        dest.map(|dest| within(&dest, last_name(&path)))
    } else {
        cached().map(|path| path.display().to_string())
    };
    let dest = dest.ok_or_else(|| CallError::Execution(format!("{path} does not name a file below its root")))?;
    if !has_directory_for(&dest, makedirs || !is_given)? {
        return Ok("".into());
    }
    // The rendered file may hold secrets, so only its owner can read it.
    files::write_atomic(&dest, text.as_bytes(), 0o600).map_err(CallError::execution)?;
    Ok(dest.into())
}

/// Return the content of a file, or false if there is none.
///
/// CLI Example:
///
///     salt '*' cp.get_file_str salt://my/file
#[function]
pub fn get_file_str(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Environment of the file server.
    saltenv: Option<String>,
) -> CallResult {
    let cached_file = file_cache::cache(context, &path, &environment(context, saltenv), &Remote::default())
        .map_err(CallError::Execution)?;
    let content = cached_file.and_then(|file| std::fs::read(file).ok());
    Ok(content.map_or(Value::Bool(false), |content| String::from_utf8_lossy(&content).into_owned().into()))
}

/// Cache a file and return the path of its copy, or false if there is none. A local file is not copied.
///
/// CLI Example:
///
///     salt '*' cp.cache_file salt://path/to/file
#[function]
pub fn cache_file(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Expected checksum of the file.
    source_hash: Option<String>,
    /// Whether certificates of web servers are verified.
    #[default(true)]
    verify_ssl: bool,
    /// Whether a copy of a web file is reused as long as the server's ETag is the same.
    #[default(false)]
    use_etag: bool,
) -> CallResult {
    let remote = Remote { hash: source_hash, trust_anyone: !verify_ssl, use_etag };
    let saltenv = environment(context, saltenv);
    let cached_file = file_cache::cache(context, &path, &saltenv, &remote).map_err(CallError::Execution)?;
    if cached_file.is_none() {
        tracing::error!(path, saltenv, "caching a file failed: no such file");
    }
    Ok(path_or_false(cached_file))
}

/// Cache several files, in a list or separated by commas, as `cache_file`.
///
/// CLI Example:
///
///     salt '*' cp.cache_files salt://pathto/file1,salt://pathto/file2
#[function]
pub fn cache_files(
    context: &Context,
    /// URLs of the files, as a list or with commas.
    paths: Value,
    /// Environment of the file server.
    saltenv: Option<String>,
) -> CallResult {
    let paths = match &paths {
        Value::List(paths) => paths.iter().map(ToString::to_string).collect(),
        paths => paths.to_string().split(',').map(str::to_owned).collect::<Vec<_>>(),
    };
    paths
        .into_iter()
        .map(|path| cache_file(context, path, saltenv.clone(), None, true, false))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::from)
}

/// Cache all files of a directory, and return their paths. `include_pat` and `exclude_pat` are globs, or regular
/// expressions prefixed with `E@`.
///
/// CLI Example:
///
///     salt '*' cp.cache_dir salt://path/to/dir include_pat='E@*.py$'
#[function]
pub fn cache_dir(
    context: &Context,
    /// Directory on the file server, such as `salt://web`.
    path: String,
    /// Environment of the file server; that of the configuration or `base` by default.
    saltenv: Option<String>,
    /// Whether empty directories are created, too.
    #[default(false)]
    include_empty: bool,
    /// Pattern of the paths that are cached; all by default.
    #[default]
    include_pat: Value,
    /// Pattern of the paths that are left out.
    #[default]
    exclude_pat: Value,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let (name, saltenv) = below_salt(&path, &saltenv)?;
    let name = format!("{}/", name.trim_end_matches('/'));
    let selection = Selection::new(&include_pat, &exclude_pat);
    let is_wanted = |path: &String| path.starts_with(&name) && selection.selects(path);
    let files = context.minion.files.list(saltenv).map_err(CallError::execution)?.into_iter().filter(is_wanted);
    let mut paths = all_cached(context, files, saltenv)?;
    let empty = if include_empty {
        context.minion.files.empty_directories(saltenv).map_err(CallError::execution)?
    } else {
        Vec::new()
    };
    for directory in empty.into_iter().filter(|directory| directory.starts_with(&name)) {
        let Some(target) = file_cache::path_of(&context.config().cachedir, &format!("salt://{directory}"), saltenv)
        else {
            continue;
        };
        files::create_private_dir(&target).map_err(CallError::execution)?;
        paths.push(target.display().to_string());
    }
    Ok(paths.into())
}

/// Cache all files of the file server, and return their paths.
///
/// CLI Example:
///
///     salt '*' cp.cache_master
#[function]
pub fn cache_master(
    context: &Context,
    /// Environment of the file server; that of the configuration or `base` by default.
    saltenv: Option<String>,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let files = context.minion.files.list(&saltenv).map_err(CallError::execution)?;
    all_cached(context, files.into_iter(), &saltenv).map(Value::from)
}

/// Cache a file of this host, and return the path of its copy, or an empty string if there is none.
///
/// CLI Example:
///
///     salt '*' cp.cache_local_file /etc/hosts
#[function]
pub fn cache_local_file(
    context: &Context,
    /// Path of the file on this host.
    path: String,
) -> CallResult {
    if !Path::new(&path).exists() {
        return Ok("".into());
    }
    let target = file_cache::path_of(&context.config().cachedir, &path, "base")
        .ok_or_else(|| CallError::Execution(format!("{path} does not name a file below its root")))?;
    let content = std::fs::read(&path).map_err(|error| file::error_at(&path, &error))?;
    file_cache::store(&target, &content).map_err(CallError::Execution)?;
    Ok(target.display().to_string().into())
}

fn environment(context: &Context, saltenv: Option<String>) -> String {
    let argument = saltenv.filter(|saltenv| !saltenv.is_empty());
    argument.or_else(|| context.config().saltenv.clone()).unwrap_or_else(|| "base".to_owned())
}

/// Returns the path below `salt://` and the environment; other URLs are errors.
fn below_salt<'a>(path: &'a str, saltenv: &'a str) -> Result<(&'a str, &'a str), CallError> {
    let is_salt = path.starts_with("salt://");
    is_salt
        .then(|| in_environment(path, saltenv))
        .ok_or_else(|| CallError::Execution(format!("Unsupported path: {path}")))
}

/// Returns the path of a file as a string, or false.
fn path_or_false(path: Option<PathBuf>) -> Value {
    path.map_or(Value::Bool(false), |path| path.display().to_string().into())
}

fn all_cached(context: &Context, files: impl Iterator<Item = String>, saltenv: &str) -> Result<Vec<String>, CallError> {
    let cached = |file: String| file_cache::cache(context, &format!("salt://{file}"), saltenv, &Remote::default());
    let paths = files.map(cached).collect::<Result<Vec<_>, _>>().map_err(CallError::Execution)?;
    Ok(paths.into_iter().flatten().map(|path| path.display().to_string()).collect())
}

fn below(paths: Vec<String>, prefix: &str) -> Value {
    let prefix = prefix.trim_start_matches('/');
    paths.into_iter().filter(|path| path.starts_with(prefix)).collect()
}

#[cfg(test)]
mod tests;
