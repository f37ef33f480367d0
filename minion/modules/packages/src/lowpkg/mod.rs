//! `lowpkg`: the database of dpkg.

use std::collections::BTreeSet;
use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::arguments::refuse;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};

use crate::pkg::dpkg::{self, debian};
use crate::pkg::{packages as manager, rpm_info};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `lowpkg`.
pub static FUNCTIONS: Functions<Context> =
    registry!("lowpkg", [bin_pkg_info, unpurge, list_pkgs, file_list, file_dict, info]);

/// Return the name, the version and the architecture of a package file, a path or a URL such as `salt://x.deb`.
///
/// CLI Example:
///
///     salt '*' lowpkg.bin_pkg_info /root/foo-1.2.3-1ubuntu1_all.deb
///     salt '*' lowpkg.bin_pkg_info salt://foo-1.2.3-1ubuntu1_all.deb
#[function]
pub fn bin_pkg_info(
    context: &Context,
    /// Path of the package's file, or URL.
    path: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    debian(context)?;
    let local = if path.contains("://") {
        let cached =
            context.call("cp.cache_file", Args::positional([path.as_str().into(), saltenv.as_str().into()]))?;
        let missing = || CallError::Execution(format!("Unable to retrieve {path} from saltenv '{saltenv}'"));
        cached.as_str().filter(|cached| !cached.is_empty()).ok_or_else(missing)?.to_owned()
    } else if Path::new(&path).is_absolute() && Path::new(&path).exists() {
        path.clone()
    } else {
        return Err(CallError::Execution(format!("{path} does not exist on minion")));
    };
    let output = run(context, &["dpkg".into(), "-I".into(), argument(&local)?], &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("Unable to get info for {local}: {}", output.stderr)));
    }
    let field = |name: &str| {
        let value =
            output.stdout.lines().find_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    };
    let mut missing = Vec::new();
    let mut fields = Map::new();
    for (key, name) in [("name", "Package"), ("version", "Version"), ("arch", "Architecture")] {
        match field(name) {
            Some(value) => _ = fields.insert(key.into(), value.into()),
            None => missing.push(key),
        }
    }
    if !missing.is_empty() {
        return Err(CallError::Execution(format!("Unable to get {} for {local}", missing.join(", "))));
    }
    let grain = |name: &str| context.grains().get(name).map(ToString::to_string).unwrap_or_default();
    let (arch, own) = (fields.get("arch").map(ToString::to_string).unwrap_or_default(), grain("osarch"));
    if grain("cpuarch") == "x86_64" && own == "amd64" && arch != "all" && arch != own {
        let name = fields.get("name").map(ToString::to_string).unwrap_or_default();
        fields.insert("name".into(), format!("{name}:{arch}").into());
    }
    Ok(fields.into())
}

/// Change the selection state of packages from `purge` to `install`, and return the changes.
///
/// CLI Example:
///
///     salt '*' lowpkg.unpurge curl
#[function]
pub fn unpurge(
    context: &Context,
    /// Names of packages; all by default.
    #[rest]
    packages: Vec<Value>,
) -> CallResult {
    debian(context)?;
    if packages.is_empty() {
        return Ok(Value::map());
    }
    let names = packages.iter().map(|name| argument(&name.to_string())).collect::<Result<Vec<_>, _>>()?;
    let unwanted = || {
        let keyword = map! {"purge_desired" => true};
        context.call("pkg.list_pkgs", Args::keyword(keyword)).map(|all| all.as_map().cloned().unwrap_or_default())
    };
    let before = unwanted()?;
    let stdin = names.iter().map(|name| format!("{name} install\n")).collect::<Vec<_>>().concat();
    let selections = program(&["dpkg".into(), "--set-selections".into()], &[]);
    let output = context.run_program(&Program { stdin: Some(stdin), ..selections }).map_err(CallError::execution)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("dpkg --set-selections failed: {}", output.stderr)));
    }
    let after = unwanted()?;
    let names: BTreeSet<String> = before.keys().chain(after.keys()).map(ToString::to_string).collect();
    let version = |of: &Map, name: &str| of.get(name).map(ToString::to_string).unwrap_or_default();
    let change = |name: String| {
        let (old, new) = (version(&before, &name), version(&after, &name));
        (old != new).then(|| (name.into(), map! {"new" => new, "old" => old}.into()))
    };
    Ok(names.into_iter().filter_map(change).collect::<Map>().into())
}

/// Refuses `root`: the packages of this system would be returned in the place of those below it.
fn refuse_root(function: &str, kwargs: &Map) -> Result<(), CallError> {
    refuse(function, kwargs, &[("root", "only the packages of the minion's own system can be listed")])
}

/// Return the installed packages with their versions, or those of some names or globs.
///
/// CLI Example:
///
///     salt '*' lowpkg.list_pkgs
///     salt '*' lowpkg.list_pkgs httpd
#[function]
pub fn list_pkgs(
    context: &Context,
    /// Names of packages; all by default.
    #[rest]
    packages: Vec<Value>,
    /// `root` is refused: only the packages of the minion's own system are listed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("lowpkg.list_pkgs", &kwargs)?;
    Ok(match installed(context, &strings(&packages), "${db:Status-Status}\\t${binary:Package}\\t${Version}\\n")? {
        Err(message) => message.into(),
        Ok(rows) => {
            let pair = |row: &String| row.split_once('\t').map(|(name, version)| (name.into(), version.into()));
            rows.iter().filter_map(pair).collect::<Map>().into()
        }
    })
}

/// Return the attributes of all or some installed packages from dpkg or rpm: version, architecture, vendor,
/// description, licenses, ...
///
/// failhard
///     With dpkg: whether an unknown package is an error.
/// attr
///     With rpm: the attributes, separated by commas.
/// all_versions
///     With rpm: whether all installed versions of a package are returned, as a list.
///
/// CLI Example:
///
///     salt '*' lowpkg.info
///     salt '*' lowpkg.info apache2 bash
#[function]
pub fn info(
    context: &Context,
    /// Names of packages; all by default.
    #[rest]
    packages: Vec<Value>,
    /// With dpkg `failhard`: whether an unknown package is an error (True). With rpm `attr`, the attributes separated
    /// by commas, and `all_versions`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if let Ok(manager) = manager(context)
        && manager.is_rpm()
    {
        return Ok(rpm_info::described(context, &rpm_info::InfoQuery::read(&packages, &kwargs))?.into());
    }
    refuse_root("lowpkg.info", &kwargs)?;
    let failhard = kwargs.get("failhard").is_none_or(Value::is_truthy);
    Ok(dpkg::described(context, &strings(&packages), failhard)?.into())
}

/// Return the files of installed packages, or of some.
///
/// CLI Example:
///
///     salt '*' lowpkg.file_list httpd
///     salt '*' lowpkg.file_list
#[function]
pub fn file_list(
    context: &Context,
    /// Names of packages; all by default.
    #[rest]
    packages: Vec<Value>,
    /// `root` is refused: only the packages of the minion's own system are listed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("lowpkg.file_list", &kwargs)?;
    Ok(match files(context, &strings(&packages))? {
        Err(message) => message.into(),
        Ok(packages) => {
            let files: BTreeSet<String> = packages.into_iter().flat_map(|(_, files)| files).collect();
            map! {"errors" => Vec::<Value>::new(), "files" => files.into_iter().collect::<Value>()}.into()
        }
    })
}

/// Return the files of installed packages, or of some, by package.
///
/// CLI Example:
///
///     salt '*' lowpkg.file_dict httpd
///     salt '*' lowpkg.file_dict
#[function]
pub fn file_dict(
    context: &Context,
    /// Names of packages; all by default.
    #[rest]
    packages: Vec<Value>,
    /// `root` is refused: only the packages of the minion's own system are listed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse_root("lowpkg.file_dict", &kwargs)?;
    Ok(match files(context, &strings(&packages))? {
        Err(message) => message.into(),
        Ok(packages) => {
            let packages: Map = packages.into_iter().map(|(name, files)| (name.into(), files.into())).collect();
            map! {"errors" => Vec::<Value>::new(), "packages" => packages}.into()
        }
    })
}

fn strings(names: &[Value]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Returns a line for each installed package: the fields of `format` after the status, which comes first. The inner
/// `Err` is the message of dpkg.
fn installed(context: &Context, names: &[String], format: &str) -> Result<Result<Vec<String>, String>, CallError> {
    debian(context)?;
    let mut words = vec!["dpkg-query".to_owned(), format!("-f={format}"), "-W".to_owned()];
    for name in names {
        words.push(argument(name)?);
    }
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        let message = format!("Error:  {}", output.stderr);
        tracing::error!(jid = context.job.jid, "{message}");
        return Ok(Err(message));
    }
    let rows = output.stdout.lines().filter_map(|line| line.strip_prefix("installed\t"));
    Ok(Ok(rows.map(str::to_owned).collect()))
}

/// Packages, each with the paths of its files.
type Files = Vec<(String, Vec<String>)>;

/// Returns the files of installed packages. The inner `Err` is the message of dpkg.
fn files(context: &Context, names: &[String]) -> Result<Result<Files, String>, CallError> {
    let packages = match installed(context, names, "${db:Status-Status}\\t${binary:Package}\\n")? {
        Ok(packages) => packages,
        Err(message) => return Ok(Err(message)),
    };
    let mut files_by_package = Vec::new();
    for package in packages {
        let output = run(context, &["dpkg".into(), "-L".into(), argument(&package)?], &[])?;
        let files = output.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        files_by_package.push((package, files));
    }
    Ok(Ok(files_by_package))
}

#[cfg(test)]
mod tests;
