//! `ext_pillar` `file_tree`: directories and files as mappings and strings, for a minion and its nodegroups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_jinja::{Context, Limits};
use brine_text::glob::fnmatch;
use brine_value::{FromValue, Map, Value, merge_deep};

use super::external::Call;
use crate::render::{AllowedRenderers, Sls};

/// The arguments, in the order of positional ones.
const ARGUMENTS: [&str; 8] = [
    "root_dir",
    "follow_dir_links",
    "debug",
    "keep_newline",
    "render_default",
    "renderer_blacklist",
    "renderer_whitelist",
    "template",
];
/// The maximum depth of directories: symbolic links may form cycles.
const MAX_DEPTH: usize = 64;

/// The settings for reading the files.
struct Reading<'a> {
    call: &'a Call<'a>,
    follow_links: bool,
    /// The files that keep their trailing newline: a boolean for all, or globs of their paths.
    keep_newline: Value,
    /// The renderers, if files are templates.
    template: Option<String>,
    /// The renderers that its own arguments allow.
    allowed: AllowedRenderers,
}

/// Returns the files below `<root_dir>/nodegroups/<group>` of each group, and over them those below
/// `<root_dir>/hosts/<id>`.
pub(super) fn pillar(call: &Call<'_>) -> Result<Map, String> {
    let unknown = call.args.keyword.keys().map(ToString::to_string).find(|name| !ARGUMENTS.contains(&name.as_str()));
    if let Some(name) = unknown {
        return Err(format!("the argument '{name}' is unknown: expected {}", ARGUMENTS.join(", ")));
    }
    let argument = |name: &str| call.argument(ARGUMENTS.iter().position(|known| *known == name)?, name);
    let root = argument("root_dir").and_then(PathBuf::from_value).ok_or("root_dir is missing")?;
    let renderer = argument("render_default").map_or_else(|| call.source.renderer.clone(), ToString::to_string);
    let keep_newline = argument("keep_newline").cloned().unwrap_or_default();
    if !matches!(keep_newline, Value::Nil | Value::Bool(_) | Value::List(_)) {
        let got = keep_newline.type_name();
        return Err(format!("keep_newline is invalid: expected True, False or a list of globs, got {got}"));
    }
    let names = |name: &str| argument(name).and_then(Vec::from_value).unwrap_or_default();
    let reading = Reading {
        call,
        follow_links: argument("follow_dir_links").is_some_and(Value::is_truthy),
        keep_newline,
        template: (argument("template") == Some(&Value::Bool(true))).then_some(renderer),
        allowed: AllowedRenderers::new(names("renderer_blacklist"), names("renderer_whitelist")),
    };
    let roots = if root.is_absolute() {
        vec![root]
    } else {
        // A relative directory is below the pillar roots of the environment.
        let pillarenv = call.request.pillarenv.ok_or("root_dir is relative, and there is no pillarenv")?;
        let roots = call.source.roots.get(pillarenv).ok_or_else(|| format!("pillarenv '{pillarenv}' has no roots"))?;
        roots.iter().map(|directory| directory.join(&root)).collect()
    };
    let mut all = Map::new();
    for root in roots {
        if !root.is_dir() {
            return Err(format!("root_dir {} is not a directory", root.display()));
        }
        let mut directories: Vec<PathBuf> =
            call.nodegroups().iter().map(|group| root.join("nodegroups").join(group)).collect();
        directories.push(root.join("hosts").join(call.request.id.as_str()));
        for directory in directories.iter().filter(|directory| directory.is_dir()) {
            merge_deep(&mut all, &reading.directory(directory, "", 0)?, false);
        }
    }
    Ok(all)
}

impl Reading<'_> {
    /// Reads a directory; `below` is its path from the root.
    fn directory(&self, directory: &Path, below: &str, depth: usize) -> Result<Map, String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} has more than {MAX_DEPTH} nested directories", directory.display()));
        }
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        let mut entries =
            std::fs::read_dir(directory).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut tree = Map::new();
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let relative = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let value = if path.is_dir() {
                let leads_out = is_link && !self.follow_links;
                let inside = if leads_out { Map::new() } else { self.directory(&path, &relative, depth + 1)? };
                inside.into()
            } else if path.is_file() {
                self.file(&path, &relative)?
            } else {
                tracing::error!(path = %path.display(), "file_tree: not a regular file");
                continue;
            };
            tree.insert(name.into(), value);
        }
        Ok(tree)
    }

    fn file(&self, path: &Path, relative: &str) -> Result<Value, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let mut content = std::fs::read(path).map_err(|error| failed(&error))?;
        let keeps = match &self.keep_newline {
            Value::List(globs) => {
                // As in Salt, for which a file in the directory of the host itself is below `.`.
                let path = if relative.contains('/') { relative.to_owned() } else { format!("./{relative}") };
                globs.iter().any(|glob| fnmatch(&glob.to_string(), &path))
            }
            other => other.is_truthy(),
        };
        if content.last() == Some(&b'\n') && !keeps {
            content.pop();
        }
        let text = match String::from_utf8(content) {
            Ok(text) => text,
            Err(error) => return Ok(error.into_bytes().into()),
        };
        let Some(renderer) = &self.template else { return Ok(text.into()) };
        let source = self.call.source;
        let mut context = Context::new(self.call.request.pillarenv.unwrap_or("base"));
        context.set_limits(Limits::of(&source.opts));
        context.set_shared("grains", Arc::clone(self.call.request.grains));
        context.set_shared("opts", Arc::clone(&source.opts));
        context.set("pillar", &self.call.pillar.clone().into());
        let host = self.call.request.functions.clone().unwrap_or_default();
        let sls = Sls::compile(relative, &text, renderer);
        let sls = sls.and_then(|sls| sls.allowed_by(&source.allowed)?.allowed_by(&self.allowed));
        let sls = sls.map_err(|error| failed(&error))?;
        sls.with_gpg(Arc::clone(&source.gpg)).render(&context, &host).map_err(|error| failed(&error))
    }
}
