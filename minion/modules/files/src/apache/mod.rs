//! `apache`: modules, sites and configurations of Apache on Debian, with `a2enmod` and its siblings.

pub(crate) mod state;

use std::path::{Path, PathBuf};

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Value, map};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS],
    states: &[&state::conf::FUNCTIONS, &state::module::FUNCTIONS, &state::site::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `apache`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "apache",
    [
        check_mod_enabled,
        a2enmod,
        a2dismod,
        check_site_enabled,
        a2ensite,
        a2dissite,
        check_conf_enabled,
        a2enconf,
        a2disconf
    ]
);

/// Return whether an Apache module is enabled.
///
/// CLI Example:
///
///     salt '*' apache.check_mod_enabled status
#[function]
pub fn check_mod_enabled(
    _context: &Context,
    /// Name of the module, such as `rewrite`.
    r#mod: String,
) -> CallResult {
    Ok(is_enabled(Path::new(ETC), Part::Mod, &r#mod).into())
}

/// Enable an Apache module.
///
/// CLI Example:
///
///     salt '*' apache.a2enmod vhost_alias
#[function]
pub fn a2enmod(
    context: &Context,
    /// Name of the module, such as `rewrite`.
    r#mod: String,
) -> CallResult {
    called(context, Part::Mod, true, &r#mod)
}

/// Disable an Apache module.
///
/// CLI Example:
///
///     salt '*' apache.a2dismod vhost_alias
#[function]
pub fn a2dismod(
    context: &Context,
    /// Name of the module, such as `rewrite`.
    r#mod: String,
) -> CallResult {
    called(context, Part::Mod, false, &r#mod)
}

/// Return whether an Apache site is enabled. `default` is `000-default`.
///
/// CLI Example:
///
///     salt '*' apache.check_site_enabled example.com
#[function]
pub fn check_site_enabled(
    _context: &Context,
    /// Name of the site.
    site: String,
) -> CallResult {
    Ok(is_enabled(Path::new(ETC), Part::Site, &site).into())
}

/// Enable an Apache site.
///
/// CLI Example:
///
///     salt '*' apache.a2ensite example.com
#[function]
pub fn a2ensite(
    context: &Context,
    /// Name of the site.
    site: String,
) -> CallResult {
    called(context, Part::Site, true, &site)
}

/// Disable an Apache site.
///
/// CLI Example:
///
///     salt '*' apache.a2dissite example.com
#[function]
pub fn a2dissite(
    context: &Context,
    /// Name of the site.
    site: String,
) -> CallResult {
    called(context, Part::Site, false, &site)
}

/// Return whether an Apache configuration is enabled.
///
/// CLI Example:
///
///     salt '*' apache.check_conf_enabled security
#[function]
pub fn check_conf_enabled(
    _context: &Context,
    /// Name of the configuration.
    conf: String,
) -> CallResult {
    Ok(is_enabled(Path::new(ETC), Part::Conf, &conf).into())
}

/// Enable an Apache configuration.
///
/// CLI Example:
///
///     salt '*' apache.a2enconf security
#[function]
pub fn a2enconf(
    context: &Context,
    /// Name of the configuration.
    conf: String,
) -> CallResult {
    called(context, Part::Conf, true, &conf)
}

/// Disable an Apache configuration.
///
/// CLI Example:
///
///     salt '*' apache.a2disconf security
#[function]
pub fn a2disconf(
    context: &Context,
    /// Name of the configuration.
    conf: String,
) -> CallResult {
    called(context, Part::Conf, false, &conf)
}

const ETC: &str = "/etc/apache2";

/// Types of items that can be enabled and disabled.
#[derive(Debug, Clone, Copy)]
enum Part {
    Mod,
    Site,
    Conf,
}

impl Part {
    /// Returns the type as it occurs in the names of the programs: `mod` in `a2enmod`.
    fn name(self) -> &'static str {
        match self {
            Part::Mod => "mod",
            Part::Site => "site",
            Part::Conf => "conf",
        }
    }

    /// Returns the type for messages.
    fn title(self) -> &'static str {
        match self {
            Part::Mod => "Mod",
            Part::Site => "Site",
            Part::Conf => "Conf",
        }
    }
}

/// Returns the path of the link that enables the item.
fn link(etc: &Path, part: Part, name: &str) -> PathBuf {
    let (ending, name) = match part {
        Part::Mod => (".load", name),
        Part::Site if name == "default" => (".conf", "000-default"),
        Part::Site | Part::Conf => (".conf", name),
    };
    let file = if name.ends_with(ending) { name.to_owned() } else { format!("{name}{ending}") };
    etc.join(format!("{}s-enabled", part.name()).replace("confs-", "conf-")).join(file)
}

fn is_enabled(etc: &Path, part: Part, name: &str) -> bool {
    link(etc, part, name).is_symlink()
}

fn called(context: &Context, part: Part, enable: bool, name: &str) -> Result<Value, CallError> {
    let (short, long, participle) = if enable { ("en", "Enable", "enabled") } else { ("dis", "Disable", "disabled") };
    let output = run(context, &[format!("a2{short}{}", part.name()), argument(name)?], &[])?;
    let title = part.title();
    let status = match output.retcode {
        0 => format!("{title} {name} {participle}").into(),
        1 => format!("{title} {name} Not found").into(),
        status => Value::from(status),
    };
    Ok(map! {"Name" => format!("Apache2 {long} {title}"), title => name, "Status" => status}.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_items_have_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let etc = directory.path();
        for (part, name, file) in [
            (Part::Mod, "ssl", "mods-enabled/ssl.load"),
            (Part::Site, "default", "sites-enabled/000-default.conf"),
            (Part::Site, "a.conf", "sites-enabled/a.conf"),
            (Part::Conf, "security", "conf-enabled/security.conf"),
        ] {
            assert!(!is_enabled(etc, part, name), "{name}");
            let path = etc.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert!(is_enabled(etc, part, name), "{name}");
        }
    }
}
