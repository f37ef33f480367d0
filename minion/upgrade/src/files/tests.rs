use super::*;

fn program() -> (tempfile::TempDir, Program) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine");
    std::fs::write(&path, "old").unwrap();
    (directory, Program::at(path))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn an_exchange_keeps_the_old_program_and_can_be_reversed() {
    let (_directory, program) = program();
    program.write_new(|file| file.write_all(b"new").map_err(UpgradeError::at("writing"))).unwrap();
    assert_eq!(program.new_path().metadata().unwrap().mode() & 0o777, 0o755);
    program.exchange().unwrap();
    assert_eq!((read(program.path()), read(program.previous_path())), ("new".into(), "old".into()));
    assert!(!program.new_path().exists());
    program.take_previous().unwrap();
    program.exchange().unwrap();
    assert_eq!((read(program.path()), read(program.previous_path())), ("old".into(), "new".into()));
}

#[test]
fn a_failed_write_leaves_nothing() {
    let (directory, program) = program();
    let failed =
        program.write_new(|file| Counted::new(file, 2).write_all(b"new").map_err(UpgradeError::at("fetching")));
    assert_eq!(failed.unwrap_err().to_string(), "fetching failed: it is too large for a program");
    assert_eq!(directory.path().read_dir().unwrap().count(), 1);
}

#[test]
fn only_drafts_are_removed() {
    let (directory, program) = program();
    let draft = ".brine.new.0123456789abcdef.tmp";
    for name in [draft, "brine.new", ".brine.new.tmp", ".brine.0123456789abcdef.tmp", "brine.newer"] {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    program.remove_new();
    let mut left: Vec<_> =
        directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [".brine.0123456789abcdef.tmp", ".brine.new.tmp", "brine", "brine.newer"]);
}

#[test]
fn directories_of_others_and_planted_links_are_not_used() {
    let (directory, program) = program();
    program.check_trust().unwrap();
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(shared.join("brine"), "old").unwrap();
    assert!(matches!(Program::at(shared.join("brine")).check_trust(), Err(UpgradeError::Untrusted(_))));
    // A link in the place of the new program is replaced, its target stays.
    let target = directory.path().join("target");
    std::fs::write(&target, "mine").unwrap();
    std::os::unix::fs::symlink(&target, program.new_path()).unwrap();
    program.write_new(|file| file.write_all(b"new").map_err(UpgradeError::at("writing"))).unwrap();
    assert_eq!((read(&target), read(program.new_path())), ("mine".into(), "new".into()));
    assert!(!program.new_path().is_symlink());
}
