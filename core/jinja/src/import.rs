//! Templates that read other templates: what a name is relative to, and what is in scope there.
//!
//! minijinja always lets an imported template see the variables of its importer. For an import without
//! context the loader puts a line in front that hides those, and sets `tplfile` and `tpldir` as Salt does.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use parking_lot::Mutex;

use super::guard::{self, Covered, Guard};
use super::host::Host;
use super::operators::type_name;
use super::rewrite::{Look, rewrite};
use super::value::double_quoted;

/// Parts the path of a template from the line that is put in front of it, in the name for minijinja.
const SEPARATOR: char = '\0';

/// The variable with the folder that `./x` is below, where that is not `tpldir`.
const BASE: &str = "__base__";

/// The variables that are in scope everywhere.
const GLOBALS: &str = "__given__";

/// Adds the function that the names of templates go through.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__template__", name_of);
    environment.add_global("__undefined__", JinjaValue::UNDEFINED);
}

/// The name under which the loader finds what a tag names.
fn name_of(state: &State<'_, '_>, name: JinjaValue, context: bool) -> Result<JinjaValue, Error> {
    if matches!(name.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return name.try_iter()?.map(|name| name_of(state, name, context)).collect();
    }
    let Some(name) = name.as_str() else {
        let message = format!("'{}' object is not iterable", type_name(&name));
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    let variable = |name: &str| state.lookup(name).and_then(|value| value.as_str().map(str::to_owned));
    let current = variable(BASE).or_else(|| variable("tpldir"));
    let current = current.unwrap_or_else(|| folder(path_of(state.name())).to_owned());
    let is_relative = name.starts_with("./") || name.starts_with("../");
    let path = if is_relative { join(&current, name)? } else { name.to_owned() };
    if context {
        // The importer's `tpldir` stays in scope, but what this template names by `./x` is beside itself.
        let front = if is_relative { String::new() } else { format!("{SEPARATOR}{}", set(BASE, folder(&path))) };
        return Ok(format!("{path}{front}").into());
    }
    let tpldir = if is_relative { current.as_str() } else { folder(&path) };
    let tpldot = if tpldir == "." { String::new() } else { tpldir.replace('/', ".") };
    let own = [("tplfile", name), ("tpldir", tpldir), (BASE, tpldir), ("tpldot", &tpldot), ("tplpath", &path)];
    let mut front: String = own.into_iter().map(|(variable, value)| set(variable, value)).collect();
    for variable in hidden(state) {
        // Writing into a `String` cannot fail.
        _ = write!(front, "{{%set {variable}=__undefined__%}}");
    }
    Ok(format!("{path}{SEPARATOR}{front}").into())
}

fn set(variable: &str, value: &str) -> String {
    format!("{{%set {variable}={}%}}", double_quoted(value))
}

/// The variables that the importer has set itself.
fn hidden(state: &State<'_, '_>) -> Vec<String> {
    let given = state.lookup(GLOBALS).and_then(|names| names.try_iter().ok().map(Iterator::collect::<Vec<_>>));
    let given = given.unwrap_or_default();
    let stays = |name: &str| {
        name.starts_with("__")
            || matches!(name, "salt" | "saltenv" | "loop" | "self" | "super" | "caller")
            || state.env().globals().any(|(global, _)| global == name)
            || given.iter().any(|given| given.as_str() == Some(name))
    };
    state.known_variables().iter().filter(|name| !stays(name)).map(ToString::to_string).collect()
}

/// The path of a template below `salt://`, from its name for minijinja.
pub(super) fn path_of(name: &str) -> &str {
    name.split_once(SEPARATOR).map_or(name, |(path, _)| path)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

/// A relative path from a folder. Nothing is outside of the root.
fn join(folder: &str, relative: &str) -> Result<String, Error> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let outside = || Error::new(ErrorKind::TemplateNotFound, format!("{relative} is outside of the root"));
                parts.pop().ok_or_else(outside)?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The other templates that one render reads, from the host.
#[derive(Clone)]
pub(super) struct Imports {
    host: Arc<dyn Host>,
    saltenv: String,
    look: Look,
    guard: Option<Arc<Guard>>,
    read: Arc<Mutex<Read>>,
}

#[derive(Default)]
struct Read {
    /// The sources as their authors wrote them, by path.
    sources: HashMap<String, String>,
    /// The last path that there was nothing for.
    missing: Option<String>,
}

impl Imports {
    /// Reads from this host.
    pub(super) fn new(host: &Arc<dyn Host>, saltenv: &str, look: Look, guard: Option<&Arc<Guard>>) -> Self {
        let (host, saltenv, guard) = (Arc::clone(host), saltenv.to_owned(), guard.map(Arc::clone));
        Imports { host, saltenv, look, guard, read: Arc::default() }
    }

    /// Lets an environment find its templates here. The variables with these names are in scope in all.
    pub(super) fn add_to<'n>(&self, environment: &mut Environment<'static>, given: impl Iterator<Item = &'n str>) {
        let imports = self.clone();
        environment.set_loader(move |name| imports.load(name));
        environment.add_global(GLOBALS, given.collect::<JinjaValue>());
    }

    fn load(&self, name: &str) -> Result<Option<String>, Error> {
        let (path, front) = name.split_once(SEPARATOR).unwrap_or((name, ""));
        let failed = |error| Error::new(ErrorKind::InvalidOperation, error);
        let Some(source) = self.host.template(path, &self.saltenv).map_err(failed)? else {
            self.read.lock().missing = Some(path.to_owned());
            return Ok(None);
        };
        let rewritten = match &self.guard {
            Some(guard) => {
                let covered = covered(&source).map_err(failed)?;
                guard.add(path, &covered.facts)?;
                format!("{front}{}", covered.text)
            }
            None => format!("{front}{}", rewritten(&source, self.look)),
        };
        self.read.lock().sources.insert(path.to_owned(), source);
        Ok(Some(rewritten))
    }

    /// The source of a template that was read, as its author wrote it.
    pub(super) fn source(&self, path: &str) -> Option<String> {
        self.read.lock().sources.get(path).cloned()
    }

    /// The last path that there was nothing for.
    pub(super) fn missing(&self) -> Option<String> {
        self.read.lock().missing.clone()
    }
}

/// What a source is for minijinja. The files of a formula all import the same few templates: what these were rewritten to
/// is kept.
fn rewritten(source: &str, look: Look) -> Arc<str> {
    const KEPT: usize = 64;
    static REWRITTEN: LazyLock<Mutex<HashMap<String, Arc<str>>>> = LazyLock::new(Mutex::default);
    if look == Look::Again {
        return rewrite(source, look).text.into();
    }
    if let Some(kept) = REWRITTEN.lock().get(source) {
        return Arc::clone(kept);
    }
    let text: Arc<str> = rewrite(source, look).text.into();
    let mut kept = REWRITTEN.lock();
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(source.to_owned(), Arc::clone(&text));
    text
}

/// As [`rewritten`], for guarded renders.
fn covered(source: &str) -> Result<Arc<Covered>, String> {
    const KEPT: usize = 64;
    static COVERED: LazyLock<Mutex<HashMap<String, Arc<Covered>>>> = LazyLock::new(Mutex::default);
    if let Some(kept) = COVERED.lock().get(source) {
        return Ok(Arc::clone(kept));
    }
    let rewritten = rewrite(source, Look::First).text;
    let covered = Arc::new(guard::cover(source, &rewritten, super::syntax(false, false), None)?);
    let mut kept = COVERED.lock();
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(source.to_owned(), Arc::clone(&covered));
    Ok(covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_stay_below_the_root() {
        for (folder, name, path) in [
            ("a/b", "./x", Some("a/b/x")),
            ("a/b", "../x", Some("a/x")),
            (".", "./x/../y", Some("y")),
            (".", "../x", None),
            ("a", "../../x", None),
        ] {
            assert_eq!(join(folder, name).ok().as_deref(), path, "{folder} {name}");
        }
    }
}
