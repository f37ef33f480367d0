use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

/// Describes the result of a resolution: directory, name and path, or the error.
fn described(result: io::Result<Entry>) -> String {
    match result {
        Ok(entry) => {
            let directory = fstat(&entry.directory).unwrap();
            format!("{}:{} {:?} {}", directory.st_dev, directory.st_ino, entry.name, entry.path.display())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_path_without_links_is_resolved_as_by_the_walk() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/b/file"), "x").unwrap();
    symlink("b", root.join("a/link")).unwrap();
    symlink("file", root.join("a/b/to_file")).unwrap();
    let names =
        ["a", "a/b", "a/b/file", "a/b/./file", "a//b/file/", "a/b/missing", "a/missing/x", "a/b/file/x", "a/link"];
    let further = ["a/link/file", "a/link/missing", "a/b/to_file", "a/b/..", "a/b/../b/file", "", ".", "/"];
    let mut direct = 0;
    for name in names.into_iter().chain(further) {
        let whole = root.join(name);
        for path in [whole.as_path(), Path::new(name)] {
            for links in [Links::Follow, Links::Keep] {
                let walked = described(Entry::walk(path, links));
                assert_eq!(described(Entry::resolve(path, links)), walked, "{} {links:?}", path.display());
                direct += usize::from(Entry::without_links(path, links).is_some());
            }
        }
    }
    assert!(direct > 10, "{direct}");
    let odd = root.join(OsStr::from_bytes(b"\xff"));
    assert!(Entry::without_links(&odd, Links::Follow).is_some());
    for path in [root.join("a/link/file"), root.join("a/../a"), PathBuf::from("/proc/self/fd/0")] {
        assert!(Entry::without_links(&path, Links::Follow).is_none(), "{}", path.display());
    }
}
