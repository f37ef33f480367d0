//! `http.update_ca_bundle`: the file with the certificate authorities of web servers.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{CallError, CallResult, function};
use brine_system::files;
use brine_value::{Map, Value, map};

use super::ask;

/// The URL of the bundle that the curl project extracts from Mozilla's certificate store. Salt's default URL does not
/// use TLS.
const SOURCE: &str = "https://curl.se/ca/cacert.pem";
/// The paths of distributions' bundles, in the order of lookup.
const LOCATIONS: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The largest file that is merged.
const MAX_MERGED: u64 = 10 << 20;

/// Download a bundle of certificate authorities, and replace the bundle of this host. `merge_files` are appended.
///
/// CLI Example:
///
///     salt '*' http.update_ca_bundle
///     salt '*' http.update_ca_bundle target=/path/to/cacerts.pem merge_files=/path/to/mycert.pem
#[function]
pub fn update_ca_bundle(
    context: &Context,
    /// The file; by default the option `ca_bundle`, `cacert.pem` below a file root, or the bundle of the distribution.
    target: Option<PathBuf>,
    /// The URL; by default the option `ca_bundle_url`, or curl's bundle by HTTPS. The file stays as it is if the
    /// download fails or contains no certificate.
    source: Option<String>,
    /// Paths of files that are appended, as a list or with commas.
    #[default]
    merge_files: Value,
) -> CallResult {
    let opts = context.opts();
    let target = target.or_else(|| brine_config::opts::minion::ca_bundle(&opts)).or_else(|| found(&opts));
    let missing = "updating the bundle of certificate authorities failed: its file is unknown; set target";
    let target = target.ok_or_else(|| CallError::execution(missing))?;
    let source = source.or_else(|| brine_config::opts::modules::ca_bundle_url(&opts));
    let source = source.unwrap_or_else(|| SOURCE.to_owned());
    let failed =
        |why: &dyn std::fmt::Display| CallError::execution(format!("updating {} failed: {why}", target.display()));
    let answer = ask(context, &source, &map! {"status" => true})?;
    if let Some(error) = answer.get("error").filter(|error| error.is_truthy()) {
        return Err(failed(&format!("{source}: {error}")));
    }
    let status = answer.get("status").and_then(Value::as_i64);
    let bundle = answer.get("body").map(ToString::to_string).unwrap_or_default();
    if status != Some(200) || !bundle.contains("-----BEGIN CERTIFICATE-----") {
        return Err(failed(&format!("{source} returned no certificates")));
    }
    let mut bundle = bundle;
    for path in names(&merge_files) {
        let length = std::fs::metadata(&path).map_err(|error| failed(&format!("{path}: {error}")))?.len();
        if length > MAX_MERGED {
            return Err(failed(&format!("{path} has more than {MAX_MERGED} bytes")));
        }
        let more = std::fs::read_to_string(&path).map_err(|error| failed(&format!("{path}: {error}")))?;
        bundle = format!("{bundle}\n\n{more}");
    }
    files::rewrite(&target, bundle.as_bytes(), 0o644).map_err(|error| failed(&error))?;
    Ok(Value::Nil)
}

/// Returns the bundle below the file roots or of the distribution.
fn found(opts: &Map) -> Option<PathBuf> {
    let roots = brine_config::opts::shared::file_roots(opts);
    let base = roots.get("base").cloned().unwrap_or_default();
    let below = base.iter().flat_map(|root| ["cacert.pem", "ca-bundle.crt"].map(|name| root.join(name)));
    below.chain(LOCATIONS.map(PathBuf::from)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_testing::web;

    use super::*;
    use crate::testing::context;

    #[test]
    fn bundle_is_replaced_only_by_certificates() {
        let directory = tempfile::tempdir().unwrap();
        let (target, own) = (directory.path().join("ca.pem"), directory.path().join("own.pem"));
        std::fs::write(&own, "own\n").unwrap();
        let port = web::server(|asked| {
            let body = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
            match asked.split_whitespace().nth(1) {
                Some("/good") => ("200 OK", "text/plain", body.to_owned()),
                Some("/bad") => ("200 OK", "text/html", "<p>log in</p>".to_owned()),
                _ => ("404 Not Found", "text/plain", body.to_owned()),
            }
        });
        let server = format!("http://127.0.0.1:{port}");
        let call = |source: &str| {
            let keyword = map! {
                "target" => target.display().to_string(), "source" => source, "merge_files" => own.display().to_string()
            };
            context(&[]).call("http.update_ca_bundle", Args::keyword(keyword))
        };
        assert_eq!(call(&format!("{server}/good")), Ok(Value::Nil));
        let bundle = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
        assert_eq!(std::fs::read_to_string(&target).unwrap(), format!("{bundle}\n\nown\n"));
        for (path, why) in [("bad", " returned no certificates"), ("gone", ": HTTP 404: Not Found")] {
            let error = call(&format!("{server}/{path}")).unwrap_err().message();
            assert_eq!(error, format!("updating {} failed: {server}/{path}{why}", target.display()));
        }
        assert!(std::fs::read_to_string(&target).unwrap().starts_with(bundle));
    }
}
