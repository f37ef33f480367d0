//! `mount`: file systems and swap space, active ones and those in `/etc/fstab`.

pub mod active;
pub mod fstab;
pub(crate) mod state;

use std::path::{Path, PathBuf};

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::{argument, program, which};
use brine_system::files::{self, Links};
use brine_system::user_files;
use brine_value::{Map, Value, map};
use brine_yaml::Style;

use fstab::{Entry, WriteOptions};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `mount`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "mount",
    [
        active,
        is_mounted,
        fstab,
        set_fstab,
        rm_fstab,
        mount,
        remount,
        umount,
        swaps,
        swapon,
        swapoff,
        read_mount_cache,
        write_mount_cache,
        delete_mount_cache,
        get_mount_from_path,
        get_device_from_path,
        is_fuse_exec
    ]
);

/// Return the active mounts, by mount point.
///
/// CLI Example:
///
///     salt '*' mount.active
#[function]
pub fn active(
    context: &Context,
    /// Whether the entries have further fields.
    #[default(false)]
    extended: bool,
) -> CallResult {
    Ok(active::describe(&active::read(context)?, extended))
}

/// Return whether there is an active mount at a mount point.
///
/// CLI Example:
///
///     salt '*' mount.is_mounted /mnt/share
#[function]
pub fn is_mounted(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
) -> CallResult {
    Ok(active::read(context)?.contains_key(&name).into())
}

/// Return the entries of `/etc/fstab`.
///
/// CLI Example:
///
///     salt '*' mount.fstab
#[function]
pub fn fstab(
    _context: &Context,
    /// File of the file systems that are mounted at boot.
    #[default("/etc/fstab".into())]
    config: String,
) -> CallResult {
    Ok(fstab::describe(&fstab::read(&config)?).into())
}

/// The arguments of `mount.set_fstab`.
#[derive(Args)]
pub struct SetFstabArgs {
    /// Mount point.
    name: String,
    /// Device.
    device: String,
    /// Type of the file system.
    fstype: String,
    #[args]
    entry: fstab::EntryArgs,
    /// Whether the table is left unchanged.
    #[default(false)]
    test: bool,
    /// Columns that identify an entry; `auto` is the device, or the mount point for types such as `tmpfs` or `nfs`.
    #[default(vec!["auto".into()])]
    match_on: Vec<String>,
    /// Whether an existing entry that differs is left unchanged.
    #[default(false)]
    not_change: bool,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// Add or change an entry in `/etc/fstab`. Returns `new`, `change` or `present`.
///
/// CLI Example:
///
///     salt '*' mount.set_fstab /mnt/foo /dev/sdz1 ext4
#[function]
pub fn set_fstab(_context: &Context, #[args] args: SetFstabArgs) -> CallResult {
    let entry =
        Entry::new(&args.name, &args.device, &args.fstype, &args.entry.opts, &args.entry.dump, &args.entry.pass_num);
    Ok(fstab::set(
        &args.entry.config,
        &entry,
        &WriteOptions { match_on: args.match_on, not_change: args.not_change, test: args.test },
    )?
    .as_str()
    .into())
}

/// Remove the entry of a mount point and device from `/etc/fstab`.
///
/// CLI Example:
///
///     salt '*' mount.rm_fstab /mnt/foo /dev/sdg
#[function]
pub fn rm_fstab(
    _context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
    /// Device.
    #[required]
    device: Option<String>,
    /// File of the file systems that are mounted at boot.
    #[default("/etc/fstab".into())]
    config: String,
) -> CallResult {
    fstab::remove(&config, &name, device.as_deref())?;
    Ok(true.into())
}

/// Mount a device, or the entry of `/etc/fstab` for a mount point. Returns True, or the error output of `mount`.
///
/// CLI Example:
///
///     salt '*' mount.mount /mnt/foo /dev/sdz1 True
#[function]
pub fn mount(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
    /// Device.
    #[default(false.into())]
    device: Value,
    /// Whether a missing mount point is created.
    #[default(false)]
    mkmnt: bool,
    /// Type of the file system.
    #[default]
    fstype: String,
    /// Options, as a list or with commas.
    #[default("defaults".into())]
    opts: Value,
    /// User that mounts.
    user: Option<String>,
) -> CallResult {
    if mkmnt && !Path::new(&name).exists() {
        make_directory(&name, user.as_deref())?;
    }
    let mut words = vec!["mount".to_owned()];
    if device.is_truthy() {
        words.extend(with_opts(&options(&opts), &fstype));
        words.push(argument(&device.to_string())?);
    }
    words.push(argument(&name)?);
    run_program(context, &words, user)
}

/// Remount a file system with other options, or mount it if it is not mounted.
///
/// CLI Example:
///
///     salt '*' mount.remount /mnt/foo /dev/sdz1 True
#[function]
pub fn remount(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
    /// Device.
    device: String,
    /// Whether a missing mount point is created.
    #[default(false)]
    mkmnt: bool,
    /// Type of the file system.
    #[default]
    fstype: String,
    /// Options, as a list or with commas.
    #[default("defaults".into())]
    opts: Value,
    /// User that mounts.
    user: Option<String>,
) -> CallResult {
    if !active::read(context)?.contains_key(&name) {
        return mount(context, name, device.into(), mkmnt, fstype, opts, user);
    }
    let mut opts = options(&opts);
    if !opts.iter().any(|opt| opt == "remount") {
        opts.push("remount".into());
    }
    let mut words = vec!["mount".to_owned()];
    words.extend(with_opts(&opts, &fstype));
    words.extend([argument(&device)?, argument(&name)?]);
    run_program(context, &words, user)
}

/// Unmount a file system. Returns True, or the error output of `umount`.
///
/// CLI Example:
///
///     salt '*' mount.umount /mnt/foo /dev/xvdc1
#[function]
pub fn umount(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
    /// Device.
    device: Option<String>,
    /// User that mounts.
    user: Option<String>,
    /// Whether the file system is detached now and cleaned up when it is not busy any more.
    #[default(false)]
    lazy: bool,
) -> CallResult {
    if !active::read(context)?.contains_key(&name) {
        return Ok(format!("{name} does not have anything mounted").into());
    }
    let mut words = vec!["umount".to_owned()];
    words.extend(lazy.then(|| "-l".to_owned()));
    words.push(argument(device.as_deref().filter(|device| !device.is_empty()).unwrap_or(&name))?);
    run_program(context, &words, user)
}

/// Return the active swap space.
///
/// CLI Example:
///
///     salt '*' mount.swaps
#[function]
pub fn swaps(_context: &Context) -> CallResult {
    Ok(swap_space()?.into())
}

/// Activate a device or file as swap space.
///
/// CLI Example:
///
///     salt '*' mount.swapon /root/swapfile
#[function]
pub fn swapon(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
    /// Priority of the swap space.
    priority: Option<i64>,
) -> CallResult {
    let before = swap_space()?;
    if let Some(stats) = before.get(name.as_str()) {
        return Ok(map! {"stats" => stats.clone(), "new" => false}.into());
    }
    let mut words = vec!["swapon".to_owned(), argument(&name)?];
    words.extend(priority.iter().flat_map(|priority| ["-p".to_owned(), priority.to_string()]));
    run_program(context, &words, None)?;
    let stats = swap_space()?.get(name.as_str()).cloned();
    Ok(stats.map_or_else(Value::map, |stats| map! {"stats" => stats, "new" => true}.into()))
}

/// Deactivate swap space; returns nothing if it was not active.
///
/// CLI Example:
///
///     salt '*' mount.swapoff /root/swapfile
#[function]
pub fn swapoff(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
) -> CallResult {
    if !swap_space()?.contains_key(name.as_str()) {
        return Ok(Value::Nil);
    }
    run_program(context, &["swapoff".into(), argument(&name)?], None)?;
    Ok((!swap_space()?.contains_key(name.as_str())).into())
}

/// Return the mount that the mount cache has for a mount point.
///
/// CLI Example:
///
///     salt '*' mount.read_mount_cache /mnt/share
#[function]
pub fn read_mount_cache(
    context: &Context,
    /// Path of the mount point, or of the swap space.
    name: String,
) -> CallResult {
    Ok(read_cache(context)?.get(name.as_str()).cloned().unwrap_or_else(Value::map))
}

/// Store a mount in the mount cache.
///
/// CLI Example:
///
///     salt '*' mount.write_mount_cache /mnt/share 10.0.0.1/folder True nfs defaults
#[function]
pub fn write_mount_cache(
    context: &Context,
    /// Path of the mount point.
    real_name: String,
    /// Device.
    device: String,
    /// Whether a missing mount point is created.
    mkmnt: bool,
    /// Type of the file system.
    fstype: String,
    /// Mount options.
    mount_opts: Value,
) -> CallResult {
    let mut cache = read_cache(context)?;
    let entry = map! {"device" => device, "fstype" => fstype, "mkmnt" => mkmnt, "opts" => mount_opts};
    cache.insert(real_name.into(), entry.into());
    write_cache(context, cache)?;
    Ok(true.into())
}

/// Delete a mount from the mount cache.
///
/// CLI Example:
///
///     salt '*' mount.delete_mount_cache /mnt/share
#[function]
pub fn delete_mount_cache(
    context: &Context,
    /// Path of the mount point.
    real_name: String,
) -> CallResult {
    let mut cache = read_cache(context)?;
    if cache.shift_remove(real_name.as_str()).is_some() {
        write_cache(context, cache)?;
    }
    Ok(true.into())
}

/// Return the mount point of the file system of a path.
///
/// CLI Example:
///
///     salt '*' mount.get_mount_from_path /opt/some/nested/path
#[function]
pub fn get_mount_from_path(
    context: &Context,
    /// Path of a file.
    path: String,
) -> CallResult {
    Ok(mount_of(context, &path)?.0.into())
}

/// Return the device of the file system of a path.
///
/// CLI Example:
///
///     salt '*' mount.get_device_from_path /
#[function]
pub fn get_device_from_path(
    context: &Context,
    /// Path of a file.
    path: String,
) -> CallResult {
    Ok(mount_of(context, &path)?.1.into())
}

/// Return whether a program mounts with FUSE.
///
/// CLI Example:
///
///     salt '*' mount.is_fuse_exec sshfs
#[function]
pub fn is_fuse_exec(
    context: &Context,
    /// Name of the program.
    cmd: String,
) -> CallResult {
    let Some(program) = which(&cmd) else { return Ok(false.into()) };
    let output = run(context, &["ldd".into(), program.display().to_string()], &[])?;
    Ok(output.stdout.contains("libfuse").into())
}

/// Parses options: a list, or a string separated by commas.
pub fn options(opts: &Value) -> Vec<String> {
    match opts {
        Value::Nil => Vec::new(),
        Value::List(opts) => opts.iter().map(ToString::to_string).collect(),
        other => other.to_string().split(',').map(str::to_owned).collect(),
    }
}

fn with_opts(opts: &[String], fstype: &str) -> Vec<String> {
    let mut words = Vec::new();
    if !opts.is_empty() {
        words.extend(["-o".to_owned(), opts.join(",")]);
    }
    if !fstype.is_empty() {
        words.extend(["-t".to_owned(), fstype.to_owned()]);
    }
    words
}

/// Runs a program, and returns True or the error output.
fn run_program(context: &Context, words: &[String], user: Option<String>) -> Result<Value, CallError> {
    let mut program = program(words, &[]);
    program.runas = user;
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode == 0 {
        return Ok(true.into());
    }
    context.set_retcode(output.retcode);
    Ok(output.stderr.into())
}

/// Creates a mount point.
pub fn make_directory(name: &str, user: Option<&str>) -> Result<(), CallError> {
    let failed = |error: std::io::Error| CallError::Execution(format!("creating {name} failed: {error}"));
    user_files::create_dir_all(name).map_err(failed)?;
    let owner = user.and_then(|user| brine_host::accounts::Accounts::read().user(user).cloned());
    match owner {
        Some(owner) => user_files::set_owner(name, Some(owner.uid), Some(owner.gid), Links::Follow).map_err(failed),
        None => Ok(()),
    }
}

fn swap_space() -> Result<Map, CallError> {
    let text = files::read_if_exists("/proc/swaps").map_err(CallError::execution)?.unwrap_or_default();
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, size, used, priority] = words[..] else { return None };
        Some((name.into(), map! {"type" => kind, "size" => size, "used" => used, "priority" => priority}.into()))
    };
    Ok(text.lines().skip(1).filter_map(entry).collect())
}

fn cache_file(context: &Context) -> PathBuf {
    context.config().cachedir.join("mounts")
}

fn read_cache(context: &Context) -> Result<Map, CallError> {
    let path = cache_file(context);
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    // An unreadable cache counts as empty: the next state writes it again.
    let cache = brine_yaml::load(&text).ok().and_then(|cache| cache.get("mounts").and_then(Value::as_map).cloned());
    Ok(cache.unwrap_or_default())
}

fn write_cache(context: &Context, mounts: Map) -> Result<(), CallError> {
    let path = cache_file(context);
    if let Some(directory) = path.parent() {
        files::create_private_dir(directory).map_err(CallError::execution)?;
    }
    let text = brine_yaml::dump(&map! {"mounts" => mounts}.into(), Style::BLOCK);
    files::write_atomic(&path, text.as_bytes(), 0o600).map_err(CallError::execution)
}

fn mount_of(context: &Context, path: &str) -> Result<(String, Option<String>), CallError> {
    let mut mounts = active::read(context)?;
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    for directory in path.ancestors() {
        let name = directory.display().to_string();
        if let Some(mount) = mounts.shift_remove(&name.replace(' ', "\\040")) {
            return Ok((name, Some(mount.device)));
        }
    }
    Ok(("/".into(), None))
}
