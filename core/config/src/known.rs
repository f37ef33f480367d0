//! The names of Salt's options (3006 to 3008), to distinguish options without effect from misspelt ones.

use super::module_options;
use super::options::Options;
use super::{MasterConfig, MinionConfig};

/// The names of Salt's options, one a line, sorted.
const SALT: &str = include_str!("salt_options.txt");

/// Returns the names of Salt's options, sorted.
pub(super) fn salt_options() -> impl Iterator<Item = &'static str> {
    SALT.lines()
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
    let ignored = || salt_options().any(|known| known == name).then_some(Status::Ignored);
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
