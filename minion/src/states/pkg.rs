//! `pkg`: packages as states.

use std::cmp::Ordering;

use brine_core::function::CallError;
use brine_core::glob::{fnmatch, is_pattern};
use brine_core::sls::compile::Chunk;
use brine_core::{Map, Value, functions, map};
use parking_lot::Mutex;

use super::{StateContext, StateReturn};
use crate::modules::pkg::{Packages, Versions, changes, complaints, packages, selections, wanted};

/// A package and the version it should have, if that matters.
type Wanted = (String, Option<String>);

functions! {
    module "pkg", context StateContext;

    /// A package, or several by `pkgs`, installed, with a version if one is said.
    fn installed(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, refresh: Option<bool> = None, **kwargs) {
        if kwargs.get("sources").is_some_and(Value::is_truthy) {
            return Ok(StateReturn::failed(&name, "packages from sources cannot be installed yet").into());
        }
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) {
            return Ok(StateReturn::ok(&name, "No packages to install provided").into());
        }
        let wanted = wanted(Some(&name), &pkgs, version.as_deref())?;
        told(&name, install(context, packages(), &name, &wanted, refresh))
    }

    /// A package, or several by `pkgs`, in the newest version.
    fn latest(context, name: String, pkgs: Value = Value::Nil, refresh: Option<bool> = None, **_kwargs) {
        let names: Vec<String> = wanted(Some(&name), &pkgs, None)?.into_iter().map(|(name, _)| name).collect();
        told(&name, newest(context, packages(), &name, &names, refresh))
    }

    /// A package, or several by `pkgs`, not installed.
    fn removed(context, name: String, pkgs: Value = Value::Nil, **_kwargs) {
        let names: Vec<String> = wanted(Some(&name), &pkgs, None)?.into_iter().map(|(name, _)| name).collect();
        told(&name, without(context, packages(), &name, &names, false))
    }

    /// A package, or several by `pkgs`, not installed, and nothing left of its configuration.
    fn purged(context, name: String, pkgs: Value = Value::Nil, **_kwargs) {
        let names: Vec<String> = wanted(Some(&name), &pkgs, None)?.into_iter().map(|(name, _)| name).collect();
        told(&name, without(context, packages(), &name, &names, true))
    }

    /// A package, or several by `pkgs`, kept at the version that it has; with `replace`, no others.
    fn held(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, replace: bool = false, **_kwargs) {
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !replace {
            return Ok(StateReturn::ok(&name, "No packages to be held provided").into());
        }
        told(&name, hold(context, &name, &wanted(Some(&name), &pkgs, version.as_deref())?, replace))
    }

    /// A package, or several by `pkgs`, that may get new versions; with `all`, each that there is.
    fn unheld(context, name: String, pkgs: Value = Value::Nil, all: bool = false, **_kwargs) {
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !all {
            return Ok(StateReturn::ok(&name, "No packages to be unheld provided").into());
        }
        let wanted = wanted(Some(&name), &pkgs, None)?;
        told(&name, unhold(context, &name, |held| all || wanted.iter().any(|(package, _)| package == held)))
    }

    /// What is done when something watched has changed: the state looks again.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        let sfun = kwargs.shift_remove("sfun").map(|sfun| sfun.to_string()).unwrap_or_default();
        kwargs.insert("name".into(), name.into());
        let states = &context.call.minion.states;
        states.call(context, &format!("pkg.{sfun}"), brine_core::function::Args::keyword(kwargs))
    }
}

/// Takes the packages of another state along: one call of the package manager instead of two.
pub(super) fn aggregate(chunk: &mut Chunk, other: &Chunk) -> bool {
    let same = |key: &str| chunk.args.get(key) == other.args.get(key);
    let together = ["installed", "latest", "removed", "purged"].contains(&chunk.fun.as_str())
        && chunk.fun == other.fun
        && same("fromrepo")
        && same("refresh")
        // What is held, or comes from files, is a matter of its own.
        && ![&*chunk, other].iter().any(|chunk| chunk.args.contains_key("hold") || chunk.args.contains_key("sources"));
    if together {
        let mut all = named(chunk);
        for package in named(other) {
            if !all.contains(&package) {
                all.push(package);
            }
        }
        chunk.args.shift_remove("version");
        chunk.args.insert("pkgs".into(), all.into());
    }
    together
}

/// The packages of a state as a list: `pkgs`, or its name with its version.
fn named(chunk: &Chunk) -> Vec<Value> {
    match (chunk.args.get("pkgs"), chunk.args.get("version")) {
        (Some(Value::List(packages)), _) => packages.clone(),
        (_, Some(version)) if version.is_truthy() => vec![map! {chunk.name.as_str() => version.clone()}.into()],
        _ => vec![chunk.name.as_str().into()],
    }
}

/// A program that could not be run is a failed state.
fn told(name: &str, done: Result<StateReturn, CallError>) -> Result<Value, CallError> {
    match done {
        Ok(done) => Ok(done.into()),
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(name, message).into()),
        Err(error) => Err(error),
    }
}

/// Holds or releases one package: whether that worked, and what is told of it.
fn select(
    context: &StateContext,
    function: &str,
    package: &str,
    changes: &mut Map,
) -> Result<(bool, String), CallError> {
    let args = brine_core::function::Args::positional([package.into()]);
    let done = context.call.call(function, args)?;
    changes.extend(done.as_map().cloned().unwrap_or_default());
    let one = done.get(package).cloned().unwrap_or_default();
    let comment = one.get("comment").map(ToString::to_string).unwrap_or_default();
    Ok((one.get("result").is_some_and(Value::is_truthy), comment))
}

fn holds(context: &StateContext) -> Result<Vec<String>, CallError> {
    Ok(selections(&context.call, "*")?.shift_remove("hold").unwrap_or_default())
}

/// The state of a run that held or released packages.
fn selected(name: &str, good: bool, comments: &[String], changes: Map) -> StateReturn {
    let comment = if comments.is_empty() { "No changes made".to_owned() } else { comments.join("\n") };
    StateReturn { result: Some(good), ..StateReturn::ok(name, comment) }.with_changes(changes)
}

fn hold(context: &StateContext, name: &str, wanted: &[Wanted], replace: bool) -> Result<StateReturn, CallError> {
    let held = holds(context)?;
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    for (package, version) in wanted.iter().filter(|(package, _)| !held.contains(package)) {
        if context.test {
            let version = version.as_ref().map(|version| format!(" (version = {version})")).unwrap_or_default();
            comments.push(format!("The following package would be held: {package}{version}"));
            continue;
        }
        let (done, _) = select(context, "pkg.hold", package, &mut changes)?;
        good &= done;
        let how = if done { "is now being held" } else { "was not held" };
        comments.push(format!("Package {package} {how}"));
    }
    if replace {
        let others = |package: &str| !wanted.iter().any(|(wanted, _)| wanted == package);
        let more = unhold(context, name, others)?;
        good &= more.result == Some(true);
        if !more.changes.is_empty() || context.test && more.comment != "No changes made" {
            comments.push(more.comment);
        }
        changes.extend(more.changes);
    }
    Ok(selected(name, good, &comments, changes))
}

fn unhold(context: &StateContext, name: &str, is_meant: impl Fn(&str) -> bool) -> Result<StateReturn, CallError> {
    let (mut good, mut comments, mut changes) = (true, Vec::new(), Map::new());
    for package in holds(context)?.iter().filter(|package| is_meant(package)) {
        if context.test {
            comments.push(format!("The following package would be unheld: {package}"));
            continue;
        }
        let (done, comment) = select(context, "pkg.unhold", package, &mut changes)?;
        good &= done;
        comments.push(comment);
    }
    Ok(selected(name, good, &comments, changes))
}

/// Asks the repositories, if the state says so or, when it says nothing, once in a job.
fn refresh(context: &StateContext, packages: &dyn Packages, wanted: Option<bool>) -> Result<(), CallError> {
    static REFRESHED: Mutex<String> = Mutex::new(String::new());
    let jid = &context.call.job.jid;
    let first = *REFRESHED.lock() != *jid;
    if wanted.unwrap_or(first) {
        packages.refresh(&context.call)?;
        REFRESHED.lock().clone_from(jid);
    }
    Ok(())
}

/// Whether an installed version is good: the same, one that a glob fits, or one in a range.
fn satisfies(context: &StateContext, packages: &dyn Packages, have: &str, wanted: &str) -> Result<bool, CallError> {
    for part in wanted.split(',').map(str::trim) {
        let good = if let Some((operator, version)) = operator(part) {
            let order = packages.compare(&context.call, have, version)?;
            match operator {
                ">=" => order != Ordering::Less,
                "<=" => order != Ordering::Greater,
                ">" => order == Ordering::Greater,
                "<" => order == Ordering::Less,
                "!=" => order != Ordering::Equal,
                _ => order == Ordering::Equal,
            }
        } else if is_pattern(part) {
            fnmatch(part, have)
        } else {
            have == part
        };
        if !good {
            return Ok(false);
        }
    }
    Ok(true)
}

fn operator(text: &str) -> Option<(&'static str, &str)> {
    [">=", "<=", "!=", "==", ">", "<", "="]
        .iter()
        .find_map(|operator| text.strip_prefix(operator).map(|version| (*operator, version.trim())))
}

fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    wanted: &[Wanted],
    when: Option<bool>,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call)?;
    let mut targets: Vec<Wanted> = Vec::new();
    for (package, version) in wanted {
        let good = match (before.get(package), version) {
            (Some(have), Some(version)) => satisfies(context, packages, have, version)?,
            (have, _) => have.is_some(),
        };
        if !good {
            targets.push((package.clone(), version.clone()));
        }
    }
    if targets.is_empty() {
        let versions =
            if wanted.iter().any(|(_, version)| version.is_some()) { " and are at the desired version" } else { "" };
        return Ok(StateReturn::ok(name, format!("All specified packages are already installed{versions}")));
    }
    let names = targets.iter().map(|(package, _)| package.as_str()).collect::<Vec<_>>().join(", ");
    if context.test {
        let changes =
            targets.iter().map(|(package, _)| (package.into(), map! {"old" => "", "new" => "installed"}.into()));
        return Ok(StateReturn::would(name, format!("The following packages would be installed/updated: {names}"))
            .with_changes(changes.collect()));
    }
    refresh(context, packages, when)?;
    let asked = targets.clone();
    resolve(context, packages, &mut targets)?;
    let output = packages.install(&context.call, &targets)?;
    let after = packages.installed(&context.call)?;
    let changed = changes(&before, &after);
    if output.retcode != 0 {
        return Ok(StateReturn::failed(name, problem("installing", &complaints(&output))).with_changes(changed));
    }
    let missing: Vec<&str> =
        targets.iter().map(|(package, _)| package.as_str()).filter(|package| !after.contains_key(*package)).collect();
    if !missing.is_empty() {
        let comment = format!("The following packages failed to install/update: {}", missing.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    let told = asked.iter().map(desired).collect::<Vec<_>>().join(", ");
    Ok(StateReturn::ok(name, format!("The following packages were installed/updated: {told}")).with_changes(changed))
}

/// A package with the version that was asked for.
fn desired((package, version): &Wanted) -> String {
    match version {
        Some(version) if version.starts_with(['<', '>', '=']) => format!("{package}{version}"),
        Some(version) => format!("{package}={version}"),
        None => package.clone(),
    }
}

/// Turns ranges and globs into versions that there are: apt is asked for one version.
fn resolve(context: &StateContext, packages: &dyn Packages, targets: &mut [Wanted]) -> Result<(), CallError> {
    for (package, version) in targets {
        let Some(spec) = version.as_deref() else { continue };
        match operator(spec) {
            Some(("==" | "=", exact)) => *version = Some(exact.to_owned()),
            Some(_) => {
                let candidates = packages.candidates(&context.call, std::slice::from_ref(package))?;
                let candidate = candidates.get(package).cloned().unwrap_or_default();
                if !satisfies(context, packages, &candidate, spec)? {
                    return Err(CallError::Execution(format!("No version matching '{package}{spec}' could be found")));
                }
                *version = Some(candidate);
            }
            None => {}
        }
    }
    Ok(())
}

fn problem(doing: &str, errors: &[String]) -> String {
    let errors: Vec<String> = errors.iter().map(|error| format!("    - {error}")).collect();
    format!("Problem encountered {doing} package(s). Additional info follows:\n\nerrors:\n{}", errors.join("\n"))
}

fn newest(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    names: &[String],
    when: Option<bool>,
) -> Result<StateReturn, CallError> {
    if !context.test {
        refresh(context, packages, when)?;
    }
    let (before, candidates) = (packages.installed(&context.call)?, packages.candidates(&context.call, names)?);
    let unknown: Vec<String> = names
        .iter()
        .filter(|package| !candidates.contains_key(*package) && !before.contains_key(*package))
        .map(|package| format!("No information found for '{package}'."))
        .collect();
    if !unknown.is_empty() {
        return Ok(StateReturn::failed(name, unknown.join("\n")));
    }
    let targets: Vec<Wanted> = names
        .iter()
        .filter_map(|package| candidates.get(package).map(|candidate| (package, candidate)))
        .filter(|(package, candidate)| before.get(*package) != Some(*candidate))
        .map(|(package, candidate)| (package.clone(), Some(candidate.clone())))
        .collect();
    if targets.is_empty() {
        let comment = match names {
            [one] => format!("Package {one} is already up-to-date"),
            several => format!("All packages are up-to-date ({}).", several.join(", ")),
        };
        return Ok(StateReturn::ok(name, comment));
    }
    let told = targets.iter().map(|(package, _)| package.as_str()).collect::<Vec<_>>().join(", ");
    if context.test {
        let changes: Map = targets
            .iter()
            .map(|(package, new)| {
                let old = before.get(package).cloned().unwrap_or_default();
                (package.into(), map! {"old" => old, "new" => new.clone()}.into())
            })
            .collect();
        return Ok(StateReturn::would(name, format!("The following packages would be installed/upgraded: {told}"))
            .with_changes(changes));
    }
    let output = packages.install(&context.call, &targets)?;
    let changed = changes(&before, &packages.installed(&context.call)?);
    if output.retcode != 0 {
        let comment =
            format!("An error was encountered while installing package(s): {}", complaints(&output).join("\n"));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    Ok(StateReturn::ok(name, format!("The following packages were successfully installed/upgraded: {told}"))
        .with_changes(changed))
}

fn without(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    names: &[String],
    purge: bool,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call)?;
    let left = if purge { packages.left_over(&context.call)? } else { Versions::new() };
    let mut targets: Vec<String> =
        names.iter().filter(|name| before.contains_key(*name) || left.contains_key(*name)).cloned().collect();
    targets.sort();
    let (done, verb) = if purge { ("purged", "purging") } else { ("removed", "removing") };
    if targets.is_empty() {
        let comment = if purge {
            "None of the targeted packages are installed or partially installed"
        } else {
            "All specified packages are already absent"
        };
        return Ok(StateReturn::ok(name, comment));
    }
    if context.test {
        let changes =
            targets.iter().map(|package| (package.into(), map! {"old" => "", "new" => done}.into())).collect();
        let comment = format!("The following packages will be {done}: {}.", targets.join(", "));
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let output = packages.remove(&context.call, &targets, purge)?;
    let after = packages.installed(&context.call)?;
    let mut changed = changes(&before, &after);
    if purge {
        let left_changes = changes(&left, &packages.left_over(&context.call)?);
        changed = map! {"installed" => changed, "removed" => left_changes};
    }
    if output.retcode != 0 {
        return Ok(StateReturn::failed(name, problem(verb, &complaints(&output))).with_changes(changed));
    }
    let failed: Vec<&String> = targets.iter().filter(|package| after.contains_key(*package)).collect();
    if !failed.is_empty() {
        let failed: Vec<&str> = failed.into_iter().map(String::as_str).collect();
        let comment =
            format!("The following packages failed to {}: {}.", done.trim_end_matches('d'), failed.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    Ok(StateReturn::ok(name, format!("All targeted packages were {done}.")).with_changes(changed))
}

#[cfg(test)]
mod tests {
    use brine_core::value::json::to_json;

    use super::*;
    use crate::context::Context;
    use crate::process::Output;
    use crate::testing;
    use brine_core::list;

    /// A host whose packages are in memory. Versions are compared as text.
    #[derive(Default)]
    struct Fake {
        installed: Mutex<Versions>,
        known: Versions,
        refreshed: Mutex<usize>,
    }

    impl Fake {
        fn new() -> Self {
            let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            Fake {
                installed: Mutex::new(of(&[("bash", "5.1"), ("vim", "9.0")])),
                known: of(&[("bash", "5.2"), ("vim", "9.0"), ("tree", "2.1")]),
                ..Fake::default()
            }
        }
    }

    fn output(retcode: i64, stderr: &str) -> Output {
        Output { pid: 1, retcode, stdout: String::new(), stderr: stderr.into(), timed_out: false }
    }

    impl Packages for Fake {
        fn installed(&self, _context: &Context) -> Result<Versions, CallError> {
            Ok(self.installed.lock().clone())
        }

        fn left_over(&self, _context: &Context) -> Result<Versions, CallError> {
            Ok(Versions::new())
        }

        fn candidates(&self, _context: &Context, names: &[String]) -> Result<Versions, CallError> {
            Ok(self
                .known
                .iter()
                .filter(|(name, _)| names.contains(name))
                .map(|(a, b)| (a.clone(), b.clone()))
                .collect())
        }

        fn install(&self, _context: &Context, wanted: &[Wanted]) -> Result<Output, CallError> {
            if let Some((name, _)) = wanted.iter().find(|(name, _)| !self.known.contains_key(name)) {
                return Ok(output(100, &format!("E: Unable to locate package {name}")));
            }
            for (name, version) in wanted {
                let version = version.clone().unwrap_or_else(|| self.known[name].clone());
                self.installed.lock().insert(name.clone(), version);
            }
            Ok(output(0, ""))
        }

        fn remove(&self, _context: &Context, names: &[String], _purge: bool) -> Result<Output, CallError> {
            self.installed.lock().retain(|name, _| !names.contains(name));
            Ok(output(0, ""))
        }

        fn refresh(&self, _context: &Context) -> Result<Map, CallError> {
            *self.refreshed.lock() += 1;
            Ok(Map::new())
        }

        fn compare(&self, _context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
            Ok(a.cmp(b))
        }
    }

    fn tell(done: Result<StateReturn, CallError>) -> String {
        match done {
            Ok(done) => format!("{}: {} | {}\n", Value::from(done.result), done.comment, to_json(&done.changes.into())),
            Err(error) => format!("{error}\n"),
        }
    }

    fn story(test: bool) -> String {
        let (context, fake) = (testing::state_context(test, &[]), Fake::new());
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let one = |name: &str, version: Option<&str>| vec![(name.to_owned(), version.map(str::to_owned))];
        let mut told = String::new();
        for wanted in [
            one("bash", None),
            one("bash", Some("5.1")),
            one("bash", Some(">=5.0, <6")),
            one("bash", Some("5.*")),
            one("bash", Some(">=9")),
            one("tree", None),
            one("nosuch", None),
        ] {
            told += &tell(install(&context, &fake, "n", &wanted, None));
        }
        for names in [list(&["vim"]), list(&["bash"]), list(&["bash", "vim"]), list(&["nosuch"])] {
            told += &tell(newest(&context, &fake, "n", &names, Some(false)));
        }
        for (names, purge) in [
            (list(&["vim", "nosuch"]), false),
            (list(&["nosuch"]), false),
            (list(&["bash"]), true),
            (list(&["nosuch"]), true),
        ] {
            told += &tell(without(&context, &fake, "n", &names, purge));
        }
        told + &format!("refreshed {} times", fake.refreshed.lock())
    }

    #[test]
    fn packages_of_several_states_are_one_call() {
        let chunk = |id: &str, fun: &str, args: Map| {
            let mut low = map! {"state" => "pkg", "fun" => fun, "name" => id};
            low.extend(args);
            Chunk::from_value(&low).unwrap()
        };
        let mut one = chunk("vim", "installed", map! {"version" => "2:9"});
        let two = list!["git", map! {"jq" => "1.6"}];
        for (other, taken) in [
            (chunk("curl", "installed", Map::new()), true),
            (chunk("two", "installed", map! {"pkgs" => two}), true),
            (chunk("git", "installed", Map::new()), true),
            (chunk("x", "removed", Map::new()), false),
            (chunk("y", "installed", map! {"hold" => true}), false),
            (chunk("z", "installed", map! {"fromrepo" => "backports"}), false),
            (chunk("file", "installed", map! {"sources" => list![map! {"f" => "/f.deb"}]}), false),
        ] {
            assert_eq!(aggregate(&mut one, &other), taken, "{}", other.name);
        }
        let pkgs = list![map! {"vim" => "2:9"}, "curl", "git", map! {"jq" => "1.6"}];
        assert_eq!((one.args.get("pkgs"), one.args.get("version")), (Some(&pkgs), None));
        assert_eq!(one.tag(), "pkg_|-vim_|-vim_|-installed");
    }

    #[test]
    fn packages_are_told_as_salt_tells_them() {
        insta::assert_snapshot!(story(false), @r#"
        True: All specified packages are already installed | {}
        True: All specified packages are already installed and are at the desired version | {}
        True: All specified packages are already installed and are at the desired version | {}
        True: All specified packages are already installed and are at the desired version | {}
        ERROR: No version matching 'bash>=9' could be found
        True: The following packages were installed/updated: tree | {"tree": {"old": "", "new": "2.1"}}
        False: Problem encountered installing package(s). Additional info follows:

        errors:
            - E: Unable to locate package nosuch | {}
        True: Package vim is already up-to-date | {}
        True: The following packages were successfully installed/upgraded: bash | {"bash": {"old": "5.1", "new": "5.2"}}
        True: All packages are up-to-date (bash, vim). | {}
        False: No information found for 'nosuch'. | {}
        True: All targeted packages were removed. | {"vim": {"old": "9.0", "new": ""}}
        True: All specified packages are already absent | {}
        True: All targeted packages were purged. | {"installed": {"bash": {"old": "5.2", "new": ""}}, "removed": {}}
        True: None of the targeted packages are installed or partially installed | {}
        refreshed 1 times
        "#);
    }

    #[test]
    fn nothing_changes_in_test_mode() {
        insta::assert_snapshot!(story(true), @r#"
        True: All specified packages are already installed | {}
        True: All specified packages are already installed and are at the desired version | {}
        True: All specified packages are already installed and are at the desired version | {}
        True: All specified packages are already installed and are at the desired version | {}
        None: The following packages would be installed/updated: bash | {"bash": {"old": "", "new": "installed"}}
        None: The following packages would be installed/updated: tree | {"tree": {"old": "", "new": "installed"}}
        None: The following packages would be installed/updated: nosuch | {"nosuch": {"old": "", "new": "installed"}}
        True: Package vim is already up-to-date | {}
        None: The following packages would be installed/upgraded: bash | {"bash": {"old": "5.1", "new": "5.2"}}
        None: The following packages would be installed/upgraded: bash | {"bash": {"old": "5.1", "new": "5.2"}}
        False: No information found for 'nosuch'. | {}
        None: The following packages will be removed: vim. | {"vim": {"old": "", "new": "removed"}}
        True: All specified packages are already absent | {}
        None: The following packages will be purged: bash. | {"bash": {"old": "", "new": "purged"}}
        True: None of the targeted packages are installed or partially installed | {}
        refreshed 0 times
        "#);
    }

    #[test]
    fn an_empty_list_is_no_work() {
        let context = testing::state_context(true, &[]);
        let args = brine_core::function::Args::keyword(map! {"name" => "x", "pkgs" => brine_core::list![]});
        let done = context.call.minion.states.call(&context, "pkg.installed", args).unwrap();
        assert_eq!(done.get("comment"), Some(&"No packages to install provided".into()));
    }
}
