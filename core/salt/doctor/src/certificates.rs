//! The certificate of the REST API.

use std::path::Path;

use brine_system::user_files;
use brine_value::Value;
use brine_x509::{Certificate, parse_time};

use crate::finding::{Finding, Role, quoted};
use crate::installation::{CertificateFiles, Installation};
use crate::kinds;
use crate::places::not_seen;

/// The time before the end of a certificate from which it is reported, in seconds.
const SOON: i64 = 21 * 86_400;

/// Examines the certificate and its key.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let Some(files) = &installation.certificate else { return Vec::new() };
    let role = installation.role;
    let renew = renewal(files);
    let unreadable = |path: &Path, why: String| {
        Finding::new(&kinds::CERTIFICATE_UNREADABLE, role, "the certificate of the REST API is not usable")
            .at(path.display())
            .because(why)
            .mended_by(&renew)
    };
    let read = |path: &Path| match user_files::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Box::new(not_seen(role, path))),
        Err(error) if path.as_os_str().is_empty() => {
            Err(Box::new(unreadable(path, format!("ssl_crt and ssl_key are required together: {error}"))))
        }
        Err(error) => Err(Box::new(unreadable(path, error.to_string()))),
    };
    let certificate = match read(&files.certificate) {
        Ok(bytes) => match Certificate::load(&bytes, None) {
            Ok(loaded) => loaded.certificate,
            Err(error) => return vec![unreadable(&files.certificate, error.to_string())],
        },
        Err(finding) => return vec![*finding],
    };
    let mut findings = Vec::new();
    match read(&files.key) {
        Ok(bytes) => match brine_x509::PrivateKey::load(&bytes, None) {
            Ok(loaded) => {
                let public = |key: brine_x509::Result<brine_x509::PublicKey>| key.ok().map(|key| key.to_pem());
                if public(certificate.public_key()) != public(loaded.key.public()) {
                    findings.push(unreadable(&files.key, "the key is not that of the certificate".to_owned()));
                }
            }
            Err(error) => findings.push(unreadable(&files.key, error.to_string())),
        },
        Err(finding) => findings.push(*finding),
    }
    let Ok(details) = certificate.details() else { return findings };
    let text = |name: &str| details.get(name).and_then(Value::as_str).unwrap_or_default();
    let time = |name: &str| parse_time(text(name));
    if let Some((kind, why)) = judge(time("not_before"), time("not_after"), brine_x509::now()) {
        let what = match kind.name {
            "certificate-expires" => "the certificate of the REST API expires soon",
            _ => "the certificate of the REST API is not valid now",
        };
        let why = format!("{why}: from {} to {}", text("not_before"), text("not_after"));
        findings.push(Finding::new(kind, role, what).at(files.certificate.display()).because(why).mended_by(&renew));
    }
    findings.extend(names(role, files, &details.get("extensions").map(Value::to_string).unwrap_or_default()));
    findings
}

fn renewal(files: &CertificateFiles) -> String {
    if files.is_generated {
        return format!(
            "rm {} {} && systemctl restart brine-api   # makes a new one",
            quoted(&files.certificate),
            quoted(&files.key)
        );
    }
    format!(
        "openssl x509 -noout -text -in {}   # renew it, then: systemctl restart brine-api",
        quoted(&files.certificate)
    )
}

fn judge(from: Option<i64>, to: Option<i64>, now: i64) -> Option<(&'static kinds::Kind, String)> {
    match (from, to) {
        (_, Some(to)) if to <= now => Some((&kinds::CERTIFICATE_EXPIRED, "it has expired".to_owned())),
        (Some(from), _) if from > now => Some((&kinds::CERTIFICATE_EXPIRED, "it is not valid yet".to_owned())),
        (_, Some(to)) if to - now < SOON => {
            Some((&kinds::CERTIFICATE_EXPIRES, format!("it expires in {} days", (to - now) / 86_400)))
        }
        _ => None,
    }
}

/// Finds a certificate that has no name of this host. Only names in the extension count, as for browsers.
fn names(role: Role, files: &CertificateFiles, extensions: &str) -> Option<Finding> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_lowercase();
    let extensions = extensions.to_lowercase();
    let short = host.split('.').next().unwrap_or_default();
    let domain = host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
    let has_own =
        short.is_empty() || extensions.contains(short) || domain.is_some_and(|domain| extensions.contains(&domain));
    // A certificate for a balancer or an alias is as it should be; one for no host at all is not.
    let has_any = extensions.contains("subjectaltname");
    (!has_own && (files.is_generated || !has_any)).then(|| {
        Finding::new(&kinds::CERTIFICATE_NAMES, role, format!("the certificate of the REST API does not name '{host}'"))
            .at(files.certificate.display())
            .because("the host was renamed, or the certificate has no subjectAltName: clients refuse it")
            .mended_by(renewal(files))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_judged_by_the_time() {
        const DAY: i64 = 86_400;
        for (from, to, expected) in [
            (-DAY, 400 * DAY, None),
            (-DAY, 5 * DAY, Some("certificate-expires")),
            (-DAY, -1, Some("certificate-expired")),
            (DAY, 400 * DAY, Some("certificate-expired")),
        ] {
            let actual = judge(Some(1_000_000_000 + from), Some(1_000_000_000 + to), 1_000_000_000);
            assert_eq!(actual.map(|(kind, _)| kind.name), expected, "{from} {to}");
        }
    }
}
