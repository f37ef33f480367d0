//! `sysfs`: attributes of devices and of the kernel below `/sys`.

pub(crate) mod state;

use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sysfs`.
pub static FUNCTIONS: Functions<Context> = registry!("sysfs", [attr, write, read, target, interfaces]);

const ROOT: &str = "/sys";
/// Maximum size of an attribute, in bytes. Attributes are at most one page, except for some binary ones.
const MAX_READ: u64 = 1 << 20;
/// Maximum number of entries read below a directory.
const MAX_ENTRIES: usize = 10_000;

/// Return the value of an attribute, or with `value` write it and return whether that succeeded. The result for a
/// directory is its path, for an unknown name False.
///
/// CLI Example:
///
///     salt '*' sysfs.attr block/sda/queue/logical_block_size
#[function]
pub fn attr(
    _context: &Context,
    /// Path of the attribute below `/sys`.
    key: String,
    /// New value.
    value: Option<Value>,
) -> CallResult {
    let Some(path) = find(ROOT, &key) else { return Ok(false.into()) };
    Ok(match value {
        _ if path.is_dir() => path.into(),
        Some(value) => set(&path, &value).into(),
        None => content(&path),
    })
}

/// Write an attribute, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' sysfs.write devices/system/cpu/cpu0/cpufreq/scaling_governor 'performance'
#[function]
pub fn write(
    _context: &Context,
    /// Path of the attribute below `/sys`.
    key: String,
    /// New value.
    value: Value,
) -> CallResult {
    Ok(find(ROOT, &key).is_some_and(|path| set(&path, &value)).into())
}

/// Return an attribute, or the tree of attributes below a directory; of a list of names below `root`, those that are
/// there. Without any, False.
///
/// CLI Example:
///
///     salt '*' sysfs.read class/net/em1/statistics
#[function]
pub fn read(
    _context: &Context,
    /// Path of the attribute below `/sys`.
    key: Value,
    /// Path of the directory below `/sys`.
    #[default]
    root: String,
) -> CallResult {
    let one = |key: &str| value_of(ROOT, Path::new(&root).join(key).to_string_lossy().as_ref());
    let Value::List(keys) = &key else { return Ok(one(&key.to_string())) };
    let values =
        keys.iter().map(|key| (key.clone(), one(&key.to_string()))).filter(|(_, value)| *value != false.into());
    Ok(values.collect::<Map>().into())
}

/// Return the path of an attribute without symbolic links, or its last part without `full`; False for an unknown name.
///
/// CLI Example:
///
///     salt '*' sysfs.target class/ttyS0
#[function]
pub fn target(
    _context: &Context,
    /// Path of the attribute below `/sys`.
    key: String,
    /// Whether the whole path is returned.
    #[default(true)]
    full: bool,
) -> CallResult {
    let Some(path) = find(ROOT, &key) else { return Ok(false.into()) };
    Ok(if full { path.into() } else { path.file_name().map(|name| name.to_string_lossy().into_owned()).into() })
}

/// Return the attributes below a directory by access: `r`, `w` or `rw`.
///
/// CLI Example:
///
///     salt '*' sysfs.interfaces block/bcache0/bcache
#[function]
pub fn interfaces(
    _context: &Context,
    /// Path of the directory below `/sys`.
    root: String,
) -> CallResult {
    let directory = find(ROOT, &root).filter(|path| path.is_dir());
    Ok(directory.map_or(false.into(), |directory| {
        let Attributes { readable, writable, both } = attributes(&directory);
        map! {"r" => readable, "w" => writable, "rw" => both}.into()
    }))
}

/// Returns the value of an attribute or the tree below a directory; False for an unknown name.
pub(crate) fn value_of(root: &str, key: &str) -> Value {
    let Some(path) = find(root, key) else { return false.into() };
    if !path.is_dir() {
        return content(&path);
    }
    let Attributes { readable, both, .. } = attributes(&path);
    let mut tree = Map::new();
    for name in readable.into_iter().chain(both) {
        let value = content(&path.join(&name));
        if value != false.into() {
            insert(&mut tree, &name, value);
        }
    }
    tree.into()
}

/// Writes an attribute, and returns whether that succeeded.
pub(crate) fn set(path: &Path, value: &Value) -> bool {
    let file = user_files::open_in_place(path);
    let written = file.and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(format!("{value}\n").as_bytes())
    });
    if let Err(error) = &written {
        tracing::debug!(path = %path.display(), %error, "writing an attribute failed");
    }
    written.is_ok()
}

/// Returns the path of a name below the root, without symbolic links.
pub(crate) fn find(root: &str, key: &str) -> Option<PathBuf> {
    let path =
        if key.starts_with(root) { PathBuf::from(key) } else { Path::new(root).join(key.trim_start_matches('/')) };
    // A path that leads out of the root is rejected.
    path.canonicalize().ok().filter(|path| path.starts_with(root))
}

fn content(path: &Path) -> Value {
    let mut bytes = Vec::new();
    let file = std::fs::File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let read = file.and_then(|file| file.take(MAX_READ).read_to_end(&mut bytes));
    let Some(text) = read.ok().and_then(|_| String::from_utf8(bytes).ok()) else { return false.into() };
    match text.trim() {
        "" => false.into(),
        text => text
            .parse::<i64>()
            .map(Value::from)
            .or_else(|_| text.parse::<f64>().map(Value::from))
            .unwrap_or_else(|_| text.into()),
    }
}

#[derive(Default)]
struct Attributes {
    readable: Vec<String>,
    writable: Vec<String>,
    both: Vec<String>,
}

/// Returns the files below a directory, relative to it. Symbolic links to directories are not followed.
fn attributes(root: &Path) -> Attributes {
    let mut attributes = Attributes::default();
    let (mut open, mut seen) = (vec![root.to_path_buf()], 0);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                tracing::warn!(path = %root.display(), "only {MAX_ENTRIES} entries of a directory are read");
                return attributes;
            }
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
                continue;
            }
            let Some(metadata) = path.metadata().ok().filter(std::fs::Metadata::is_file) else { continue };
            let Ok(name) = path.strip_prefix(root).map(|name| name.to_string_lossy().into_owned()) else { continue };
            let mode = metadata.permissions().mode();
            match (mode & 0o400 != 0, mode & 0o200 != 0) {
                (true, true) => attributes.both.push(name),
                (true, false) => attributes.readable.push(name),
                (false, true) => attributes.writable.push(name),
                (false, false) => {}
            }
        }
    }
    attributes
}

/// Inserts a value into nested mappings, one for each directory in its name.
fn insert(tree: &mut Map, name: &str, value: Value) {
    match name.split_once('/') {
        None => _ = tree.insert(name.into(), value),
        Some((directory, rest)) => {
            let below = tree.entry(directory.into()).or_insert_with(|| Map::new().into());
            if let Value::Map(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn a_tree_of_attributes_is_read_and_written() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let base = root.to_str().unwrap();
        for (name, text, mode) in [
            ("a/size", "512\n", 0o444),
            ("a/b/ratio", "1.5\n", 0o644),
            ("a/mode", "x [y] z\n", 0o644),
            ("a/stop", "", 0o200),
            ("a/none", "\n", 0o444),
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/size"), root.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.join("outside")).unwrap();
        assert_eq!(value_of(base, "a"), map! {"b" => map! {"ratio" => 1.5}, "mode" => "x [y] z", "size" => 512}.into());
        assert_eq!((value_of(base, "link"), value_of(base, "no")), (512.into(), false.into()));
        assert_eq!((find(base, "outside"), find(base, "../etc")), (None, None));
        assert!(set(&find(base, "a/b/ratio").unwrap(), &2.into()));
        assert_eq!(value_of(base, "a/b/ratio"), 2.into());
        assert_eq!(attributes(&root.join("a")).writable, ["stop"]);
        assert_eq!(state::selected(&value_of(base, "a/mode")), "y".into());
    }
}
