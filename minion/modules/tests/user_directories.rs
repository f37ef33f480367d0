//! Root works in a directory of another user, who has planted links at each name that a function uses, or exchanges the
//! files meanwhile: root's own files are neither changed nor created, and the results have the owner and mode that Salt
//! gives them.
//!
//! [`CASES`] has a call of each function that writes where its caller says; [`OTHERS`] has all other functions, with
//! reasons. A new function must be in one of them. These tests do nothing without root.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use brine_config::MinionConfig;
use brine_context::{Context, StateContext};
use brine_function::{Args, Function};
use brine_modules::MODULES;
use brine_value::map;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::unistd::geteuid;

#[path = "user_directories/cases.rs"]
mod cases;
#[path = "user_directories/others.rs"]
mod others;
#[path = "user_directories/state_others.rs"]
mod state_others;

use cases::{CASES, STATE_CASES};
use others::OTHERS;
use state_others::STATE_OTHERS;

/// The UID and GID of nobody.
const NOBODY: u32 = 65534;

/// A call of a function: its name, its arguments in YAML, in which `DIR` is the user's directory, and the
/// results as `name owner mode`; without results they are not checked. `REPO` is a Git repository of root, `KEY` and
/// `CERT` are files of root with a private key and its certificate, `URL` is a page of a web server.
type Case = (&'static str, &'static str, &'static str);

/// A reason why functions have no case, and the modules (`name.*`) and functions for which it holds.
type Group = (&'static str, &'static [&'static str]);

/// `aaa`, compressed by gzip.
const GZIP: &[u8] = &[31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 76, 76, 228, 2, 0, 149, 93, 248, 119, 4, 0, 0, 0];
/// An empty ZIP archive.
const ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A directory of nobody beside a directory of root.
struct Beside {
    directory: tempfile::TempDir,
}

impl Beside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        set_mode(directory.path(), 0o755);
        let beside = Beside { directory };
        let (root, home) = (beside.at("root"), beside.home());
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::write(root.join("victim"), "secret\n").unwrap();
        set_mode(&root.join("victim"), 0o600);
        fs::write(root.join("deep/file"), "secret\n").unwrap();
        set_mode(&root, 0o700);
        fs::create_dir_all(home.join("d/below")).unwrap();
        let files: [(&str, &[u8]); 11] = [
            ("f", b"aaa\nbbb\n"),
            ("ini", b"[s]\na = 1\n"),
            ("xml", b"<r><a>1</a></r>"),
            ("source", b"source\n"),
            ("patch", b"--- f\n+++ f\n@@ -1,2 +1,2 @@\n-aaa\n+ccc\n bbb\n"),
            ("d/file", b"x\n"),
            ("d/below/file", b"x\n"),
            ("ak", b"ssh-rsa AAAAB3NzaC1yc2E= old\n"),
            ("exports", b"/srv *(ro)\n"),
            ("z.gz", GZIP),
            ("zip", ZIP),
        ];
        for (name, content) in files {
            fs::write(home.join(name), content).unwrap();
            set_mode(&home.join(name), 0o640);
        }
        for name in ["", "d", "d/below"].into_iter().chain(files.map(|(name, _)| name)) {
            chown(home.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let backups = beside.at("cache/file_backup").join(home.strip_prefix("/").unwrap());
        fs::create_dir_all(&backups).unwrap();
        fs::write(backups.join("f_Sun_Nov_29_08:38:13_000001_2026"), "old\n").unwrap();
        beside
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.at("home")
    }

    fn context(&self) -> Context {
        let keys = "ssh-rsa AAAAB3NzaC1yc2E= old\n";
        let files = [("src", "from the master\n"), ("tree/a", "a\n"), ("keys", keys)];
        let mut minion = brine_testing::minion(&MODULES, &files, Arc::new(brine_testing::Alone::default()));
        let home = self.home();
        let opts = map! {
            "hosts.file" => home.join("f").display().to_string(),
            "aliases.file" => home.join("f").display().to_string(),
        };
        let config =
            MinionConfig { cachedir: self.at("cache"), config_dir: self.at("config"), opts, ..MinionConfig::default() };
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        brine_testing::context_of(minion)
    }

    /// Calls a function; its result does not matter.
    fn run(&self, case: &Case) -> String {
        let (name, arguments, _) = case;
        let text = self.with_fixtures(&arguments.replace("DIR", &self.home().display().to_string()));
        let arguments = brine_yaml::load(&text).unwrap();
        let positional = arguments.as_list().unwrap_or_default().to_vec();
        let args = Args { positional, keyword: arguments.as_map().cloned().unwrap_or_default() };
        let context = self.context();
        let returned = if CASES.contains(case) {
            context.minion.functions.call(&context, name, args)
        } else {
            let context: StateContext = brine_testing::state_context(false, context);
            context.call.minion.states.call(&context, name, args)
        };
        match returned {
            Ok(value) => brine_value::json::to_json(&value),
            Err(error) => error.to_string(),
        }
    }

    /// Creates what the arguments of a case name beside the user's directory.
    fn with_fixtures(&self, arguments: &str) -> String {
        let pathname = |name: &str| self.at(name).display().to_string();
        if arguments.contains("REPO") && !self.at("repo").exists() {
            let (repo, identity) = (pathname("repo"), ["-c", "user.name=ada", "-c", "user.email=ada@example.com"]);
            for words in [&["init", "--quiet", &repo][..], &["-C", &repo, "commit", "--quiet", "--allow-empty", "-mx"]]
            {
                let output = std::process::Command::new("git").args(identity).args(words).output().unwrap();
                assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        if ["KEY", "CERT"].iter().any(|name| arguments.contains(name)) && !self.at("cert").exists() {
            let (key, cert) = (pathname("key"), pathname("cert"));
            let call = |name: &str, keyword| {
                let context = self.context();
                context.minion.functions.call(&context, name, Args { positional: Vec::new(), keyword }).unwrap()
            };
            call("x509.create_private_key", map! {"algo" => "ed25519", "path" => key.as_str()});
            let certificate = map! {"signing_private_key" => key.as_str(), "CN" => "x", "path" => cert.as_str()};
            call("x509.create_certificate", certificate);
        }
        let url = || {
            static PORT: OnceLock<u16> = OnceLock::new();
            let port = PORT.get_or_init(|| brine_testing::web::server(|_| ("200 OK", "text/plain", "page".into())));
            format!("http://127.0.0.1:{port}/")
        };
        let text = arguments
            .replace("REPO", &pathname("repo"))
            .replace("KEY", &pathname("key"))
            .replace("CERT", &pathname("cert"));
        if text.contains("URL") { text.replace("URL", &url()) } else { text }
    }

    /// Puts a link of nobody, or for `Hard` a hard link, at a name.
    fn plant(&self, name: &str, link: Link) {
        let path = self.home().join(name);
        _ = fs::remove_dir_all(&path);
        _ = fs::remove_file(&path);
        let target = match link {
            Link::Hard => {
                _ = fs::hard_link(self.at("root/victim"), &path);
                return;
            }
            Link::Victim => "root/victim",
            Link::Missing => "root/new",
            Link::Directory => "root",
        };
        if symlink(self.at(target), &path).is_ok() {
            _ = lchown(&path, Some(NOBODY), Some(NOBODY));
        }
    }

    /// Returns what has changed in root's files, or has been disclosed. A hard link counts as a name of the victim.
    fn harm(&self) -> Option<String> {
        let root = self.at("root");
        let status = |path: &Path| fs::symlink_metadata(path).map(|s| (s.uid(), s.gid(), s.mode() & 0o7777)).ok();
        if fs::read(root.join("victim")).ok().as_deref() != Some(b"secret\n") {
            return Some("the content of root's file".into());
        }
        if status(&root.join("victim")) != Some((0, 0, 0o600)) || status(&root) != Some((0, 0, 0o700)) {
            return Some("the attributes of root's file or directory".into());
        }
        let deep = root.join("deep/file");
        if fs::read(&deep).ok().as_deref() != Some(b"secret\n") || status(&deep).is_none_or(|status| status.0 != 0) {
            return Some("a file in root's directory".into());
        }
        let names: BTreeSet<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        if names.iter().ne(["deep", "victim"].iter()) {
            return Some(format!("the names in root's directory: {names:?}"));
        }
        // What root reads in its own files is not handed to others.
        let read = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten();
        let below = ["d", "new"].map(|name| self.home().join(name)).into_iter().filter(|path| !path.is_symlink());
        for entry in read(self.home()).chain(below.flat_map(read)) {
            let (path, Ok(status)) = (entry.path(), entry.metadata()) else { continue };
            let is_open = status.uid() == NOBODY || status.mode() & 0o044 != 0;
            if status.is_file() && status.nlink() == 1 && is_open {
                let text = fs::read(&path).unwrap_or_default();
                if text.windows(6).any(|part| part == b"secret") {
                    return Some(format!("{} is disclosed", path.display()));
                }
            }
        }
        None
    }

    fn results(&self, expected: &str) -> String {
        let description = |name: &str| match fs::symlink_metadata(self.home().join(name)) {
            Ok(status) => {
                let user = if status.uid() == NOBODY { "nobody".to_owned() } else { status.uid().to_string() };
                format!("{name} {} {:o}", user.replace('0', "root"), status.mode() & 0o7777)
            }
            Err(_) => format!("{name} is missing"),
        };
        let names = expected.split(", ").map(|result| result.split(' ').next().unwrap());
        names.map(description).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Debug, Clone, Copy)]
enum Link {
    Victim,
    Missing,
    Directory,
    Hard,
}

const LINKS: [Link; 4] = [Link::Victim, Link::Missing, Link::Directory, Link::Hard];

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn all_cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(STATE_CASES)
}

/// Returns the names in the user's directory that a call uses, except random ones.
fn used_names(case: &Case) -> BTreeSet<String> {
    let once = || {
        let beside = Beside::new();
        let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        watch.add_watch(&beside.home(), AddWatchFlags::IN_ALL_EVENTS).unwrap();
        beside.run(case);
        let mut names = BTreeSet::new();
        while let Ok(events) = watch.read_events() {
            names.extend(events.into_iter().filter_map(|event| event.name?.into_string().ok()));
        }
        names
    };
    once().intersection(&once()).cloned().collect()
}

fn covered<C: 'static>(functions: impl Iterator<Item = &'static Function<C>>, cases: &[Case], groups: &[Group]) {
    let others: Vec<&str> = groups.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert!(groups.iter().all(|(reason, _)| reason.ends_with('.')));
    let names: BTreeSet<String> = functions.map(Function::full_name).collect();
    let is_other = |name: &str| {
        let module = name.split('.').next().unwrap();
        others.iter().any(|other| *other == name || other.strip_suffix(".*") == Some(module))
    };
    let has_case = |name: &str| cases.iter().any(|case| case.0 == name);
    let missing: Vec<&String> = names.iter().filter(|name| !has_case(name) && !is_other(name)).collect();
    assert!(
        missing.is_empty(),
        "{missing:?} have no case: add a call to CASES if it writes where its caller says, otherwise its name to OTHERS"
    );
    for (name, ..) in cases {
        assert!(names.contains(*name), "there is no function {name}");
    }
    for other in others.iter().filter(|other| !other.ends_with(".*")) {
        assert!(names.contains(*other), "there is no function {other}");
        assert!(!has_case(other), "{other} is in both lists");
    }
}

#[test]
fn each_function_has_a_case_or_writes_no_file_of_a_user() {
    let context =
        brine_testing::context_of(brine_testing::minion(&MODULES, &[], Arc::new(brine_testing::Alone::default())));
    covered(context.minion.functions.built_in(), CASES, OTHERS);
    covered(context.minion.states.built_in(), STATE_CASES, STATE_OTHERS);
}

#[test]
fn results_have_the_owner_and_mode_of_salt() {
    if !geteuid().is_root() {
        return;
    }
    let mut wrong = Vec::new();
    for case in all_cases().filter(|case| !case.2.is_empty()) {
        let beside = Beside::new();
        set_mode(&beside.home().join("f"), 0o4755);
        let returned = beside.run(case);
        let results = beside.results(case.2);
        if results != case.2 {
            wrong.push(format!("{}: expected {}, got {results}: {returned:.200}", case.0, case.2));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn planted_links_redirect_nothing() {
    if !geteuid().is_root() {
        return;
    }
    let mut wrong = Vec::new();
    for case in all_cases() {
        let names = used_names(case);
        for (name, link) in names.iter().flat_map(|name| LINKS.map(|link| (name, link))) {
            let beside = Beside::new();
            beside.plant(name, link);
            let returned = beside.run(case);
            if let Some(harm) = beside.harm() {
                wrong.push(format!("{} with {link:?} at {name}: {harm}: {returned:.200}", case.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn races_redirect_nothing() {
    if !geteuid().is_root() {
        return;
    }
    let mut wrong = Vec::new();
    for case in all_cases() {
        let beside = Beside::new();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let home = beside.home();
                for round in 0.. {
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                    for name in ["f", "d"] {
                        let spare = format!("spare-{name}");
                        match round % 6 {
                            0 => beside.plant(&spare, Link::Victim),
                            1 => beside.plant(&spare, Link::Missing),
                            2 => beside.plant(&spare, Link::Directory),
                            3 => beside.plant(&spare, Link::Hard),
                            4 => {
                                _ = fs::remove_file(home.join(&spare));
                                _ = fs::create_dir(home.join(&spare));
                                _ = fs::write(home.join(&spare).join("victim"), "own\n");
                                _ = chown(home.join(&spare), Some(NOBODY), Some(NOBODY));
                                _ = fs::remove_file(home.join(name));
                            }
                            _ => {
                                _ = fs::remove_dir_all(home.join(&spare));
                                _ = fs::remove_file(home.join(&spare));
                                _ = fs::write(home.join(&spare), "aaa\nbbb\n");
                                _ = lchown(home.join(&spare), Some(NOBODY), Some(NOBODY));
                                _ = fs::remove_dir_all(home.join(name));
                            }
                        }
                        _ = fs::rename(home.join(&spare), home.join(name));
                    }
                }
            });
            for _ in 0..12 {
                beside.run(case);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        wrong.extend(beside.harm().map(|harm| format!("{}: {harm}", case.0)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
