//! Names that templates may use.

use brine_jinja::reference;

/// Variables that Salt provides beside those of the reference.
const VARIABLES: &[&str] = &[
    "minion_id",
    "pillarenv",
    "env",
    "opts",
    "id",
    "__env__",
    "__sls__",
    "__opts__",
    "__grains__",
    "__pillar__",
    "__salt__",
    "ext_pillar",
    "loop",
    "caller",
    "varargs",
    "kwargs",
    "self",
    "super",
    "namespace",
    "slspath",
    "sls_path",
    "slsdotpath",
    "slscolonpath",
    "tplfile",
    "tpldir",
    "tpldot",
    "tplpath",
    "true",
    "false",
    "none",
    "salt",
    "grains",
    "pillar",
    "data",
    "tag",
    "saltenv",
    "sls",
    "proxy",
    "utils",
];

/// Variables of the reactions of rules over time.
pub(crate) const OF_RULES: [&str; 8] = ["rule", "key", "count", "events", "members", "share", "value", "registers"];

/// Whether Salt or Jinja provides a variable.
pub(crate) fn is_provided(name: &str) -> bool {
    VARIABLES.contains(&name)
        || first_words(reference::VARIABLES).any(|other| other == name)
        || first_words(reference::GLOBALS).any(|other| other == name)
}

/// Returns the names of filters.
pub(crate) fn filters() -> impl Iterator<Item = &'static str> {
    first_words(reference::FILTERS)
}

/// Returns the names of tests.
pub(crate) fn tests() -> impl Iterator<Item = &'static str> {
    first_words(reference::TESTS)
}

fn first_words(entries: &'static [reference::Entry]) -> impl Iterator<Item = &'static str> {
    entries.iter().map(|(syntax, _)| syntax.split(['(', ' ']).next().unwrap_or(syntax))
}
