use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use brine_context::Context;
use brine_value::json::to_json;
use brine_value::list;
use parking_lot::Mutex;

use super::*;
use crate::pkg::manager::{Database, Removal, Upgrade};
use crate::pkg::{Files, HoldResult, Listed, Locks, Versions, resolve};
use crate::testing;

/// A host with packages in memory. Versions are compared as strings.
#[derive(Default)]
struct Fake {
    installed: Mutex<Versions>,
    known: Versions,
    refreshed: Mutex<usize>,
    held: Mutex<Vec<String>>,
    downloaded: Mutex<Versions>,
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

impl Database for Fake {
    fn compare(&self, _context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        Ok(a.cmp(b))
    }

    fn owner(&self, _context: &Context, _path: &str) -> Result<String, CallError> {
        Ok(String::new())
    }

    fn files(&self, _context: &Context, _names: &[String]) -> Result<Files, CallError> {
        Ok(Files::default())
    }
}

impl Packages for Fake {
    fn list(&self, _context: &Context, _options: &Options) -> Result<Listed, CallError> {
        let installed = self.installed.lock();
        Ok(installed.iter().map(|(name, version)| (name.clone(), vec![version.as_str().into()])).collect())
    }

    fn keeps_configuration(&self) -> bool {
        true
    }

    fn candidates(&self, _context: &Context, names: &[String], _options: &Options) -> Result<Versions, CallError> {
        Ok(self.known.iter().filter(|(name, _)| names.contains(name)).map(|(a, b)| (a.clone(), b.clone())).collect())
    }

    fn available(&self, _context: &Context, name: &str, _options: &Options) -> Result<Vec<String>, CallError> {
        Ok(self.known.get(name).into_iter().cloned().collect())
    }

    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        let (desired, errors) = resolve(context, self, desired, options)?;
        if let Some((name, _)) = desired.iter().find(|(name, _)| !self.known.contains_key(name)) {
            return Ok(vec![format!("E: Unable to locate package {name}")]);
        }
        for (name, version) in desired {
            let version = version.unwrap_or_else(|| self.known[&name].clone());
            if options.download_only {
                self.downloaded.lock().insert(name, version);
                continue;
            }
            self.installed.lock().insert(name, version);
        }
        Ok(errors)
    }

    fn of_file(&self, _context: &Context, path: &Path) -> Result<(String, String), CallError> {
        let text = std::fs::read_to_string(path).map_err(CallError::execution)?;
        text.split_once(' ').map(|(a, b)| (a.into(), b.into())).ok_or_else(|| CallError::Execution("no package".into()))
    }

    fn install_files(&self, context: &Context, paths: &[&Path], _options: &Options) -> Result<Vec<String>, CallError> {
        for path in paths {
            self.installed.lock().extend([self.of_file(context, path)?]);
        }
        Ok(Vec::new())
    }

    fn upgrades(&self, _context: &Context, _dist: bool, _options: &Options) -> Result<Versions, CallError> {
        let newer = |(name, new): (&String, &String)| self.installed.lock().get(name).is_some_and(|have| have != new);
        Ok(self.known.iter().filter(|pair| newer(*pair)).map(|(a, b)| (a.clone(), b.clone())).collect())
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { dist, .. } = upgrade;
        let newer = self.upgrades(context, dist, options)?;
        self.installed.lock().extend(newer);
        Ok(Vec::new())
    }

    fn remove(&self, _context: &Context, removal: Removal, _options: &Options) -> Result<Vec<String>, CallError> {
        self.installed.lock().retain(|name, _| !removal.targets.iter().any(|(target, _)| target == name));
        Ok(Vec::new())
    }

    fn refresh(&self, _context: &Context, _options: &Options) -> Result<Value, CallError> {
        *self.refreshed.lock() += 1;
        Ok(Value::Nil)
    }

    fn predicted_version(
        &self,
        _context: &Context,
        name: &str,
        version: &str,
        _options: &Options,
    ) -> Result<Option<String>, CallError> {
        Ok(self.known.get(name).filter(|candidate| *candidate == version).cloned())
    }

    fn locks(&self) -> Option<&dyn Locks> {
        Some(self)
    }
}

impl Locks for Fake {
    fn held(&self, _context: &Context, _options: &Options) -> Result<Vec<Desired>, CallError> {
        Ok(self.held.lock().iter().map(|name| (name.clone(), None)).collect())
    }

    fn set(&self, context: &Context, desired: &[Desired], hold: bool, _options: &Options) -> Result<Map, CallError> {
        let mut held = self.held.lock();
        let mut report = Map::new();
        for (name, _) in desired {
            let one = if held.contains(name) == hold {
                HoldResult::nothing(format!("{name} stays"))
            } else if context.is_test() {
                HoldResult::would(format!("{name} would change"))
            } else if name == "stubborn" {
                HoldResult::failed(format!("{name} does not"))
            } else {
                held.retain(|one| one != name);
                held.extend(hold.then(|| name.clone()));
                let (old, new) = if hold { ("install", "hold") } else { ("hold", "install") };
                HoldResult::done(format!("{name} changes"), map! {"old" => old, "new" => new})
            };
            report.insert(name.into(), Value::Map(one.of(name)));
        }
        Ok(report)
    }
}

fn report(result: Result<StateReturn, CallError>) -> String {
    match result {
        Ok(outcome) => {
            format!("{}: {} | {}\n", Value::from(outcome.result), outcome.comment, to_json(&outcome.changes.into()))
        }
        Err(error) => format!("{error}\n"),
    }
}

fn transcript_of(test: bool) -> String {
    let (context, fake) = (testing::state_context(test, &[]), Fake::new());
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let one = |name: &str, version: Option<&str>| vec![(name.to_owned(), version.map(str::to_owned))];
    let mut reported = String::new();
    for desired in [
        one("bash", None),
        one("bash", Some("5.1")),
        one("bash", Some(">=5.0, <6")),
        one("bash", Some("5.*")),
        one("bash", Some(">=9")),
        one("tree", None),
        one("nosuch", None),
        one("vim", Some("latest")),
        one("nosuch", Some("latest")),
    ] {
        reported += &report(install::install(&context, &fake, "n", &desired, &install::InstallOptions::default()));
    }
    for all in [list(&["vim"]), list(&["bash"]), list(&["bash", "vim"]), list(&["nosuch"])] {
        let names = upgrade::Names { is_list: all.len() > 1, all };
        reported += &report(upgrade::newest(&context, &fake, "n", &names, Some(false), &Options::default()));
    }
    for (names, purge) in [
        (list(&["vim", "nosuch"]), false),
        (list(&["nosuch"]), false),
        (list(&["bash"]), true),
        (list(&["nosuch"]), true),
    ] {
        let desired: Vec<Desired> = names.into_iter().map(|name| (name, None)).collect();
        reported += &report(remove::without(&context, &fake, "n", &desired, purge, &Options::default()));
    }
    reported + &format!("refreshed {} times", fake.refreshed.lock())
}

#[test]
fn aggregated_states_call_the_manager_once() {
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
fn package_results_equal_salts() {
    insta::assert_snapshot!(transcript_of(false), @r#"
    True: All specified packages are already installed | {}
    True: All specified packages are already installed and are at the desired version | {}
    True: All specified packages are already installed and are at the desired version | {}
    True: All specified packages are already installed and are at the desired version | {}
    False: Problem encountered installing package(s). Additional info follows:

    errors:
        - No version matching 'bash>=9' could be found (available: 5.2) | {}
    True: The following packages were installed/updated: tree | {"tree": {"old": "", "new": "2.1"}}
    False: Problem encountered installing package(s). Additional info follows:

    errors:
        - E: Unable to locate package nosuch | {}
    True: All specified packages are already installed and are at the desired version | {}
    False: Problem encountered installing package(s). Additional info follows:

    errors:
        - E: Unable to locate package nosuch | {}
    True: Package vim is already up-to-date | {}
    True: The following packages were successfully installed/upgraded: bash | {"bash": {"old": "5.1", "new": "5.2"}}
    True: All packages are up-to-date (bash, vim). | {}
    False: No information found for 'nosuch'. | {}
    True: The following packages were not installed: nosuch The following packages were removed: vim. | {"vim": {"old": "9.0", "new": ""}}
    True: All specified packages are already absent | {}
    True: All targeted packages were purged. | {"installed": {"bash": {"old": "5.2", "new": ""}}, "removed": {}}
    True: None of the targeted packages are installed or partially installed | {}
    refreshed 1 times
    "#);
}

#[test]
fn nothing_changes_in_test_mode() {
    insta::assert_snapshot!(transcript_of(true), @r#"
    True: All specified packages are already installed | {}
    True: All specified packages are already installed and are at the desired version | {}
    True: All specified packages are already installed and are at the desired version | {}
    True: All specified packages are already installed and are at the desired version | {}
    None: The following packages would be installed/updated: bash | {"bash": {"old": "", "new": "installed"}}
    None: The following packages would be installed/updated: tree | {"tree": {"old": "", "new": "2.1"}}
    None: The following packages would be installed/updated: nosuch | {"nosuch": {"old": "", "new": "installed"}}
    True: All specified packages are already installed and are at the desired version | {}
    None: The following packages would be installed/updated: nosuch | {"nosuch": {"old": "", "new": "installed"}}
    True: Package vim is already up-to-date | {}
    None: The following packages would be installed/upgraded: bash | {"bash": {"old": "5.1", "new": "5.2"}}
    None: The following packages would be installed/upgraded: bash
    The following packages are already up-to-date: vim (9.0) | {"bash": {"old": "5.1", "new": "5.2"}}
    False: No information found for 'nosuch'. | {}
    None: The following packages will be removed: vim. | {"vim": {"old": "", "new": "removed"}}
    True: All specified packages are already absent | {}
    None: The following packages will be purged: bash. | {"bash": {"old": "", "new": "purged"}}
    True: None of the targeted packages are installed or partially installed | {}
    refreshed 1 times
    "#);
}

#[test]
fn requested_versions_and_holds_are_applied() {
    let run = testing::state_context(false, &[]);
    let test = Context { run_opts: Some(Arc::new(map! {"test" => true})), ..run.call.clone() };
    let test = StateContext { call: test, ..testing::state_context(true, &[]) };
    let fake = Fake::new();
    fake.installed.lock().insert("stubborn".into(), "1".into());
    let newer = install::InstallOptions { allow_updates: true, ..install::InstallOptions::default() };
    let hold = install::InstallOptions { hold: Some(true), ..install::InstallOptions::default() };
    let again = Options { reinstall: true, ..Options::default() };
    let again = install::InstallOptions { options: again, hold: Some(false), ..install::InstallOptions::default() };
    let mut reported = String::new();
    for (context, how, desired) in [
        (&test, &newer, &[("bash", Some("5.0")), ("tree", Some("2.1"))][..]),
        (&test, &newer, &[("bash", Some("5.2")), ("tree", Some("2.0"))]),
        (&test, &install::InstallOptions::default(), &[("bash", Some("latest")), ("vim", Some("latest"))]),
        (&test, &hold, &[("bash", None)]),
        (&run, &hold, &[("bash", None), ("stubborn", None)]),
        (&run, &hold, &[("bash", None)]),
        (&run, &hold, &[("bash", None), ("vim", None), ("tree", None)]),
        (&run, &install::InstallOptions::default(), &[("bash", Some("latest"))]),
        (&test, &again, &[("vim", Some("9.0"))]),
        (&run, &again, &[("vim", None)]),
    ] {
        let owned = |(name, version): &(&str, Option<&str>)| ((*name).to_owned(), version.map(str::to_owned));
        let desired: Vec<Desired> = desired.iter().map(owned).collect();
        reported += &report(install::install(context, &fake, "n", &desired, how));
    }
    insta::assert_snapshot!(reported, @r#"
    None: The following packages would be installed/updated: tree | {"tree": {"old": "", "new": "2.1"}}
    None: The following packages would be installed/updated: bash, tree | {"bash": {"old": "", "new": "5.2"}, "tree": {"old": "", "new": "installed"}}
    None: The following packages would be installed/updated: bash | {"bash": {"old": "", "new": "5.2"}}
    None: All specified packages are already installed.
    bash would change | {}
    False: All specified packages are already installed.
    bash changes.
    stubborn does not | {"bash": {"old": "install", "new": "hold"}}
    True: All specified packages are already installed.
    bash stays | {}
    True: The following packages were installed/updated: tree
    vim changes
    tree changes
    The following packages were already installed: bash, vim
    bash stays | {"tree": {"old": "install", "new": "2.1\nhold"}, "vim": {"old": "install", "new": "hold"}}
    True: The following packages were installed/updated: bash=5.2 | {"bash": {"old": "5.1", "new": "5.2"}}
    None: The following packages would be reinstalled: vim=9.0 | {"vim=9.0": {"old": "", "new": "installed"}}
    True: vim changes
    Package vim was reinstalled. | {"vim": {"old": "9.0\nhold", "new": "9.0\ninstall"}}
    "#);
}

#[test]
fn pkgs_and_sources_are_exclusive() {
    let context = testing::state_context(true, &[]);
    let args = map! {"name" => "x", "pkgs" => list!["a"], "sources" => list![map! {"a" => "/a.deb"}]};
    let args = Args::keyword(args);
    let outcome = context.call.minion.states.call(&context, "pkg.installed", args).unwrap();
    assert_eq!(outcome.get("comment"), Some(&"Only one of \"pkgs\" and \"sources\" is permitted.".into()));
}

#[test]
fn an_empty_list_changes_nothing() {
    let context = testing::state_context(true, &[]);
    let args = Args::keyword(map! {"name" => "x", "pkgs" => brine_value::list![]});
    let outcome = context.call.minion.states.call(&context, "pkg.installed", args).unwrap();
    assert_eq!(outcome.get("comment"), Some(&"No packages to install provided".into()));
}

#[test]
fn uptodate_upgrades_all_packages() {
    let (run, test, fake) = (testing::state_context(false, &[]), testing::state_context(true, &[]), Fake::new());
    let mut reported =
        report(upgrade::upgrade_all(&test, &fake, "n", &Value::Nil, (false, false), &Options::default()));
    reported += &report(upgrade::upgrade_all(&run, &fake, "n", &list!["vim"], (false, false), &Options::default()));
    reported += &report(upgrade::upgrade_all(&run, &fake, "n", &list!["bash"], (true, false), &Options::default()));
    fake.installed.lock().insert("bash".into(), "5.1".into());
    reported += &report(upgrade::upgrade_all(&run, &fake, "n", &Value::Nil, (false, false), &Options::default()));
    reported += &report(upgrade::upgrade_all(&run, &fake, "n", &Value::Nil, (false, false), &Options::default()));
    insta::assert_snapshot!(reported, @r#"
    None: System update will be performed | {"bash": {"new": "5.2", "old": "5.1"}}
    True: System is already up-to-date | {}
    True: Upgrade ran successfully | {"bash": {"old": "5.1", "new": "5.2"}}
    True: Upgrade ran successfully | {"bash": {"old": "5.1", "new": "5.2"}}
    True: System is already up-to-date | {}
    "#);
}

#[test]
fn packages_are_installed_from_files() {
    let (run, test, fake) = (testing::state_context(false, &[]), testing::state_context(true, &[]), Fake::new());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).unwrap();
        directory.path().join(name).display().to_string()
    };
    let (one, other, none) = (file("one.deb", "one 1.0"), file("other.deb", "other 2.0"), file("none.deb", "text"));
    let mut reported = String::new();
    for (context, sources) in [
        (&test, list![map! {"one" => &one}]),
        (&run, list![map! {"one" => &one}, map! {"other" => &other}]),
        (&run, list![map! {"one" => &one}, map! {"other" => &other}]),
        (&test, list![map! {"one" => &one}]),
        (&run, list![map! {"two" => &one}]),
        (&test, list![map! {"one" => "/nosuch/one.deb"}]),
        (&test, list![map! {"new" => "/nosuch/new.deb"}]),
        (&run, list![map! {"one" => &none}]),
        (&run, list!["one"]),
    ] {
        let result = sources::install(context, &fake, "n", &sources, &Options::default());
        reported += &report(result).replace(&directory.path().display().to_string(), "/directory");
    }
    insta::assert_snapshot!(reported, @r#"
    None: The following packages would be installed/updated: one | {"one": {"old": "", "new": "installed"}}
    True: The following packages were installed/updated: one, other | {"one": {"old": "", "new": "1.0"}, "other": {"old": "", "new": "2.0"}}
    True: All specified packages are already installed | {}
    True: All specified packages are already installed | {}
    ERROR: '/directory/one.deb' is the package one and not two
    ERROR: /nosuch/one.deb does not exist on minion
    None: The following packages would be installed/updated: new | {"new": {"old": "", "new": "installed"}}
    ERROR: no package
    ERROR: 'sources' is a list of mappings of a package to its file
    "#);
}

#[test]
fn packages_are_downloaded_and_not_installed() {
    let fake = Fake::new();
    let options = Options { download_only: true, ..Options::default() };
    let have = || Ok(fake.downloaded.lock().clone());
    let mut reported = String::new();
    for (test, version) in [(true, None), (false, None), (false, None), (false, Some("2.1")), (false, Some(">=9"))] {
        let context = testing::state_context(test, &[]);
        let desired = [("tree".to_owned(), version.map(str::to_owned))];
        reported += &report(download::download(&context, &fake, "n", &desired, &options, &have));
    }
    let context = testing::state_context(false, &[]);
    let nosuch = [("nosuch".to_owned(), None)];
    reported += &report(download::download(&context, &fake, "n", &nosuch, &options, &have));
    assert!(!fake.installed.lock().contains_key("tree"));
    insta::assert_snapshot!(reported, @r"
    None: The following packages would be downloaded: tree | {}
    True: Packages downloaded: tree | {}
    True: All specified packages are already downloaded | {}
    True: All specified packages (matching specified versions) are already downloaded | {}
    False: Problem encountered installing package(s). Additional info follows:

    errors:
        - No version matching 'tree>=9' could be found (available: 2.1) | {}
    False: Problem encountered installing package(s). Additional info follows:

    errors:
        - E: Unable to locate package nosuch | {}
    ");
}

#[test]
fn groups_and_patches_are_not_available() {
    let states = |context: &StateContext, name: &str| {
        let args = Args::keyword(map! {"name" => "n", "advisory_ids" => list!["a"]});
        let state = context.call.minion.states.call(context, name, args).unwrap();
        format!("{}: {}", state.get("result").unwrap(), state.get("comment").unwrap())
    };
    let context = testing::state_context(false, &[]);
    assert_eq!(states(&context, "pkg.group_installed"), "False: pkg.group_install not available for this platform");
    for name in ["pkg.patch_installed", "pkg.patch_downloaded"] {
        assert_eq!(states(&context, name), format!("False: The {name} state is not available on this platform"));
    }
}
