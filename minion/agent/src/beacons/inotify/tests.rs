use brine_value::list;

use super::super::tests::wrong;
use super::*;

/// Returns the events of each action, with paths relative to the directory.
fn polled(options: Map, doings: &[&dyn Fn(&Path)]) -> Vec<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    let root = directory.path().display().to_string();
    let options: Value = options.into();
    let options = brine_value::json::from_json(&brine_value::json::to_json(&options).replace("ROOT", &root)).unwrap();
    let mut files = Files {
        coalesce: true,
        files: vec![file(&format!("{root}/"), &options).unwrap()],
        notify: None,
        watches: HashMap::new(),
        found: [HashSet::new(), HashSet::new()],
    };
    assert!(files.events().unwrap().is_empty());
    let one = |event: Map| {
        let text = |name: &str| event.get(name).unwrap().to_string().replace(&root, "");
        format!("{} {} {}", text("tag"), text("path"), text("change"))
    };
    let after = |doing: &&dyn Fn(&Path)| {
        doing(directory.path());
        files.events().unwrap().into_iter().map(one).collect()
    };
    doings.iter().map(after).collect()
}

fn write(path: &'static str) -> impl Fn(&Path) {
    move |root: &Path| std::fs::write(root.join(path), "x").unwrap()
}

fn make(path: &'static str) -> impl Fn(&Path) {
    move |root: &Path| std::fs::create_dir(root.join(path)).unwrap()
}

#[test]
fn changes_are_reported_with_path_and_kind() {
    let report = polled(
        map! {},
        &[&write("a"), &|root| std::fs::remove_file(root.join("a")).unwrap(), &make("d"), &write("sub/x")],
    );
    assert_eq!(
        report,
        [vec![" /a IN_CREATE", " /a IN_MODIFY"], vec![" /a IN_DELETE"], vec![" /d IN_CREATE|IN_ISDIR"], vec![]]
    );
}

#[test]
fn subdirectories_and_new_ones_are_watched_on_request() {
    let mask = || list!["close_write"];
    let below = map! {"mask" => mask(), "recurse" => true};
    assert_eq!(
        polled(below, &[&write("sub/x"), &make("new"), &write("new/x")]),
        [vec!["/sub /sub/x IN_CLOSE_WRITE"], vec![], vec![]]
    );
    let added = map! {"mask" => mask(), "recurse" => true, "auto_add" => true};
    assert_eq!(polled(added, &[&make("new"), &write("new/x")]), [vec![], vec!["/new /new/x IN_CLOSE_WRITE"]]);
}

#[test]
fn a_new_directory_is_reported_with_what_it_already_holds() {
    let tree = |root: &Path| {
        std::fs::create_dir_all(root.join("n/a/b")).unwrap();
        for path in ["n/f", "n/a/g", "n/a/b/h"] {
            std::fs::write(root.join(path), "x").unwrap();
        }
        std::os::unix::fs::symlink("/", root.join("n/l")).unwrap();
    };
    let later = |root: &Path| {
        std::fs::write(root.join("n/a/b/new"), "x").unwrap();
        std::fs::remove_file(root.join("n/f")).unwrap();
        std::fs::create_dir_all(root.join("n/c/d")).unwrap();
    };
    let again = |root: &Path| std::fs::write(root.join("n/f"), "x").unwrap();
    let options =
        |mask: Value| map! {"mask" => mask, "recurse" => true, "auto_add" => true, "exclude" => list!["ROOT/n/a/b/h"]};
    assert_eq!(
        polled(options(list!["create", "delete"]), &[&tree, &later, &again]),
        [
            vec![
                " /n IN_CREATE|IN_ISDIR",
                "/n /n/a IN_CREATE|IN_ISDIR",
                "/n/a /n/a/b IN_CREATE|IN_ISDIR",
                "/n/a /n/a/g IN_CREATE",
                "/n /n/f IN_CREATE",
                "/n /n/l IN_CREATE",
            ],
            vec![
                "/n/a/b /n/a/b/new IN_CREATE",
                "/n /n/f IN_DELETE",
                "/n /n/c IN_CREATE|IN_ISDIR",
                "/n/c /n/c/d IN_CREATE|IN_ISDIR",
            ],
            vec!["/n /n/f IN_CREATE"],
        ]
    );
    // Creations are not reported unless the mask has them, but all directories are watched.
    assert_eq!(
        polled(options(list!["close_write"]), &[&tree, &later, &again]),
        [vec![], vec!["/n/a/b /n/a/b/new IN_CLOSE_WRITE"], vec!["/n /n/f IN_CLOSE_WRITE"]]
    );
}

#[test]
fn creations_during_the_listing_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_string_lossy().into_owned();
    let options = map! {"mask" => list!["create", "delete"], "recurse" => true, "auto_add" => true};
    let mut files = Files {
        coalesce: false,
        files: vec![file(&root, &options.into()).unwrap()],
        notify: None,
        watches: HashMap::new(),
        found: [HashSet::new(), HashSet::new()],
    };
    let mut report = files.events().unwrap();
    // As if the directory had been watched, then got its entries, then been listed.
    let path = directory.path().join("n");
    std::fs::create_dir(&path).unwrap();
    files.watch(&path, 0, false);
    std::fs::write(path.join("f"), "").unwrap();
    std::fs::create_dir(path.join("d")).unwrap();
    for _ in 0..2 {
        report.extend(files.events().unwrap());
    }
    let paths: Vec<String> = report.iter().map(|event| event.get("path").unwrap().to_string()).collect();
    assert_eq!(paths, [path.clone(), path.join("d"), path.join("f")].map(|path| path.display().to_string()));
}

#[test]
fn excluded_paths_are_not_reported() {
    let exclude = list!["ROOT/sub", "*.swp", map! {"[0-9]$" => map! {"regex" => true}}];
    let options = map! {"mask" => list!["close_write"], "recurse" => true, "exclude" => exclude};
    let doings: [&dyn Fn(&Path); 4] = [&write("sub/x"), &write("a.swp"), &write("a1"), &write("ok")];
    assert_eq!(polled(options, &doings), [vec![], vec![], vec![], vec![" /ok IN_CLOSE_WRITE"]]);
}

#[test]
fn a_file_that_is_replaced_is_watched_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, "").unwrap();
    let one = file(path.to_str().unwrap(), &map! {"mask" => list!["modify"]}.into()).unwrap();
    let mut files = Files {
        coalesce: false,
        files: vec![one],
        notify: None,
        watches: HashMap::new(),
        found: [HashSet::new(), HashSet::new()],
    };
    let mut changes = || {
        let report = files.events().unwrap();
        report.iter().map(|event| event.get("change").unwrap().to_string()).collect::<Vec<_>>()
    };
    assert!(changes().is_empty());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(changes(), ["IN_IGNORED"]);
    std::fs::write(&path, "").unwrap();
    assert!(changes().is_empty());
    std::fs::write(&path, "new").unwrap();
    assert_eq!(changes(), ["IN_MODIFY"]);
}

#[test]
fn options_are_checked() {
    let files = |options: Map| list![map! {"files" => map! {"/x" => options}}];
    for (config, error) in [
        (list![], "option 'files' is missing"),
        (list![map! {"files" => map! {"x" => map! {}}}], "x: expected an absolute path"),
        (files(map! {"recurse" => "deep"}), "/x: option 'recurse': expected True or False, got deep"),
        (files(map! {"exclude" => list![map! {"(" => map! {"regex" => true}}]}), "/x: exclude '('"),
        (files(map! {"mask" => list!["dance"]}), "/x: mask 'dance' is none of access, "),
    ] {
        let report = wrong("inotify", &config);
        assert!(report.starts_with(error), "{report}");
    }
}
