use brine_value::list;

use super::super::tests::wrong;
use super::*;

fn of(path: &Path, options: Map) -> Directories {
    let path = path.to_string_lossy().into_owned();
    let config = list![map! {"directories" => map! {path => options}}];
    directories(&Settings::read("watchdog", &config).unwrap()).unwrap()
}

// The expected events are those of Salt 3008.5 with watchdog 6.0 for the same commands.
#[test]
fn changes_are_those_of_the_python_package() {
    let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, out) = (directory.path(), outside.path());
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::write(out.join("in"), "").unwrap();
    let mut beacon = of(root, map! {});
    assert!(beacon.events().unwrap().is_empty());
    let mut after = |action: &dyn Fn()| {
        action();
        let text = |event: &Map, name: &str| event.get(name).unwrap().to_string();
        let path = |event: &Map| text(event, "path").replace(&*root.to_string_lossy(), ".");
        let events = beacon.events().unwrap();
        assert!(events.iter().all(|event| text(event, "tag") == "watchdog"));
        events.iter().map(|event| format!("{} {}", path(event), text(event, "change"))).collect::<Vec<_>>().join(", ")
    };
    let chmod = || {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(root.join("a"), PermissionsExt::from_mode(0o600)).unwrap();
    };
    let append = |text: &str| {
        use std::io::Write;
        std::fs::File::options().append(true).open(root.join("a")).unwrap().write_all(text.as_bytes()).unwrap();
    };
    let rename = |from: PathBuf, to: PathBuf| std::fs::rename(from, to).unwrap();
    for (action, expected) in [
        (
            &(|| drop(std::fs::File::create(root.join("a")).unwrap())) as &dyn Fn(),
            "./a created, . modified, . modified",
        ),
        (&|| append("x"), "./a modified, . modified"),
        (&chmod, ""),
        (&|| rename(root.join("a"), root.join("b")), "./a moved, . modified"),
        (&|| rename(root.join("b"), out.join("b")), "./b deleted, . modified"),
        (&|| rename(out.join("in"), root.join("in")), "./in created, . modified"),
        (&|| std::fs::remove_file(root.join("in")).unwrap(), "./in deleted, . modified"),
        (&|| std::fs::create_dir(root.join("new")).unwrap(), "./new created, . modified"),
        (&|| drop(std::fs::File::create(root.join("sub/x")).unwrap()), ""),
        (&|| std::fs::remove_dir(root.join("new")).unwrap(), "./new deleted, . modified"),
        (&|| rename(root.join("sub"), root.join("sub2")), "./sub moved, . modified"),
        (&|| std::fs::remove_dir_all(root).unwrap(), "./sub2 deleted, . modified, . deleted"),
        // A new directory of the name is watched again.
        (&|| std::fs::create_dir(root).unwrap(), ""),
        (&|| std::fs::create_dir(root.join("d")).unwrap(), "./d created, . modified"),
    ] {
        assert_eq!(after(action), expected);
    }
}

#[test]
fn the_mask_selects_changes() {
    let directory = tempfile::tempdir().unwrap();
    let mut beacon = of(directory.path(), map! {"mask" => list!["delete"]});
    assert!(beacon.events().unwrap().is_empty());
    std::fs::write(directory.path().join("a"), "x").unwrap();
    std::fs::remove_file(directory.path().join("a")).unwrap();
    let events = beacon.events().unwrap();
    assert_eq!((events.len(), events[0].get("change")), (1, Some(&"deleted".into())));
}

#[test]
fn options_are_checked() {
    let of = |options: Value| list![map! {"directories" => map! {"/x" => options}}];
    for (config, error) in [
        (list![], "option 'directories' is missing"),
        (list![map! {"directories" => list!["/x"]}], "option 'directories': expected a mapping, got list"),
        (of(list!["create"]), "/x: expected a mapping of options, got ['create']"),
        (of(map! {"mask" => "create"}.into()), "/x: option 'mask': expected a list, got create"),
        (of(map! {"mask" => list!["x"]}.into()), "/x: mask 'x' is none of create, modify, delete, move"),
    ] {
        assert_eq!(wrong("watchdog", &config), error);
    }
}
