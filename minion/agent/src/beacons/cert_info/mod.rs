//! `cert_info`: certificates that expire soon, read by `openssl`.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use brine_host::process::Program;
use brine_host::programs::{program, which};
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};

use super::settings::{Settings, number, text};
use super::{Beacon, Kind, Options, PollContext, entry};

/// The default of `notify_days`.
const NOTIFY_DAYS: f64 = 45.0;
/// The maximum size of a file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The timeout of `openssl`, whose input is already in memory.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The short names of extensions by their long ones.
const EXTENSIONS: &[(&str, &str)] = &[
    ("Authority Information Access", "authorityInfoAccess"),
    ("CT Precertificate Poison", "ct_precert_poison"),
    ("CT Precertificate SCTs", "ct_precert_scts"),
    ("Netscape CA Policy Url", "nsCaPolicyUrl"),
    ("Netscape Cert Type", "nsCertType"),
    ("Netscape Comment", "nsComment"),
    ("OCSP No Check", "noCheck"),
    ("Subject Information Access", "subjectInfoAccess"),
    ("TLS Feature", "tlsfeature"),
    ("X509v3 Authority Key Identifier", "authorityKeyIdentifier"),
    ("X509v3 Basic Constraints", "basicConstraints"),
    ("X509v3 CRL Distribution Points", "crlDistributionPoints"),
    ("X509v3 Certificate Policies", "certificatePolicies"),
    ("X509v3 Extended Key Usage", "extendedKeyUsage"),
    ("X509v3 Freshest CRL", "freshestCRL"),
    ("X509v3 Inhibit Any Policy", "inhibitAnyPolicy"),
    ("X509v3 Issuer Alternative Name", "issuerAltName"),
    ("X509v3 Key Usage", "keyUsage"),
    ("X509v3 Name Constraints", "nameConstraints"),
    ("X509v3 Policy Constraints", "policyConstraints"),
    ("X509v3 Policy Mappings", "policyMappings"),
    ("X509v3 Private Key Usage Period", "privateKeyUsagePeriod"),
    ("X509v3 Subject Alternative Name", "subjectAltName"),
    ("X509v3 Subject Key Identifier", "subjectKeyIdentifier"),
];

struct Certificates {
    /// The files, each with its `notify_days`: a certificate that expires within this many days is reported.
    files: Vec<(String, f64)>,
}

pub(super) const KIND: Kind = Kind {
    name: "cert_info",
    doc: "Certificates that expire soon, read by `openssl`.",
    options: Options::Named(&[
        entry("files", "Required. A list of PEM files, or of mappings of a file to `notify_days`."),
        entry(
            "notify_days",
            "The number of days before its expiry from which on a certificate is reported; a negative number reports \
             all (45).",
        ),
    ]),
    fields: &[entry(
        "certificates",
        "A list of mappings with `cert_path`, `subject`, `subject_dict`, `issuer`, `issuer_dict`, `notBefore`, \
         `notBefore_raw`, `notAfter`, `notAfter_raw`, `has_expired`, `serial_number`, `signature_algorithm`, `version` \
         and `extensions` (a list of `ext_name` and `ext_data`).",
    )],
    is_available: || which("openssl").is_some(),
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let days = |value: Option<&Value>, default| value.map_or(Ok(default), |value| number("notify_days", value));
    let default = days(settings.get("notify_days"), NOTIFY_DAYS)?;
    let files = settings.get("files").ok_or("option 'files' is missing")?;
    let files = files.as_list().ok_or_else(|| format!("option 'files': expected a list of paths, got {files}"))?;
    let file = |file: &Value| match file.as_map().and_then(|map| map.first()) {
        None => Ok((text("files", file)?, default)),
        Some((path, options)) => Ok((text("files", path)?, days(options.get("notify_days"), default)?)),
    };
    Ok(Box::new(Certificates { files: files.iter().map(file).collect::<Result<_, String>>()? }))
}

/// Returns the output of `openssl` for the certificate in a file.
fn described(poll: &PollContext<'_>, path: &str) -> Result<String, String> {
    let mut pem = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut pem));
    read.map_err(|error| error.to_string())?;
    let words = [
        "openssl",
        "x509",
        "-noout",
        "-nameopt",
        "sname,sep_multiline,utf8,esc_ctrl",
        "-subject",
        "-issuer",
        "-serial",
        "-dates",
        "-text",
        "-certopt",
        "no_pubkey,no_sigdump,no_subject,no_issuer,no_validity,no_serial",
    ];
    let program = program(&words.map(str::to_owned), &[("LC_ALL", "C")]);
    let program = Program { stdin: Some(pem), timeout: Some(TIMEOUT), ..program };
    let output = poll.context.run_program(&program).map_err(|error| error.to_string())?;
    match output.retcode {
        0 => Ok(output.stdout),
        _ => Err(output.stderr.lines().next().unwrap_or("openssl failed").to_owned()),
    }
}

/// The expiry of a certificate, and the fields of its event.
struct Certificate {
    not_after: DateTime,
    fields: Map,
}

/// Parses the output of `openssl x509`.
fn parsed(output: &str) -> Option<Certificate> {
    let value = |name: &str| output.lines().find_map(|line| line.trim_start().strip_prefix(name));
    let names = |name: &str| -> Vec<(String, String)> {
        let lines = output.lines().skip_while(|line| line.trim_end() != name).skip(1);
        let pairs = lines.take_while(|line| line.starts_with(' ')).filter_map(|line| line.trim_start().split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let (subject, issuer) = (names("subject="), names("issuer="));
    let (not_before, not_after) = (date(value("notBefore=")?)?, date(value("notAfter=")?)?);
    let version = value("Version: ")?.split(' ').next()?.parse::<i64>().ok()? - 1;
    let fields = map! {
        "issuer" => joined(&issuer), "issuer_dict" => mapping(issuer),
        "notAfter_raw" => not_after.strftime("%Y%m%d%H%M%SZ").to_string(),
        "notAfter" => not_after.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        "notBefore_raw" => not_before.strftime("%Y%m%d%H%M%SZ").to_string(),
        "notBefore" => not_before.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        "serial_number" => serial(value("serial=")?)?,
        "signature_algorithm" => value("Signature Algorithm: ")?,
        "subject" => joined(&subject), "subject_dict" => mapping(subject),
        "version" => version,
        "extensions" => extensions(output),
    };
    Some(Certificate { not_after, fields })
}

fn serial(hex: &str) -> Option<Value> {
    let digits = hex.trim_start_matches('-');
    Value::whole_number(digits.len() < hex.len(), digits, 16)
}

/// Parses `Nov 25 05:55:31 2026 GMT`.
fn date(text: &str) -> Option<DateTime> {
    strtime::parse("%b %e %H:%M:%S %Y", text.strip_suffix(" GMT")?).ok()?.to_datetime().ok()
}

fn joined(names: &[(String, String)]) -> String {
    names.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect::<Vec<_>>().join(",")
}

fn mapping(names: Vec<(String, String)>) -> Map {
    names.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Parses the extensions: their names are indented by 12, their values by 16 blanks.
fn extensions(output: &str) -> Value {
    let lines = output.lines().skip_while(|line| line.trim() != "X509v3 extensions:").skip(1);
    let mut extensions: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("                "), line.strip_prefix("            "), extensions.last_mut()) {
            (Some(value), _, Some((_, values))) => values.push(value),
            (None, Some(name), _) => extensions.push((name, Vec::new())),
            (None, None, Some((_, values))) if line.is_empty() => values.push(line),
            _ => break,
        }
    }
    let one = |(name, values): (&str, Vec<&str>)| {
        let name = name.trim_end().trim_end_matches("critical").trim_end().trim_end_matches(':');
        let short = EXTENSIONS.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short);
        map! {"ext_name" => short, "ext_data" => values.join("\n").trim_end()}
    };
    extensions.into_iter().map(one).collect()
}

/// Returns the event data of a certificate if it expires within `days`.
fn expiring(path: &str, certificate: Certificate, days: f64, now: Timestamp) -> Option<Map> {
    let not_after = certificate.not_after.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let left = (not_after - now).total(Unit::Second).ok()?;
    if days >= 0.0 && (left / 86_400.0).floor() > days {
        return None;
    }
    let mut report = map! {"cert_path" => path};
    report.extend(certificate.fields);
    report.insert("has_expired".into(), (left < 0.0).into());
    Some(report)
}

impl Beacon for Certificates {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let mut report: Vec<Value> = Vec::new();
        for (path, days) in &self.files {
            let certificate = described(poll, path)
                .and_then(|output| parsed(&output).ok_or_else(|| "the output of openssl is not a certificate".into()));
            match certificate {
                Ok(one) => report.extend(expiring(path, one, *days, poll.now.timestamp()).map(Value::from)),
                Err(error) => tracing::error!(beacon = "cert_info", path, error, "reading a certificate failed"),
            }
        }
        Ok(if report.is_empty() { Vec::new() } else { vec![map! {"certificates" => report}] })
    }
}

#[cfg(test)]
mod tests;
