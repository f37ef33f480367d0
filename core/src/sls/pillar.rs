//! Pillar: what one minion is told and no other.
//!
//! The pillar top file assigns SLS files to minions; each is rendered with that minion's grains, and the
//! later ones are merged over the earlier.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::jinja::{Context, Host};
use super::render::{Sls, sls_variables};
use super::top;
use crate::config::Roots;
use crate::files;
use crate::function::Args;
use crate::minion_id::MinionId;
use crate::target::Facts;
use crate::value::{Map, Value};

/// Where pillar comes from, and how it is rendered.
#[derive(Debug, Clone)]
pub struct PillarSource {
    /// `pillar_roots`.
    pub roots: Roots,
    /// The name of the top file.
    pub state_top: String,
    /// The renderers of files that do not say.
    pub renderer: String,
    /// `opts` in templates.
    pub opts: Arc<Map>,
    /// Groups of minions by name.
    pub nodegroups: Map,
}

impl PillarSource {
    /// Renders a minion's pillar. Errors are in it as a list below `_errors`, as Salt has it: state runs
    /// then refuse.
    pub fn render(&self, id: &MinionId, grains: &Arc<Map>, environment: &str) -> Map {
        self.render_with(id, grains, environment, None)
    }

    /// As [`PillarSource::render`], with more functions for the templates than those of grains and pillar.
    pub fn render_with(
        &self,
        id: &MinionId,
        grains: &Arc<Map>,
        environment: &str,
        functions: Option<Arc<dyn Host>>,
    ) -> Map {
        let mut render = Render {
            source: self,
            grains,
            environment,
            functions,
            done: Vec::new(),
            ignored: Vec::new(),
            pillar: Map::new(),
            errors: Vec::new(),
        };
        let facts = PillarFacts { id, grains };
        match render.file(&self.state_top, "top", &self.state_top, &Map::new()) {
            Ok(Some(top)) => match top::matching(&top, environment, &facts, &self.nodegroups) {
                Ok(names) => {
                    render.ignored = may_be_missing(&top, environment);
                    for sls in &names {
                        let data = render.sls(sls, &Map::new());
                        merge(&mut render.pillar, &data);
                    }
                }
                Err(error) => render.errors.push(error.to_string()),
            },
            Ok(None) => {}
            Err(error) => render.errors.push(error),
        }
        let Render { mut pillar, errors, .. } = render;
        if !errors.is_empty() {
            tracing::error!(minion = %id, ?errors, "a pillar has errors");
            pillar.insert("_errors".into(), errors.into());
        }
        pillar
    }
}

struct PillarFacts<'a> {
    id: &'a MinionId,
    grains: &'a Map,
}

impl Facts for PillarFacts<'_> {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn grains(&self) -> Option<&Map> {
        Some(self.grains)
    }

    // The pillar in the making is not something to target by.
    fn pillar(&self) -> Option<&Map> {
        None
    }
}

struct Render<'a> {
    source: &'a PillarSource,
    grains: &'a Arc<Map>,
    environment: &'a str,
    functions: Option<Arc<dyn Host>>,
    done: Vec<String>,
    /// The SLS that need not be there.
    ignored: Vec<String>,
    pillar: Map,
    errors: Vec<String>,
}

impl Render<'_> {
    /// What an SLS says, over what it includes. `defaults` are variables of its template.
    fn sls(&mut self, sls: &str, defaults: &Map) -> Map {
        let mut all = Map::new();
        if self.done.iter().any(|done| done == sls) {
            return all;
        }
        self.done.push(sls.to_owned());
        for path in top::candidates(sls) {
            match self.file(&path, sls, &path, defaults) {
                Ok(None) => {}
                Ok(Some(Value::Nil)) => return all,
                Ok(Some(Value::Map(mut data))) => {
                    let includes = data.shift_remove("include").unwrap_or_default();
                    for include in includes.as_list().unwrap_or_default() {
                        let included = self.include(include, sls, path.ends_with("/init.sls"));
                        merge(&mut all, &included);
                    }
                    merge(&mut all, &data);
                    return all;
                }
                Ok(Some(_)) => {
                    self.errors.push(format!("SLS '{sls}' does not render to a dictionary"));
                    return all;
                }
                Err(error) => {
                    tracing::error!(sls, %error, "a pillar SLS does not render");
                    self.errors.push(format!("Rendering SLS '{sls}' failed. Please see master log for details."));
                    return all;
                }
            }
        }
        if !self.ignored.iter().any(|ignored| ignored == sls) {
            let environment = self.environment;
            self.errors.push(format!(
                "Specified SLS '{sls}' in environment '{environment}' is not available on the salt master"
            ));
        }
        all
    }

    /// What an item of `include` says: a name, or a name with `defaults` and the `key` that all of it goes below.
    fn include(&mut self, item: &Value, includer: &str, is_init: bool) -> Map {
        let (name, options) = match item {
            Value::Map(map) => match map.first() {
                Some((name, options)) => (name.to_string(), options.clone()),
                None => return Map::new(),
            },
            name => (name.to_string(), Value::Nil),
        };
        let name = absolute(&name, includer, is_init);
        let defaults = options.get("defaults").and_then(Value::as_map).cloned().unwrap_or_default();
        let mut data = self.sls(&name, &defaults);
        if let Some(key) = options.get("key").filter(|key| key.is_truthy()) {
            for part in key.to_string().split(':').rev() {
                let mut outer = Map::new();
                outer.insert(part.into(), data.into());
                data = outer;
            }
        }
        data
    }

    /// Renders a file of the environment's first root that has it.
    fn file(&self, relative: &str, sls: &str, path: &str, defaults: &Map) -> Result<Option<Value>, String> {
        let Some(file) = self.find(relative) else { return Ok(None) };
        let source = files::read_to_string(&file).map_err(|error| error.to_string())?;
        let config = self.source;
        let compiled = Sls::compile(path, &source, &config.renderer).map_err(|error| error.to_string())?;
        let mut context = Context::new(self.environment);
        context.set_all(&sls_variables(sls, path));
        context.set_shared("grains", Arc::clone(self.grains));
        context.set_shared("opts", Arc::clone(&config.opts));
        context.set("pillar", &Value::map());
        context.set_all(defaults);
        let roots = config.roots.get(self.environment).cloned().unwrap_or_default();
        let host: Arc<dyn Host> =
            Arc::new(PillarHost { grains: Arc::clone(self.grains), roots, functions: self.functions.clone() });
        compiled.render(&context, &host).map(Some).map_err(|error| error.to_string())
    }

    fn find(&self, relative: &str) -> Option<PathBuf> {
        let roots = self.source.roots.get(self.environment)?;
        find_in(roots, relative)
    }
}

/// The name that an `include` means: with dots in front, from where the includer is.
fn absolute(name: &str, includer: &str, is_init: bool) -> String {
    let dots = name.len() - name.trim_start_matches('.').len();
    if dots == 0 {
        return name.to_owned();
    }
    let mut folder: Vec<&str> = includer.split('.').collect();
    // An `init.sls` is in the folder of its name.
    for _ in usize::from(is_init)..dots {
        folder.pop();
    }
    folder.push(&name[dots..]);
    folder.retain(|part| !part.is_empty());
    folder.join(".")
}

/// The SLS that stand beside `ignore_missing: True` in a top file.
fn may_be_missing(top: &Value, environment: &str) -> Vec<String> {
    let targets = top.get(environment).and_then(Value::as_map).into_iter().flatten();
    let lists = targets.filter_map(|(_, items)| items.as_list());
    let ignoring =
        lists.filter(|items| items.iter().any(|item| item.get("ignore_missing").is_some_and(Value::is_truthy)));
    ignoring.flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn find_in(roots: &[PathBuf], relative: &str) -> Option<PathBuf> {
    roots.iter().filter_map(|root: &PathBuf| files::path_within(root as &Path, relative)).find(|path| path.is_file())
}

/// What templates of pillar files can reach: the minion's grains and other pillar files.
struct PillarHost {
    grains: Arc<Map>,
    roots: Vec<PathBuf>,
    functions: Option<Arc<dyn Host>>,
}

impl Host for PillarHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        let default = args.positional.get(1).cloned().unwrap_or_else(|| "".into());
        match (function, args.positional.first().and_then(Value::as_str)) {
            ("grains.get", Some(path)) => {
                let grains = Value::Map((*self.grains).clone());
                Ok(crate::target::traverse(&grains, path, ":").cloned().unwrap_or(default))
            }
            // There is no pillar yet.
            ("pillar.get", Some(_)) => Ok(default),
            _ => match &self.functions {
                Some(functions) => functions.call(function, args),
                None => Err(format!("'{function}' is not available in pillar files")),
            },
        }
    }

    fn has(&self, function: &str) -> bool {
        matches!(function, "grains.get" | "pillar.get")
            || self.functions.as_ref().is_some_and(|functions| functions.has(function))
    }

    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, String> {
        find_in(&self.roots, path).map(files::read_to_string).transpose().map_err(|error| error.to_string())
    }
}

/// Merges mappings at every depth; anything else replaces what was there.
pub fn merge(into: &mut Map, from: &Map) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Map(have)), Value::Map(more)) => merge(have, more),
            _ => _ = into.insert(key.clone(), value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list, map};

    #[test]
    fn relative_names_start_where_the_includer_is() {
        for (name, includer, is_init, meant) in [
            ("x.y", "a.b", false, "x.y"),
            (".x", "a.b", false, "a.x"),
            (".x", "a.b", true, "a.b.x"),
            ("..x", "a.b.c", false, "a.x"),
            (".x", "a", false, "x"),
        ] {
            assert_eq!(absolute(name, includer, is_init), meant, "{name} in {includer}");
        }
    }

    #[test]
    fn mappings_are_merged_and_lists_replaced() {
        let mut into = map! {"a" => map!{"x" => 1, "y" => 2}, "l" => list![1], "s" => "old"};
        merge(&mut into, &map! {"a" => map!{"y" => 3, "z" => 4}, "l" => list![2], "s" => map!{"n" => 1}});
        assert_eq!(into, map! {"a" => map!{"x" => 1, "y" => 3, "z" => 4}, "l" => list![2], "s" => map!{"n" => 1}});
    }
}
