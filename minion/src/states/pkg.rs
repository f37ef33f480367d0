//! `pkg`: packages as states.

use brine_core::function::CallError;
use brine_core::{Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::pkg;

functions! {
    module "pkg", context StateContext;

    /// Packages that are installed, in a version if one is said.
    fn installed(context, name: String, pkgs: Value = Value::Nil, version: Value = Value::Nil, refresh: Value = Value::Nil, **_kwargs) {
        let mut wanted = pkg::wanted(&name.as_str().into(), &pkgs);
        if let (Some((_, slot)), true, false) = (wanted.first_mut(), pkgs.is_nil(), version.is_nil()) {
            *slot = Some(version.to_string());
        }
        if wanted.is_empty() {
            return Ok(StateReturn::ok(&name, "No packages to install provided").into());
        }
        let there = pkg::installed()?;
        let missing: Vec<Value> = wanted
            .iter()
            .filter(|(package, version)| match (there.get(package), version) {
                (None, _) => true,
                (Some(have), Some(version)) => have != version,
                (Some(_), None) => false,
            })
            .map(|(package, version)| version.as_ref().map_or_else(|| Value::from(package), |version| map! {package => version}.into()))
            .collect();
        let names = names(&missing);
        if missing.is_empty() {
            let with_version = wanted.iter().any(|(_, version)| version.is_some());
            let more = if with_version { " and are at the desired version" } else { "" };
            return Ok(StateReturn::ok(&name, format!("All specified packages are already installed{more}")).into());
        }
        if context.test {
            let comment = format!("The following packages would be installed/updated: {names}");
            let changes = missing.iter().map(|package| (names_of(package).into(), map! {"new" => "installed", "old" => ""}.into())).collect();
            return Ok(StateReturn::would(&name, comment).with_changes(changes).into());
        }
        match pkg::install(&context.call, Value::Nil, missing.into(), Value::Nil, refresh.is_truthy(), map! {}) {
            Ok(changes) => {
                let comment = format!("The following packages were installed/updated: {names}");
                Ok(StateReturn::ok(&name, comment).with_changes(changes.as_map().cloned().unwrap_or_default()).into())
            }
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, message).into()),
            Err(error) => Err(error),
        }
    }

    /// Packages that are not installed.
    fn removed(context, name: String, pkgs: Value = Value::Nil, **_kwargs) {
        let there = pkg::installed()?;
        let wanted = pkg::wanted(&name.as_str().into(), &pkgs);
        let present: Vec<Value> = wanted.iter().filter(|(package, _)| there.contains_key(package)).map(|(package, _)| package.into()).collect();
        if present.is_empty() {
            return Ok(StateReturn::ok(&name, "All specified packages are already absent").into());
        }
        if context.test {
            return Ok(StateReturn::would(&name, format!("The following packages will be removed: {}.", names(&present))).into());
        }
        match pkg::remove(&context.call, Value::Nil, present.into(), map! {}) {
            Ok(changes) => Ok(StateReturn::ok(&name, "All targeted packages were removed.").with_changes(changes.as_map().cloned().unwrap_or_default()).into()),
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, message).into()),
            Err(error) => Err(error),
        }
    }
}

fn names_of(package: &Value) -> String {
    package.as_map().and_then(brine_core::Map::first).map_or_else(|| package.to_string(), |(name, _)| name.to_string())
}

fn names(packages: &[Value]) -> String {
    packages.iter().map(names_of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_is_there_stays_and_what_is_not_would_come() {
        let context = testing::state_context(true, &[]);
        let run = |args| {
            context
                .call
                .minion
                .states
                .call(&context, "pkg.installed", brine_core::function::Args::keyword(args))
                .unwrap()
        };
        let there = run(map! {"name" => "dpkg"});
        assert_eq!(there.get("comment"), Some(&"All specified packages are already installed".into()));
        let missing = run(map! {"name" => "x", "pkgs" => Value::List(vec!["no-such-package-at-all".into()])});
        assert_eq!(missing.get("result"), Some(&Value::Nil));
        assert_eq!(
            missing.get("comment"),
            Some(&"The following packages would be installed/updated: no-such-package-at-all".into())
        );
    }
}
