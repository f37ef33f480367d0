//! `file.managed`: where contents come from, what differs, and writing them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_core::target::traverse;
use brine_core::{Map, Value, files, map};

use super::attributes::{Attributes, folder_mode, make_folders, parse_mode, show_mode};
use super::source::{self, Problem, Verify};
use super::{bad_path, encoding};
use crate::modules::cmd;
use crate::state::Source;
use crate::states::{StateContext, StateReturn};

/// Where a file's content comes from.
pub(super) struct Contents {
    pub source: Value,
    pub contents: Value,
    pub contents_pillar: Value,
    pub contents_grains: Value,
    pub newline: bool,
    pub template: Option<String>,
    pub defaults: Value,
    /// What a source must be.
    pub verify: Verify,
}

/// How a file is managed.
pub(super) struct How {
    pub makedirs: bool,
    pub dir_mode: Value,
    pub replace: bool,
    pub create: bool,
    pub show_changes: bool,
    /// Whether a file that is replaced is kept in the cache folder.
    pub backup: bool,
    /// The bits that a new file does not get, unless its mode is said.
    pub umask: u32,
    /// Whether of a new file all lines are told.
    pub new_file_diff: bool,
    /// Whether the file behind a link is what is managed, and not the link.
    pub follow_symlinks: bool,
    /// A command that gets the path of a draft, and says by its exit status whether it is good.
    pub check_cmd: Option<String>,
}

pub(super) fn managed(
    context: &StateContext,
    name: &str,
    contents: &Contents,
    attributes: Result<Attributes, String>,
    how: &How,
) -> StateReturn {
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    let path = Path::new(name);
    let attributes = match attributes {
        Ok(attributes) => attributes,
        Err(error) => return StateReturn::failed(name, error),
    };
    if path.is_dir() {
        return StateReturn::failed(name, format!("Specified target {name} is a directory"));
    }
    let exists = path.exists();
    if !exists && !how.create {
        return StateReturn::ok(name, format!("File {name} is not present and is not set for creation"));
    }
    let wanted = match contents.get(context, name) {
        Ok(wanted) => wanted.filter(|_| how.replace || !exists),
        // Whether a source is there is asked first in test mode, and told without saying what for.
        Err(error)
            if context.test
                && ["ource ", "Failed to cache", "template format"].iter().any(|about| error.contains(about)) =>
        {
            return StateReturn::failed(name, error.strip_prefix("Unable to manage file: ").unwrap_or(&error));
        }
        Err(error) => return StateReturn::failed(name, error),
    };
    let says_nothing = wanted.is_none();
    let Some(wanted) = wanted.or_else(|| (!exists).then(Vec::new)) else {
        return only_attributes(context, name, path, &attributes);
    };
    let have = if exists { std::fs::read(path).ok() } else { None };
    let mut changes = if have.as_deref() == Some(&wanted[..]) {
        Map::new()
    } else {
        difference(have.as_deref().or(how.new_file_diff.then_some(b"")), &wanted, how.show_changes)
    };
    if exists {
        changes.extend(attributes.differences(path));
    } else if !says_nothing {
        changes.extend(attributes.on_new_file(contents.source.is_truthy()));
    }
    if context.test {
        if changes.is_empty() {
            return StateReturn::ok(name, format!("The file {name} is in the correct state"));
        }
        let comment = format!(
            "The file {name} is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."
        );
        let changes = if exists || how.new_file_diff {
            changes
        } else {
            map! {"newfile" => name}
        };
        return StateReturn::would(name, comment).with_changes(changes);
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("File {name} is in the correct state"));
    }
    if let Some(command) = how.check_cmd.as_ref().filter(|_| have.as_deref() != Some(&wanted[..])) {
        match draft_is_good(context, command, &wanted) {
            Ok(true) => {}
            Ok(false) => {
                let mut failed = StateReturn::failed(name, "check_cmd execution failed");
                failed.more.insert("skip_watch".into(), true.into());
                return failed;
            }
            Err(error) => return StateReturn::failed(name, error),
        }
    }
    if how.backup
        && exists
        && let Err(error) = keep_backup(context, path)
    {
        return StateReturn::failed(name, error);
    }
    match write(path, &wanted, have.as_deref(), &attributes, how) {
        Ok(()) if !exists && says_nothing => {
            StateReturn::ok(name, "Empty file").with_changes(map! {"new" => format!("file {name} created")})
        }
        Ok(()) => StateReturn::ok(name, format!("File {name} updated")).with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Lets a command look at the content before it is put in place.
fn draft_is_good(context: &StateContext, command: &str, content: &[u8]) -> Result<bool, String> {
    let draft = cmd::Scratch::new(content, None).map_err(|error| error.to_string())?;
    cmd::succeeds(&context.call, &format!("{command} {}", draft.path().display()), &Map::new())
        .map_err(|error| error.to_string())
}

/// Copies a file to `file_backup` in the cache folder, under a name that says when.
pub(super) fn keep_backup(context: &StateContext, path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path).strip_prefix("/").unwrap_or(path);
    let folder = context.call.config().cachedir.join("file_backup").join(folder);
    let now = jiff::Zoned::now();
    let micros = now.subsec_nanosecond() / 1000;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let stamp = now.strftime("%a_%b_%d_%H:%M:%S");
    let target = folder.join(format!("{file}_{stamp}_{micros:06}_{}", now.year()));
    files::create_private_dir(&folder).map_err(|error| error.to_string())?;
    std::fs::copy(path, &target)
        .map(|_| ())
        .map_err(|error| format!("Unable to keep a copy of {}: {error}", path.display()))
}

fn only_attributes(context: &StateContext, name: &str, path: &Path, attributes: &Attributes) -> StateReturn {
    let changes = attributes.differences(path);
    if context.test {
        if changes.is_empty() {
            return StateReturn::ok(name, format!("File {name} not updated"));
        }
        let comment = match changes.get("mode") {
            Some(mode) => {
                let have = std::fs::metadata(path).map_or(0, |status| std::os::unix::fs::MetadataExt::mode(&status));
                let have = show_mode(have & 0o7777);
                format!("File {name} will be updated with permissions {mode} from its current state of {have}")
            }
            None => format!("File {name} will be updated"),
        };
        return StateReturn::would(name, comment).with_changes(changes);
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("File {name} exists with proper permissions. No changes made."));
    }
    match attributes.apply(path) {
        Ok(changes) => StateReturn::ok(name, "").with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

fn write(path: &Path, wanted: &[u8], have: Option<&[u8]>, attributes: &Attributes, how: &How) -> Result<(), String> {
    if have != Some(wanted) {
        let folder = path.parent().unwrap_or(Path::new("/"));
        if !folder.is_dir() {
            if !how.makedirs {
                return Err("Parent directory not present".into());
            }
            let mode = parse_mode(&how.dir_mode).or(attributes.mode.map(folder_mode));
            make_folders(folder, mode).map_err(|error| format!("Failed to create {}: {error}", folder.display()))?;
        }
        // A file that is there keeps its mode and owner unless the state says otherwise.
        let status = std::fs::metadata(path).ok();
        let mode = attributes
            .mode
            .or(status.as_ref().map(|status| std::os::unix::fs::MetadataExt::mode(status) & 0o7777))
            .unwrap_or(0o666 & !how.umask);
        // Through a link, the file behind it is what is managed.
        let target = if how.follow_symlinks { behind(path) } else { path.to_owned() };
        // The next run makes it again if the power fails: hundreds of files are not waited for one by one.
        files::write_soon(&target, wanted, mode).map_err(|error| format!("Unable to manage file: {error}"))?;
        if let Some(status) = status {
            use std::os::unix::fs::MetadataExt;
            // Only root may give files away; others had the file already.
            _ = std::os::unix::fs::chown(&target, Some(status.uid()), Some(status.gid()));
        }
    }
    attributes.apply(path).map(|_| ())
}

/// The file that a path leads to through links, which may be one that is not there yet.
fn behind(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // More links than that are a circle.
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

/// The `umask` of a state, or the usual one.
pub(super) fn umask(context: &StateContext) -> u32 {
    context.chunk.get("umask").and_then(parse_mode).unwrap_or(0o022)
}

/// The content of a source, for states that put it elsewhere than into a file. With it may come its hash, or a
/// file of hashes and the name that it has there.
pub(in crate::states) fn content(
    context: &StateContext,
    source: &str,
    hash: (Option<String>, Option<String>),
    template: Option<String>,
    defaults: Value,
) -> Result<Vec<u8>, String> {
    let contents = Contents {
        source: source.into(),
        contents: Value::Nil,
        template,
        defaults,
        verify: Verify { hash: hash.0.filter(|hash| !hash.is_empty()), hash_name: hash.1, skip: false },
        ..Contents::inline_text(String::new())
    };
    let told = |error: String| error.strip_prefix("Unable to manage file: ").unwrap_or(&error).to_owned();
    Ok(contents.get(context, source).map_err(told)?.unwrap_or_default())
}

/// The lines of a block: what is written in the state, or files of the file server.
pub(super) fn block_content(
    context: &StateContext,
    name: &str,
    content: &Value,
    sources: &[Contents],
) -> Result<String, String> {
    if sources.is_empty() {
        return Ok(content.to_string());
    }
    let text = |source: &Contents| {
        let bytes = source.get(context, name)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", source.source))
    };
    sources.iter().map(text).collect()
}

impl Contents {
    /// A text that is there already.
    pub fn inline_text(text: String) -> Self {
        Contents {
            source: Value::Nil,
            contents: text.into(),
            contents_pillar: Value::Nil,
            contents_grains: Value::Nil,
            newline: true,
            template: None,
            defaults: Value::Nil,
            verify: Verify::default(),
        }
    }

    /// Each of the sources that a state names, `source` or several in `sources`.
    pub fn of(source: &Value, sources: &Value, template: Option<String>, defaults: Value) -> Vec<Self> {
        let several = sources.as_list().unwrap_or_default().iter();
        let all = several.chain([source]).filter(|source| source.is_truthy());
        let one = |source: &Value| Contents {
            source: source.clone(),
            contents: Value::Nil,
            template: template.clone(),
            defaults: defaults.clone(),
            ..Contents::inline_text(String::new())
        };
        all.map(one).collect()
    }

    /// The wanted content, or nothing if the state says nothing about it.
    pub fn get(&self, context: &StateContext, name: &str) -> Result<Option<Vec<u8>>, String> {
        let said = |key: &str| context.chunk.get(key).filter(|value| !value.is_nil());
        for (value, what) in [(Some(&self.defaults), "Defaults"), (said("context"), "Context")] {
            if value.is_some_and(|value| value.is_truthy() && value.as_map().is_none()) {
                return Err(format!("{what} must be formed as a dict"));
            }
        }
        let given = [&self.contents, &self.contents_pillar, &self.contents_grains];
        let inline = given.iter().filter(|value| !value.is_nil()).count();
        if inline > 0 && self.source.is_truthy() {
            return Err(
                "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
                    .into(),
            );
        }
        if inline > 1 {
            return Err("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted".into());
        }
        let looked_up = |map: Arc<Map>, key: &Value, kind: &str| {
            let data = Value::Map((*map).clone());
            let delimiter = said("contents_delimiter").map_or_else(|| ":".to_owned(), ToString::to_string);
            traverse(&data, &key.to_string(), &delimiter).cloned().ok_or_else(|| format!("{kind} {key} does not exist"))
        };
        let text = if !self.contents.is_nil() {
            Some(self.contents.clone())
        } else if !self.contents_pillar.is_nil() {
            Some(looked_up(context.call.pillar(), &self.contents_pillar, "Pillar")?)
        } else if !self.contents_grains.is_nil() {
            Some(looked_up(context.call.grains(), &self.contents_grains, "Grain")?)
        } else {
            None
        };
        if said("allow_empty").is_some_and(|allowed| !allowed.is_truthy())
            && text.as_ref().is_some_and(|text| !text.is_truthy())
        {
            let from = match (self.contents_pillar.is_nil(), self.contents_grains.is_nil()) {
                (false, _) => format!("contents_pillar {}", self.contents_pillar),
                (_, false) => format!("contents_grains {}", self.contents_grains),
                _ => "'contents'".to_owned(),
            };
            return Err(format!(
                "{from} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
            ));
        }
        let mut found = self.source.clone();
        let content = match text {
            Some(text) if said("encoding").is_some() => {
                let encoding = said("encoding").map(ToString::to_string).unwrap_or_default();
                let errors = said("encoding_errors").map_or_else(|| "strict".to_owned(), ToString::to_string);
                Some(encoding::encode(&self.inline(&text), &encoding, &errors)?)
            }
            Some(text) => Some(self.inline(&text)),
            None if self.source.is_truthy() => {
                let (source, content) = self.first_source(context, name)?;
                found = source.into();
                Some(content)
            }
            None => None,
        };
        match (&self.template, content) {
            (Some(engine), Some(content)) if engine == "jinja" => {
                self.rendered(context, name, &content, &found).map(Some)
            }
            (Some(engine), Some(_)) => {
                Err(format!("Unable to manage file: Specified template format {engine} is not supported"))
            }
            (_, content) => Ok(content),
        }
    }

    fn inline(&self, contents: &Value) -> Vec<u8> {
        let mut text = match contents {
            Value::List(lines) => lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into_bytes(),
            Value::Bytes(bytes) => bytes.clone(),
            other => other.to_string().replace("\r\n", "\n").into_bytes(),
        };
        if self.newline && !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text
    }

    /// The first source that is there, and what it holds.
    fn first_source(&self, context: &StateContext, name: &str) -> Result<(String, Vec<u8>), String> {
        let single = [self.source.clone()];
        let sources = self.source.as_list().unwrap_or(&single);
        for item in sources {
            let (source, verify) = source::entry(item, &self.verify);
            match source::read(context, name, &source, &verify) {
                Ok(content) => return Ok((source, content)),
                Err(Problem::Missing(_)) if sources.len() > 1 => {}
                Err(Problem::Missing(error) | Problem::Wrong(error)) => {
                    return Err(format!("Unable to manage file: {error}"));
                }
                Err(Problem::Differs(error)) => return Err(error),
            }
        }
        Err("Unable to manage file: none of the specified sources were found".into())
    }

    fn rendered(&self, context: &StateContext, name: &str, content: &[u8], source: &Value) -> Result<Vec<u8>, String> {
        let text = std::str::from_utf8(content)
            .map_err(|_| "Unable to manage file: the template is not UTF-8 text".to_owned())?;
        let mut variables = map! {"name" => name, "source" => source.clone()};
        for key in ["user", "group", "mode", "attrs"] {
            variables.insert(key.into(), context.chunk.get(key).cloned().unwrap_or_default());
        }
        if let Some(mode) = variables.get_mut("mode").filter(|mode| mode.as_str() != Some("keep")) {
            *mode = parse_mode(mode).map_or(Value::Nil, |mode| show_mode(mode).into());
        }
        let gathered = super::accumulated::of(context, name);
        if !gathered.is_empty() {
            variables.insert("accumulator".into(), gathered.into());
        }
        let given = context.chunk.get("context").cloned().unwrap_or_default();
        for more in [&self.defaults, &given].into_iter().filter_map(Value::as_map) {
            variables.extend(more.clone());
        }
        let label = source.as_str().unwrap_or(name);
        let rendering = Source::new(&context.call, context.call.pillar());
        let rendered = rendering.render_template(label, text, &variables, &context.saltenv);
        rendered.map(String::into_bytes).map_err(|error| format!("Unable to manage file: {error}"))
    }
}

/// What is said of a content that differs.
pub(in crate::states) fn difference(have: Option<&[u8]>, wanted: &[u8], show: bool) -> Map {
    let Some(have) = have else { return map! {"diff" => "New file"} };
    if !show {
        return map! {"diff" => "<show_changes=False>"};
    }
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(str::to_owned);
    match (text(have), text(wanted)) {
        (Some(have), Some(wanted)) => {
            map! {"diff" => super::diff::unified(&have, &wanted)}
        }
        (None, Some(_)) => map! {"diff" => "Replace binary file with text file"},
        (Some(_), None) => map! {"diff" => "Replace text file with binary file"},
        (None, None) => map! {"diff" => "Replace binary file"},
    }
}
