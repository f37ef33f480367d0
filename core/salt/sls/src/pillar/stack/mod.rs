//! `ext_pillar` `stack`: configuration files that are Jinja templates list YAML files, which are Jinja templates, too;
//! their mappings are merged in order, by strategies that they name themselves.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | rendering of the files |
//! | `selection.rs` | the configuration files that the arguments select for a minion |
//! | `merge.rs` | the strategies of merging |
//! | `cases.json` | results of Salt, written by `record` |
//!
//! As with Jinja's default, and other than in SLS files, undefined values are empty. Files are below the directory of
//! their configuration file: a grain in a path, which the minion chooses, must not lead out of it.

mod merge;
mod selection;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use brine_config::opts::shared;
use brine_jinja::{Context, Files, FilesError, Host, ImportCache, Limits, Template};
use brine_system::files;
use brine_text::glob;
use brine_value::{Map, Value, map};

use super::external::Call;
use super::host::Lookups;

/// The maximum number of YAML files of a pillar, and of bytes of one.
const MAX_FILES: usize = 10_000;
const MAX_FILE_SIZE: u64 = 16 << 20;

/// Returns the merged data of all files that the arguments select.
pub(super) fn pillar(call: &Call<'_>) -> Result<Map, String> {
    let opts = call.source.opts_for(call.request);
    let selected = selection::files(call, &opts)?;
    let mut stack = Stack { call, opts, data: Arc::default(), pillar: Arc::new(call.pillar.clone()), files: 0 };
    for file in &selected {
        if file.is_file() {
            stack.add(file)?;
        } else {
            tracing::info!(file = %file.display(), "stack: a configuration file is ignored: it does not exist");
        }
    }
    Ok(Arc::unwrap_or_clone(stack.data))
}

/// The files of one pillar.
struct Stack<'a> {
    call: &'a Call<'a>,
    opts: Arc<Map>,
    /// The data merged so far: the variable `stack`.
    data: Arc<Map>,
    /// The pillar before this one.
    pillar: Arc<Map>,
    /// The number of rendered YAML files.
    files: usize,
}

/// The templates of one configuration file.
struct Templates {
    /// The directory of the configuration file, which all templates are below.
    directory: PathBuf,
    context: Context,
    host: Host,
    imports: ImportCache,
}

impl Stack<'_> {
    /// Merges the YAML files that a configuration file lists.
    fn add(&mut self, config: &Path) -> Result<(), String> {
        let templates = self.templates(config)?;
        let listed = self.render(&templates, config, &templates.context)?;
        for item in items(&listed, config)? {
            if item.trim().is_empty() {
                continue;
            }
            let pattern = normalized(&templates.directory.join(&item));
            if !pattern.starts_with(normalized(&templates.directory)) {
                return Err(format!(
                    "{}: the file '{item}' is outside of the directory of its configuration file",
                    config.display()
                ));
            }
            let mut paths = glob::paths(&templates.directory, &item);
            if paths.is_empty() {
                tracing::info!(item, config = %config.display(), "stack: no file matches");
            }
            paths.sort_by(|one, other| one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes()));
            for path in paths {
                self.add_yaml(&templates, &path)?;
            }
        }
        Ok(())
    }

    fn add_yaml(&mut self, templates: &Templates, path: &Path) -> Result<(), String> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(format!("the stack has more than {MAX_FILES} files: list fewer of them"));
        }
        let mut context = templates.context.clone();
        context.set("ymlpath", &path.to_string_lossy().into_owned().into());
        let text = self.render(templates, path, &context)?;
        drop(context);
        let data = brine_yaml::load(&text)
            .map_err(|error| self.failure("Stack pillar yaml parsing error", path, &error.salt_text()))?;
        if let Value::Map(data) = data {
            let failed = |error: String| format!("{}: {error}", path.display());
            let below = std::mem::take(&mut self.data);
            self.data = Arc::new(merge::mappings(Arc::unwrap_or_clone(below), data).map_err(failed)?);
        }
        Ok(())
    }

    fn render(&self, templates: &Templates, path: &Path, context: &Context) -> Result<String, String> {
        let failed = |error: &dyn std::fmt::Display| {
            self.failure("Stack pillar template render error", path, &error.to_string())
        };
        let source = read(path).map_err(|error| failed(&error))?;
        let mut context = context.clone();
        context.set_shared("stack", Arc::clone(&self.data));
        let template = Template::compile_sharing(&templates.imports, &path.to_string_lossy(), &source);
        let rendered = template.and_then(|template| template.render(&context, &templates.host));
        rendered.map_err(|error| failed(&error))
    }

    /// Returns the error of a file. Its details, which quote the file, are for the log alone by default.
    fn failure(&self, what: &str, path: &Path, details: &str) -> String {
        tracing::error!(path = %path.display(), details, "{what}");
        if shared::pillar_safe_render_error(&self.call.source.opts) {
            format!("{what} in {}. Please see master log for details.", path.display())
        } else {
            format!("{what} in {}:\n{details}", path.display())
        }
    }

    fn templates(&self, config: &Path) -> Result<Templates, String> {
        let Some(directory) = config.parent().filter(|_| config.is_absolute()) else {
            return Err(format!("the path '{}' is not absolute: name the whole path of the file", config.display()));
        };
        let (request, source) = (self.call.request, self.call.source);
        let mut context = Context::new(request.saltenv.unwrap_or("base"));
        context.set_limits(Limits::of(&source.opts));
        context.set_functions_name("__salt__");
        context.set_shared("__opts__", Arc::clone(&self.opts));
        context.set_shared("__grains__", Arc::clone(request.grains));
        context.set_with_traverse("__stack__", &map! {"cfg_path" => config.to_string_lossy().into_owned()});
        context.set("minion_id", &request.id.into());
        context.set_shared("pillar", Arc::clone(&self.pillar));
        context.set("pillarenv", &request.pillarenv.into());
        // Imports, also such as `./x`, are below the directory of the configuration file.
        context.set("tpldir", &".".into());
        let below = request.functions.clone().unwrap_or_default();
        let lookups =
            Lookups { below: below.clone(), grains: Arc::clone(request.grains), pillar: Arc::clone(&self.pillar) };
        let host = below.with_functions(lookups).with_files(Below(directory.to_owned()));
        Ok(Templates { directory: directory.to_owned(), context, host, imports: ImportCache::lenient() })
    }
}

/// Returns the items of a rendered configuration file: those of a YAML list, or its lines.
fn items(listed: &str, config: &Path) -> Result<Vec<String>, String> {
    let Ok(Value::List(items)) = brine_yaml::load(listed) else {
        return Ok(listed.lines().map(str::to_owned).collect());
    };
    let text = |item: Value| match item {
        Value::Str(text) => Ok(text),
        other => Err(format!(
            "{}: an item is invalid: expected the path of a file, got {}",
            config.display(),
            other.type_name()
        )),
    };
    items.into_iter().map(text).collect()
}

/// The templates that a template can import: those below a directory.
struct Below(PathBuf);

impl Files for Below {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        let path = files::relative_path(path).map(|path| self.0.join(path)).filter(|path| path.is_file());
        path.map(|path| read(&path)).transpose()
    }
}

/// Reads a template, without the newline at its end, as Jinja does.
fn read(path: &Path) -> Result<String, FilesError> {
    // Opening a pipe would block.
    if !path.is_file() {
        return Err(FilesError::NotRegular);
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_FILE_SIZE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_SIZE {
        return Err(FilesError::TooLarge(MAX_FILE_SIZE));
    }
    if text.contains('\r') {
        text = text.replace("\r\n", "\n");
    }
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns a path without `.` and `..`, by its text alone.
fn normalized(path: &Path) -> PathBuf {
    let mut parts: Vec<&OsStr> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => _ = parts.pop(),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Path::new("/").join(parts.iter().collect::<PathBuf>())
}
