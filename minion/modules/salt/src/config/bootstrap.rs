//! `config`: the script that installs minions.

use std::path::Path;

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::web;
use brine_system::files;
use brine_system::user_files;

/// The URL of Salt's own script.
const DEFAULT_URL: &str = "https://github.com/saltstack/salt-bootstrap/releases/latest/download/bootstrap-salt.sh";

/// Download the script that installs minions of Salt into the directory `cloud.deploy.d` of the configuration, and
/// return its path. `bootstrap` is another URL, or the path of a file.
///
/// CLI Example:
///
///     salt '*' config.gather_bootstrap_script
#[function]
pub fn gather_bootstrap_script(
    context: &Context,
    /// Name of the bootstrap script.
    bootstrap: Option<String>,
) -> CallResult {
    let source = bootstrap.filter(|source| !source.is_empty()).unwrap_or_else(|| DEFAULT_URL.into());
    let script = if source.contains("://") {
        web::fetch(&context.web(), &source).map_err(CallError::execution)?
    } else {
        let failed = |error| CallError::Execution(format!("reading {source} failed: {error}"));
        std::fs::read(&source).map_err(failed)?
    };
    if script.is_empty() {
        return Err(CallError::Execution(format!("{source} is invalid: expected a script, got nothing")));
    }
    let name = Path::new(&source).file_name().map(|name| name.to_string_lossy().into_owned());
    let invalid = || CallError::Execution(format!("{source} is invalid: expected a path with the name of a script"));
    let directory = context.config().config_dir.join("cloud.deploy.d");
    let path = directory.join(name.ok_or_else(invalid)?);
    let failed = |error| CallError::Execution(format!("creating {} failed: {error}", directory.display()));
    user_files::create_dir_all(&directory).map_err(failed)?;
    files::write_atomic(&path, &script, 0o644).map_err(CallError::execution)?;
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_config::MinionConfig;
    use brine_function::Args;

    use crate::testing;

    #[test]
    fn the_script_is_stored_below_the_configuration() {
        let directory = tempfile::tempdir().unwrap();
        let mut minion = testing::minion(&[]);
        let config = MinionConfig { config_dir: directory.path().to_owned(), ..Default::default() };
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        let context = testing::context_of(minion);
        let port = brine_testing::web::server(|_| ("200 OK", "text/plain", "#!/bin/sh\n".into()));
        let call = |source: &str| context.call("config.gather_bootstrap_script", Args::positional([source.into()]));
        let path = directory.path().join("cloud.deploy.d/b.sh");
        assert_eq!(call(&format!("http://127.0.0.1:{port}/x/b.sh")), Ok(path.clone().into()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "#!/bin/sh\n");
        assert!(call("/no/such").unwrap_err().to_string().contains("reading /no/such failed"));
    }
}
