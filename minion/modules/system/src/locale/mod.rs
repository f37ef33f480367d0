//! `locale`: the system locale, and the available locales.

pub(crate) mod state;

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::lines::{self, Missing};
use brine_host::programs::{argument, which};
use brine_system::files;
use brine_value::{Map, Value};

use super::service::manager::has_systemd;
use brine_modules_files::cmd;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `locale`.
pub static FUNCTIONS: Functions<Context> = registry!("locale", [list_avail, avail, get_locale, set_locale, gen_locale]);

/// Return the available locales.
///
/// CLI Example:
///
///     salt '*' locale.list_avail
#[function]
pub fn list_avail(context: &Context) -> CallResult {
    Ok(available_locales(context)?.into())
}

/// Return whether a locale is available.
///
/// CLI Example:
///
///     salt '*' locale.avail 'en_US.UTF-8'
#[function]
pub fn avail(
    context: &Context,
    /// Name of the locale, such as `en_US.UTF-8`.
    locale: String,
) -> CallResult {
    let desired = Locale::parse(&locale).normal();
    Ok(available_locales(context)?.iter().any(|have| Locale::parse(have.trim()).normal() == desired).into())
}

/// Return the system locale.
///
/// CLI Example:
///
///     salt '*' locale.get_locale
#[function]
pub fn get_locale(context: &Context) -> CallResult {
    if has_systemd() {
        let variables = by_localectl(context)?;
        let language = variables.into_iter().find(|(name, _)| name == "LANG");
        return Ok(language.map(|(_, value)| value).unwrap_or_default().into());
    }
    let (path, name) = settings_file(context)?;
    let text = files::read_if_exists(path).map_err(CallError::execution)?.unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    Ok(value.unwrap_or_default().replace('"', "").into())
}

/// Set the system locale.
///
/// CLI Example:
///
///     salt '*' locale.set_locale 'en_US.UTF-8'
#[function]
pub fn set_locale(
    context: &Context,
    /// Name of the locale, such as `en_US.UTF-8`.
    locale: String,
) -> CallResult {
    let release = context.grains().get("osmajorrelease").and_then(Value::as_i64).unwrap_or(0);
    if has_systemd() && !(context.os_family() == "Debian" && release >= 13) {
        let others = by_localectl(context)?.into_iter().filter(|(name, _)| name != "LANG");
        let mut words = vec!["localectl".to_owned(), "set-locale".into(), format!("LANG={locale}")];
        words.extend(others.map(|(name, value)| format!("{name}={value}")));
        if run(context, &words, &[])?.retcode != 0 {
            lines::set("/etc/locale.conf", "LANG=", &format!("LANG={locale}"), Missing::Append)?;
        }
        return Ok(true.into());
    }
    let (path, name) = settings_file(context)?;
    if context.os_family() == "Debian" {
        let program = which("update-locale")
            .ok_or_else(|| CallError::Execution("Cannot set locale: \"update-locale\" was not found.".into()))?;
        run(context, &[program.display().to_string()], &[])?;
    }
    lines::set(path, &format!("{name}="), &format!("{name}=\"{locale}\""), Missing::Append)?;
    Ok(true.into())
}

/// Generate a locale, and return whether that succeeded, or with `verbose` the complete result.
///
/// CLI Example:
///
///     salt '*' locale.gen_locale 'en_IE.UTF-8 UTF-8'
#[function]
pub fn gen_locale(
    context: &Context,
    /// Name of the locale, such as `en_US.UTF-8`.
    locale: String,
    /// Whether the output of the program is returned.
    #[default(false)]
    verbose: bool,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let system = context.grains().get("os").map(ToString::to_string).unwrap_or_default();
    let (ubuntu, gentoo) = (system == "Ubuntu", context.os_family() == "Gentoo");
    let mut desired = Locale::parse(&locale);
    if desired.charmap.is_empty() && !ubuntu {
        desired.charmap.clone_from(&desired.codeset);
    }
    let whole = desired.render();
    let place = format!("{}_{}", desired.language, desired.territory);
    let is_known = if system == "Debian" || gentoo {
        let supported_locales = files::read_to_string("/usr/share/i18n/SUPPORTED").map_err(CallError::execution)?;
        supported_locales.lines().any(|line| line == whole)
    } else {
        let directory = if context.os_family() == "Suse" { "/usr/share/locale" } else { "/usr/share/i18n/locales" };
        if !Path::new(directory).is_dir() {
            return Err(CallError::Execution(format!("Locale \"{whole}\" is not available.")));
        }
        Path::new(directory).join(&place).exists()
    };
    if !is_known {
        tracing::error!(jid = context.job.jid, locale = whole, "unknown locale");
        return Ok(false.into());
    }
    let list = Path::new("/etc/locale.gen");
    if list.exists() {
        let text = files::read_to_string(list).map_err(CallError::execution)?;
        if let Some(text) = with_locale(&text, &whole) {
            files::rewrite(list, text.as_bytes(), 0o644).map_err(CallError::execution)?;
        }
    } else if ubuntu {
        let list = format!("/var/lib/locales/supported.d/{}", desired.language);
        lines::set(list, &whole, &whole, Missing::Append)?;
    }
    let words = if which("locale-gen").is_some() {
        let generate = gentoo.then(|| "--generate".to_owned());
        let name = if ubuntu { desired.normal() } else { argument(&whole)? };
        ["locale-gen".to_owned()].into_iter().chain(generate).chain([name]).collect()
    } else if which("localedef").is_some() {
        let codeset = &desired.codeset;
        let words = ["localedef", "--force", "-i", &place, "-f", codeset, &format!("{place}.{codeset}")];
        let loud = if verbose { "--verbose" } else { "--quiet" };
        words.iter().copied().chain([loud]).map(str::to_owned).collect::<Vec<_>>()
    } else {
        let error = "Command \"locale-gen\" or \"localedef\" was not found on this system.";
        return Err(CallError::Execution(error.into()));
    };
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, locale = whole, "{}", output.stderr);
    }
    Ok(if verbose { cmd::result_of_all(output).into() } else { (output.retcode == 0).into() })
}

/// A locale such as `ca_ES.UTF-8@valencia UTF-8`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Locale {
    language: String,
    territory: String,
    codeset: String,
    modifier: String,
    charmap: String,
}

impl Locale {
    fn parse(text: &str) -> Self {
        let split = |text: &str, at: char| {
            let (before, after) = text.split_once(at).unwrap_or((text, ""));
            (before.to_owned(), after.to_owned())
        };
        let (rest, charmap) = split(text, ' ');
        let (rest, modifier) = split(&rest, '@');
        let (rest, codeset) = split(&rest, '.');
        let (language, territory) = split(&rest, '_');
        Locale { language, territory, codeset, modifier, charmap }
    }

    fn render(&self) -> String {
        let parts = [('_', &self.territory), ('.', &self.codeset), ('@', &self.modifier), (' ', &self.charmap)];
        let parts = parts.iter().filter(|(_, part)| !part.is_empty()).map(|(mark, part)| format!("{mark}{part}"));
        format!("{}{}", self.language, parts.collect::<String>())
    }

    /// Returns the locale in the form of `locale -a`.
    fn normal(&self) -> String {
        let (territory, codeset) = (self.territory.to_uppercase(), self.codeset.to_lowercase().replace('-', ""));
        Locale { territory, codeset, charmap: String::new(), ..self.clone() }.render()
    }
}

fn available_locales(context: &Context) -> Result<Vec<String>, CallError> {
    let output = run(context, &["locale".into(), "-a".into()], &[])?;
    Ok(output.stdout.lines().map(str::to_owned).collect())
}

/// Returns the file of the system locale on systems without systemd, and the name of its variable.
fn settings_file(context: &Context) -> Result<(&'static str, &'static str), CallError> {
    match context.os_family().as_str() {
        "Debian" => Ok(("/etc/default/locale", "LANG")),
        "RedHat" => Ok(("/etc/sysconfig/i18n", "LANG")),
        "Suse" => Ok(("/etc/sysconfig/language", "RC_LANG")),
        other => Err(CallError::Execution(format!("Error: \"{other}\" is unsupported!"))),
    }
}

/// Returns the variables reported by `localectl`.
fn by_localectl(context: &Context) -> Result<Vec<(String, String)>, CallError> {
    let output = run(context, &["localectl".into(), "status".into()], &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("Unable to parse result of \"localectl\": {}", output.stderr)));
    }
    Ok(parse_localectl(&output.stdout))
}

fn parse_localectl(text: &str) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut is_system = false;
    for line in text.lines() {
        let value = match line.split_once(": ") {
            Some((key, value)) => {
                is_system = key.trim() == "System Locale";
                value
            }
            None => line,
        };
        if let Some((name, value)) = value.trim().split_once('=').filter(|_| is_system) {
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    settings
}

/// Returns the text of a list of locales with this one uncommented or appended; `None` if it is listed already.
fn with_locale(text: &str, locale: &str) -> Option<String> {
    if text.lines().any(|line| line.trim() == locale) {
        return None;
    }
    let is_it = |line: &str| line.trim().strip_prefix('#').is_some_and(|rest| rest.trim() == locale);
    let exists = text.lines().any(is_it);
    let lines = text.lines().map(|line| if is_it(line) { locale } else { line });
    Some(lines.chain((!exists).then_some(locale)).flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_are_parsed_in_every_form() {
        for (text, normal) in [
            ("ca_es.UTF-8@valencia UTF-8", "ca_ES.utf8@valencia"),
            ("C.UTF-8", "C.utf8"),
            ("POSIX", "POSIX"),
            ("de_DE", "de_DE"),
        ] {
            assert_eq!(Locale::parse(text).render(), text);
            assert_eq!(Locale::parse(text).normal(), normal);
        }
    }

    #[test]
    fn output_of_localectl_is_parsed() {
        let message = "   System Locale: LANG=de_DE.UTF-8\n                  LC_TIME=C\n       VC Keymap: n/a\n      X11 Layout: us=x\n";
        let expected = [("LANG", "de_DE.UTF-8"), ("LC_TIME", "C")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(parse_localectl(message), expected);
        let list = "# all\n# de_DE.UTF-8 UTF-8\nC.UTF-8 UTF-8\n";
        assert_eq!(with_locale(list, "de_DE.UTF-8 UTF-8").unwrap(), "# all\nde_DE.UTF-8 UTF-8\nC.UTF-8 UTF-8\n");
        assert_eq!(with_locale(list, "fr_FR ISO").unwrap(), format!("{list}fr_FR ISO\n"));
        assert_eq!(with_locale(list, "C.UTF-8 UTF-8"), None);
    }
}
