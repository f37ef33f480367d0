//! `x509`: functions on text in PEM.

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_text::glob::Glob;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value};

use super::source::{SourceAccess, bytes, execution, read_file};

/// Execution functions of `x509` on text in PEM.
pub static FUNCTIONS: Functions<Context> = registry!("x509", [get_pem_entries, get_pem_entry, write_pem]);

/// The most files that one glob reads.
const MAX_FILES: usize = 10_000;

/// Return the PEM entries of all files that match a glob.
///
/// CLI Example:
///
///     salt '*' x509.get_pem_entries '/etc/pki/*.crt'
#[function]
pub fn get_pem_entries(
    _context: &Context,
    /// Glob of the paths.
    glob_path: String,
) -> CallResult {
    Ok(each(&glob_path, |path| Some(entry(&path.display().to_string().into(), None).ok()?.into()))?.into())
}

/// Return a PEM entry with its line breaks and spaces corrected.
///
/// CLI Example:
///
///     salt '*' x509.get_pem_entry "-----BEGIN CERTIFICATE REQUEST-----MIICyzCC Ar8CAQI...-----END CERTIFICATE REQUEST-----"
#[function]
pub fn get_pem_entry(
    _context: &Context,
    /// Text with PEM entries, or a path.
    text: Value,
    /// Type of the entry, such as `CERTIFICATE`.
    pem_type: Option<String>,
) -> CallResult {
    Ok(entry(&text, pem_type.as_deref())?.into())
}

/// Write a PEM entry to a file with mode 0600, with its line breaks and spaces corrected. Without `overwrite`, a private
/// key and Diffie-Hellman parameters that the file has stay in it.
///
/// CLI Example:
///
///     salt '*' x509.write_pem "-----BEGIN CERTIFICATE-----MIIGMzCCBBugA..." path=/etc/pki/mycert.crt
#[function]
pub fn write_pem(
    _context: &Context,
    /// Text with PEM entries, or a path.
    text: Value,
    /// Path of the file.
    path: String,
    /// Whether other entries of the file are removed.
    #[default(true)]
    overwrite: bool,
    /// Type of the entry, such as `CERTIFICATE`.
    pem_type: Option<String>,
) -> CallResult {
    write(&entry(&text, pem_type.as_deref())?, &path, overwrite, pem_type.as_deref())
}

/// Writes a PEM entry to a file with mode 0600. Without `overwrite`, a certificate keeps the private key and the
/// Diffie-Hellman parameters that the file contains.
pub fn write(text: &str, path: &str, overwrite: bool, pem_type: Option<&str>) -> CallResult {
    let (mut key, mut parameters) = (String::new(), String::new());
    if pem_type == Some("CERTIFICATE") && !overwrite && Path::new(path).is_file() {
        let old = Value::from(String::from_utf8_lossy(&read_file(Path::new(path))?).into_owned());
        key = entry(&old, Some("(?:RSA )?PRIVATE KEY")).unwrap_or_default();
        parameters = entry(&old, Some("DH PARAMETERS")).unwrap_or_default();
    }
    files::rewrite(path, format!("{key}{text}{parameters}").as_bytes(), 0o600).map_err(CallError::execution)?;
    Ok(format!("PEM written to {path}").into())
}

/// Returns the first PEM entry of a type, which is a regular expression, with its line breaks corrected.
pub fn entry(source: &Value, pem_type: Option<&str>) -> Result<String, CallError> {
    let text = String::from_utf8(bytes(source, SourceAccess::Files)?).map_err(|_| execution("PEM text not valid"))?;
    let mut text = text.replace("\\n", "\n");
    if text.lines().count() == 1 && text.starts_with("-----") && text.ends_with("-----") {
        // Entries from the mine are on a single line.
        text =
            text.replace("-----BEGIN", "\n-----BEGIN").replace("-----END", "\n-----END").replace("----- ", "-----\n");
        text = with_header_break(text.trim_start());
    }
    let kind = pem_type.unwrap_or("[0-9A-Z ]+");
    let pattern = format!(
        "(?s)\\s*(?P<header>-----BEGIN {kind}-----)\\s+(?:(?P<proc>Proc-Type: 4,ENCRYPTED)\\s*)?(?:(?P<dek>DEK-Info: \
         (?:DES-[3A-Z-]+,[0-9A-F]{{16}}|[0-9A-Z-]+,[0-9A-F]{{32}}))\\s*)?(?P<body>.+?)\\s+(?P<footer>-----END {kind}-----)\\s*"
    );
    let regex = Regex::new(&pattern)
        .map_err(|_| execution(format!("pem_type is invalid: '{kind}' is not a regular expression")))?;
    // The text may be a private key, so the error shows none of it.
    let missing = || match pem_type {
        Some(kind) => execution(format!("PEM does not contain a single entry of type {kind}")),
        None => execution("PEM text not valid"),
    };
    let captures = regex.captures(&text).ok().flatten().ok_or_else(missing)?;
    let part = |name: &str| {
        regex.group(name).and_then(|group| captures.get(group)).map(|part| part.as_str()).unwrap_or_default()
    };
    let body = part("body").split_whitespace().collect::<String>();
    if !body.is_ascii() {
        return Err(missing());
    }
    let mut out = format!("{}\n", part("header"));
    if !part("proc").is_empty() {
        out += &format!("{}\n", part("proc"));
    }
    if !part("dek").is_empty() {
        out += &format!("{}\n\n", part("dek"));
    }
    for line in body.as_bytes().chunks(64) {
        out += &format!("{}\n", String::from_utf8_lossy(line));
    }
    Ok(out + part("footer") + "\n")
}

/// Inserts the line break after a header that lacks it.
fn with_header_break(text: &str) -> String {
    let break_header = |line: &str| match line.strip_prefix("-----BEGIN").and_then(|rest| rest.split_once("-----")) {
        Some((label, body)) if !body.trim().is_empty() => format!("-----BEGIN{label}-----\n{body}"),
        _ => line.to_owned(),
    };
    text.lines().map(break_header).collect::<Vec<_>>().join("\n")
}

/// Calls a function for each file that matches a glob, and returns its results by path.
pub fn each(pattern: &str, read: impl Fn(&Path) -> Option<Value>) -> Result<Map, CallError> {
    let mut paths = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "" })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        if brine_text::glob::is_pattern(part) {
            let glob = Glob::new(part).map_err(CallError::execution)?;
            for directory in &paths {
                let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
                let fits = |name: &str| glob.is_match(name) && (part.starts_with('.') || !name.starts_with('.'));
                let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                next.extend(names.filter(|name| fits(name)).map(|name| directory.join(name)));
            }
        } else {
            next.extend(paths.iter().map(|directory| directory.join(part)));
        }
        if next.len() > MAX_FILES {
            return Err(execution(format!("'{pattern}' is invalid: it matches more than {MAX_FILES} files")));
        }
        paths = next;
    }
    paths.sort();
    let files = paths.iter().filter(|path| path.is_file());
    Ok(files.filter_map(|path| Some((path.display().to_string().into(), read(path)?))).collect())
}
