//! Rendering of pillar SLS files and their includes with the minion's grains.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_config::opts::shared;
use brine_jinja::{Context, ImportCache, Limits};
use brine_system::files;
use brine_text::glob::{fnmatch, is_pattern};
use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::host::{Lookups, Roots};
use super::tops::{self, Matched, Sections};
use super::{PillarFacts, PillarRequest, PillarSource};
use crate::render::{Explained, Settings, Sls, sls_imports, sls_variables};
use crate::{includes, top};

/// The number of errors up to which those of an SLS are repeated where it is included again.
const MAX_REPEATED_ERRORS: usize = 100;

/// One render of all pillar files of a minion.
pub(super) struct Tree<'a> {
    pub source: &'a PillarSource,
    pub request: &'a PillarRequest<'a>,
    /// `opts` in the templates.
    opts: Arc<Map>,
    /// `pillar` in the templates: the pillar before the files.
    pillar: Arc<Map>,
    /// The imported templates of all files.
    imports: ImportCache,
    /// The settings that the files share in the renderer `stateconf`.
    settings: Arc<Settings>,
    /// The errors, in Salt's wording.
    pub errors: Vec<String>,
    /// The number of SLS files that are being rendered, each included by the one before.
    level: usize,
}

/// The files of one environment during rendering.
struct Environment<'a> {
    name: &'a str,
    roots: &'a [PathBuf],
    /// The names of all SLS files, once a glob is matched: there may be many thousands.
    available: OnceCell<Vec<String>>,
    may_be_missing: &'a [String],
    /// The rendered data of each SLS, without includes.
    done: IndexMap<String, Map>,
}

impl<'a> Tree<'a> {
    pub fn new(source: &'a PillarSource, request: &'a PillarRequest<'a>, opts: &Arc<Map>, pillar: &Map) -> Self {
        Tree {
            source,
            request,
            opts: Arc::clone(opts),
            pillar: Arc::new(pillar.clone()),
            imports: sls_imports(opts),
            settings: Arc::default(),
            errors: Vec::new(),
            level: 0,
        }
    }

    /// Renders the files that the top files assign to the minion, later ones over earlier ones.
    pub fn render(&mut self, sections: &Sections) -> Map {
        let pillar = Arc::clone(&self.pillar);
        let facts = PillarFacts { request: self.request, pillar: &pillar };
        let nodegroups = &self.source.nodegroups;
        let matched = tops::matched(sections, self.request.pillarenv, &facts, nodegroups, &mut self.errors);
        let mut all = Map::new();
        for (name, Matched { names, may_be_missing }) in in_order(matched, &self.source.opts) {
            // `base` always exists.
            let directories = self.source.roots.get(&name).map(Vec::as_slice).or((name == "base").then_some(&[]));
            let Some(roots) = directories else {
                self.errors.push(format!("No matching pillar environment for environment '{name}' found"));
                continue;
            };
            let may_be_missing = &may_be_missing;
            let mut environment =
                Environment { name: &name, roots, available: OnceCell::new(), may_be_missing, done: IndexMap::new() };
            let matching: Vec<String> = names.iter().flat_map(|name| environment.matching(name)).collect();
            for sls in matching {
                let data = self.sls(&sls, &mut environment, &Map::new());
                self.source.merging.merge(&mut all, data);
            }
        }
        all
    }

    /// Renders an SLS over its includes. `defaults` are variables of its template.
    fn sls(&mut self, sls: &str, environment: &mut Environment<'_>, defaults: &Map) -> Map {
        let count = environment.done.len();
        let data = self.read(sls, environment, defaults);
        // A failed SLS is not rendered again for a later include.
        if environment.done.len() == count {
            environment.done.entry(sls.to_owned()).or_default();
        }
        data
    }

    fn read(&mut self, sls: &str, environment: &mut Environment<'_>, defaults: &Map) -> Map {
        // An empty part would name the same file once more, and a file that includes it so would do so for ever.
        let is_name = sls.split('.').all(|part| !part.is_empty());
        let mut candidates = top::candidates(sls).into_iter().filter(|_| is_name);
        let Some(path) = candidates.find(|path| self.find(path, environment.name).is_some()) else {
            // As in Salt, a missing SLS is no error in an environment without directories.
            let has_directories =
                self.source.roots.get(environment.name).is_some_and(|directories| !directories.is_empty());
            if has_directories && !environment.may_be_missing.iter().any(|ignored| ignored == sls) {
                let [file, directory] = top::candidates(sls);
                self.errors.push(format!(
                    "Specified SLS '{sls}' in environment '{}' is not available on the salt master\n  hint: neither {file} nor \
                     {directory} is below the pillar_roots of this environment",
                    environment.name
                ));
            }
            return Map::new();
        };
        let mut data = match self.file(&path, sls, environment.name, defaults) {
            Ok(Some(Value::Map(data))) => data,
            Ok(None | Some(Value::Nil)) => return Map::new(),
            Ok(Some(_)) => {
                self.errors.push(format!(
                    "SLS '{sls}' does not render to a dictionary\n  hint: a pillar file is a mapping, as 'key: value'"
                ));
                return Map::new();
            }
            Err(error) => {
                tracing::error!(sls, "rendering a pillar SLS failed: {}", error.logged());
                // By default the details are withheld from the minion: the error quotes lines of the file.
                self.errors.push(if shared::pillar_safe_render_error(&self.source.opts) {
                    format!("Rendering SLS '{sls}' failed. Please see master log for details.{}", error.place)
                } else {
                    format!("Rendering SLS '{sls}' failed, render error:\n{}{}", error.message, error.advice)
                });
                return Map::new();
            }
        };
        let includes = data.shift_remove("include");
        environment.done.insert(sls.to_owned(), data.clone());
        let includes = match includes {
            None | Some(Value::Nil) => return data,
            Some(Value::List(includes)) => includes,
            Some(other) => {
                data.insert("include".into(), other);
                self.errors.push(format!("Include Declaration in SLS '{sls}' is not formed as a list"));
                return data;
            }
        };
        let mut under = Map::new();
        // As in Salt, an include without defaults inherits those of the previous one.
        let mut included =
            Included { by: sls, is_init: path.ends_with("/init.sls"), defaults: defaults.clone(), errors: Vec::new() };
        for include in &includes {
            let data = self.include(include, environment, &mut included);
            self.source.merging.merge(&mut under, data);
        }
        let (mut under, over) =
            if shared::pillar_includes_override_sls(&self.source.opts) { (data, under) } else { (under, data) };
        self.source.merging.merge(&mut under, over);
        under
    }

    /// Processes an item of `include`: a name, or a name with `defaults` and the `key` below which its data is merged.
    fn include(&mut self, item: &Value, environment: &mut Environment<'_>, included: &mut Included<'_>) -> Map {
        let (name, options) = match item {
            Value::Map(map) => match map.first() {
                Some((name, options)) => {
                    included.defaults = options.get("defaults").and_then(Value::as_map).cloned().unwrap_or_default();
                    (name.to_string(), options.clone())
                }
                None => return Map::new(),
            },
            name => (name.to_string(), Value::Nil),
        };
        let mut all = Map::new();
        for sls in self.included(&name.replace('/', "."), environment, included) {
            let mut data = if let Some(data) = environment.done.get(&sls) {
                // As in Salt, errors follow those of the SLS that was rendered last. That doubles them at each level:
                // those of a chain of 30 files would take all memory.
                if self.errors.len() + included.errors.len() <= MAX_REPEATED_ERRORS {
                    self.errors.extend_from_slice(&included.errors);
                }
                data.clone()
            } else if self.level == includes::MAX_LEVELS {
                self.errors.push(includes::too_deep(&sls, included.by));
                Map::new()
            } else {
                let before = self.errors.len();
                self.level += 1;
                let data = self.sls(&sls, environment, &included.defaults);
                self.level -= 1;
                included.errors = self.errors.get(before..).unwrap_or_default().to_vec();
                data
            };
            if let Some(key) = options.get("key").filter(|key| key.is_truthy() && !data.is_empty()) {
                for part in key.to_string().split(':').rev() {
                    data = brine_value::map! {part => data};
                }
            }
            self.source.merging.merge(&mut all, data);
        }
        all
    }

    /// Resolves an included name. As in Salt it is looked up twice: without leading dots, and relative to the including
    /// file. If both exist, both are included, with their errors.
    fn included(&self, name: &str, environment: &Environment<'_>, included: &Included<'_>) -> Vec<String> {
        let absolute = absolute(name, included.by, included.is_init);
        let files: Vec<String> = [name.trim_start_matches('.'), &absolute]
            .into_iter()
            .flat_map(|name| environment.matching(name))
            .filter(|sls| top::candidates(sls).iter().any(|path| self.find(path, environment.name).is_some()))
            .collect();
        if files.is_empty() { vec![absolute] } else { files }
    }

    /// Renders a file from the first root of the environment that has it.
    pub fn file(
        &self,
        relative: &str,
        sls: &str,
        environment: &str,
        defaults: &Map,
    ) -> Result<Option<Value>, FileError> {
        let Some(file) = self.find(relative, environment) else { return Ok(None) };
        let source = files::read(&file).map_err(|error| FileError {
            message: error.to_string(),
            advice: String::new(),
            place: String::new(),
        })?;
        let compiled = Sls::compile_sharing(&self.imports, relative, &source, &self.source.renderer)
            .and_then(|compiled| compiled.allowed_by(&self.source.allowed))
            .map_err(|error| FileError::from(Explained::of(error, relative, &source, "")))?;
        let compiled = compiled.with_gpg(Arc::clone(&self.source.gpg)).with_settings(Arc::clone(&self.settings));
        let grains = self.request.grains;
        let mut context = Context::new(environment);
        context.set_limits(Limits::of(&self.source.opts));
        context.set_all(&sls_variables(sls, relative));
        context.set_shared("grains", Arc::clone(grains));
        context.set_shared("opts", Arc::clone(&self.opts));
        context.set_shared("pillar", Arc::clone(&self.pillar));
        context.set_all(defaults);
        let host = self.request.functions.clone().unwrap_or_default();
        let below = host.clone();
        let host = host
            .with_functions(Lookups { below, grains: Arc::clone(grains), pillar: Arc::clone(&self.pillar) })
            .with_files(Roots(self.source.roots.get(environment).cloned().unwrap_or_default()));
        compiled.render_explained(&context, &host).map(Some).map_err(|error| FileError::from(*error))
    }

    pub fn find(&self, relative: &str, environment: &str) -> Option<PathBuf> {
        find_in(self.source.roots.get(environment)?, relative)
    }
}

/// The error of a pillar file.
pub(super) struct FileError {
    /// The message of the renderer; that of a template has lines of the file.
    pub message: String,
    /// The lines that follow the message, with lines of the file.
    pub advice: String,
    /// The lines about its place and cause, without any text of the file.
    pub place: String,
}

impl FileError {
    /// Returns the text for the log, on one line: without the lines around an error of YAML, which may be secret.
    fn logged(&self) -> String {
        format!("{}{}", self.message, self.place.replace("\n  --> ", "; ").replace("\n  hint: ", ": "))
    }
}

impl From<Explained> for FileError {
    fn from(explained: Explained) -> Self {
        FileError {
            message: explained.error.to_string(),
            advice: explained.advice(),
            place: explained.place_and_cause(),
        }
    }
}

/// The state of include processing.
struct Included<'a> {
    by: &'a str,
    is_init: bool,
    defaults: Map,
    /// The errors of the SLS that was rendered last.
    errors: Vec<String>,
}

/// Returns the names of all SLS files in these directories, sorted.
fn available(roots: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for root in roots {
        let mut waiting = vec![(root.clone(), String::new())];
        while let Some((directory, prefix)) = waiting.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                // A symbolic link to a directory could form a cycle.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push((path, format!("{prefix}{name}.")));
                } else if let Some(name) = name.strip_suffix(".sls") {
                    let is_init = name == "init" && !prefix.is_empty();
                    names.push(if is_init { prefix.trim_end_matches('.').into() } else { format!("{prefix}{name}") });
                }
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

impl Environment<'_> {
    /// Returns the SLS files that match a name or glob; a name without a match is returned unchanged.
    fn matching(&self, name: &str) -> Vec<String> {
        if !is_pattern(name) {
            return vec![name.to_owned()];
        }
        let available = self.available.get_or_init(|| available(self.roots));
        let names: Vec<String> = available.iter().filter(|sls| fnmatch(name, sls)).cloned().collect();
        if names.is_empty() { vec![name.to_owned()] } else { names }
    }
}

/// Sorts the environments by `env_order`, the others last.
fn in_order(matched: IndexMap<String, Matched>, opts: &Map) -> IndexMap<String, Matched> {
    let order = shared::env_order(opts);
    let mut matched = matched;
    matched.sort_by_cached_key(|name, _| order.iter().position(|have| have == name).unwrap_or(order.len()));
    matched
}

pub(super) fn find_in(roots: &[PathBuf], relative: &str) -> Option<PathBuf> {
    roots.iter().filter_map(|root: &PathBuf| files::path_within(root as &Path, relative)).find(|path| path.is_file())
}

/// Resolves an `include` name: with a leading dot, it is relative to the including file. As in Salt, a second dot does
/// not mean the parent directory, unlike in state files.
fn absolute(name: &str, includer: &str, is_init: bool) -> String {
    let Some(beside) = name.strip_prefix('.') else { return name.to_owned() };
    // An `init.sls` is in the directory of its name.
    let directory = if is_init { Some(includer) } else { includer.rsplit_once('.').map(|(directory, _)| directory) };
    match directory {
        // A dot alone names the package itself, its `init.sls`.
        Some(directory) if beside.is_empty() => directory.to_owned(),
        Some(directory) => format!("{directory}.{beside}"),
        None => beside.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::super::tests::Master;
    use super::*;

    #[test]
    fn mistakes_in_pillar_files_have_place_and_cause_without_any_text_of_the_file() {
        for (text, advice) in [
            ("a: 1\npassword: @xyzzy\n", "  --> web.sls:2\n  hint: text that begins with '@' must be quoted"),
            (
                "a:\n\tpassword: xyzzy\n",
                "  --> web.sls:2\n  hint: line 2 is indented with a tab: YAML is indented with spaces",
            ),
            ("a: 1\npassword:xyzzy\nb: 2\n", "  --> web.sls:3\n  hint: line 2 lacks a space after its colon"),
            ("password: 'xyzzy\n", "hint: the quote that opens in line 1 is not closed"),
            (
                "password: xyzzy: b\n",
                "  --> web.sls:1\n  hint: a value that contains a colon and a space must be quoted",
            ),
            (
                "password: xyzzy\n  b: 1\n",
                "  --> web.sls:2\n  hint: line 1 has a value: nothing can be indented below it",
            ),
            ("{% set p = 'xyzzy' %}\na: {{ nope }}\n", "  --> web.sls:2"),
        ] {
            let files = [("base/top.sls", "base: {'*': [web]}"), ("base/web.sls", text)];
            let errors = Master::new(&files, map! {}).of("m").get("_errors").unwrap().to_string().replace("\\n", "\n");
            assert!(
                errors.contains("Rendering SLS 'web' failed. Please see master log for details."),
                "{text}{errors}"
            );
            assert!(errors.replace("\\'", "'").contains(advice), "{text}{errors}");
            assert!(!errors.contains("xyzzy"), "{text}{errors}");
        }
    }

    #[test]
    fn relative_includes_start_at_the_including_file() {
        for (name, includer, is_init, expected) in [
            ("x.y", "a.b", false, "x.y"),
            (".x", "a.b", false, "a.x"),
            (".x", "a.b", true, "a.b.x"),
            ("..x", "a.b.c", false, "a.b..x"),
            (".x", "a", false, "x"),
        ] {
            assert_eq!(absolute(name, includer, is_init), expected, "{name} in {includer}");
        }
    }

    #[test]
    fn the_log_has_no_line_of_a_pillar_file() {
        let sls = Sls::compile("web.sls", "a: 1\npassword: @xyzzy\n", "yaml").unwrap();
        let error = sls.render_explained(&Context::new("base"), &brine_jinja::Host::new()).unwrap_err();
        let logged = "found character that cannot start any token; web.sls:2: text that begins with '@' must be quoted";
        assert_eq!(FileError::from(*error).logged(), logged);
    }

    #[test]
    fn a_package_that_includes_itself_is_rendered_once() {
        for include in [".", "..", "p."] {
            let text = format!("include: ['{include}']\nv: 1\n");
            let files = [("base/top.sls", "base: {'*': [p]}"), ("base/p/init.sls", text.as_str())];
            let pillar = Master::new(&files, Map::new()).of("web1");
            assert_eq!(pillar.get("v"), Some(&1.into()), "{include}: {pillar:?}");
        }
    }

    /// Deeper ones would end the master; threads that render have a stack of 8 MB.
    #[test]
    fn includes_nest_so_deeply_and_no_deeper() {
        std::thread::Builder::new().stack_size(8 << 20).spawn(check_levels).unwrap().join().unwrap();
    }

    fn check_levels() {
        for (levels, has_errors) in [(499, false), (510, true)] {
            let mut files = vec![("base/top.sls".to_owned(), "base: {'*': [s0]}".to_owned())];
            files.extend((0..=levels).map(|n| {
                let include = if n < levels { format!("include: [s{}]\n", n + 1) } else { String::new() };
                (format!("base/s{n}.sls"), format!("{include}v{n}: 1\n"))
            }));
            let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let pillar = Master::new(&files, Map::new()).of("web1");
            let listed = pillar.get("_errors").and_then(Value::as_list).map_or(0, <[Value]>::len);
            assert!((listed > 0) == has_errors && listed <= 100, "{:?}", pillar.get("_errors"));
            assert_eq!(pillar.get("v499"), Some(&1.into()));
        }
    }
}
