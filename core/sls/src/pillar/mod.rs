//! Pillar: what one minion is told and no other.
//!
//! | file | owns |
//! |---|---|
//! | `tops.rs` | which SLS files the top files of all environments have for a minion |
//! | `tree.rs` | rendering these files and what they include |
//! | `host.rs` | what their templates reach |
//! | `external.rs`, `file_tree.rs`, `git.rs`, `http.rs` | `ext_pillar`: what comes from elsewhere |
//! | `merge.rs` | how one goes over the other |
//!
//! What goes wrong is told in the pillar itself, below `_errors`: state runs then refuse.

mod external;
mod file_tree;
mod git;
mod host;
mod http;
mod merge;
mod tops;
mod tree;

use std::sync::Arc;

use brine_config::Roots;
use brine_config::opts::shared;
use brine_ids::MinionId;
use brine_jinja::Host;
use brine_target::Facts;
use brine_value::{Map, Value};
use brine_yaml::traverse;

use super::gpg::Gpg;

pub use external::check;
pub use merge::{Merging, merge, merge_deep};
use tree::Tree;

/// Where pillar comes from, and how it is rendered and put together.
#[derive(Debug, Clone)]
pub struct PillarSource {
    /// `pillar_roots`.
    roots: Roots,
    /// The name of the top file.
    state_top: String,
    /// The renderers of files that do not say.
    renderer: String,
    /// `opts` in templates.
    opts: Arc<Map>,
    /// Groups of minions by name.
    nodegroups: Map,
    merging: Merging,
    gpg: Arc<Gpg>,
    fetched: Arc<git::Fetched>,
}

/// Whose pillar is asked for, and what is said with it.
#[derive(Clone)]
pub struct PillarRequest<'a> {
    /// The minion.
    pub id: &'a MinionId,
    /// Its grains.
    pub grains: &'a Arc<Map>,
    /// The environment of its states.
    pub saltenv: Option<&'a str>,
    /// The one environment that pillar is to come from; all of them otherwise.
    pub pillarenv: Option<&'a str>,
    /// What goes over all of it: `pillar={...}`.
    pub over: &'a Map,
    /// Functions for the templates beside those of grains and pillar, and for `ext_pillar`.
    pub functions: Option<Host>,
}

impl PillarSource {
    /// As the options say.
    pub fn new(opts: Arc<Map>) -> Self {
        PillarSource {
            roots: shared::pillar_roots(&opts),
            state_top: shared::state_top(&opts),
            renderer: shared::renderer(&opts),
            nodegroups: shared::nodegroups(&opts),
            merging: Merging::of(&opts),
            gpg: Arc::new(Gpg::of(&opts)),
            fetched: Arc::default(),
            opts,
        }
    }

    /// Renders a minion's pillar. Errors are in it as a list below `_errors`.
    pub fn render(&self, request: &PillarRequest<'_>) -> Map {
        let mut errors = Vec::new();
        let mut pillar = Map::new();
        let opts = self.opts_for(request);
        let sections = tops::sections(&Tree::new(self, request, &opts, &Map::new()), &mut errors);
        let external_first = shared::ext_pillar_first(&self.opts);
        if external_first {
            // Only then do templates see what goes over it all.
            pillar.clone_from(request.over);
            external::add_to(self, request, &mut pillar, &mut errors);
        }
        let mut tree = Tree::new(self, request, &opts, &pillar);
        let data = tree.render(&sections);
        // Top files are told last, as Salt does.
        let top_errors = std::mem::replace(&mut errors, tree.errors);
        self.merging.merge(&mut pillar, data);
        if !external_first {
            external::add_to(self, request, &mut pillar, &mut errors);
        }
        errors.extend(top_errors);
        self.merging.merge(&mut pillar, request.over.clone());
        self.decrypt(&mut pillar, &mut errors);
        if !errors.is_empty() {
            tracing::error!(minion = %request.id, ?errors, "a pillar has errors");
            pillar.insert("_errors".into(), errors.into());
        }
        pillar
    }

    /// Returns the top files of all environments put together, and their errors.
    pub fn top(&self, request: &PillarRequest<'_>) -> (Map, Vec<String>) {
        let (opts, mut errors) = (self.opts_for(request), Vec::new());
        let sections = tops::sections(&Tree::new(self, request, &opts, &Map::new()), &mut errors);
        let top = sections.into_iter().map(|(environment, targets)| (environment.into(), targets.into())).collect();
        (top, errors)
    }

    /// What files alone say, and what is wrong with them: nothing from elsewhere, nothing over it.
    fn of_files(&self, request: &PillarRequest<'_>) -> (Map, Vec<String>) {
        let (opts, mut top_errors) = (self.opts_for(request), Vec::new());
        let mut tree = Tree::new(self, request, &opts, &Map::new());
        let sections = tops::sections(&tree, &mut top_errors);
        let data = tree.render(&sections);
        let mut errors = tree.errors;
        errors.append(&mut top_errors);
        (data, errors)
    }

    /// `opts` of templates, which take `opts.id` for the minion, not for who renders.
    fn opts_for(&self, request: &PillarRequest<'_>) -> Arc<Map> {
        let mut opts = (*self.opts).clone();
        opts.insert("id".into(), request.id.into());
        Arc::new(opts)
    }

    /// `decrypt_pillar`: opens what is sealed at certain paths.
    fn decrypt(&self, pillar: &mut Map, errors: &mut Vec<String>) {
        let delimiter = shared::decrypt_pillar_delimiter(&self.opts);
        let paths: Vec<(String, Option<String>)> = match shared::decrypt_pillar(&self.opts) {
            Value::Map(map) => map.iter().map(|(path, renderer)| (path.to_string(), text(renderer))).collect(),
            Value::List(items) => items
                .iter()
                .map(|item| match item.as_map().and_then(Map::first) {
                    Some((path, renderer)) => (path.to_string(), text(renderer)),
                    None => (item.to_string(), None),
                })
                .collect(),
            _ => return,
        };
        for (path, renderer) in paths {
            let mut place = Some(&mut *pillar);
            let mut keys: Vec<&str> = path.split(&*delimiter).collect();
            let last = keys.pop().unwrap_or_default();
            for key in keys {
                place = place.and_then(|map| map.get_mut(key)).and_then(Value::as_map_mut);
            }
            let Some(value) = place.and_then(|map| map.get_mut(last)) else { continue };
            let opened = match renderer.as_deref() {
                None | Some("gpg") => self.gpg.open(value).map_err(|error| error.to_string()),
                Some(other) => Err(format!("'{other}' is not a valid decryption renderer. Valid choices are: gpg")),
            };
            errors.extend(opened.err().map(|error| format!("Failed to decrypt pillar key '{path}': {error}")));
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What targets of pillar files can look at.
struct PillarFacts<'a> {
    request: &'a PillarRequest<'a>,
    /// What is there before the files: what `ext_pillar_first` has brought.
    pillar: &'a Map,
}

impl Facts for PillarFacts<'_> {
    fn id(&self) -> &str {
        self.request.id.as_str()
    }

    fn grains(&self) -> Option<&Map> {
        Some(self.request.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(self.pillar)
    }
}

/// The value at a path, or the default, as `pillar.get` and `grains.get` have it.
fn at_path(map: &Map, path: &str, delimiter: &str, default: Value) -> Value {
    traverse(&Value::Map(map.clone()), path, delimiter).cloned().unwrap_or(default)
}

#[cfg(test)]
mod tests;
