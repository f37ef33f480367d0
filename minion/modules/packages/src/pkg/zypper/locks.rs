//! Holds of packages, with zypper's locks.

use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_host::programs::argument;
use brine_system::files;
use brine_value::{Map, Value, map};

use super::{Call, Zypper, words};
use crate::pkg::holds::HoldResult;
use crate::pkg::manager::{Desired, Locks, Packages};
use crate::pkg::options::Options;

const LOCKS: &str = "etc/zypp/locks";

/// Returns the locked packages, with the version if the lock has one.
fn read(text: &str) -> Vec<Desired> {
    let lock = |paragraph: &str| {
        let field = |name: &str| {
            let mut fields = paragraph.lines().filter_map(|line| line.split_once(':'));
            fields.find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
        };
        if field("type").is_some_and(|kind| kind != "package") {
            return None;
        }
        let version = field("version").map(|version| version.trim_start_matches(['=', ' ']).to_owned());
        Some((field("solvable_name")?, version))
    };
    text.split("\n\n").filter_map(lock).collect()
}

/// Formats a lock of a package: `vim=9.0`.
fn format_lock((name, version): &Desired) -> Result<String, CallError> {
    let name = argument(name)?;
    Ok(version.as_ref().map_or(name.clone(), |version| format!("{name}={version}")))
}

impl Locks for Zypper {
    fn held(&self, _context: &Context, options: &Options) -> Result<Vec<Desired>, CallError> {
        let root = options.root.as_deref().unwrap_or("/");
        let text = files::read_if_exists(Path::new(root).join(LOCKS)).map_err(CallError::execution)?;
        Ok(read(&text.unwrap_or_default()))
    }

    fn list_holds(&self, context: &Context, full: bool, options: &Options) -> Result<Vec<String>, CallError> {
        let (held, listed) = (self.held(context, options)?, self.list(context, options)?);
        let mut report = Vec::new();
        for (name, _) in held {
            for installed in listed.get(&name).into_iter().flatten() {
                report.push(match (&installed.details, full) {
                    (Some(details), true) => {
                        let epoch = details.epoch.as_deref().unwrap_or("0");
                        let bare = installed.version.split_once(':').map_or(&*installed.version, |(_, rest)| rest);
                        format!("{name}-{epoch}:{bare}.*")
                    }
                    _ => name.clone(),
                });
            }
        }
        report.dedup();
        Ok(report)
    }

    fn set(&self, context: &Context, desired: &[Desired], hold: bool, options: &Options) -> Result<Map, CallError> {
        let held = self.held(context, options)?;
        let (mut reported, mut command) = (Map::new(), words(&[if hold { "al" } else { "rl" }]));
        for one in desired {
            let name = &one.0;
            let lock = held.iter().find(|(held, _)| held == name);
            let action = match (lock, hold) {
                (Some(_), true) => HoldResult::nothing(format!("Package {name} is already set to be held.")),
                (None, true) if context.is_test() => HoldResult::would(format!("Package {name} is set to be held.")),
                (None, true) => {
                    command.push(format_lock(one)?);
                    HoldResult::done(format!("Package {name} is now being held."), map! {"new" => "hold", "old" => ""})
                }
                (None, false) => HoldResult::nothing(format!("Package {name} was already unheld.")),
                (Some(lock), false) if one.1.is_some() && one.1 != lock.1 => {
                    HoldResult::failed(format!("Unable to unhold package {name} as it is held with the other version."))
                }
                (Some(_), false) if context.is_test() => {
                    HoldResult::would(format!("Package {name} is set to be unheld."))
                }
                (Some(lock), false) => {
                    command.push(format_lock(lock)?);
                    HoldResult::done(format!("Package {name} is no longer held."), map! {"new" => "", "old" => "hold"})
                }
            };
            reported.insert(name.as_str().into(), Value::Map(action.of(name)));
        }
        if command.len() > 1 {
            Call::default().run(context, options, &command)?;
        }
        Ok(reported)
    }

    fn by_version(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_parsed() {
        let text = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: brine-one\n\n\n\
                    type: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: brine-two\nversion: == 2:1.0-3\n\n\
                    type: patch\nsolvable_name: other\n";
        assert_eq!(read(text), [("brine-one".into(), None), ("brine-two".into(), Some("2:1.0-3".into()))]);
        assert_eq!(read(""), []);
    }
}
