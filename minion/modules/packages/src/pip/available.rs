//! The versions of a package in the index.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::run;
use super::versions::compare;

/// Return the available versions of a package, oldest first; pre-releases only on request.
///
/// CLI Example:
///
///     salt '*' pip.list_all_versions <package name>
#[function]
pub fn list_all_versions(
    context: &Context,
    /// Name of the package.
    pkg: String,
    /// Path of pip, or of a virtual environment; that of the system by default.
    bin_env: Option<String>,
    /// Whether alpha releases are listed.
    #[default(false)]
    include_alpha: bool,
    /// Whether beta releases are listed.
    #[default(false)]
    include_beta: bool,
    /// Whether release candidates are listed.
    #[default(false)]
    include_rc: bool,
    /// URL of the package index; that of pip's configuration by default.
    index_url: Option<String>,
    /// URL of a further package index.
    extra_index_url: Option<String>,
    /// `user`, `cwd` and `env_vars` of the program.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let pkg = argument(&pkg)?;
    let urls: Vec<String> = [("--index-url", index_url), ("--extra-index-url", extra_index_url)]
        .into_iter()
        .flat_map(|(option, url)| url.into_iter().flat_map(move |url| [option.to_owned(), url]))
        .collect();
    let asked = |command: &[&str]| {
        let words = ["--disable-pip-version-check"].iter().chain(command).map(|word| (*word).to_owned());
        run(context, bin_env.as_deref(), &words.chain(urls.clone()).collect::<Vec<_>>(), &kwargs)
    };
    let mut output = asked(&["index", "versions", &pkg])?;
    if output.retcode != 0 && output.stderr.contains("unknown command") {
        // A pip older than 21.2 lists the versions when it does not find the one that it should install.
        output = asked(&["install", &format!("{pkg}==versions")])?;
    }
    let unwanted = [(include_alpha, "a"), (include_beta, "b"), (include_rc, "rc")];
    let is_wanted = |version: &&str| !unwanted.iter().any(|(include, mark)| !include && version.contains(mark));
    let report = output.stdout.lines().chain(output.stderr.lines()).find_map(versions_in);
    let mut versions: Vec<&str> =
        report.unwrap_or_default().split(", ").filter(|version| !version.is_empty()).filter(is_wanted).collect();
    versions.sort_by(|a, b| compare(a, b));
    let versions: Vec<String> = versions.into_iter().map(str::to_owned).collect();
    Ok(if versions.is_empty() { Value::Nil } else { versions.into() })
}

/// Returns the versions in a line of the output of pip: of `index versions`, or of a failed `install`.
fn versions_in(line: &str) -> Option<&str> {
    let line = line.trim();
    let failed = || line.split_once("Could not find a version")?.1.split_once("(from versions: ")?.1.strip_suffix(')');
    line.strip_prefix("Available versions: ").or_else(failed)
}
