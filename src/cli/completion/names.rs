//! What this host knows: functions and their arguments, minions, SLS files, node groups, jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_config::{DEFAULT_DIRECTORY, MasterConfig, MinionConfig};
use brine_function::{Args, Functions, Param, Params};
use brine_master_runners::runner;
use brine_modules::MODULES;
use brine_value::{Map, Value, map};

use super::words::{Answer, Candidate, Line};
use crate::cli::client::MasterClient;
use crate::cli::{privileges, runtime};

/// Functions whose first argument is the name of an SLS file.
const OF_SLS: &[&str] = &[
    "state.apply",
    "state.sls",
    "state.sls_id",
    "state.show_sls",
    "state.show_low_sls",
    "state.sls_exists",
    "state.orchestrate",
    "state.orch",
    "state.orchestrate_show_sls",
];
/// Functions whose first argument is the name of a function.
const OF_FUNCTIONS: &[&str] = &["sys.doc", "sys.argspec", "sys.list_functions", "mine.send", "doc.execution"];
/// The maximum number of SLS files and directories that are searched.
const MAX_FILES: usize = 20_000;
/// The maximum depth of directories with SLS files.
const MAX_DEPTH: usize = 8;
/// The number of jobs that are offered.
const JOBS: u64 = 50;
/// The time for which a completion waits for the master.
const MASTER_TIMEOUT: Duration = Duration::from_millis(500);
/// The directories of keys below `pki_dir`, with their words.
const ACCEPTED: (&str, &str) = ("minions", "accepted");
const PENDING: (&str, &str) = ("minions_pre", "pending");
const REJECTED: (&str, &str) = ("minions_rejected", "rejected");
const DENIED: (&str, &str) = ("minions_denied", "denied");

/// The configuration of this host, which is read when it is first needed.
pub struct Names {
    directory: PathBuf,
}

impl Names {
    /// Creates the names for a directory of configuration, by default that of the tools.
    pub fn new(directory: Option<PathBuf>) -> Self {
        let directory = directory.or_else(|| std::env::var_os("SALT_CONFIG_DIR").map(PathBuf::from));
        Names { directory: directory.unwrap_or_else(|| DEFAULT_DIRECTORY.into()) }
    }

    /// Returns the configuration of the master; its defaults if there is none or it is invalid.
    fn master(&self) -> MasterConfig {
        MasterConfig::load(&self.directory, &Map::new()).map(|loaded| loaded.config).unwrap_or_default()
    }

    /// Returns the ids of the keys in these directories.
    fn keys(&self, states: &[(&str, &str)]) -> Vec<Candidate> {
        let pki = self.master().pki_dir;
        let mut ids = Vec::new();
        for (directory, state) in states {
            let entries = std::fs::read_dir(pki.join(directory)).into_iter().flatten().flatten();
            ids.extend(entries.filter_map(|entry| Some(Candidate::new(entry.file_name().to_str()?, state))));
        }
        ids.sort_by(|a, b| a.value.cmp(&b.value));
        ids
    }

    /// Returns the ids of the newest jobs. Without a running master, or without the right to ask it, there are none.
    fn jobs(&self) -> Vec<Candidate> {
        let mut config = self.master();
        config.user = config.user.take().or_else(|| privileges::user_of_service(&config.store_path()));
        let (Ok(client), Ok(runtime)) = (MasterClient::new(&config), runtime::current_thread()) else {
            return Vec::new();
        };
        let args = Args { keyword: map! {"limit" => JOBS}, ..Args::default() };
        let asked = async { tokio::time::timeout(MASTER_TIMEOUT, client.ask_runner("fleet.jobs", args)).await };
        let Ok(Ok(page)) = runtime::block_on(&runtime, asked) else { return Vec::new() };
        let jobs = page.get("jobs").and_then(Value::as_list).unwrap_or_default();
        let field = |job: &Value, name: &str| job.get(name).map(Value::to_string).unwrap_or_default();
        let described = |job: &Value| format!("{} {}", field(job, "fun"), field(job, "tgt"));
        jobs.iter().map(|job| Candidate::new(field(job, "jid"), &described(job))).collect()
    }

    fn node_groups(&self) -> Vec<Candidate> {
        self.master().nodegroups.keys().filter_map(|name| Some(Candidate::new(name.as_str()?, "node group"))).collect()
    }

    /// Returns the names of the SLS files of an environment, of the master on this host or else of its minion.
    fn sls(&self, saltenv: &str) -> Vec<Candidate> {
        let roots = if self.directory.join("master").exists() {
            self.master().file_roots
        } else {
            MinionConfig::load(&self.directory, &Map::new()).map(|loaded| loaded.config.file_roots).unwrap_or_default()
        };
        let mut names = Vec::new();
        let mut left = MAX_FILES;
        for root in roots.get(saltenv).into_iter().flatten() {
            sls_below(Path::new(root), "", MAX_DEPTH, &mut left, &mut names);
        }
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| Candidate::new(name, "")).collect()
    }
}

/// Adds the names of the SLS files below a directory: `init.sls` has that of its directory.
fn sls_below(directory: &Path, prefix: &str, depth: usize, left: &mut usize, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let file_name = entry.file_name();
        let Some(name) = file_name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        if let Some(name) = name.strip_suffix(".sls") {
            match name {
                "top" if prefix.is_empty() => {}
                "init" => names.extend(prefix.strip_suffix('.').map(str::to_owned)),
                name => names.push(format!("{prefix}{name}")),
            }
        } else if depth > 0 && !name.contains('.') && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sls_below(&entry.path(), &format!("{prefix}{name}."), depth - 1, left, names);
        }
    }
}

/// Completes the value of an option by its id and the name of its value.
pub fn value(line: &Line<'_>, names: &Names, id: &str, kind: &str) -> Vec<Candidate> {
    let all = [ACCEPTED, PENDING, REJECTED, DENIED];
    let words = |words: &[&str]| words.iter().map(|word| Candidate::new(*word, "")).collect();
    match (line.tool, id, kind) {
        ("salt-key", "accept", _) => {
            let more = [("include_rejected", REJECTED), ("include_denied", DENIED)];
            let more = more.into_iter().filter(|(option, _)| line.has(option)).map(|(_, state)| state);
            names.keys(&[PENDING].into_iter().chain(more).collect::<Vec<_>>())
        }
        ("salt-key", "reject", _) if line.has("include_accepted") => names.keys(&[PENDING, ACCEPTED]),
        ("salt-key", "reject", _) => names.keys(&[PENDING]),
        ("salt-key", "list", _) => words(&["acc", "pre", "un", "rej", "den", "all"]),
        ("salt-key", _, "GLOB") => names.keys(&all),
        (_, _, "OUTPUTTER") => words(&[
            "nested",
            "highstate",
            "json",
            "yaml",
            "raw",
            "pprint",
            "table",
            "txt",
            "key",
            "quiet",
            "no_return",
        ]),
        (_, _, "LEVEL") => words(&["garbage", "trace", "debug", "info", "warning", "error", "critical", "quiet"]),
        (_, "state_output", _) => words(&["full", "terse", "mixed", "changes", "filter"]),
        (_, _, "BOOL") => words(&["True", "False"]),
        _ => Vec::new(),
    }
}

/// Completes a word that is no option.
pub fn positional(line: &Line<'_>, names: &Names, last: &str) -> Answer {
    let candidates = match (line.tool, line.words.as_slice()) {
        ("salt", []) if !line.has("doc") => targets(line, names, last),
        ("salt" | "salt-ssh", []) if line.has("doc") => functions(last, execution()),
        ("salt" | "salt-ssh", [_]) | ("salt-call", []) => functions(last, execution()),
        ("salt" | "salt-ssh", [_, function, args @ ..]) | ("salt-call" | "salt-run", [function, args @ ..]) => {
            arguments(line, names, function, args, last)
        }
        ("salt-cp", []) => targets(line, names, last),
        ("salt-cp", _) | ("brine backup" | "brine restore", []) => return Answer::Files,
        ("salt-run", []) => functions(last, runners()),
        ("brine docs", []) => {
            let pages = crate::cli::docs::page_names().into_iter();
            let pages = pages.map(|(name, title)| Candidate::new(name, &title));
            let all = [execution(), states(), runners()].into_iter().flatten().collect();
            let mut candidates: Vec<Candidate> = pages.chain(functions(last, all)).collect();
            // A function and a state may have one name.
            candidates.dedup_by(|a, b| a.value == b.value);
            candidates
        }
        ("brine link" | "brine man", []) => return Answer::Directories,
        ("brine completion", []) => ["bash", "zsh", "fish"].map(|shell| Candidate::new(shell, "")).into(),
        _ => Vec::new(),
    };
    Answer::Candidates(candidates)
}

/// Completes a target: an id, one more of a list, or a node group.
fn targets(line: &Line<'_>, names: &Names, last: &str) -> Vec<Candidate> {
    if line.has("nodegroup") {
        return names.node_groups();
    }
    if ["pcre", "grain", "grain_pcre", "pillar", "pillar_pcre", "ipcidr"].iter().any(|kind| line.has(kind)) {
        return Vec::new();
    }
    let mut ids = names.keys(&[ACCEPTED]);
    match last.rsplit_once(',').filter(|_| line.has("list")) {
        Some((before, _)) => ids.iter_mut().for_each(|id| id.value.insert_str(0, &format!("{before},"))),
        None if last.is_empty() => ids.push(Candidate::new("'*'", "all minions")),
        None => {}
    }
    ids
}

/// A function, as far as completions need it.
struct Described {
    name: String,
    doc: &'static str,
    params: Params,
}

fn described<C>(modules: &[&'static Functions<C>]) -> Vec<Described> {
    let functions = modules.iter().flat_map(|functions| functions.list());
    functions
        .map(|function| Described { name: function.full_name(), doc: function.doc, params: function.params })
        .collect()
}

fn execution() -> Vec<Described> {
    described(&MODULES.functions())
}

fn runners() -> Vec<Described> {
    described(runner::MODULES)
}

fn states() -> Vec<Described> {
    described(&MODULES.states())
}

/// Completes the name of a function: first the module, then the function.
fn functions(last: &str, all: Vec<Described>) -> Vec<Candidate> {
    if last.contains('.') {
        let mut named: Vec<_> =
            all.iter().map(|function| Candidate::new(function.name.as_str(), function.doc)).collect();
        named.sort_by(|a, b| a.value.cmp(&b.value));
        return named;
    }
    let mut modules: Vec<&str> = all.iter().filter_map(|function| Some(function.name.split_once('.')?.0)).collect();
    modules.sort_unstable();
    modules.dedup();
    modules.into_iter().map(|module| Candidate::new(format!("{module}."), "")).collect()
}

/// Completes an argument of a function.
fn arguments(line: &Line<'_>, names: &Names, function: &str, words: &[&str], last: &str) -> Vec<Candidate> {
    let is_first = !words.iter().any(|word| !word.contains('='));
    if let (true, "state.single") = (is_first, function) {
        return functions(last, states());
    }
    if is_first && OF_FUNCTIONS.contains(&function) {
        return functions(last, execution());
    }
    let (all, of) = match words {
        [state, ..] if function == "state.single" => (states(), *state),
        _ if line.tool == "salt-run" => (runners(), function),
        _ => (execution(), function),
    };
    let params = all.iter().find(|function| function.name == of).map_or(&[][..], |function| function.params.list());
    if let Some((name, _)) = last.split_once('=') {
        let is_switch =
            params.iter().any(|param| param.name == name && matches!(param.default(), Some(Value::Bool(_))));
        let is_switch = is_switch || name == "test";
        return ["True", "False"]
            .iter()
            .filter(|_| is_switch)
            .map(|word| Candidate::new(format!("{name}={word}"), ""))
            .collect();
    }
    let mut candidates = Vec::new();
    if is_first && params.iter().find(|param| param.is_named()).is_some_and(|param| param.name == "jid") {
        candidates = names.jobs();
    }
    if is_first && OF_SLS.contains(&function) {
        let saltenv = words.iter().find_map(|word| word.strip_prefix("saltenv=")).unwrap_or("base");
        candidates = names.sls(saltenv);
    }
    let is_free =
        |param: &&Param| !words.iter().any(|word| word.split_once('=').is_some_and(|(name, _)| name == param.name));
    let named = params.iter().filter(|param| param.is_named()).filter(is_free);
    candidates.extend(named.map(|param| Candidate::new(format!("{}=", param.name), param.doc)));
    if function.starts_with("state.") && !candidates.iter().any(|other| other.value == "test=") && is_run(function) {
        candidates.push(Candidate::new("test=", "only show what would change"));
    }
    candidates
}

/// Whether a function runs states, with the keyword `test`.
fn is_run(function: &str) -> bool {
    ["apply", "sls", "highstate", "single", "sls_id", "top"].iter().any(|name| function == format!("state.{name}"))
}
