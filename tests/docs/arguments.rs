//! No argument that Salt documents is accepted and ignored in silence: it is used, refused, or documented as one without
//! effect, by its function and in docs/differences.md. `tests/docs/arguments/salt` has Salt's arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brine_function::{Function, Functions, Param};
use regex::Regex;

/// The section of docs/differences.md with the arguments without effect.
const SECTION: &str = "## Arguments without effect";

/// Words of the documentation of an argument without effect.
const PHRASES: [&str; 4] = ["ithout effect", "no effect", "and ignored", ": ignored"];

/// The arguments of each state, which the state engine reads, and those of jobs.
const COMMON: &[&str] = &[
    "args",
    "kwargs",
    "kwarg",
    "fun",
    "state",
    "names",
    "order",
    "reload_modules",
    "reload_grains",
    "reload_pillar",
    "fire_event",
    "aggregate",
    "parallel",
    "failhard",
    "retry",
    "onlyif",
    "unless",
    "creates",
    "check_cmd",
    "require",
    "require_in",
    "watch",
    "watch_in",
    "onchanges",
    "use",
    "listen",
    "prereq",
    "timeout",
    "umask",
    "runas",
    "saltenv",
];

/// Functions that pass their keyword arguments on to another one, or read them by its code.
const PASSED_ON: &[(&str, &str)] = &[
    ("cmd.", "cmd.run"),
    ("cmd.wait_call", "cmd.call"),
    ("lowpkg.", "pkg.install"),
    ("pip.", "pip.install"),
    ("pillar.", "state.sls"),
    ("pkgrepo.", "pkg.mod_repo"),
    ("state.", "state.sls"),
    ("virtualenv.", "virtualenv.create"),
    ("virtualenv.manage", "virtualenv.managed"),
];

/// Arguments in Salt's documentation that its functions do not have or use, and names that only some of them have: of
/// other package managers, and of `x509` before version 2.
const MISNAMED: &[(&str, &str)] = &[
    ("debconf.set_template", "default"),
    ("git.archive", "overwrite"),
    ("ipset.absent", "entries"),
    ("pkg.version_cmp", "ver1"),
    ("pkg.version_cmp", "ver2"),
    ("raid.assemble", "returns"),
    ("raid.create", "returns"),
    ("salt.state", "orchestration_jid"),
    ("snapper.create_snapshot", "timeline"),
    ("test.mod_watch", "sfun"),
    ("x509.sign_remote_certificate", "argdic"),
];

/// A function as this test sees it.
struct Known {
    kind: &'static str,
    module: &'static str,
    full_name: String,
    docstring: String,
    params: &'static [Param],
}

fn known() -> Vec<Known> {
    fn of<C>(kind: &'static str, modules: &[&Functions<C>]) -> Vec<Known> {
        let one = |function: &Function<C>| Known {
            kind,
            module: function.module,
            full_name: function.full_name(),
            docstring: function.docstring(),
            params: function.params(),
        };
        modules.iter().flat_map(|module| module.list()).map(one).collect()
    }
    [
        of("execution", &brine_modules::MODULES.functions()),
        of("state", &brine_modules::MODULES.states()),
        of("runner", brine_master_runners::runner::MODULES),
        of("wheel", brine_master_runners::wheel::MODULES),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Known {
    fn is_declared(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.is_named() && param.name == name)
    }

    /// Whether the function refuses every call, with the reason.
    fn is_refused(&self) -> bool {
        self.docstring.starts_with("Refused") || self.full_name == "state.event"
    }

    fn takes_keywords(&self) -> bool {
        self.params.iter().any(Param::is_keywords)
    }

    /// Whether the documentation says that the argument has no effect.
    fn says_without_effect(&self, name: &str) -> bool {
        if let Some(param) = self.params.iter().find(|param| param.is_named() && param.name == name)
            && has_phrase(param.doc)
        {
            return true;
        }
        // A sentence, or the paragraph of one argument, with its name and a phrase.
        let sentences = self.docstring.split(". ").flat_map(|text| text.split("\n\n"));
        sentences.filter(|sentence| has_phrase(sentence)).any(|sentence| words(sentence).any(|word| word == name))
    }
}

/// Whether the function passes the argument on to one that declares or reads it.
fn is_passed_on(functions: &[Known], sources: &Sources, function: &Known, name: &str) -> bool {
    let targets =
        PASSED_ON.iter().filter(|(start, _)| function.full_name.starts_with(start)).map(|(_, target)| *target);
    targets.into_iter().any(|target| {
        let module = target.split('.').next().unwrap_or_default();
        sources.reads(module, name)
            || functions.iter().any(|other| other.full_name == target && other.is_declared(name))
    })
}

fn has_phrase(text: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
}

/// Returns Salt's arguments by kind and function.
fn recorded(text: &'static str) -> BTreeMap<(&'static str, &'static str), Vec<&'static str>> {
    let one = |line: &'static str| -> Option<_> {
        let mut words = line.split(' ');
        Some(((words.next()?, words.next()?), words.collect()))
    };
    text.lines().filter_map(one).collect()
}

/// A row of docs/differences.md: functions, such as `git.*`, and arguments.
struct Row {
    functions: Vec<String>,
    arguments: Vec<String>,
}

impl Row {
    /// Whether the row covers an argument of a function, and its documentation says so, or for a pattern that of one of
    /// the functions.
    fn is_documented(&self, functions: &[Known], function: &Known, argument: &str) -> bool {
        let says =
            |candidate: &Known| self.covers(&candidate.full_name, argument) && candidate.says_without_effect(argument);
        let is_exact = self.functions.contains(&function.full_name);
        self.covers(&function.full_name, argument) && if is_exact { says(function) } else { functions.iter().any(says) }
    }

    fn covers(&self, full_name: &str, argument: &str) -> bool {
        self.arguments.iter().any(|name| name == argument)
            && self.functions.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => full_name.starts_with(start),
                None => pattern == full_name,
            })
    }
}

fn rows() -> Vec<Row> {
    let page = super::doc("docs/differences.md");
    let (_, section) = page.split_once(SECTION).unwrap();
    let codes = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let row = |(functions, rest): (&str, &str)| {
        let arguments = codes(rest.split(" | ").next().unwrap());
        Row { functions: codes(functions), arguments }
    };
    cells.map(row).filter(|row| !row.functions.is_empty()).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            paths.push(path);
        }
    }
    paths
}

/// The sources of the functions, by module.
struct Sources(BTreeMap<String, BTreeMap<PathBuf, String>>);

impl Sources {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let registry = Regex::new(r#"registry!\(\s*"(\w+)""#).unwrap();
        let all: Vec<(PathBuf, String)> = ["minion/modules", "master/runners/src"]
            .iter()
            .flat_map(|directory| files(&root.join(directory)))
            .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
            .collect();
        let mut sources = BTreeMap::<String, BTreeMap<PathBuf, String>>::new();
        for (path, text) in &all {
            let directory = path.parent().unwrap();
            let is_shared = ["src", "runner", "wheel"].iter().any(|name| directory.ends_with(name));
            for captures in registry.captures_iter(text) {
                let of_module = all.iter().filter(
                    |(other, _)| {
                        if is_shared { other == path } else { other.starts_with(directory) }
                    },
                );
                sources.entry(captures[1].to_owned()).or_default().extend(of_module.cloned());
            }
        }
        Sources(sources)
    }

    /// Whether the module reads a keyword argument of this name.
    fn reads(&self, module: &str, name: &str) -> bool {
        let literal = format!("\"{name}\"");
        self.0.get(module).is_some_and(|files| files.values().any(|text| text.contains(&literal)))
    }

    /// Returns the names that each file takes and drops, with the modules of its functions.
    fn dropped(&self) -> BTreeMap<(&Path, String), Vec<&str>> {
        let dropped = Regex::new(r"(?m)^\s*_ = \(?((?:&?(?:args\.|self\.)?(?:r#)?[a-z_]+(?:, )?)+)\)?;").unwrap();
        let unread =
            Regex::new(r"#\[allow\(dead_code[^\n]*\n(?:\s*#\[[^\n]*\n)*\s*(?:pub(?:\([a-z]+\))? )?([a-z_]+):").unwrap();
        let mut modules = BTreeMap::<_, Vec<_>>::new();
        for (module, files) in &self.0 {
            for (path, text) in files {
                let text = text.split("#[cfg(test)]").next().unwrap();
                let lists = dropped.captures_iter(text).flat_map(|list| list.get(1).unwrap().as_str().split(", "));
                let names = lists.filter_map(|name| name.rsplit(['.', '&', '#']).next());
                let fields = unread.captures_iter(text).map(|field| field.get(1).unwrap().as_str());
                for name in names.chain(fields) {
                    modules.entry((path.as_path(), name.to_owned())).or_default().push(module.as_str());
                }
            }
        }
        modules
    }
}

#[test]
fn no_argument_of_salt_is_ignored_in_silence() {
    let text = super::doc("tests/docs/arguments/salt").leak();
    let (salt, rows, sources) = (recorded(text), rows(), Sources::read());
    let (functions, none) = (known(), Vec::new());
    let mut offenders = Vec::new();
    for function in &functions {
        let arguments = salt.get(&(function.kind, &*function.full_name)).unwrap_or(&none);
        if !function.takes_keywords() || function.is_refused() {
            // The others refuse unknown arguments.
            continue;
        }
        for name in arguments.iter().filter(|name| !COMMON.contains(name) && !function.is_declared(name)) {
            let is_read = sources.reads(function.module, name) || is_passed_on(&functions, &sources, function, name);
            let is_documented = || rows.iter().any(|row| row.is_documented(&functions, function, name));
            if !is_read && !is_documented() && !MISNAMED.contains(&(&*function.full_name, *name)) {
                offenders.push(format!("{} {} {name}", function.kind, function.full_name));
            }
        }
    }
    assert!(
        offenders.is_empty(),
        "arguments of Salt that functions accept with **kwargs and ignore; use them, refuse them, or say that they are \
         without effect in the documentation of the function and in '{SECTION}' of docs/differences.md:\n{}",
        offenders.join("\n")
    );
}

#[test]
fn arguments_without_effect_are_those_of_the_differences() {
    let (rows, functions) = (rows(), known());
    let mut offenders = Vec::new();
    for function in &functions {
        for param in function.params.iter().filter(|param| param.is_named() && has_phrase(param.doc)) {
            if !rows.iter().any(|row| row.covers(&function.full_name, param.name)) {
                offenders.push(format!("{} {} {}: no row", function.kind, function.full_name, param.name));
            }
        }
    }
    for row in &rows {
        for argument in &row.arguments {
            let is_documented =
                |function: &&Known| row.covers(&function.full_name, argument) && function.says_without_effect(argument);
            if !functions.iter().any(|function| is_documented(&function)) {
                offenders.push(format!("{:?} {argument}: no documentation of a function", row.functions));
            }
        }
    }
    assert!(offenders.is_empty(), "{SECTION} of docs/differences.md:\n{}", offenders.join("\n"));
}

#[test]
fn arguments_that_the_code_drops_are_documented_as_such() {
    let (sources, functions) = (Sources::read(), known());
    let mut offenders = Vec::new();
    for ((path, name), modules) in sources.dropped() {
        let of_file = functions.iter().filter(|function| modules.contains(&function.module));
        let mut declare = of_file.filter(|function| function.is_declared(&name)).peekable();
        if declare.peek().is_some()
            && !declare.any(|function| function.is_refused() || function.says_without_effect(&name))
        {
            offenders.push(format!("{} {name}", path.display()));
        }
    }
    assert!(offenders.is_empty(), "arguments that are dropped without a word:\n{}", offenders.join("\n"));
}
