//! Device nodes and named pipes.

use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::paths::expand;
use brine_system::user_files;
use brine_value::{Map, Value, list, map};
use nix::sys::stat::{SFlag, major, makedev, minor};

use super::operations::makedirs;
use super::owners::check_perms;
use super::{error_at, invalid, is_test};

/// Create a character device (`c`), a block device (`b`) or a named pipe (`p`), and its parent directories.
///
/// CLI Example:
///
///     salt '*' file.mknod /dev/chr c 180 31
#[function]
pub fn mknod(
    context: &Context,
    /// Path of the node.
    name: String,
    /// Type: `c` (character device), `b` (block device) or `p` (named pipe).
    ntype: String,
    /// Major number.
    #[default(0)]
    major: u64,
    /// Minor number.
    #[default(0)]
    minor: u64,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default("0600".into())]
    mode: Value,
) -> CallResult {
    makedirs(context, name.clone(), user.clone(), group.clone(), Value::Nil)?;
    match ntype.as_str() {
        "c" => mknod_chrdev(context, DeviceArgs { name, major, minor, user, group, mode }),
        "b" => mknod_blkdev(context, DeviceArgs { name, major, minor, user, group, mode }),
        "p" => mknod_fifo(context, name, user, group, mode),
        _ => Err(invalid(
            "mknod",
            &format!(
                "Node type unavailable: '{ntype}'. Available node types are character ('c'), block ('b'), and pipe ('p')."
            ),
        )),
    }
}

/// The arguments of functions that create a device.
#[derive(Args)]
pub struct DeviceArgs {
    /// Path of the device.
    pub name: String,
    /// Major number.
    pub major: u64,
    /// Minor number.
    pub minor: u64,
    /// Name or id of the owner.
    #[default]
    pub user: Value,
    /// Name or id of the owning group.
    #[default]
    pub group: Value,
    /// Permissions, as an octal string.
    #[default("0660".into())]
    pub mode: Value,
}

impl DeviceArgs {
    fn make(self, context: &Context, kind: SFlag, what: &'static str) -> CallResult {
        let DeviceArgs { name, major, minor, user, group, mode } = self;
        Node { name, kind, what, number: makedev(major, minor) }.make(context, user, group, mode)
    }
}

/// Create a character device.
///
/// CLI Example:
///
///     salt '*' file.mknod_chrdev /dev/chr 180 31
#[function]
pub fn mknod_chrdev(context: &Context, #[args] device: DeviceArgs) -> CallResult {
    device.make(context, SFlag::S_IFCHR, "Character device")
}

/// Create a block device.
///
/// CLI Example:
///
///     salt '*' file.mknod_blkdev /dev/blk 8 999
#[function]
pub fn mknod_blkdev(context: &Context, #[args] device: DeviceArgs) -> CallResult {
    device.make(context, SFlag::S_IFBLK, "Block device")
}

/// Create a named pipe.
///
/// CLI Example:
///
///     salt '*' file.mknod_fifo /dev/fifo
#[function]
pub fn mknod_fifo(
    context: &Context,
    /// Path of the node.
    name: String,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default("0660".into())]
    mode: Value,
) -> CallResult {
    Node { name, kind: SFlag::S_IFIFO, what: "Fifo pipe", number: 0 }.make(context, user, group, mode)
}

/// Return whether there is a character device at this path.
///
/// CLI Example:
///
///     salt '*' file.is_chrdev /dev/null
#[function]
pub fn is_chrdev(
    _context: &Context,
    /// Path of the file.
    name: String,
) -> CallResult {
    Ok(std::fs::metadata(expand(&name)).is_ok_and(|status| status.file_type().is_char_device()).into())
}

/// Return whether there is a block device at this path.
///
/// CLI Example:
///
///     salt '*' file.is_blkdev /dev/sda
#[function]
pub fn is_blkdev(
    _context: &Context,
    /// Path of the file.
    name: String,
) -> CallResult {
    Ok(std::fs::metadata(expand(&name)).is_ok_and(|status| status.file_type().is_block_device()).into())
}

/// Return whether there is a named pipe at this path.
///
/// CLI Example:
///
///     salt '*' file.is_fifo /dev/fifo
#[function]
pub fn is_fifo(
    _context: &Context,
    /// Path of the file.
    name: String,
) -> CallResult {
    Ok(std::fs::metadata(expand(&name)).is_ok_and(|status| status.file_type().is_fifo()).into())
}

/// Return the major and minor number of a device; zeros for any other file.
///
/// CLI Example:
///
///     salt '*' file.get_devmm /dev/null
#[function]
pub fn get_devmm(
    _context: &Context,
    /// Path of the file.
    name: String,
) -> CallResult {
    let status = std::fs::metadata(expand(&name)).ok();
    let device = status.filter(|status| status.file_type().is_char_device() || status.file_type().is_block_device());
    let numbers = device.map_or((0, 0), |status| (major(status.rdev()), minor(status.rdev())));
    Ok(list![numbers.0, numbers.1])
}

/// A node to create.
struct Node {
    name: String,
    kind: SFlag,
    what: &'static str,
    number: u64,
}

impl Node {
    fn make(self, context: &Context, user: Value, group: Value, mode: Value) -> Result<Value, CallError> {
        let Node { name, kind, what, number } = self;
        let path = expand(&name);
        let digits = mode.to_string();
        let bits = u32::from_str_radix(digits.trim_start_matches(['0', 'o', 'O']), 8)
            .map_err(|_| invalid("mknod", &format!("Invalid Mode {digits}")))?;
        let (mut changes, mut result, mut comment) = (Map::new(), Value::Bool(false), String::new());
        let made = if is_test(context) { Ok(()) } else { user_files::make_node(&path, kind, bits, number) };
        match made {
            Ok(()) => {
                changes.insert("new".into(), format!("{what} {name} created.").into());
                result = if is_test(context) { Value::Nil } else { true.into() };
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                comment = format!("File {name} exists and cannot be overwritten");
            }
            Err(error) => return Err(error_at(&name, &error)),
        }
        if path.exists() {
            check_perms(context, name.clone(), Value::Nil, user, group, mode, None, false, Map::new())?;
        }
        Ok(map! {"name" => name, "changes" => changes, "comment" => comment, "result" => result}.into())
    }
}
