use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn write_atomic_sets_the_mode_and_leaves_no_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    for (content, expected) in [("one", 0o400), ("two", 0o644), ("three", 0o666)] {
        write_atomic(&path, content.as_bytes(), expected).unwrap();
        assert_eq!((read_to_string(&path).unwrap().as_str(), mode(&path)), (content, expected));
    }
    assert_eq!(names(directory.path()), ["key.pem"]);
}

#[test]
fn only_a_file_that_does_not_exist_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    assert!(create_soon(&path, b"one", 0o600).unwrap());
    assert!(!create_soon(&path, b"two", 0o600).unwrap());
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"one".to_vec(), 0o600));
    // Links are not written through.
    let (link, target) = (directory.path().join("link"), directory.path().join("target"));
    symlink(&target, &link).unwrap();
    assert!(!create_soon(&link, b"one", 0o600).unwrap() && !target.exists());
    assert!(create_soon(directory.path().join("none/file"), b"one", 0o600).is_err());
}

#[test]
fn rewrite_keeps_mode_and_links() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("conf"), directory.path().join("link"));
    rewrite(&path, b"one", 0o640).unwrap();
    symlink("conf", &link).unwrap();
    rewrite(&link, b"two", 0o600).unwrap();
    assert_eq!((read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o640));
    assert!(link.is_symlink());
}

#[test]
fn a_link_is_replaced_and_not_written_through() {
    let directory = tempfile::tempdir().unwrap();
    let (victim, path) = (directory.path().join("victim"), directory.path().join("link"));
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, &path).unwrap();
    write_atomic(&path, b"new", 0o600).unwrap();
    assert_eq!(read_to_string(&victim).unwrap(), "untouched");
    assert!(path.symlink_metadata().unwrap().is_file());
}

#[test]
fn write_new_never_replaces_an_existing_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    assert!(write_new(&path, b"first", 0o400).unwrap());
    assert!(!write_new(&path, b"second", 0o400).unwrap());
    assert_eq!(read_to_string(&path).unwrap(), "first");
    assert_eq!(names(directory.path()), ["key"]);
}

#[test]
fn errors_state_operation_path_cause_and_hint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none/file");
    let message = |error: FileError| error.to_string().replace(&*directory.path().to_string_lossy(), "DIR");
    insta::assert_snapshot!(message(read_to_string(&path).unwrap_err()), @"cannot read DIR/none/file: No such file or directory (os error 2); create it, or correct the path in the configuration");
    insta::assert_snapshot!(message(write_atomic(&path, b"", 0o600).unwrap_err()), @"cannot write DIR/none/file: No such file or directory (os error 2); create it, or correct the path in the configuration");
    assert_eq!(read_if_exists(&path).unwrap(), None);
    assert!(write_atomic(directory.path().join(".."), b"", 0o600).is_err());
}

#[test]
fn create_private_dir_restricts_an_existing_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (made, open) = (directory.path().join("a/b"), directory.path().join("open"));
    create_private_dir(&made).unwrap();
    assert_eq!(mode(&made), 0o700);
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    create_private_dir(&open).unwrap();
    assert_eq!(mode(&open), 0o700);
    fs::write(directory.path().join("file"), "").unwrap();
    assert!(create_private_dir(directory.path().join("file")).is_err());
}

#[test]
fn joined_paths_stay_within_their_root() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/file"), "").unwrap();
    fs::write(directory.path().join("secret"), "").unwrap();
    symlink("sub/file", root.join("inside")).unwrap();
    symlink("sub", root.join("inside_dir")).unwrap();
    symlink("../secret", root.join("outside")).unwrap();
    symlink("..", root.join("outside_dir")).unwrap();
    symlink("/nowhere/at/all", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let real = root.canonicalize().unwrap();
    for (relative, expected) in [
        ("sub/file", Some("sub/file")),
        ("./sub//file", Some("sub/file")),
        ("inside", Some("sub/file")),
        ("inside_dir/file", Some("sub/file")),
        ("new", Some("new")),
        ("sub/new/deeper", Some("sub/new/deeper")),
        ("inside_dir/new", Some("sub/new")),
        ("..file", Some("..file")),
        ("", None),
        (".", None),
        ("..", None),
        ("../secret", None),
        ("sub/../sub/file", None),
        ("/etc/passwd", None),
        ("sub/file\0", None),
        ("outside", None),
        ("outside_dir/secret", None),
        ("outside_dir/new", None),
        ("dangling", None),
        ("dangling/new", None),
        ("loop", None),
        ("sub/file/below", None),
    ] {
        assert_eq!(path_within(&root, relative), expected.map(|path| real.join(path)), "{relative:?}");
    }
    assert_eq!(path_within(&root.join("missing"), "file"), None);
}

proptest::proptest! {
    #[test]
    fn relative_paths_do_not_leave_the_directory(text in "[./a\\x00]{0,12}") {
        if let Some(path) = path_within(&std::env::temp_dir(), &text) {
            proptest::prop_assert!(path.starts_with(std::env::temp_dir().canonicalize().unwrap()));
            proptest::prop_assert!(!path.components().any(|part| part == Component::ParentDir));
        }
    }
}

#[test]
fn a_file_is_read_whole_whatever_size_is_expected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for length in [0_u64, 1, 10, 5000] {
        let content: Vec<u8> = (0..length).map(|n| n as u8).collect();
        fs::write(&path, &content).unwrap();
        for expected in [0, 1, length.saturating_sub(1), length, length + 1, ONE_READ, u64::MAX] {
            let read = read_sized(&mut File::open(&path).unwrap(), expected).unwrap();
            assert_eq!(read, content, "{length} {expected}");
        }
    }
    // Its size is 0 in its status.
    assert!(!read_sized(&mut File::open("/proc/self/stat").unwrap(), 0).unwrap().is_empty());
    assert!(!read_sized(&mut File::open("/proc/self/stat").unwrap(), 5).unwrap().is_empty());
}
