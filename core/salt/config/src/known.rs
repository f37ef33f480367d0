//! The names of Salt's options (3006 to 3008), to distinguish options without effect from misspelt ones; with the
//! defaults of those without effect, to report other values.

use brine_value::{Value, json};

use super::module_options;
use super::options::Options;
use super::{MasterConfig, MinionConfig};

/// The names of Salt's options, one a line, sorted. A tab separates a name from the defaults of Salt 3008.5 in JSON, if
/// one of them is something: those of master and minion may differ.
const SALT: &str = include_str!("salt_options.txt");

/// Returns the names of Salt's options, sorted.
pub(super) fn salt_options() -> impl Iterator<Item = &'static str> {
    SALT.lines().map(|line| line.split_once('\t').map_or(line, |(name, _)| name))
}

/// Whether a value of an option without effect has none in Salt either: it is a default, or nothing.
pub(super) fn is_default(name: &str, value: &Value) -> bool {
    let defaults = SALT.lines().find_map(|line| line.split_once('\t').filter(|(option, _)| *option == name));
    let Some((_, defaults)) = defaults else { return !value.is_truthy() };
    let is_same = |default: &Value| default == value || default.as_f64().is_some_and(|one| value.as_f64() == Some(one));
    value.is_nil() || defaults.split('\t').any(|default| json::from_json(default).is_ok_and(|one| is_same(&one)))
}

/// The use of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Read by a part of Brine.
    Used {
        /// That part: `master`, `minion`, or the owner of a module's option.
        owner: &'static str,
    },
    /// An option of Salt without effect in Brine.
    Ignored,
}

/// Returns the status of an option in one configuration; `None` if it is neither Brine's nor Salt's.
pub(super) fn status<T: Options>(name: &str) -> Option<Status> {
    let declared = T::DOCS.iter().any(|doc| doc.name == name).then_some(T::FILE);
    let owner = declared.or_else(|| module_options::find(name).map(|option| option.owner));
    let ignored = || salt_options().any(|option| option == name).then_some(Status::Ignored);
    owner.map(|owner| Status::Used { owner }).or_else(ignored)
}

/// Returns the names of Salt's options that have no effect in Brine, sorted.
pub fn ignored_options() -> impl Iterator<Item = &'static str> {
    let is_ignored = |status| status == Some(Status::Ignored);
    salt_options()
        .filter(move |name| is_ignored(status::<MasterConfig>(name)) && is_ignored(status::<MinionConfig>(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_other_than_salts_defaults_are_noticed() {
        for (name, value, expected) in [
            ("verify_env", Value::from(true), true),
            ("verify_env", false.into(), false),
            ("client_acl_verify", false.into(), false),
            ("fips_mode", false.into(), true),
            ("fips_mode", true.into(), false),
            ("auth_tries", 7.into(), true),
            ("auth_tries", 0.into(), false),
            ("publish_drain_timeout", 60.into(), true),
            ("file_buffer_size", 262_144.into(), true),
            ("ssl", Value::Nil, true),
            ("verify_env", Value::Nil, true),
            ("hgfs_remotes", Value::List(Vec::new()), true),
        ] {
            assert_eq!(is_default(name, &value), expected, "{name}: {value}");
        }
    }

    #[test]
    fn defaults_of_options_without_effect_are_readable() {
        for line in SALT.lines() {
            let (name, defaults) = line.split_once('\t').unwrap_or((line, "null"));
            assert!(defaults.split('\t').all(|default| json::from_json(default).is_ok()), "{line}");
            assert!(defaults == "null" || status::<MasterConfig>(name) == Some(Status::Ignored), "{name} is used");
        }
    }

    #[test]
    fn each_option_has_one_status() {
        for (name, expected) in [
            ("ret_port", Some(Status::Used { owner: "master" })),
            ("hash_type", Some(Status::Used { owner: "fileserver" })),
            ("git_pillar_root", Some(Status::Used { owner: "pillar" })),
            ("transport", Some(Status::Used { owner: "master" })),
            ("auth_mode", Some(Status::Ignored)),
            // An option of the minion only.
            ("acceptance_wait_time", Some(Status::Ignored)),
            ("worker_thread", None),
        ] {
            assert_eq!(status::<MasterConfig>(name), expected, "{name}");
        }
    }
}
