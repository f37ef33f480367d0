//! `archive`: packing and unpacking, by the programs of this host; ZIP files without one.
//!
//! `contents.rs` lists, `zipped.rs` is about ZIP files.

mod contents;
mod zipped;

use std::fs;
use std::path::{Path, PathBuf};

use brine_function::{CallError, functions};
use brine_text::glob::{self, is_pattern};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

use super::cmd;
use super::user::names;
use crate::context::Context;
use crate::fileclient::in_environment;
use contents::at;
pub use contents::{Contents, Format, contents};
use zipped::Unzip;
pub use zipped::needs_password;

functions! {
    module "archive", context Context;

    /// What is in an archive on this host or under `salt://`: a list, or with `verbose` folders, files and links apart.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.list /path/to/myfile.tar.gz strip_components=1
    fn list_(
        context,
        name: String,
        archive_format: Option<String> = None,
        options: Option<String> = None,
        strip_components: Value = Value::Nil,
        clean: bool = false,
        verbose: bool = false,
        saltenv: String = "base".to_owned(),
        source_hash: Value = Value::Nil,
        use_etag: bool = false
    ) as "list" {
        _ = (source_hash, use_etag);
        let cached = cached(context, &name, &saltenv)?;
        let strip = u32::from_value(&strip_components).filter(|count| *count > 0);
        if strip_components.is_truthy() && strip.is_none() {
            return Err(at(&cached, "'strip_components' must be a positive integer"));
        }
        let format = match archive_format.filter(|format| !format.is_empty()) {
            Some(format) => {
                Format::named(&format).ok_or_else(|| at(&cached, &format!("Unsupported archive format '{format}'")))?
            }
            None => Format::guess(&name)
                .ok_or_else(|| at(&cached, "Unable to guess archive format, please pass an 'archive_format' argument."))?,
        };
        let found = contents(context, &name, &cached, format, options.as_deref())?;
        if clean {
            _ = fs::remove_file(&cached);
        }
        let mut found = found;
        if let Some(count) = strip {
            found.strip(count as usize);
        }
        let found = found.sorted();
        if !verbose {
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
        }.into())
    }

    /// Runs `tar` with these options on this archive.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.tar cjvf /tmp/salt.tar.bz2 '/tmp/file_1,/tmp/file_2'
    fn tar(
        context,
        options: String,
        tarfile: String,
        sources: Value = Value::Nil,
        dest: Option<String> = None,
        cwd: Option<String> = None,
        template: Option<String> = None,
        runas: Option<String> = None
    ) {
        if options.is_empty() {
            return Err(CallError::Execution("Tar options can not be empty".into()));
        }
        let mut words = vec!["tar".to_owned()];
        words.extend(options.split_whitespace().map(str::to_owned));
        words.push(tarfile);
        words.extend(dest.into_iter().flat_map(|dest| ["-C".to_owned(), dest]));
        words.extend(expand(&sources));
        lines(context, &words, &map! {"cwd" => cwd, "template" => template, "runas" => runas})
    }

    /// Compresses a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.gzip /tmp/sourcefile.txt
    fn gzip(context, sourcefile: String, template: Option<String> = None, runas: Option<String> = None, options: Option<String> = None) {
        on_one_file(context, "gzip", options, sourcefile, template, runas)
    }

    /// Uncompresses a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.gunzip /tmp/sourcefile.txt.gz
    fn gunzip(context, gzipfile: String, template: Option<String> = None, runas: Option<String> = None, options: Option<String> = None) {
        on_one_file(context, "gunzip", options, gzipfile, template, runas)
    }

    /// Packs files by the program `zip`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.cmd_zip /tmp/zipfile.zip '/tmp/sourcefile1,/tmp/sourcefile2'
    fn cmd_zip(
        context,
        zip_file: String,
        sources: Value,
        template: Option<String> = None,
        cwd: Option<String> = None,
        runas: Option<String> = None
    ) {
        let mut words = vec!["zip".to_owned(), "-r".to_owned(), zip_file];
        words.extend(expand(&sources));
        lines(context, &words, &map! {"cwd" => cwd, "template" => template, "runas" => runas})
    }

    /// Unpacks a ZIP file by the program `unzip`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.cmd_unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2
    fn cmd_unzip(
        context,
        zip_file: String,
        dest: String,
        excludes: Value = Value::Nil,
        options: Option<String> = None,
        template: Option<String> = None,
        runas: Option<String> = None,
        trim_output: Value = false.into(),
        password: Value = Value::Nil
    ) {
        let mut words = vec!["unzip".to_owned()];
        if password.is_truthy() {
            words.extend(["-P".to_owned(), password.to_string()]);
        }
        words.extend(split_options(options.as_deref().unwrap_or_default())?);
        words.extend([zip_file, "-d".to_owned(), dest]);
        if !excludes.is_nil() {
            words.push("-x".to_owned());
            words.extend(names(&excludes));
        }
        let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ") + " 2>&1";
        let output = cmd::execute(context, &command, &map! {"template" => template, "runas" => runas, "python_shell" => true})?;
        if output.retcode != 0 {
            return Err(CallError::Execution(output.stdout));
        }
        Ok(trimmed(output.stdout.lines().map(str::to_owned).collect(), &trim_output).into())
    }

    /// Unpacks a ZIP file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.unzip /tmp/zipfile.zip /home/strongbad/ excludes=file_1,file_2
    fn unzip(
        context,
        zip_file: String,
        dest: String,
        excludes: Value = Value::Nil,
        options: Option<String> = None,
        template: Option<String> = None,
        runas: Option<String> = None,
        trim_output: Value = false.into(),
        password: Value = Value::Nil,
        extract_perms: bool = true
    ) {
        _ = options;
        let render = |text: String| match &template {
            Some(_) => {
                let rendering = crate::state::Source::new(context, context.pillar());
                rendering.render_template("path", &text, &Map::new(), "base").map_err(CallError::Execution)
            }
            None => Ok(text),
        };
        if runas.is_some() {
            return Err(CallError::Execution(
                "archive.unzip works as the minion's own user: use archive.cmd_unzip with runas".into(),
            ));
        }
        let (zip_file, dest, excludes) = (render(zip_file)?, render(dest)?, names(&excludes));
        let password = password.is_truthy().then(|| password.to_string());
        let how = Unzip { excludes: &excludes, password: password.as_deref(), keep_modes: extract_perms };
        let files = how
            .unpack(Path::new(&zip_file), Path::new(&dest))
            .map_err(|error| CallError::Execution(format!("Exception encountered unpacking zipfile: {error}")))?;
        Ok(trimmed(files, &trim_output).into())
    }

    /// Whether a ZIP file needs a password.
    ///
    /// CLI Example:
    ///
    ///     salt '*' archive.is_encrypted /path/to/myfile.zip
    fn is_encrypted(
        context,
        name: String,
        clean: bool = false,
        saltenv: String = "base".to_owned(),
        source_hash: Value = Value::Nil,
        use_etag: bool = false
    ) {
        _ = (source_hash, use_etag);
        let cached = cached(context, &name, &saltenv)?;
        let encrypted = needs_password(&cached).map_err(|_| at(&cached, &format!("{name} is not a ZIP file")))?;
        if clean {
            _ = fs::remove_file(&cached);
        }
        Ok(encrypted.into())
    }
}

/// Runs a program and gives the lines that it wrote.
fn lines(context: &Context, words: &[String], kwargs: &Map) -> Result<Value, CallError> {
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let mut kwargs: Map = kwargs.clone();
    kwargs.insert("python_shell".into(), false.into());
    Ok(cmd::run(context, cmd::CommandLine(command), kwargs)?
        .to_string()
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into())
}

fn on_one_file(
    context: &Context,
    program: &str,
    options: Option<String>,
    file: String,
    template: Option<String>,
    runas: Option<String>,
) -> Result<Value, CallError> {
    let mut words = vec![program.to_owned()];
    words.extend(options.filter(|options| !options.is_empty()));
    words.push(file);
    lines(context, &words, &map! {"template" => template, "runas" => runas})
}

/// Names, those with wildcards as the paths that they fit.
fn expand(sources: &Value) -> Vec<String> {
    let paths = |name: String| {
        if !is_pattern(&name) {
            return vec![name];
        }
        glob::paths(Path::new(""), &name).into_iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
    };
    names(sources).into_iter().flat_map(paths).collect()
}

/// The words of options for a program.
pub fn split_options(options: &str) -> Result<Vec<String>, CallError> {
    crate::process::split(options)
        .ok_or_else(|| CallError::Execution(format!("the options '{options}' have a quote that is not closed")))
}

/// The first of the files, with a word on the rest.
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

/// Where an archive is on this host: what is under `salt://` is copied into the cache.
fn cached(context: &Context, name: &str, saltenv: &str) -> Result<PathBuf, CallError> {
    let failed = || CallError::Execution(format!("Failed to cache {name}"));
    let Some((protocol, path)) = name.split_once("://") else {
        let missing = "[Errno 2] No such file or directory";
        let told = || at(Path::new(name), &format!("Failed to list contents of {name}: {missing}: '{name}'"));
        return Some(PathBuf::from(name)).filter(|path| path.is_file()).ok_or_else(told);
    };
    match protocol {
        "file" => Some(PathBuf::from(path)).filter(|path| path.is_file()).ok_or_else(failed),
        "salt" => {
            let (path, saltenv) = in_environment(path, saltenv);
            let content = context.minion.files.read(path, saltenv).map_err(CallError::Execution)?.ok_or_else(failed)?;
            let below = brine_system::files::relative_path(path).ok_or_else(failed)?;
            let place = context.config().cachedir.join("files").join(saltenv).join(below);
            brine_system::files::create_private_dir(place.parent().unwrap_or(&place)).map_err(CallError::execution)?;
            brine_system::files::write_atomic(&place, &content, 0o600).map_err(CallError::execution)?;
            Ok(place)
        }
        _ => Err(CallError::Execution(format!("{name}: archives come from this host or from salt://"))),
    }
}
