//! Code shared by dnf and zypper: rpm packages, and `.repo` files.

pub mod evr;
pub mod info;
pub mod repo_files;

use std::cmp::Ordering;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::programs::argument;

use super::manager::{Database, Details, Files, Installed, Listed};
use super::options::Options;

/// Query format of a package, one line each.
const FORMAT: &str = "%{NAME}_|-%{EPOCH}_|-%{VERSION}_|-%{RELEASE}_|-%{ARCH}_|-%{INSTALLTIME}\n";

const X86_64: [&str; 2] = ["x86_64", "x86_64_v2"];
const X86_32: [&str; 4] = ["i386", "i486", "i586", "i686"];
const ARM_32: [&str; 7] = ["armv5tel", "armv5tejl", "armv6l", "armv6hl", "armv7l", "armv7hl", "armv7hnl"];
const OTHER_ARCHITECTURES: [&str; 24] = [
    "athlon",
    "amd64",
    "ia32e",
    "ia64",
    "geode",
    "ppc",
    "ppc64",
    "ppc64le",
    "ppc64iseries",
    "ppc64pseries",
    "s390",
    "s390x",
    "alpha",
    "alphaev4",
    "alphaev45",
    "alphaev5",
    "alphaev56",
    "alphapca56",
    "alphaev6",
    "alphaev67",
    "alphaev68",
    "alphaev7",
    "aarch64",
    "sh3",
];

/// Package managers that are based on rpm.
pub trait RpmBased {}

impl<M: RpmBased> Database for M {
    fn compare(&self, _context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        Ok(evr::compare(a, b))
    }

    fn normal_name(&self, context: &Context, name: &str) -> String {
        normal_name(context, name)
    }

    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError> {
        owner(context, path)
    }

    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError> {
        files(context, names)
    }

    fn is_rpm(&self) -> bool {
        true
    }
}

/// Whether this is the name of an architecture.
pub fn is_arch(text: &str) -> bool {
    [&X86_64[..], &X86_32, &ARM_32, &OTHER_ARCHITECTURES, &["sh4", "sh4a"]].concat().contains(&text)
}

/// Returns the architecture of this host.
pub fn own_arch(context: &Context) -> String {
    context.grains().get("osarch").map(ToString::to_string).unwrap_or_default()
}

/// Whether packages of an architecture are native on another.
fn is_at_home(arch: &str, own: &str) -> bool {
    let both = |list: &[&str]| list.contains(&arch) && list.contains(&own);
    arch == own || arch == "noarch" || both(&X86_64) || both(&X86_32) || both(&ARM_32)
}

/// Returns the name of a package on this host: with its architecture, if that is not the host's.
pub fn resolved(name: &str, arch: &str, own: &str) -> String {
    if is_at_home(arch, own) { name.to_owned() } else { format!("{name}.{arch}") }
}

/// Returns the name without the architecture, if that is the host's.
pub fn normal_name(context: &Context, name: &str) -> String {
    match split_arch(name) {
        Some((bare, arch)) if is_at_home(arch, &own_arch(context)) => bare.to_owned(),
        _ => name.to_owned(),
    }
}

/// Splits a name from its architecture, if it ends with one.
pub fn split_arch(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.').filter(|(_, arch)| *arch == "noarch" || is_arch(arch))
}

/// Parses the name, version and time of installation from a line.
fn line(text: &str, own: &str) -> Option<(String, Installed)> {
    let fields: Vec<&str> = text.split("_|-").collect();
    let [name, epoch, version, release, arch, time] = fields[..] else { return None };
    let epoch = (!["(none)", "0"].contains(&epoch)).then(|| epoch.to_owned());
    let release = (!release.is_empty()).then(|| release.to_owned());
    let mut whole = epoch.as_ref().map(|epoch| format!("{epoch}:")).unwrap_or_default();
    whole += version;
    whole.extend(release.iter().map(|release| format!("-{release}")));
    let installed = time.trim().parse().ok().filter(|time| *time != 0);
    let details = Details { epoch, version: version.to_owned(), release, arch: arch.to_owned(), installed };
    Some((resolved(name, arch, own), Installed { version: whole, details: Some(details) }))
}

fn lines(text: &str, own: &str) -> Listed {
    let mut listed = Listed::new();
    for (name, installed) in text.lines().filter_map(|text| line(text, own)) {
        listed.entry(name).or_default().push(installed);
    }
    for versions in listed.values_mut() {
        versions.sort_by(|a, b| version(a).cmp(version(b)));
    }
    listed
}

fn version(installed: &Installed) -> &str {
    installed.details.as_ref().map_or(&installed.version, |details| &details.version)
}

fn command(words: &[&str], options: &Options) -> Vec<String> {
    let mut command = vec!["rpm".to_owned()];
    command.extend(options.root.iter().flat_map(|root| ["--root".to_owned(), root.clone()]));
    command.extend(words.iter().map(|word| (*word).to_owned()));
    command
}

/// Returns the installed packages.
pub fn list(context: &Context, options: &Options) -> Result<Listed, CallError> {
    let words = ["-qa", "--nodigest", "--nosignature", "--queryformat", FORMAT];
    let output = run(context, &command(&words, options), &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("rpm failed to list packages: {}", output.stderr)));
    }
    Ok(lines(&output.stdout, &own_arch(context)))
}

/// Returns the name and version of a package file.
pub fn of_file(context: &Context, path: &Path) -> Result<(String, String), CallError> {
    let path = path.display().to_string();
    let words = ["-qp", "--nodigest", "--nosignature", "--queryformat", FORMAT, &path];
    let output = run(context, &command(&words, &Options::default()), &[])?;
    let package = output.stdout.lines().find_map(|text| line(text, &own_arch(context)));
    let message = || CallError::Execution(format!("{path} is not a valid package: {}", output.stderr.trim()));
    package.map(|(name, installed)| (name, installed.version)).ok_or_else(message)
}

/// Returns the package that owns a file.
pub fn owner(context: &Context, path: &str) -> Result<String, CallError> {
    let output = run(context, &command(&["-qf", "--queryformat", "%{name}\n", path], &Options::default()), &[])?;
    // Several owners have a line each.
    Ok(if output.retcode == 0 { output.stdout.lines().next().unwrap_or_default().to_owned() } else { String::new() })
}

/// Returns the files of packages. rpm's messages on missing ones are among them, as in Salt.
pub fn files(context: &Context, names: &[String]) -> Result<Files, CallError> {
    let mut words = vec![if names.is_empty() { "-qla".to_owned() } else { "-ql".to_owned() }];
    for name in names {
        words.push(argument(name)?);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = run(context, &command(&words, &Options::default()), &[])?;
    Ok(Files { errors: Vec::new(), files: output.stdout.lines().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests;
