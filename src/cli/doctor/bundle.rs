//! The bundle for bug reports: a compressed archive without secrets. Keys are never read for it.

use std::path::Path;

use anyhow::Context;
use brine_context::Mask;
use brine_doctor::{Installation, logs};
use brine_system::user_files;
use brine_value::{Map, Value, json};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::roles::Configured;
use super::{Examined, report};

/// The text in place of a secret.
const MASK: &str = "**********";
/// The size of the end of a log that is collected, in bytes.
const LOG_TAIL: u64 = 512 << 10;
/// The depth of nested data that is masked; what is deeper is left out.
const MAX_DEPTH: u32 = 64;

/// Writes the bundle to a new file that only this user can read.
pub(super) fn write(path: &Path, examined: &Examined) -> anyhow::Result<()> {
    let absolute = std::path::absolute(path)?;
    let file = user_files::create_new(&absolute, 0o600).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => anyhow::anyhow!("the file exists; choose another name"),
        _ => error.into(),
    })?;
    let result = fill(file, examined);
    if result.is_err() {
        _ = user_files::remove_file(&absolute);
    }
    result
}

fn fill(file: std::fs::File, examined: &Examined) -> anyhow::Result<()> {
    let mut archive = Archive::new(GzEncoder::new(file, Compression::default()));
    add(&mut archive, "versions.txt", &versions())?;
    let findings = scrub(&Value::Map(report::data(examined, &[])), &Mask::default(), 0);
    add(&mut archive, "findings.json", &json::to_json_pretty(&findings, 2))?;
    if let Some(metrics) = &examined.metrics {
        add(&mut archive, "metrics.json", &json::to_json_pretty(&metrics.clone().into(), 2))?;
    }
    for configured in &examined.host.configured {
        let role = configured.role().name();
        let mask = mask_of(configured);
        let options = scrub(&Value::Map(configured.opts().clone()), &mask, 0);
        add(&mut archive, &format!("{role}.json"), &json::to_json_pretty(&options, 2))?;
        let installation = configured.installation();
        add(&mut archive, &format!("{role}-files.txt"), &listing(&installation))?;
        let log = match logs::tail(&installation.log_file, LOG_TAIL) {
            Ok(text) => scrub_log(&text, &mask),
            Err(error) => format!("{}: {error}\n", installation.log_file.display()),
        };
        add(&mut archive, &format!("{role}.log"), &log)?;
    }
    archive.into_inner()?.finish()?.sync_all().context("writing failed")
}

/// Returns the mask of a configuration; with invalid names that of the default ones.
fn mask_of(configured: &Configured) -> Mask {
    let (masked, unmasked) = match configured {
        Configured::Master(config) | Configured::Api(config) | Configured::Syndic(config, _) => {
            (&config.masked_names, &config.unmasked_names)
        }
        Configured::Minion(config) => (&config.masked_names, &config.unmasked_names),
    };
    // A configuration may mask less than the default; what leaves the host has both.
    let masked: Vec<String> =
        masked.iter().cloned().chain(brine_config::MasterConfig::default().masked_names).collect();
    Mask::new(&masked, unmasked).unwrap_or_default()
}

/// Whether the value of an option is secret: by its whole name or what follows its last dot, such as `mysql.pass`.
fn is_secret(mask: &Mask, name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    [name, last].into_iter().any(|name| mask.is_secret("", name) || mask.is_secret("", &name.replace('-', "_")))
}

/// Returns a copy of data with secrets masked: by their names, in texts that contain data, and in addresses.
fn scrub(value: &Value, mask: &Mask, depth: u32) -> Value {
    if depth > MAX_DEPTH {
        return MASK.into();
    }
    match value {
        Value::Map(map) => {
            let entry = |(name, value): (&Value, &Value)| {
                // The names of options that list names are themselves no secrets.
                let is_list_of_names =
                    depth == 0 && ["masked_names", "unmasked_names"].contains(&name.to_string().as_str());
                let is_masked = is_secret(mask, &name.to_string()) && !is_harmless(value) && !is_list_of_names;
                (name.clone(), if is_masked { MASK.into() } else { scrub(value, mask, depth + 1) })
            };
            map.iter().map(entry).collect::<Map>().into()
        }
        Value::List(items) => items.iter().map(|item| scrub(item, mask, depth + 1)).collect::<Vec<_>>().into(),
        Value::Str(text) => scrub_text(text, mask).into(),
        other => other.clone(),
    }
}

/// Whether a value tells nothing, whatever its name is.
fn is_harmless(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::Bool(_)) || value.as_str().is_some_and(str::is_empty)
}

fn scrub_text(text: &str, mask: &Mask) -> String {
    let masked = mask.value("", &text.into()).map_or_else(|| text.to_owned(), |masked| masked.to_string());
    without_logins(&without_assignments(&masked, mask))
}

/// Masks the values of secret names in a text: `name=value`, `--name=value`, `name: value`, `"name": "value"`.
fn without_assignments(text: &str, mask: &Mask) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at);
        let name = before.trim_end_matches(['"', '\'', ' ', '\\']);
        let start =
            name.rfind(|c| !is_part(c)).map_or(0, |at| at + name[at..].chars().next().map_or(1, char::len_utf8));
        let name = name.get(start..).unwrap_or_default().trim_start_matches('-');
        output.push_str(before);
        let value = after.get(1..).unwrap_or_default().trim_start_matches(' ');
        let gap = &after[..after.len() - value.len()];
        output.push_str(gap);
        rest = value;
        if name.is_empty() || value.is_empty() || value.starts_with("//") || !is_secret(mask, name) {
            continue;
        }
        let quote = value.trim_start_matches('\\').chars().next().filter(|c| "\"'".contains(*c));
        let end = match quote {
            Some(quote) => {
                let open = value.find(quote).unwrap_or(0) + 1;
                value[open..].find(quote).map_or(value.len(), |end| open + end + 1)
            }
            None => value.find(|c: char| c.is_whitespace() || ",;&)}]".contains(c)).unwrap_or(value.len()),
        };
        output.push_str(MASK);
        rest = &value[end..];
    }
    output.push_str(rest);
    output
}

/// Masks `user:password@` in the addresses of a text.
fn without_logins(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        output.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => output.push_str(&format!("{MASK}@{host}")),
            None => output.push_str(authority),
        }
        rest = behind;
    }
    output.push_str(rest);
    output
}

/// Masks a log line by line, and leaves out what is between the lines of a PEM.
fn scrub_log(text: &str, mask: &Mask) -> String {
    let mut is_pem = false;
    let mut output = String::with_capacity(text.len());
    for line in text.lines() {
        if line.contains("-----BEGIN ") {
            is_pem = !line.contains("-----END ");
            output.push_str("(a PEM is left out)\n");
            continue;
        }
        if is_pem {
            // A PEM that is cut off must not hide the rest of the log.
            is_pem = !line.contains("-----END ") && line.len() <= 80 && !line.contains('[');
            continue;
        }
        output.push_str(&scrub_text(line, mask));
        output.push('\n');
    }
    output
}

fn versions() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    format!(
        "brine {}\nworks as Salt {}\ncommit: {}\nfeatures: {}\ntarget: {}\n\n{}\n{}\n",
        brine_config::VERSION,
        brine_config::SALT_VERSION,
        env!("BRINE_COMMIT"),
        env!("BRINE_FEATURES"),
        env!("BRINE_TARGET"),
        read("/proc/version"),
        read("/etc/os-release"),
    )
}

/// Returns owner, mode and size of the files below the daemon's directories, to a depth of two.
fn listing(installation: &Installation) -> String {
    use std::os::unix::fs::MetadataExt;
    let mut lines = Vec::new();
    for directory in &installation.directories {
        let mut paths = vec![directory.path.clone()];
        for entry in std::fs::read_dir(&directory.path).into_iter().flatten().flatten().take(200) {
            paths.push(entry.path());
        }
        for path in paths {
            lines.push(match std::fs::symlink_metadata(&path) {
                Ok(status) => format!(
                    "{:06o} {}:{} {} {}",
                    status.mode(),
                    status.uid(),
                    status.gid(),
                    status.len(),
                    path.display()
                ),
                Err(error) => format!("{}: {error}", path.display()),
            });
        }
    }
    lines.join("\n") + "\n"
}

/// A compressed archive.
type Archive = tar::Builder<GzEncoder<std::fs::File>>;

/// Adds a file that only its owner can read.
fn add(archive: &mut Archive, name: &str, text: &str) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(text.len() as u64);
    header.set_mtime(u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0));
    archive.append_data(&mut header, format!("brine-doctor/{name}"), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn secrets_of_options_are_masked() {
        let options = map! {
            "interface" => "0.0.0.0",
            "key_pass" => "hidden1",
            "mysql.pass" => "hidden2",
            "smtp.password" => "hidden3",
            "api-token" => "hidden4",
            "rest_cherrypy" => map! {"webhook_secrets" => map! {"/a" => "hidden5"}, "ssl_key" => "/etc/x.key"},
            "gitfs_remotes" => list!["https://user:hidden6@git.example.com/a.git", map! {"ssh://git@host/b" => list![map! {"password" => "hidden7"}]}],
            "ext_pillar" => list![map! {"cmd_json" => "get --x '{\"password\": \"hidden8\"}'"}],
            "schedule" => map! {"a" => map! {"function" => "x", "kwargs" => map! {"secret" => "hidden9"}}},
        };
        let output = scrub(&options.into(), &Mask::default(), 0).to_string();
        assert!(!output.contains("hidden"), "{output}");
        assert!(output.contains("0.0.0.0") && output.contains("git.example.com/a.git"), "{output}");
    }

    #[test]
    fn logs_lose_secrets_and_keys() {
        let log = "a postgres://u:hidden@h/db b\n-----BEGIN RSA PRIVATE KEY-----\nhidden\n-----END RSA PRIVATE KEY-----\n\
                   [INFO] password=hidden\nx {\"api_key\": \"hidden z\", 'b': 1} token: hidden, --db-password=hidden y\n-----BEGIN X-----\nhidden\n[INFO    ] rest\n";
        let output = scrub_log(log, &Mask::default());
        assert!(!output.contains("hidden"), "{output}");
        assert!(output.contains("@h/db b") && output.contains("'b': 1}") && output.contains(" y"), "{output}");
    }
}
