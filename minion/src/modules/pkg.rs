//! `pkg`: packages, on Debian and its relatives: dpkg's status file for what there is, apt-get for changes.

use std::collections::BTreeMap;

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use crate::context::Context;
use crate::process::{Output, Program};

const STATUS: &str = "/var/lib/dpkg/status";

functions! {
    module "pkg", context Context;

    /// All installed packages with their versions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.list_pkgs
    fn list_pkgs(_context) {
        Ok(Value::Map(installed()?.into_iter().map(|(name, version)| (name.into(), version.into())).collect()))
    }

    /// The installed version of a package, empty if it is not installed; of several, by name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.version bash
    fn version(_context, *names) {
        let installed = installed()?;
        let of = |name: &Value| Value::from(installed.get(&name.to_string()).cloned().unwrap_or_default());
        Ok(match &names[..] {
            [one] => of(one),
            all => Value::Map(all.iter().map(|name| (name.clone(), of(name))).collect()),
        })
    }

    /// Installs packages, and says what changed.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.install tree
    fn install(context, name: Value = Value::Nil, pkgs: Value = Value::Nil, version: Value = Value::Nil, refresh: bool = false, **_kwargs) {
        let mut wanted = wanted(&name, &pkgs);
        if let (Some((_, slot)), false) = (wanted.first_mut(), version.is_nil()) {
            *slot = Some(version.to_string());
        }
        let before = installed()?;
        if refresh {
            refresh_db(context)?;
        }
        apt(context, "install", &words(&wanted))?;
        Ok(changes(&before, &installed()?).into())
    }

    /// Removes packages, and says what changed.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.remove tree
    fn remove(context, name: Value = Value::Nil, pkgs: Value = Value::Nil, **_kwargs) {
        let before = installed()?;
        apt(context, "remove", &words(&wanted(&name, &pkgs)))?;
        Ok(changes(&before, &installed()?).into())
    }

    /// Asks the repositories what there is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.refresh_db
    fn refresh_db(context) {
        apt(context, "update", &[])?;
        Ok(Value::map())
    }
}

/// Names with the versions that are asked for: one name, or a list of names and one-key mappings.
pub fn wanted(name: &Value, pkgs: &Value) -> Vec<(String, Option<String>)> {
    match pkgs {
        Value::List(items) => items
            .iter()
            .map(|item| match item.as_map().and_then(Map::first) {
                Some((name, version)) => (name.to_string(), (!version.is_nil()).then(|| version.to_string())),
                None => (item.to_string(), None),
            })
            .collect(),
        _ => name
            .to_string()
            .split(',')
            .map(|name| (name.trim().to_owned(), None))
            .filter(|(name, _)| !name.is_empty())
            .collect(),
    }
}

fn words(wanted: &[(String, Option<String>)]) -> Vec<String> {
    wanted
        .iter()
        .map(|(name, version)| version.as_ref().map_or_else(|| name.clone(), |version| format!("{name}={version}")))
        .collect()
}

/// The installed packages by name.
pub fn installed() -> Result<BTreeMap<String, String>, CallError> {
    match std::fs::read_to_string(STATUS) {
        Ok(text) => Ok(parse_status(&text)),
        Err(error) => Err(CallError::Execution(format!(
            "packages are managed on Debian and its relatives only: {STATUS}: {error}"
        ))),
    }
}

/// Reads dpkg's status file.
fn parse_status(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        if let (Some(name), Some(version), Some(status)) = (field("Package"), field("Version"), field("Status"))
            && status.ends_with(" installed")
        {
            found.insert(name.to_owned(), version.to_owned());
        }
    }
    found
}

/// What differs between two looks: old and new version by name.
fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Map {
    let mut changes = Map::new();
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let (old, new) = (before.get(name).cloned().unwrap_or_default(), after.get(name).cloned().unwrap_or_default());
        if old != new {
            changes.insert(name.into(), map! {"old" => old, "new" => new}.into());
        }
    }
    changes
}

fn apt(context: &Context, action: &str, packages: &[String]) -> Result<Output, CallError> {
    // Names come from states and command lines: what looks like an option is none of apt's.
    if let Some(bad) = packages.iter().find(|name| name.starts_with('-') || name.contains(char::is_whitespace)) {
        return Err(CallError::Execution(format!("'{bad}' is not a package's name")));
    }
    let command = format!(
        "apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef {action} {}",
        packages.join(" ")
    );
    let env = vec![("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned())];
    let program = Program { command, env, ..Program::default() };
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    if output.retcode == 0 {
        return Ok(output);
    }
    let errors: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("E: ")).collect();
    let told = if errors.is_empty() { output.stderr.clone() } else { errors.join("\n    - ") };
    Err(CallError::Execution(format!(
        "Problem encountered installing package(s). Additional info follows:\n\nerrors:\n    - {told}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_core::list;

    #[test]
    fn the_status_file_is_read() {
        let text = "Package: bash\nStatus: install ok installed\nVersion: 5.2\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n";
        assert_eq!(parse_status(text), BTreeMap::from([("bash".into(), "5.2".into())]));
    }

    #[test]
    fn packages_are_asked_for_in_all_forms() {
        let pair = |name: &str, version: Option<&str>| (name.to_owned(), version.map(str::to_owned));
        assert_eq!(wanted(&"a, b".into(), &Value::Nil), [pair("a", None), pair("b", None)]);
        assert_eq!(wanted(&"x".into(), &list!["a", map! {"b" => "1.2"}]), [pair("a", None), pair("b", Some("1.2"))]);
        assert_eq!(words(&[pair("b", Some("1.2"))]), ["b=1.2"]);
        let (before, after) = (
            BTreeMap::from([("a".into(), "1".into())]),
            BTreeMap::from([("a".into(), "2".into()), ("b".into(), "1".into())]),
        );
        assert_eq!(
            changes(&before, &after),
            map! {"a" => map!{"old" => "1", "new" => "2"}, "b" => map!{"old" => "", "new" => "1"}}
        );
    }

    #[test]
    fn options_are_no_packages() {
        let context = crate::testing::context(&[]);
        let error = apt(&context, "install", &["--reinstall".into()]).unwrap_err().to_string();
        assert_eq!(error, "ERROR: '--reinstall' is not a package's name");
    }
}
