//! `pkg_resource`: functions that the modules of package managers share.

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use crate::pkg::{named_files, requested};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `pkg_resource`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "pkg_resource",
    [version, pack_sources, parse_targets, check_extra_requirements, version_clean, version_compare, format_version]
);

/// Return the version of a package, an empty string if it is not installed; for several names or globs, a mapping.
///
/// CLI Example:
///
///     salt '*' pkg_resource.version vim
///     salt '*' pkg_resource.version foo bar baz
#[function]
pub fn version(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// Arguments of `pkg.version`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    context.call("pkg.version", Args { positional: args, keyword: kwargs })
}

/// Return the packages in a list of mappings of a name to the path or URL of a package file. `normalize` shortens names
/// as `pkg.normalize_name` does.
///
/// CLI Example:
///
///     salt '*' pkg_resource.pack_sources '[{"foo": "salt://foo.rpm"}, {"bar": "salt://bar.rpm"}]'
#[function]
pub fn pack_sources(
    context: &Context,
    /// Mappings of packages to files or URLs.
    sources: Value,
    /// Whether the architecture is removed from names, if it is that of the host.
    #[default(true)]
    normalize: bool,
) -> CallResult {
    let mut packed = Map::new();
    for source in sources.as_list().unwrap_or_default() {
        let Some((name, place)) = source.as_map().filter(|map| map.len() == 1).and_then(|map| map.first()) else {
            tracing::error!(jid = context.job.jid, %sources, "sources is invalid: expected a list of one-key mappings");
            return Ok(Value::map());
        };
        let name = if normalize {
            context.call("pkg.normalize_name", Args::positional([name.clone()]))?
        } else {
            name.clone()
        };
        packed.insert(name, place.clone());
    }
    Ok(packed.into())
}

/// Return the packages that the arguments of `pkg.install` name, with their versions, and their origin: `repository`,
/// or `file` for `sources`, whose files are fetched.
///
/// CLI Example:
///
///     salt '*' pkg_resource.parse_targets vim
#[function]
pub fn parse_targets(
    context: &Context,
    /// Name of the package.
    name: Option<String>,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Mappings of packages to files or URLs.
    #[default]
    sources: Value,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// `version`: version of the package `name`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if pkgs.is_truthy() && sources.is_truthy() {
        tracing::error!("Only one of \"pkgs\" and \"sources\" can be used.");
        return Ok(Value::List(vec![Value::Nil, Value::Nil]));
    }
    if sources.is_truthy() {
        let mut files = Vec::new();
        for (_, place) in named_files(&sources)? {
            if place.contains("://") {
                let args = Args::positional([place.as_str().into(), saltenv.as_str().into()]);
                let cached = context.call("cp.cache_file", args)?;
                if !cached.is_truthy() {
                    return Err(CallError::Execution(format!("{place} was not found")));
                }
                files.push(cached);
            } else if place.starts_with('/') {
                files.push(place.into());
            } else {
                return Err(CallError::Execution(format!("{place} is neither an absolute path nor a URL")));
            }
        }
        return Ok(Value::List(vec![files.into(), "file".into()]));
    }
    let version = kwargs.get("version").filter(|version| version.is_truthy()).map(ToString::to_string);
    let desired = requested(name.as_deref(), &pkgs, version.as_deref())?;
    if desired.is_empty() {
        return Ok(Value::List(vec![Value::Nil, Value::Nil]));
    }
    let desired: Map = desired.into_iter().map(|(name, version)| (name.into(), version.into())).collect();
    Ok(Value::List(vec![desired.into(), "repository".into()]))
}

/// Return True: no package manager here has further requirements. `pkgname` and `pkgver` are without effect.
///
/// CLI Example:
///
///     salt '*' pkg_resource.check_extra_requirements vim 9.0
#[function]
pub fn check_extra_requirements(
    _context: &Context,
    /// Without effect.
    pkgname: String,
    /// Without effect.
    pkgver: Value,
) -> CallResult {
    _ = (pkgname, pkgver);
    Ok(true.into())
}

/// Return a version unchanged.
///
/// CLI Example:
///
///     salt '*' pkg_resource.version_clean <version_string>
#[function]
pub fn version_clean(
    _context: &Context,
    /// Version.
    verstr: Value,
) -> CallResult {
    Ok(verstr)
}

/// Return whether two versions compare by an operator: `<`, `<=`, `==`, `>=`, `>` or `!=`.
///
/// CLI Example:
///
///     salt '*' pkg_resource.version_compare 1.2 '<' 1.10
#[function]
pub fn version_compare(
    context: &Context,
    /// First version.
    ver1: String,
    /// Comparison: `<`, `<=`, `==`, `!=`, `>=` or `>`.
    oper: String,
    /// Second version.
    ver2: String,
    /// Whether versions are compared without their epochs.
    #[default(false)]
    ignore_epoch: bool,
) -> CallResult {
    let positional = vec![ver1.into(), ver2.into()];
    let keyword = brine_value::map! {"ignore_epoch" => ignore_epoch};
    let order = context.call("pkg.version_cmp", Args { positional, keyword })?.as_i64();
    let Some(order) = order else { return Ok(false.into()) };
    Ok(match oper.as_str() {
        "<" => order < 0,
        "<=" => order <= 0,
        "==" => order == 0,
        ">=" => order >= 0,
        ">" => order > 0,
        "!=" => order != 0,
        _ => {
            let expected = "expected <, <=, ==, >=, > or !=";
            return Err(CallError::Execution(format!("oper is invalid: {expected}, got {oper}")));
        }
    }
    .into())
}

/// Return a version of its epoch, version and release.
///
/// CLI Example:
///
///     salt '*' pkg_resource.format_version 1 2.0 3
#[function]
pub fn format_version(
    _context: &Context,
    /// Epoch of the version.
    epoch: Value,
    /// Version.
    version: Value,
    /// Release of the version.
    release: Value,
) -> CallResult {
    let mut text = version.to_string();
    if epoch.is_truthy() {
        text = format!("{epoch}:{text}");
    }
    if release.is_truthy() {
        text = format!("{text}-{release}");
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests;
