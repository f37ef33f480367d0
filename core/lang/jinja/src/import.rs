//! Imports: the path that a name resolves to, and the variables in scope there.
//!
//! minijinja always lets an imported template see the variables of its importer. For an import without context a
//! prologue hides those, sets `tplfile` and `tpldir` as Salt does, and includes the template, which is compiled once
//! for all importers ([`ImportCache`]).

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use parking_lot::Mutex;

use super::cache::{ImportCache, Imported};
use super::data::{double_quoted, type_name};
use super::environment::{HIDDEN, known_names};
use super::guard::Guard;
use super::host::Host;
use super::syntax::{Document, Emitted, Purpose, emit};

/// The separator in the names that minijinja sees: the path of a template, its id in the cache, and the prologue of an
/// import.
const SEPARATOR: char = '\0';

/// The suffix of the id in such a name, if the template begins with setting [`BASE`] to its own directory.
const BASED: char = 'b';

/// The variable with the directory that `./x` is relative to, if it is not `tpldir`.
const BASE: &str = "__base__";

/// The function that resolves the names of templates in tags.
const RESOLVE: &str = "__template__";

fn set(variable: &str, value: &str) -> String {
    format!("{{%set {variable}={}%}}", double_quoted(value))
}

/// Returns the path below `salt://` in a name that minijinja sees.
pub(super) fn path_of(name: &str) -> &str {
    name.split_once(SEPARATOR).map_or(name, |(path, _)| path)
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(directory, _)| directory)
}

/// Resolves a path that is relative to a directory. A path outside of the root is an error.
fn join(directory: &str, relative: &str) -> Result<String, Error> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
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

/// The other templates that one render reads.
#[derive(Clone)]
pub(super) struct Imports(Arc<Render>);

struct Render {
    host: Host,
    saltenv: String,
    /// Whether lookups are recorded.
    diagnoses: bool,
    guard: Option<Arc<Guard>>,
    cache: ImportCache,
    /// Variables that are in scope in all templates.
    globals: HashSet<String>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The templates that were looked up, by path.
    found: HashMap<String, Lookup>,
    /// The last path without a template.
    missing: Option<String>,
    /// Whether the engine has compiled a template.
    compiled: bool,
}

/// The result of looking up a template.
#[derive(Clone)]
enum Lookup {
    Found(Arc<Imported>),
    Missing,
    Failed(String),
}

impl Imports {
    /// Creates the imports of a render with these variables.
    pub(super) fn new(
        host: &Host,
        saltenv: &str,
        globals: HashSet<String>,
        cache: &ImportCache,
        guard: Option<&Arc<Guard>>,
    ) -> Self {
        Imports(Arc::new(Render {
            host: host.clone(),
            saltenv: saltenv.to_owned(),
            diagnoses: false,
            guard: guard.map(Arc::clone),
            cache: cache.clone(),
            globals,
            progress: Mutex::default(),
        }))
    }

    /// Creates the imports of a render that records lookups.
    pub(super) fn diagnosing(host: &Host, saltenv: &str, globals: HashSet<String>) -> Self {
        Imports(Arc::new(Render {
            host: host.clone(),
            saltenv: saltenv.to_owned(),
            diagnoses: true,
            guard: None,
            cache: ImportCache::new(),
            globals,
            progress: Mutex::default(),
        }))
    }

    /// Adds the loader and the function that resolves names to an environment.
    pub(super) fn add_to(&self, environment: &mut Environment<'static>) {
        let imports = self.clone();
        environment.set_loader(move |name| imports.load(name));
        let imports = self.clone();
        environment.add_function(RESOLVE, move |state: &State<'_, '_>, name: JinjaValue, context: bool| {
            imports.resolve(state, &name, context)
        });
    }

    /// Removes the loader, the function that resolves names, and the fuel from an environment, so that it can be
    /// cached.
    pub(super) fn remove_from(environment: &mut Environment<'static>) {
        environment.set_loader(|_| Ok(None::<String>));
        environment.remove_global(RESOLVE);
        environment.set_fuel(None);
    }

    /// Resolves the name in a tag to the name that minijinja sees. A list resolves up to its first existing template.
    fn resolve(&self, state: &State<'_, '_>, name: &JinjaValue, context: bool) -> Result<JinjaValue, Error> {
        if matches!(name.kind(), ValueKind::Seq | ValueKind::Iterable) {
            let mut names = Vec::new();
            for name in name.try_iter()? {
                let name = self.resolve(state, &name, context)?;
                let is_last = name.as_str().is_some_and(|name| name.contains(SEPARATOR));
                names.push(name);
                if is_last {
                    break;
                }
            }
            return Ok(names.into());
        }
        let Some(name) = name.as_str() else {
            let message = format!("'{}' object is not iterable", type_name(name));
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        };
        let variable = |name: &str| state.lookup(name).and_then(|value| value.as_str().map(str::to_owned));
        let current = variable(BASE).or_else(|| variable("tpldir"));
        let current = current.unwrap_or_else(|| directory(path_of(state.name())).to_owned());
        let is_relative = name.starts_with("./") || name.starts_with("../");
        let path = if is_relative { join(&current, name)? } else { name.replace(SEPARATOR, "") };
        let Lookup::Found(imported) = self.lookup(&path)? else { return Ok(path.into()) };
        let compiled = format!("{path}{SEPARATOR}{}", imported.id);
        if context {
            // The importer's `tpldir` stays in scope, but `./x` is relative to this template.
            return Ok(if is_relative { compiled } else { format!("{compiled}{BASED}") }.into());
        }
        let tpldir = if is_relative { current.as_str() } else { directory(&path) };
        let tpldot = if tpldir == "." { String::new() } else { tpldir.replace('/', ".") };
        let own = [("tplfile", name), ("tpldir", tpldir), (BASE, tpldir), ("tpldot", &tpldot), ("tplpath", &path)];
        let mut prologue: String = own.into_iter().map(|(variable, value)| set(variable, value)).collect();
        for variable in self.hidden(state) {
            // Writing into a `String` cannot fail.
            _ = write!(prologue, "{{%set {variable}={HIDDEN}%}}");
        }
        Ok(format!("{compiled}{SEPARATOR}{prologue}").into())
    }

    /// Returns the variables that the importer has set itself, which are hidden from the imported template.
    fn hidden(&self, state: &State<'_, '_>) -> Vec<String> {
        let stays = |name: &str| {
            name.starts_with("__")
                || matches!(name, "salt" | "saltenv" | "loop" | "self" | "super" | "caller")
                || state.env().globals().any(|(global, _)| global == name)
                || self.0.globals.contains(name)
        };
        state.known_variables().iter().filter(|name| !stays(name)).map(ToString::to_string).collect()
    }

    /// Looks up a template; the host reads it at most once in a render.
    fn lookup(&self, path: &str) -> Result<Lookup, Error> {
        let Render { host, saltenv, guard, cache, progress, diagnoses, .. } = &*self.0;
        if let Some(lookup) = progress.lock().found.get(path) {
            return Ok(lookup.clone());
        }
        let lookup = match host.template(path, saltenv) {
            Ok(Some(source)) if *diagnoses => {
                let document = Document::parse(&source, None, &known_names());
                let Emitted { text, map } = emit(&document, Purpose::Diagnose);
                Lookup::Found(Arc::new(Imported { id: 0, document, text: text.into(), map, facts: None }))
            }
            Ok(Some(source)) => {
                let guarded = guard.as_ref().map(|guard| guard.variables());
                cache.template(saltenv, path, source, guarded).map_or_else(Lookup::Failed, Lookup::Found)
            }
            Ok(None) => Lookup::Missing,
            Err(error) => Lookup::Failed(error.to_string()),
        };
        if let (Some(guard), Lookup::Found(imported)) = (guard, &lookup)
            && let Some(facts) = &imported.facts
        {
            guard.add(path, facts)?;
        }
        progress.lock().found.insert(path.to_owned(), lookup.clone());
        Ok(lookup)
    }

    /// Returns the text of a template that minijinja loads by name.
    fn load(&self, name: &str) -> Result<Option<String>, Error> {
        let (path, rest) = name.split_once(SEPARATOR).unwrap_or((name, ""));
        let imported = match self.lookup(path)? {
            Lookup::Found(imported) => imported,
            Lookup::Failed(error) => return Err(Error::new(ErrorKind::InvalidOperation, error)),
            Lookup::Missing => {
                self.0.progress.lock().missing = Some(path.to_owned());
                return Ok(None);
            }
        };
        let prologue = rest.split_once(SEPARATOR).map(|(_, prologue)| prologue);
        self.0.progress.lock().compiled = true;
        self.0.cache.count(prologue.is_none());
        Ok(Some(match prologue {
            Some(prologue) => {
                let path = double_quoted(path);
                let path = path.strip_suffix('"').unwrap_or(&path);
                format!("{prologue}{{%include {path}\\x00{}\"%}}", imported.id)
            }
            None => format!("{}{}", own_prologue(name), imported.text),
        }))
    }

    /// Returns the template of a name that minijinja sees, and the length of its prologue.
    pub(super) fn template(&self, name: &str) -> Option<(Arc<Imported>, usize)> {
        match self.0.progress.lock().found.get(path_of(name))? {
            Lookup::Found(imported) => Some((Arc::clone(imported), own_prologue(name).len())),
            Lookup::Missing | Lookup::Failed(_) => None,
        }
    }

    /// Returns the last path without a template.
    pub(super) fn missing(&self) -> Option<String> {
        self.0.progress.lock().missing.clone()
    }

    /// Returns whether a template was compiled.
    pub(super) fn compiled(&self) -> bool {
        self.0.progress.lock().compiled
    }
}

/// Returns the prologue of a template that resolves `./x` relative to itself.
fn own_prologue(name: &str) -> String {
    match name.split_once(SEPARATOR) {
        Some((path, id)) if id.ends_with(BASED) && !id.contains(SEPARATOR) => set(BASE, directory(path)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_stay_below_the_root() {
        for (directory, name, path) in [
            ("a/b", "./x", Some("a/b/x")),
            ("a/b", "../x", Some("a/x")),
            (".", "./x/../y", Some("y")),
            (".", "../x", None),
            ("a", "../../x", None),
        ] {
            assert_eq!(join(directory, name).ok().as_deref(), path, "{directory} {name}");
        }
    }
}
