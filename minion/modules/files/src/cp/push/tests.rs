use std::collections::BTreeMap;
use std::sync::Arc;

use brine_function::Args;
use brine_value::Map;
use parking_lot::Mutex;

use super::*;
use crate::testing;

/// A fake master that accepts files up to a size.
#[derive(Default)]
struct Master {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    limit: Option<usize>,
}

impl Master {
    fn receive(&self, load: &Map) -> Value {
        let names = load.get("path").and_then(Value::as_list).unwrap();
        let path = names.iter().map(ToString::to_string).collect::<Vec<_>>().join("/");
        let mut files = self.files.lock();
        let content = files.entry(path).or_default();
        assert_eq!(load.get("loc").and_then(Value::as_i64), Some(content.len() as i64));
        content.extend_from_slice(load.get("data").and_then(Value::as_bytes).unwrap());
        self.limit.is_none_or(|limit| content.len() <= limit).into()
    }
}

fn call(master: &Arc<Master>, fun: &str, path: &str, keyword: Map) -> Result<Value, CallError> {
    let master = Arc::clone(master);
    let upstream = Arc::new(testing::Answering(move |load: Map| Ok(master.receive(&load))));
    let context = testing::context_of(testing::minion_with(&[], upstream));
    context.call(fun, Args { positional: vec![path.into()], keyword })
}

#[test]
fn paths_are_normalized_for_the_master() {
    for (path, names) in [
        ("/etc/x", &["etc", "x"][..]),
        ("//etc/./a//b/../x/", &["etc", "a", "x"]),
        ("..", &[".."]),
        ("a/../..", &[".."]),
        ("", &[]),
    ] {
        assert_eq!(components(path), names, "{path}");
    }
}

#[test]
fn files_are_sent_in_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let piece = BUFFER_SIZE as usize;
    for size in [0, 1, piece - 1, piece, piece + 1, 2 * piece] {
        let master = Arc::new(Master::default());
        let path = root.join("file");
        let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &content).unwrap();
        let name = path.to_str().unwrap();
        assert_eq!(call(&master, "cp.push", name, Map::new()), Ok(true.into()), "{size}");
        assert_eq!(master.files.lock().get(name.trim_start_matches('/')), Some(&content), "{size}");
    }
}

#[test]
fn push_follows_its_arguments() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let relative = |name: &str| at(name).trim_start_matches('/').to_owned();
    fs::write(root.join("file"), "x").unwrap();
    std::os::unix::fs::symlink("file", root.join("link")).unwrap();
    std::os::unix::fs::symlink("none", root.join("broken")).unwrap();
    for (path, keyword, sent) in [
        (at("file"), map! {}, Some(relative("file"))),
        (at("link"), map! {}, Some(relative("file"))),
        (at("link"), map! {"keep_symlinks" => true}, Some(relative("link"))),
        (at("file"), map! {"upload_path" => "/new/./name"}, Some("new/name".to_owned())),
        (at("file"), map! {"upload_path" => "/new/../name"}, None),
        (at("broken"), map! {}, None),
        (at("none"), map! {}, None),
        (at(""), map! {}, None),
        ("file".into(), map! {}, None),
        (at("deep/../file"), map! {}, None),
    ] {
        let master = Arc::new(Master::default());
        let returned = call(&master, "cp.push", &path, keyword.clone());
        assert_eq!(returned, Ok(sent.is_some().into()), "{path} {keyword:?}");
        let files: Vec<String> = master.files.lock().keys().cloned().collect();
        assert_eq!(files, Vec::from_iter(sent), "{path} {keyword:?}");
    }
    for (limit, removed) in [(0, false), (9, true)] {
        let master = Arc::new(Master { limit: Some(limit), ..Master::default() });
        let returned = call(&master, "cp.push", &at("file"), map! {"remove_source" => true});
        assert_eq!((returned, root.join("file").exists()), (Ok(removed.into()), !removed));
    }
}

#[test]
fn push_dir_sends_the_selected_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir(root.join("deep")).unwrap();
    for name in ["a.conf", "b.txt", "deep/c.conf"] {
        fs::write(root.join(name), "x").unwrap();
    }
    let (top, below) = (root.to_str().unwrap(), root.to_str().unwrap().trim_start_matches('/'));
    let own = |name: &str| format!("{below}/{name}");
    let file = format!("{top}/a.conf");
    for (path, keyword, limit, returned, sent) in [
        (top, map! {}, 9, true, vec![own("a.conf"), own("b.txt"), own("deep/c.conf")]),
        (top, map! {"glob" => "*.conf"}, 9, true, vec![own("a.conf"), own("deep/c.conf")]),
        (top, map! {"glob" => "*.none"}, 9, false, vec![]),
        (
            top,
            map! {"glob" => "*.conf", "upload_path" => "/up/"},
            9,
            true,
            vec!["up/a.conf".into(), "up/deep/c.conf".into()],
        ),
        (top, map! {}, 0, false, vec![own("a.conf")]),
        (&file, map! {"upload_path" => "one"}, 9, true, vec!["one".into()]),
        ("/nonexistent", map! {}, 9, false, vec![]),
        ("etc", map! {}, 9, false, vec![]),
    ] {
        let master = Arc::new(Master { limit: Some(limit), ..Master::default() });
        assert_eq!(call(&master, "cp.push_dir", path, keyword.clone()), Ok(returned.into()), "{path} {keyword:?}");
        let files: Vec<String> = master.files.lock().keys().cloned().collect();
        assert_eq!(files, sent, "{path} {keyword:?}");
    }
}

#[test]
fn push_without_a_master_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "x").unwrap();
    let error = testing::context(&[]).call("cp.push", Args::positional(vec![path.display().to_string().into()]));
    assert!(error.unwrap_err().to_string().contains("the command _file_recv failed: no master is configured"));
}
