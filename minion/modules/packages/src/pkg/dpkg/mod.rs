//! Attributes of installed packages from the database of dpkg. `rpm/info.rs` is the counterpart for rpm.

use std::collections::BTreeSet;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::programs::argument;
use brine_value::Map;
use jiff::Timestamp;

/// The attributes of a package with their fields of dpkg-query, in the order of the result.
const FIELDS: &[(&str, &str)] = &[
    ("package", "${Package}"),
    ("revision", "${binary:Revision}"),
    ("architecture", "${Architecture}"),
    ("maintainer", "${Maintainer}"),
    ("summary", "${Summary}"),
    ("source", "${source:Package}"),
    ("version", "${Version}"),
    ("section", "${Section}"),
    ("size", "${Size}"),
    ("MD5", "${MD5sum}"),
    ("SHA1", "${SHA1}"),
    ("SHA256", "${SHA256}"),
    ("origin", "${Origin}"),
    ("homepage", "${Homepage}"),
    ("status", "${db:Status-Abbrev}"),
    ("install_date", "${db-fsys:Last-Modified}"),
    ("description", "${Description}"),
];
/// The line that terminates the record of a package.
const RECORD_END: &str = "*/~^\\*";

/// Fails on systems without dpkg.
pub(crate) fn debian(context: &Context) -> Result<(), CallError> {
    match context.os_family().as_str() {
        "Debian" => Ok(()),
        family => Err(CallError::Execution(format!("lowpkg works with dpkg only, not on the os_family '{family}'"))),
    }
}

/// Returns the attributes of packages from dpkg, by name.
///
/// # Errors
/// With `failhard`, a package is unknown.
pub(crate) fn described(context: &Context, names: &[String], failhard: bool) -> Result<Map, CallError> {
    debian(context)?;
    let format = FIELDS.iter().map(|(name, field)| format!("{name}:{field}\\n")).collect::<Vec<_>>().concat();
    // Backslashes are escaped in formats.
    let end = RECORD_END.replace('\\', "\\\\");
    let mut words = vec!["dpkg-query".to_owned(), "-W".to_owned(), format!("-f={format}\\n{end}\\n")];
    for name in names {
        words.push(argument(name)?);
    }
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        if failhard {
            return Err(CallError::Execution(format!("Error getting packages information: {}", output.stderr)));
        }
        return Ok(Map::new());
    }
    let blocks = output.stdout.split(RECORD_END).filter(|block| !block.trim().is_empty());
    let mut packages = Map::new();
    for mut about in blocks.filter_map(package) {
        let Some(name) = about.get("package").map(ToString::to_string) else { continue };
        let licenses = licenses(Path::new("/usr/share/doc"), &name);
        if !licenses.is_empty() {
            about.insert("license".into(), licenses.into());
        }
        packages.insert(name.into(), about.into());
    }
    Ok(packages)
}

/// Parses the fields of a package. Empty ones are left out.
fn package(block: &str) -> Option<Map> {
    let (fields, description) = block.trim_start_matches('\n').split_once("\ndescription:")?;
    let mut about = Map::new();
    for (name, value) in fields.lines().filter_map(|line| line.trim().split_once(':')) {
        let value = match name {
            "install_date" => {
                value.parse().ok().and_then(|time| Timestamp::from_second(time).ok()).map(|time| time.to_string())
            }
            _ => Some(value.to_owned()).filter(|value| !value.is_empty()),
        };
        about.extend(value.map(|value| (name.into(), value.into())));
    }
    about.insert("description".into(), description.trim_end_matches('\n').into());
    Some(about)
}

/// Returns the licenses in the copyright file of a package.
fn licenses(documents: &Path, name: &str) -> String {
    let text = std::fs::read(documents.join(name).join("copyright")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("License:")).map(str::trim).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
