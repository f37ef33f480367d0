//! `cp.push` and `cp.push_dir`: send files of this host to the master, in chunks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_fileserver::BUFFER_SIZE;
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Value, map};

use crate::file;

/// Execution functions of `cp`.
pub static FUNCTIONS: &[Function<Context>] = registry!("cp", [push, push_dir]);

/// Send a file to the master, which must have `file_recv: True` and stores it below `cachedir/minions/<id>/files`.
/// Returns false if the path is not absolute, is not a file, or the master refuses it, such as for its size
/// (`file_recv_max_size`).
///
/// `keep_symlinks` sends a link under its own name instead of its target's, `upload_path` is the path of the file on
/// the master, and `remove_source` removes the file on this host once the master has stored it.
///
/// CLI Example:
///
///     salt '*' cp.push /etc/fstab
///     salt '*' cp.push /tmp/report upload_path=/reports/today remove_source=True
#[function]
pub fn push(
    context: &Context,
    path: String,
    #[default(false)] keep_symlinks: bool,
    upload_path: Option<String>,
    #[default(false)] remove_source: bool,
) -> CallResult {
    if !is_plain(&path) {
        return Ok(Value::Bool(false));
    }
    let real = if keep_symlinks { Ok(PathBuf::from(&path)) } else { fs::canonicalize(&path) };
    let Ok(real) = real else { return Ok(Value::Bool(false)) };
    send(context, &real, upload_path.as_deref(), remove_source).map(Value::from)
}

/// Send the files of a directory, with those of all directories below it, to the master. `glob` selects files by
/// their names, and `upload_path` names the directory on the master. Returns false if there is no such file, and
/// at the first file that the master refuses.
///
/// CLI Example:
///
///     salt '*' cp.push_dir /etc/modprobe.d glob='*.conf'
///     salt '*' cp.push_dir /usr/lib/mysql upload_path=/newmysql/path
#[function]
pub fn push_dir(context: &Context, path: String, glob: Option<String>, upload_path: Option<String>) -> CallResult {
    if !is_plain(&path) {
        return Ok(Value::Bool(false));
    }
    let Ok(root) = fs::canonicalize(&path) else { return Ok(Value::Bool(false)) };
    if root.is_file() {
        return send(context, &root, upload_path.as_deref(), false).map(Value::from);
    }
    let is_selected = |path: &Path| {
        glob.as_ref().is_none_or(|glob| path.file_name().is_some_and(|name| fnmatch(glob, &name.to_string_lossy())))
    };
    let files = files_below(&root).map_err(|error| file::at(&path, &error))?;
    let mut sent = false;
    for found in files.iter().filter(|found| is_selected(found)) {
        let below = found.strip_prefix(&root).unwrap_or(found);
        let upload = upload_path.as_ref().filter(|upload| !upload.is_empty());
        let upload = upload.map(|upload| format!("/{}/{}", upload.trim_matches('/'), below.display()));
        let real = fs::canonicalize(found).ok();
        sent = match real {
            Some(real) => send(context, &real, upload.as_deref(), false)?,
            None => false,
        };
        if !sent {
            break;
        }
    }
    Ok(sent.into())
}

/// Whether a path may be sent. As in Salt, it must be absolute and without `../`.
fn is_plain(path: &str) -> bool {
    path.starts_with('/') && !path.contains("../")
}

/// Sends a file, and returns whether the master received all of it.
fn send(context: &Context, path: &Path, upload_path: Option<&str>, remove_source: bool) -> Result<bool, CallError> {
    let name = match upload_path.filter(|upload| !upload.is_empty()) {
        Some(upload) if upload.contains("../") => return Ok(false),
        Some(upload) => upload,
        None => path.to_str().ok_or_else(|| {
            CallError::Execution(format!(
                "sending {} failed: its path is not UTF-8: name another by upload_path",
                path.display()
            ))
        })?,
    };
    if !path.is_file() {
        return Ok(false);
    }
    let shown = path.display().to_string();
    let at = |error: &io::Error| file::at(&shown, error);
    // The file may have become a named pipe since it was checked; opening it must not block the job.
    let file =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(|error| at(&error))?;
    let metadata = file.metadata().map_err(|error| at(&error))?;
    if !metadata.is_file() || !transfer(context, file, &components(name), metadata.len(), &shown)? {
        return Ok(false);
    }
    if remove_source && let Err(error) = fs::remove_file(path) {
        tracing::error!(path = shown, %error, "removing a file that was sent to the master failed");
        return Ok(false);
    }
    Ok(true)
}

fn transfer(context: &Context, mut file: File, name: &[String], size: u64, shown: &str) -> Result<bool, CallError> {
    let mut loc = 0;
    loop {
        if context.job.cancel.is_cancelled() {
            return Err(CallError::Execution(format!("sending {shown} failed: the job was ended")));
        }
        let mut piece = Vec::new();
        file.by_ref().take(BUFFER_SIZE).read_to_end(&mut piece).map_err(|error| file::at(shown, &error))?;
        // An empty file is sent as one empty chunk.
        if piece.is_empty() && loc > 0 {
            return Ok(true);
        }
        let is_last = (piece.len() as u64) < BUFFER_SIZE;
        let sent = piece.len() as u64;
        let load = map! {"cmd" => "_file_recv", "path" => name.to_vec(), "size" => size, "loc" => loc, "data" => piece};
        if !context.minion.upstream.ask(load).map_err(CallError::Execution)?.is_truthy() {
            tracing::error!(
                path = shown,
                "sending a file failed: the master refuses it: set file_recv there, and a file_recv_max_size above its size"
            );
            return Ok(false);
        }
        loc += sent;
        if is_last {
            return Ok(true);
        }
    }
}

/// Returns the components of a path, with `.` and `..` resolved lexically.
fn components(path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| last != "..") => _ = names.pop(),
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// Returns all files below a directory, sorted in each directory; links to directories are not followed.
fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut directories, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // As in Salt, a directory that cannot be read has no files.
            Err(error) if directory == root && error.kind() != io::ErrorKind::NotADirectory => return Err(error),
            Err(_) => continue,
        };
        let mut files = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else if !path.is_dir() {
                files.push(path);
            }
        }
        files.sort();
        found.append(&mut files);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
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
}
