//! The roster `dir`: a directory with one file per host, named by its id and rendered as an SLS file.

use brine_jinja::Host as Functions;
use brine_text::glob::Glob;
use brine_value::Value;

use super::{Fields, RosterError, RosterOptions, flat};

/// Returns the fields of the hosts. With a glob, files of other hosts are not read. As in Salt, a file that cannot be
/// rendered is logged and skipped.
pub(super) fn hosts(options: &RosterOptions, glob: Option<&str>, functions: &Functions) -> Result<Fields, RosterError> {
    let failed =
        |error: std::io::Error| RosterError::File { path: options.directory.clone(), reason: error.to_string() };
    let glob = glob.and_then(|glob| Glob::new(glob).ok());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&options.directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && glob.as_ref().is_none_or(|glob| glob.is_match(&name)) {
            names.push(name);
        }
    }
    names.sort();
    let mut fields_by_id = Fields::new();
    for id in names {
        let path = options.directory.join(&id);
        let mut fields = match flat::render(options, &path, functions) {
            Ok(Value::Map(fields)) if !fields.is_empty() => fields,
            Ok(other) => {
                tracing::warn!(host = id, "roster file skipped: expected a mapping, got {}", other.type_name());
                continue;
            }
            Err(error) => {
                tracing::warn!(host = id, %error, "roster file skipped");
                continue;
            }
        };
        let name = match options.domain.as_str() {
            "" => id.clone(),
            domain => format!("{id}.{domain}"),
        };
        fields.entry("host".into()).or_insert_with(|| name.into());
        fields_by_id.insert(id, fields);
    }
    Ok(fields_by_id)
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;

    #[test]
    fn each_file_is_a_host() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("web1", "user: {{ 'me' }}\n");
        write("web2", "host: 10.0.0.2\nport: 22\n");
        write("broken", "{% if %}\n");
        write("empty", "");
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let mut options = options(directory.path().join("none"));
        options.directory = directory.path().to_owned();
        let hosts_of = |options: &RosterOptions, glob| {
            let fields = hosts(options, glob, &Functions::new()).unwrap();
            let line = |(id, fields): (&String, &brine_value::Map)| format!("{id} {}", fields.get("host").unwrap());
            fields.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(hosts_of(&options, None), ["web1 web1", "web2 10.0.0.2"]);
        options.domain = "example.com".into();
        assert_eq!(hosts_of(&options, Some("web1")), ["web1 web1.example.com"]);
        options.directory = directory.path().join("missing");
        assert!(matches!(hosts(&options, None, &Functions::new()), Err(RosterError::File { .. })));
    }
}
