//! `pkgrepo`: states of package repositories. Code specific to apt, dnf or zypper is behind `Repositories`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, ParamList, function, registry};
use brine_system::user_files;
use brine_value::{FromValue, Map, Value};

use crate::pkg::{Repositories, packages};

/// State functions of `pkgrepo`.
pub static FUNCTIONS: Functions<StateContext> = registry!("pkgrepo", [managed, absent]);

/// Ensure that a repository is configured: for apt given as a line of `sources.list`, for dnf and zypper by its
/// name, with the options of its `.repo` file such as `baseurl`, `mirrorlist`, `gpgcheck` and `gpgkey`; `humanname`
/// is its display name. `ppa_auth` is without effect: PPAs are refused.
///
/// SLS Example:
///
///     docker:
///       pkgrepo.managed:
///         - name: deb [signed-by=/etc/apt/keyrings/docker.gpg] https://download.docker.com/linux/debian bookworm stable
///         - file: /etc/apt/sources.list.d/docker.list
///         - key_url: https://download.docker.com/linux/debian/gpg
///         - aptkey: False
///         - require_in:
///           - pkg: docker-ce
///
///     epel:
///       pkgrepo.managed:
///         - humanname: Extra Packages for Enterprise Linux
///         - mirrorlist: https://mirrors.fedoraproject.org/mirrorlist?repo=epel-9&arch=$basearch
///         - gpgcheck: 1
///         - gpgkey: https://download.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-9
#[function]
pub fn managed(
    context: &StateContext,
    /// With apt the line of `sources.list`, otherwise the name of the repository.
    name: String,
    /// Refused: add the repository of the PPA by its line and key.
    #[default]
    ppa: Value,
    /// Copr project as `user/project`, with dnf.
    #[default]
    copr: Value,
    /// With apt, whether keys are added to the keyring of all repositories; otherwise to one of their own, named by
    /// `signed-by`.
    #[default(true)]
    aptkey: bool,
    /// Further options of the `.repo` file, with dnf and zypper.
    #[keywords(further_repository)]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.extend(brine_value::map! {"ppa" => ppa, "copr" => copr}.into_iter().filter(|(_, value)| value.is_truthy()));
    Ok(configured(context, &name, aptkey, kwargs).unwrap_or_else(|failed| *failed).into())
}

/// Ensure that a repository is not in the package manager's files. `ppa_auth` and `keyid_ppa` are without effect: PPAs are
/// refused.
///
/// SLS Example:
///
///     epel:
///       pkgrepo.absent: []
///
///     deb https://apt.example.com/app stable main:
///       pkgrepo.absent:
///         - file: /etc/apt/sources.list.d/app.list
#[function]
pub fn absent(
    context: &StateContext,
    /// With apt the line of `sources.list`, otherwise the name of the repository.
    name: String,
    /// Further options of the repository, as in `pkgrepo.managed`. With `keyid`, its signing key is removed, too.
    #[keywords(further_repository)]
    kwargs: Map,
) -> CallResult {
    Ok(removed(context, &name, kwargs).unwrap_or_else(|failed| *failed).into())
}

/// A result that ends the state early.
type EarlyReturn = Box<StateReturn>;

/// Returns the message of an error without its prefix.
fn message(error: CallError) -> String {
    match error {
        CallError::Execution(message) => message,
        error => error.to_string(),
    }
}

/// Returns the repositories of this host's package manager.
fn repositories(context: &StateContext, name: &str) -> Result<&'static dyn Repositories, EarlyReturn> {
    let failed = |comment: &str| Box::new(StateReturn::failed(name, comment));
    let packages = packages(&context.call).map_err(|error| failed(&message(error)))?;
    packages.repositories().ok_or_else(|| failed("Repo management not implemented on this platform"))
}

fn call(context: &StateContext, function: &str, repo: &str, kwargs: &Map) -> Result<Value, String> {
    let args = Args { positional: vec![repo.into()], keyword: kwargs.clone() };
    context.call.call(function, args).map_err(message)
}

fn configured(context: &StateContext, name: &str, aptkey: bool, mut kwargs: Map) -> Result<StateReturn, EarlyReturn> {
    let failed = |comment: &str| Box::new(StateReturn::failed(name, comment));
    let repositories = repositories(context, name)?;
    if kwargs.contains_key("repo") {
        return Err(failed(
            "'repo' is not a supported argument for this state. The 'name' argument is probably what was intended.",
        ));
    }
    let (enabled, disabled) = (kwargs.shift_remove("enabled"), kwargs.shift_remove("disabled"));
    let (enabled, disabled) = (enabled.filter(|word| !word.is_nil()), disabled.filter(|word| !word.is_nil()));
    let is_true = |value: &Value| bool::from_value(value).unwrap_or_default();
    let disabled = match (enabled, disabled) {
        (Some(_), Some(_)) => return Err(failed("Only one of enabled/disabled is allowed")),
        (_, Some(disabled)) => is_true(&disabled),
        (enabled, None) => !enabled.is_none_or(|enabled| is_true(&enabled)),
    };
    let allow_insecure = kwargs.shift_remove("allow_insecure_key").is_none_or(|allow| allow.is_truthy());
    let is_insecure = kwargs.get("key_url").is_some_and(|url| url.to_string().trim().starts_with("http:"));
    if is_insecure && !allow_insecure {
        return Err(failed("Cannot have 'key_url' using http with 'allow_insecure_key' set to True"));
    }
    kwargs.insert("disabled".into(), disabled.into());
    let repo = repositories.named(name, &mut kwargs);
    let pre = call(context, "pkg.get_repo", &repo, &kwargs)
        .map_err(|error| failed(&format!("Failed to examine repo '{name}': {error}")))?;
    let mut pre = pre.as_map().cloned().unwrap_or_default();
    let mut desired = repositories.described(&repo, &kwargs);
    let file = kwargs.get("file").filter(|file| file.is_truthy()).map(ToString::to_string);
    let clean = kwargs.get("clean_file").is_some_and(Value::is_truthy);
    let cleans = clean && has_other_lines(file.as_deref(), name);
    if !(pre.is_empty() || cleans) {
        pre.shift_remove("file");
        desired.shift_remove("file");
        if !repositories.differs(&pre, &desired, &kwargs) {
            return Ok(StateReturn::ok(name, format!("Package repo '{name}' already configured")));
        }
    }
    if context.test {
        let comment = format!(
            "Package repo '{name}' would be configured. This may cause pkg states to behave differently than stated if \
             this action is repeated without test=True, due to the differences in the configured repositories."
        );
        let changes = if pre.is_empty() {
            brine_value::map! {"repo" => name}
        } else {
            changes(&desired, &pre, &desired)
        };
        return Ok(StateReturn::predicted(name, comment).with_changes(changes));
    }
    if clean && let Some(file) = &file {
        user_files::write(file, "").map_err(|error| failed(&format!("Failed to configure repo '{name}': {error}")))?;
    }
    let mut args = kwargs.clone();
    if repositories.has_keys() {
        args.insert("saltenv".into(), context.saltenv.as_str().into());
        args.insert("aptkey".into(), aptkey.into());
    }
    call(context, "pkg.mod_repo", &repo, &args)
        .map_err(|error| failed(&format!("Failed to configure repo '{name}': {error}")))?;
    let post = call(context, "pkg.get_repo", &repo, &kwargs).unwrap_or_default();
    let post = post.as_map().cloned().unwrap_or_default();
    let changes = if pre.is_empty() {
        brine_value::map! {"repo" => repo}
    } else {
        changes(&post, &pre, &desired)
    };
    Ok(StateReturn::ok(name, format!("Configured package repo '{name}'")).with_changes(changes))
}

/// Whether a file has other lines than this one and comments.
fn has_other_lines(file: Option<&str>, name: &str) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#') && line != name.trim())
}

/// Returns the differences in the compared keys.
fn changes(new: &Map, old: &Map, keys: &Map) -> Map {
    let of = |map: &Map, key: &Value| map.get(key).cloned().unwrap_or_default();
    keys.keys()
        .filter(|key| of(new, key) != of(old, key))
        .map(|key| (key.clone(), brine_value::map! {"new" => of(new, key), "old" => of(old, key)}.into()))
        .collect()
}

fn removed(context: &StateContext, name: &str, mut kwargs: Map) -> Result<StateReturn, EarlyReturn> {
    let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
    let repositories = repositories(context, name)?;
    let has_key = kwargs.get("keyid").is_some_and(|keyid| !keyid.is_nil());
    if has_key && !repositories.has_keys() {
        return Err(failed("Repo key management is not implemented for this platform".into()));
    }
    let repo = repositories.named(name, &mut kwargs);
    let repository = call(context, "pkg.get_repo", &repo, &kwargs)
        .map_err(|error| failed(format!("Failed to configure repo '{name}': {error}")))?;
    let repository = repository.as_map().cloned().unwrap_or_default();
    if repository.is_empty() || !repositories.is_match(&repo, &repository) {
        return Ok(StateReturn::ok(name, format!("Package repo {name} is absent")));
    }
    if context.test {
        let comment = format!(
            "Package repo '{name}' will be removed. This may cause pkg states to behave differently than stated if this \
             action is repeated without test=True, due to the differences in the configured repositories."
        );
        return Ok(StateReturn::predicted(name, comment));
    }
    call(context, "pkg.del_repo", &repo, &kwargs).map_err(failed)?;
    let mut outcome = StateReturn::ok(name, format!("Removed repo {name}"));
    outcome.changes.insert("repo".into(), name.into());
    if !has_key {
        return Ok(outcome);
    }
    match repositories.delete_key(&context.call, &kwargs).map_err(message) {
        Ok(key) => {
            outcome.comment += &format!(", and keyid {key}");
            outcome.changes.insert("keyid".into(), key);
        }
        Err(error) => {
            outcome.result = Some(false);
            outcome.comment += &format!(", but failed to remove key: {error}");
        }
    }
    Ok(outcome)
}

/// Describes the options of repositories. Further ones are those of `.repo` files, which dnf and zypper pass on.
pub(crate) fn further_repository(params: &mut ParamList) {
    params.further("file", "a path", "File of the repository; with apt `/etc/apt/sources.list` by default.");
    params.further("humanname", "a string", "Name for display.");
    params.further("enabled", "True or False", "Whether the repository is used; the opposite of `disabled`.");
    params.further("disabled", "True or False", "Whether the repository stays configured, but is not used.");
    params.further(
        "refresh",
        "True or False",
        "Whether the lists of packages are refreshed when the repository has changed; true by default.",
    );
    params.further(
        "clean_file",
        "True or False",
        "Whether the file is emptied first, so that it has no other repositories.",
    );
    params.further("key_url", "a string", "URL of the signing key, with apt: `salt://`, `https://` or a path.");
    params.further(
        "keyid",
        "a string",
        "Fingerprint or id of the signing key, with apt, which `keyserver` has; a list for several keys.",
    );
    params.further("keyserver", "a string", "Server of the key of `keyid`, with apt.");
    params.further("key_text", "a string", "The signing key itself, with apt.");
    params.further(
        "allow_insecure_key",
        "True or False",
        "Whether `key_url` may be an address with `http:`; true by default.",
    );
    params.further("dist", "a string", "Release of the repository, with apt, in the place of that in the line.");
    params.further("comps", "a string", "Components of the repository, with apt, separated by commas.");
    params.further("architectures", "a string", "Architectures of the repository, with apt, separated by commas.");
    params.further("comments", "a list", "Comments of the repository, with apt.");
    params.further("trusted", "True or False", "Whether the repository is used without a valid signature, with apt.");
    params.further("baseurl", "a string", "URL of the repository, with dnf and zypper.");
    params.further("mirrorlist", "a string", "URL of a list of mirrors, with dnf and zypper.");
    params.further("gpgcheck", "a string", "Whether packages must be signed, with dnf and zypper: 1 or 0.");
    params.further("gpgkey", "a string", "URL of the signing key, with dnf and zypper.");
}
