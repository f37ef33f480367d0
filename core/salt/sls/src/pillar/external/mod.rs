//! `ext_pillar`: pillar from sources other than SLS files. A module is one line in [`MODULES`].
//!
//! An unknown or failing module is an error of the pillar: a partial pillar would be mistaken for a complete one.

use std::path::Path;

use brine_config::opts::{modules, shared};
use brine_function::{Args, CallError};
use brine_jinja::{CustomCall, Role};
use brine_system::processes;
use brine_target::{Target, TargetKind};
use brine_text::shell;
use brine_value::{Map, Value, json};

use super::{PillarFacts, PillarRequest, PillarSource, extra_data, file_tree, git, http, stack};

/// The arguments of a module.
pub(super) struct Call<'a> {
    pub source: &'a PillarSource,
    pub request: &'a PillarRequest<'a>,
    /// The pillar so far.
    pub pillar: &'a Map,
    /// The arguments from the configuration.
    pub args: Args,
}

type Module = fn(&Call<'_>) -> Result<Map, String>;

/// All built-in modules by name.
const MODULES: &[(&str, Module)] = &[
    ("cmd_json", cmd_json),
    ("cmd_yaml", cmd_yaml),
    ("extra_minion_data_in_pillar", extra_data::pillar),
    ("file_tree", file_tree::pillar),
    ("git", git::pillar),
    ("gpg", gpg),
    ("http_json", http::json),
    ("http_yaml", http::yaml),
    ("nodegroups", nodegroups),
    ("stack", stack::pillar),
];

/// The modules that minions may request with their own arguments. The other modules take commands, paths or addresses,
/// with which a minion could attack the master.
const ON_DEMAND: [&str; 3] = ["extra_minion_data_in_pillar", "gpg", "nodegroups"];

/// Checks the pillar options before any pillar is rendered, and returns the errors that every pillar would have: state
/// runs do not start with a pillar that has errors. `is_custom` returns whether a custom module of a name exists.
pub fn check(opts: &Map, is_custom: impl Fn(&str) -> bool) -> Vec<String> {
    let mut errors = Vec::new();
    let entries = match shared::ext_pillar(opts) {
        Value::List(entries) => entries,
        other => {
            let got = other.type_name();
            errors.push(format!("option 'ext_pillar' is invalid: expected a list of one-key mappings, got {got}"));
            Vec::new()
        }
    };
    let excluded = modules::exclude_ext_pillar(opts);
    let names = || MODULES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    for entry in &entries {
        let Some(entry) = entry.as_map() else {
            errors.push(format!("option 'ext_pillar' is invalid: expected a mapping, got {entry}"));
            continue;
        };
        for name in entry.keys().filter(|name| !excluded.contains(name)).map(ToString::to_string) {
            if is_custom(&name) {
                continue;
            }
            if !MODULES.iter().any(|(module_name, _)| *module_name == name) {
                errors.push(format!(
                    "option 'ext_pillar': '{name}' is not there: every state run fails; remove it, or copy its module \
                     with `salt-run saltutil.sync_pillar`; built in are {}",
                    names()
                ));
            } else if name == "git" && processes::find(Path::new("git")).is_none() {
                errors.push(
                    "option 'ext_pillar': the program git is not in the PATH: every state run fails; install git"
                        .to_owned(),
                );
            }
        }
    }
    errors.extend(super::decrypt::check(opts));
    errors
}

/// Whether `ext_pillar` has entries or is malformed.
pub(super) fn is_configured(opts: &Map) -> bool {
    shared::ext_pillar(opts).as_list().is_none_or(|entries| !entries.is_empty())
}

/// Merges the results of all entries of `ext_pillar` over the pillar.
pub(super) fn add_to(source: &PillarSource, request: &PillarRequest<'_>, pillar: &mut Map, errors: &mut Vec<String>) {
    let malformed = || "The \"ext_pillar\" option is malformed".to_owned();
    let Value::List(mut entries) = shared::ext_pillar(&source.opts) else { return errors.push(malformed()) };
    if let Some(entry) = request.on_demand {
        match check_on_demand(&source.opts, entry) {
            Ok(()) => entries.push(entry.clone().into()),
            Err(error) => errors.push(error),
        }
    }
    let excluded = modules::exclude_ext_pillar(&source.opts);
    source.merging.merge(pillar, request.pillar_override.clone());
    for entry in &entries {
        let Some(entry) = entry.as_map() else { return errors.push(malformed()) };
        if entry.first().is_some_and(|(name, _)| excluded.contains(name)) {
            continue;
        }
        for (name, args) in entry {
            let name = name.to_string();
            let args = match args {
                Value::Map(keyword) => Args::keyword(keyword.clone()),
                Value::List(positional) => Args::positional(positional.iter().cloned()),
                one => Args::positional([one.clone()]),
            };
            let call = Call { source, request, pillar, args };
            let built_in =
                || MODULES.iter().find(|(module_name, _)| *module_name == name).map(|(_, module)| module(&call));
            let Some(added) = call.custom(&name).or_else(built_in) else {
                let names: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
                errors.push(format!(
                    "ext_pillar interface named {name} is unavailable: remove it from 'ext_pillar', or copy its module \
                     with `salt-run saltutil.sync_pillar`; built in are {}",
                    names.join(", ")
                ));
                continue;
            };
            match added {
                Ok(mut data) => {
                    if let Some(Value::List(more)) = data.shift_remove("_errors") {
                        errors.extend(more.iter().map(ToString::to_string));
                    }
                    source.merging.merge(pillar, data);
                }
                Err(error) => errors.push(format!("Failed to load ext_pillar {name}: {error}")),
            }
        }
    }
}

/// Checks that minions may request an entry on demand.
fn check_on_demand(opts: &Map, entry: &Map) -> Result<(), String> {
    let allowed = shared::on_demand_ext_pillar(opts);
    for name in entry.keys().map(ToString::to_string) {
        if MODULES.iter().any(|(module_name, _)| *module_name == name) && !ON_DEMAND.contains(&name.as_str()) {
            return Err(format!(
                "ext_pillar {name} is not available on demand, since it takes commands, paths or addresses: add it to the \
                 master's option 'ext_pillar'"
            ));
        }
        if !allowed.contains(&name) {
            return Err(format!(
                "ext_pillar {name} is not allowed on demand: add it to the master's option 'on_demand_ext_pillar', which \
                 has {}",
                allowed.join(", ")
            ));
        }
    }
    Ok(())
}

impl Call<'_> {
    /// Returns an argument by position or name.
    pub fn argument(&self, index: usize, name: &str) -> Option<&Value> {
        self.args.keyword.get(name).or_else(|| self.args.positional.get(index))
    }

    /// Returns the result of `ext_pillar` of the custom module of this name, if there is one. As in Salt, its arguments
    /// are the minion's id, the pillar so far, and the configured arguments.
    fn custom(&self, name: &str) -> Option<Result<Map, String>> {
        let args = || {
            let mut args = self.args.clone();
            args.positional.splice(0..0, [self.request.id.as_str().into(), Value::Map(self.pillar.clone())]);
            args
        };
        let opts = brine_value::map! {
            "id" => self.request.id,
            "saltenv" => self.request.saltenv,
            "pillarenv" => self.request.pillarenv,
        };
        let call = CustomCall { kind: "pillar", function: &format!("{name}.ext_pillar"), args: &args, opts };
        let result = self.request.functions.as_ref()?.custom(&call)?;
        let failed = |error| match error {
            CallError::Exception(message) => message,
            other => other.message(),
        };
        Some(result.map_err(failed).and_then(mapping))
    }

    /// Returns the output of a command, in which `%s` is replaced by the minion's id as one quoted argument.
    fn output(&self, role: Role) -> Result<String, String> {
        let command = self.argument(0, "command").ok_or("the command is missing")?;
        let command = with_id(&command.to_string(), self.request.id.as_str())?;
        let functions = self.request.functions.as_ref().ok_or("commands are not available here")?;
        let function = functions.name_of(role).ok_or("commands are not available here")?;
        let keyword = brine_value::map! {"python_shell" => role == Role::RunInShell};
        let args = Args { positional: vec![command.into()], keyword };
        functions.call(function, args).map(|output| output.to_string()).map_err(CallError::message)
    }

    /// Returns the names of the minion's nodegroups.
    pub fn nodegroups(&self) -> Vec<String> {
        let facts = PillarFacts { request: self.request, pillar: self.pillar };
        let groups = &self.source.nodegroups;
        let is_in = |name: &str| {
            Target::parse(TargetKind::Nodegroup, name, ":", groups).is_ok_and(|target| target.matches(&facts))
        };
        groups.keys().map(ToString::to_string).filter(|name| is_in(name)).collect()
    }
}

/// Inserts a minion's id into a command, quoted: minions choose their ids and must not be able to inject commands.
fn with_id(command: &str, id: &str) -> Result<String, String> {
    let id = shell::quote(id);
    let mut parts = command.split("%s");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if !shell::is_plain(&id) && shell::is_open(&whole) {
            return Err(format!("the command is invalid for minion id {id}: write %s without quotes around it"));
        }
        whole.push_str(&id);
        whole.push_str(part);
    }
    Ok(whole)
}

pub(super) fn mapping(value: Value) -> Result<Map, String> {
    match value {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Map::new()),
        other => Err(format!("its output is of type {}, not a mapping", other.type_name())),
    }
}

/// Runs a command whose output is JSON. As in Salt, without a shell.
fn cmd_json(call: &Call<'_>) -> Result<Map, String> {
    let output = call.output(Role::Run)?;
    mapping(json::from_json(&output).map_err(|error| format!("the output is not JSON: {error}"))?)
}

/// Runs a command in a shell whose output is YAML.
fn cmd_yaml(call: &Call<'_>) -> Result<Map, String> {
    let output = call.output(Role::RunInShell)?;
    mapping(brine_yaml::load(&output).map_err(|error| format!("the output is not YAML: {error}"))?)
}

/// Returns the pillar so far with its PGP messages decrypted.
fn gpg(call: &Call<'_>) -> Result<Map, String> {
    let mut decrypted = Value::Map(call.pillar.clone());
    call.source.gpg.decrypt(&mut decrypted).map_err(|error| error.to_string())?;
    mapping(decrypted)
}

/// Returns the names of the minion's nodegroups.
fn nodegroups(call: &Call<'_>) -> Result<Map, String> {
    let name = call.argument(0, "pillar_name").filter(|name| name.is_truthy());
    Ok(brine_value::map! {name.map_or_else(|| "nodegroups".to_owned(), ToString::to_string) => call.nodegroups()})
}

#[cfg(test)]
mod tests;
