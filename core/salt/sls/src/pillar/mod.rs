//! Pillar: data for one minion only.
//!
//! | file | owns |
//! |---|---|
//! | `tops.rs` | the SLS files that the top files of all environments assign to a minion |
//! | `tree.rs` | rendering of these files and their includes |
//! | `host.rs` | functions and files for their templates |
//! | `external/`, `extra_data.rs`, `file_tree.rs`, `git.rs`, `http.rs`, `stack/` | `ext_pillar`: other sources |
//! | `merge.rs` | merge strategies |
//! | `decrypt.rs` | `decrypt_pillar` |
//!
//! Errors are part of the pillar, below `_errors`: state runs then refuse to start.

mod decrypt;
mod external;
mod extra_data;
mod file_tree;
mod git;
mod host;
mod http;
mod merge;
mod stack;
mod tops;
mod tree;

use std::borrow::Cow;
use std::sync::Arc;

use brine_config::opts::{minion, modules, shared};
use brine_config::{ANY_ENVIRONMENT, Roots, in_environment};
use brine_function::Args;
use brine_ids::MinionId;
use brine_jinja::{CustomCall, Host};
use brine_system::files;
use brine_target::{Match, TargetFacts};
use brine_value::{Map, Value, map};
use brine_yaml::traverse;

use super::gpg::Gpg;
use super::render::AllowedRenderers;

pub use external::check;
pub use git::{unreachable as unreachable_repositories, update as update_repositories};
pub use merge::Merging;
use tree::Tree;

/// The argument of functions with a `pillar` that names the renderer of an encrypted one, which would be used as it is; and
/// what takes its place.
pub const PILLAR_ENC: (&str, &str) =
    ("pillar_enc", "encrypt values in the files of the pillar, which the master decrypts");

/// The configuration of pillar: its sources, renderers and merge strategy.
#[derive(Debug, Clone)]
pub struct PillarSource {
    /// `pillar_roots`.
    roots: Roots,
    /// The name of the top file.
    state_top: String,
    /// The default renderers.
    renderer: String,
    allowed: AllowedRenderers,
    /// `opts` in templates.
    opts: Arc<Map>,
    /// Nodegroups by name.
    nodegroups: Map,
    merging: Merging,
    gpg: Arc<Gpg>,
    fetched: Arc<git::Fetched>,
}

/// A pillar request.
#[derive(Clone)]
pub struct PillarRequest<'a> {
    /// The minion.
    pub id: &'a MinionId,
    /// Its grains.
    pub grains: &'a Arc<Map>,
    /// The environment of its states.
    pub saltenv: Option<&'a str>,
    /// The only pillar environment to use; all of them otherwise.
    pub pillarenv: Option<&'a str>,
    /// The override merged over the pillar: `pillar={...}`.
    pub pillar_override: &'a Map,
    /// A further entry of `ext_pillar`, of `pillar.ext`.
    pub on_demand: Option<&'a Map>,
    /// Options that the minion sends for `ext_pillar` (`pass_to_ext_pillars`).
    pub extra_minion_data: &'a Map,
    /// The functions of templates and `ext_pillar`, except for those that look up grains and pillar.
    pub functions: Option<Host>,
}

impl PillarSource {
    /// Reads the options.
    pub fn new(opts: Arc<Map>) -> Self {
        PillarSource {
            roots: shared::pillar_roots(&opts),
            state_top: below_root(&shared::state_top(&opts)),
            renderer: shared::renderer(&opts),
            allowed: AllowedRenderers::of(&opts),
            nodegroups: shared::nodegroups(&opts),
            merging: Merging::of(&opts),
            gpg: Arc::new(Gpg::of(&opts)),
            fetched: Arc::default(),
            opts,
        }
    }

    /// Whether a pillar can have data: there is a top file or an external source, or `pillar_opts` is set.
    pub fn has_sources(&self) -> bool {
        let has_top = |directories: &Vec<_>| tree::find_in(directories, &self.state_top).is_some();
        external::is_configured(&self.opts)
            || shared::pillar_opts(&self.opts)
            || self.roots.contains_key(ANY_ENVIRONMENT)
            || self.roots.values().any(has_top)
    }

    /// Returns the source whose roots have the environment of a request: the directories of `__env__` serve one without
    /// an entry of its own, with its name substituted. Its name comes from the minion and cannot lead out of them.
    fn for_environment_of(&self, request: &PillarRequest<'_>) -> Cow<'_, Self> {
        if !self.roots.contains_key(ANY_ENVIRONMENT) {
            return Cow::Borrowed(self);
        }
        let mut roots = self.roots.clone();
        let any = roots.shift_remove(ANY_ENVIRONMENT).unwrap_or_default();
        let of_options = minion::saltenv(&self.opts);
        let named = request.pillarenv.or(request.saltenv).or(of_options.as_deref()).unwrap_or("base");
        if !roots.contains_key(named) && files::relative_path(named).is_some() {
            roots.insert(named.to_owned(), in_environment(&any, named));
        }
        Cow::Owned(PillarSource { roots, ..self.clone() })
    }

    /// Returns the pillar environment of a request, or that of the options if it names none.
    fn pillarenv(&self, request: &PillarRequest<'_>) -> Option<String> {
        let of_request = request.pillarenv.map(str::to_owned);
        let follows = modules::pillarenv_from_saltenv(&self.opts);
        let of_options = || if follows { request.saltenv.map(str::to_owned) } else { minion::pillarenv(&self.opts) };
        of_request.or_else(of_options).filter(|name| !name.is_empty())
    }

    /// Renders a minion's pillar. Errors are a list below `_errors`.
    ///
    /// PGP messages and NaCl boxes in the override stay encrypted: they come from the minion, and must not be decrypted
    /// with the master's keys.
    pub fn render(&self, request: &PillarRequest<'_>) -> Map {
        let pillarenv = self.pillarenv(request);
        let request = &PillarRequest { pillarenv: pillarenv.as_deref(), ..request.clone() };
        self.for_environment_of(request).render_in_environment(request)
    }

    fn render_in_environment(&self, request: &PillarRequest<'_>) -> Map {
        let (plain, encrypted): (Map, Map) =
            request.pillar_override.clone().into_iter().partition(|(_, value)| !decrypt::is_encrypted(value));
        let request = &PillarRequest { pillar_override: &plain, ..request.clone() };
        let mut errors = Vec::new();
        let mut pillar = Map::new();
        let opts = self.opts_for(request);
        let sections = tops::sections(&Tree::new(self, request, &opts, &Map::new()), &mut errors);
        let external_first = shared::ext_pillar_first(&self.opts);
        if external_first {
            // Templates see the override only with `ext_pillar_first`.
            pillar.clone_from(request.pillar_override);
            external::add_to(self, request, &mut pillar, &mut errors);
        }
        let mut tree = Tree::new(self, request, &opts, &pillar);
        let data = tree.render(&sections);
        // As in Salt, errors of top files come last.
        let top_errors = std::mem::replace(&mut errors, tree.errors);
        self.merging.merge(&mut pillar, data);
        if !external_first {
            external::add_to(self, request, &mut pillar, &mut errors);
        }
        errors.extend(top_errors);
        if shared::pillar_opts(&self.opts) {
            let mut master = (*self.opts).clone();
            master.insert("saltversion".into(), brine_config::SALT_VERSION.into());
            pillar.insert("master".into(), master.into());
        }
        self.merging.merge(&mut pillar, request.pillar_override.clone());
        decrypt::decrypt(self, request, &mut pillar, &mut errors);
        self.merging.merge(&mut pillar, encrypted);
        if !errors.is_empty() {
            tracing::error!(minion = %request.id, ?errors, "a pillar has errors");
            pillar.insert("_errors".into(), errors.into());
        }
        pillar
    }

    /// Returns the merged top files of all environments, and their errors.
    pub fn top(&self, request: &PillarRequest<'_>) -> (Map, Vec<String>) {
        let pillarenv = self.pillarenv(request);
        let request = &PillarRequest { pillarenv: pillarenv.as_deref(), ..request.clone() };
        let source = &*self.for_environment_of(request);
        let (opts, mut errors) = (source.opts_for(request), Vec::new());
        let sections = tops::sections(&Tree::new(source, request, &opts, &Map::new()), &mut errors);
        let top = sections.into_iter().map(|(environment, targets)| (environment.into(), targets.into())).collect();
        (top, errors)
    }

    /// Renders the SLS files only, without external pillar and override, and returns their data and errors.
    fn of_files(&self, request: &PillarRequest<'_>) -> (Map, Vec<String>) {
        let (opts, mut top_errors) = (self.opts_for(request), Vec::new());
        let mut tree = Tree::new(self, request, &opts, &Map::new());
        let sections = tops::sections(&tree, &mut top_errors);
        let data = tree.render(&sections);
        let mut errors = tree.errors;
        errors.append(&mut top_errors);
        (data, errors)
    }

    /// Returns `opts` for templates: those of the daemon, with the id, grains and environments of the minion.
    fn opts_for(&self, request: &PillarRequest<'_>) -> Arc<Map> {
        let mut opts = (*self.opts).clone();
        for (name, requested) in [("saltenv", request.saltenv), ("pillarenv", request.pillarenv)] {
            let option = opts.entry(name.into()).or_default();
            if let Some(environment) = requested {
                *option = environment.into();
            }
        }
        opts.extend(map! {
            "id" => request.id,
            "minion_id" => request.id,
            "grains" => Value::Map(Map::clone(request.grains)),
            "file_client" => "local",
            "state_top" => format!("salt://{}", self.state_top),
        });
        Arc::new(opts)
    }
}

/// Returns the path of a file below the roots: `a.sls` for `salt://a.sls` and `/a.sls`.
fn below_root(path: &str) -> String {
    path.trim_start_matches("salt://").trim_start_matches('/').to_owned()
}

/// The facts that targets of pillar files match on.
struct PillarFacts<'a> {
    request: &'a PillarRequest<'a>,
    /// The pillar before the files: the result of `ext_pillar_first`.
    pillar: &'a Map,
}

impl TargetFacts for PillarFacts<'_> {
    fn id(&self) -> &str {
        self.request.id.as_str()
    }

    fn grains(&self) -> Option<&Map> {
        Some(self.request.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(self.pillar)
    }

    fn custom_match(&self, kind: &str, target: &Value, delimiter: &str) -> Option<Match> {
        let (functions, id) = (self.request.functions.as_ref()?, self.request.id);
        let args = || Args {
            positional: vec![target.clone()],
            keyword: map! {"minion_id" => id.as_str(), "delimiter" => delimiter},
        };
        let (function, opts) = (format!("{kind}_match.match"), map! {"id" => id.as_str()});
        let answer = functions.custom(&CustomCall { kind: "matchers", function: &function, args: &args, opts })?;
        let answer = answer.inspect_err(|error| {
            let error = error.clone().message();
            tracing::error!(minion = %id, matcher = kind, error, "matching a target of the pillar top file failed");
        });
        Some(answer.map_or(Match::Unknown, |answer| answer.is_truthy().into()))
    }
}

/// Returns the value at a path, or the default, as `pillar.get` and `grains.get` do.
fn at_path(map: &Map, path: &str, delimiter: &str, default: Value) -> Value {
    traverse(&Value::Map(map.clone()), path, delimiter).cloned().unwrap_or(default)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod file_tree_tests;

#[cfg(test)]
mod git_tests;
