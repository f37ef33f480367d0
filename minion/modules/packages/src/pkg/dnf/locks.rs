//! Holds of packages, with the versionlock plugin of yum and dnf.

use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_host::programs::argument;
use brine_system::files;
use brine_value::{Map, Value, map};

use super::{Dnf, Program};
use crate::pkg::holds::HoldResult;
use crate::pkg::manager::{Desired, Locks, Packages};
use crate::pkg::options::Options;

/// Path of dnf5's locks. The file is read because the output of its command is not machine-readable.
const LOCKS_OF_DNF5: &str = "etc/dnf/versionlock.toml";

/// A lock: the package, and its epoch, version and release.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lock {
    name: String,
    evr: String,
}

impl Lock {
    /// Parses `brine-two-2:1.0-3.*`, as written by dnf, or `2:brine-two-1.0-3.*`, as written by yum.
    fn parse(text: &str) -> Option<Self> {
        let bare = text.trim().strip_suffix(".*")?;
        if bare.contains(char::is_whitespace) {
            return None;
        }
        let (rest, release) = bare.rsplit_once('-')?;
        let (name, version) = rest.rsplit_once('-')?;
        let (name, evr) = match (name.split_once(':'), version.split_once(':')) {
            (Some((epoch, name)), None) => (name, format!("{epoch}:{version}-{release}")),
            _ => (name, format!("{version}-{release}")),
        };
        Some(Lock { name: name.to_owned(), evr })
    }
}

/// The relevant fields of dnf5's file.
#[derive(serde::Deserialize)]
struct LockFile {
    #[serde(default)]
    packages: Vec<LockEntry>,
}

#[derive(serde::Deserialize)]
struct LockEntry {
    name: String,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(serde::Deserialize)]
struct Condition {
    key: String,
    comparator: String,
    value: String,
}

/// Parses dnf5's file. Locks without a single version are ignored.
fn toml_locks(text: &str) -> Result<Vec<Lock>, CallError> {
    let written: LockFile =
        toml::from_str(text).map_err(|error| CallError::Execution(format!("/{LOCKS_OF_DNF5}: {error}")))?;
    let lock = |lock: LockEntry| {
        let is_version = |condition: &&Condition| condition.key == "evr" && condition.comparator == "=";
        let evr = lock.conditions.iter().find(is_version)?.value.clone();
        let evr = if evr.contains(':') { evr } else { format!("0:{evr}") };
        Some(Lock { name: lock.name, evr })
    };
    Ok(written.packages.into_iter().filter_map(lock).collect())
}

impl Dnf {
    /// Checks that the plugin is installed, and returns the name of its package.
    fn check_plugin(&self, context: &Context, options: &Options) -> Result<Program, CallError> {
        let program = Program::of_host(context)?;
        let grains = context.grains();
        let number = |key: &str| grains.get(key).and_then(|value| value.to_string().parse::<i64>().ok());
        let is_fedora = grains.get("os").is_some_and(|os| os.to_string().eq_ignore_ascii_case("fedora"));
        let plugin = match program {
            Program::Tdnf => {
                return Err(CallError::Execution("Cannot proceed, no versionlock for tdnf".into()));
            }
            Program::Yum => "yum-plugin-versionlock",
            _ if is_fedora && number("osrelease").is_some_and(|release| release < 26) => {
                "python3-dnf-plugins-extras-versionlock"
            }
            _ if !is_fedora && number("osmajorrelease").is_some_and(|release| release < 8) => {
                "python2-dnf-plugin-versionlock"
            }
            _ => "python3-dnf-plugin-versionlock",
        };
        // In dnf5 it is built in, or in a separate package.
        if program != Program::Dnf5 && !self.list(context, options)?.contains_key(plugin) {
            return Err(CallError::Execution(format!("Cannot proceed, {plugin} is not installed.")));
        }
        Ok(program)
    }

    fn locked(&self, context: &Context, options: &Options) -> Result<Vec<Lock>, CallError> {
        let program = self.check_plugin(context, options)?;
        if program == Program::Dnf5 {
            let root = options.root.as_deref().unwrap_or("/");
            let text = files::read_if_exists(Path::new(root).join(LOCKS_OF_DNF5)).map_err(CallError::execution)?;
            return toml_locks(&text.unwrap_or_default());
        }
        let output = program.run(context, ["versionlock", "list"])?;
        Ok(output.stdout.lines().filter_map(Lock::parse).collect())
    }
}

impl Locks for Dnf {
    fn held(&self, context: &Context, options: &Options) -> Result<Vec<Desired>, CallError> {
        let locks = self.locked(context, options)?;
        Ok(locks.into_iter().map(|lock| (lock.name, Some(lock.evr))).collect())
    }

    fn list_holds(&self, context: &Context, full: bool, options: &Options) -> Result<Vec<String>, CallError> {
        let locks = self.locked(context, options)?;
        let report =
            locks.into_iter().map(|lock| if full { format!("{}-{}.*", lock.name, lock.evr) } else { lock.name });
        Ok(report.collect())
    }

    fn set(&self, context: &Context, desired: &[Desired], hold: bool, options: &Options) -> Result<Map, CallError> {
        let program = self.check_plugin(context, options)?;
        let locks = self.locked(context, options)?;
        let mut report = Map::new();
        for (name, _) in desired {
            let own: Vec<&Lock> = locks.iter().filter(|lock| lock.name == *name).collect();
            let (verb, state) = if hold { ("add", "held") } else { ("delete", "unheld") };
            let one = if own.is_empty() != hold {
                let how = if hold { "already set to be held" } else { "not being held" };
                HoldResult::nothing(format!("Package {name} is {how}."))
            } else if context.is_test() {
                HoldResult::would(format!("Package {name} is set to be {state}."))
            } else {
                let mut command = vec!["versionlock".to_owned(), verb.to_owned()];
                if !hold && program == Program::Yum {
                    // yum only deletes a lock by its full name, with the epoch first.
                    command.extend(own.iter().map(|lock| match lock.evr.split_once(':') {
                        Some((epoch, rest)) => format!("{epoch}:{name}-{rest}.*"),
                        None => format!("0:{name}-{}.*", lock.evr),
                    }));
                } else {
                    command.push(argument(name)?);
                }
                let is_done = program.run(context, command)?.retcode == 0;
                match (is_done, hold) {
                    (true, true) => HoldResult::done(
                        format!("Package {name} is now being held."),
                        map! {"new" => "hold", "old" => ""},
                    ),
                    (true, false) => HoldResult::done(
                        format!("Package {name} is no longer held."),
                        map! {"new" => "", "old" => "hold"},
                    ),
                    (false, _) => HoldResult::failed(format!("Package {name} was unable to be {state}.")),
                }
            };
            report.insert(name.as_str().into(), Value::Map(one.of(name)));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_parsed() {
        let lock = |name: &str, evr: &str| Some(Lock { name: name.to_owned(), evr: evr.to_owned() });
        for (text, expected) in [
            ("brine-one-0:1.0-1.*", lock("brine-one", "0:1.0-1")),
            ("brine-two-2:1.0-3.*", lock("brine-two", "2:1.0-3")),
            ("2:vim-enhanced-7.4.629-5.el6.*", lock("vim-enhanced", "2:7.4.629-5.el6")),
            ("Last metadata expiration check: 0:00:03 ago on Sat Nov 21 15:32:45 2026.", None),
            ("", None),
        ] {
            assert_eq!(Lock::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn locks_of_dnf5_are_parsed() {
        let text = "version = \"1.0\"\n\n[[packages]]\nname = \"bash\"\ncomment = \"by hand\"\n\n\
                    [[packages.conditions]]\nkey = \"evr\"\ncomparator = \"=\"\nvalue = \"5.2-1\"\n\n\
                    [[packages]]\nname = \"vim\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"<\"\nvalue = \"9\"\n\
                    [[packages]]\nname = \"git\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"=\"\nvalue = \"2:2.40-1\"\n";
        let locks: Vec<(String, String)> =
            toml_locks(text).unwrap().into_iter().map(|lock| (lock.name, lock.evr)).collect();
        assert_eq!(locks, [("bash".into(), "0:5.2-1".into()), ("git".into(), "2:2.40-1".into())]);
        assert!(toml_locks("packages = 1").is_err());
    }
}
