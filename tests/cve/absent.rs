//! CVEs of features that Brine does not have. Each row names the feature and the issue that would add it, and fails
//! when the feature exists: then the row has to become a test of the defect.

use brine_value::{Map, map};

use crate::cve::{ask, error_of, salt_call};
use crate::support::{System, stderr};

/// A feature of Salt that Brine does not have.
enum Feature {
    /// A backend of `external_auth`.
    Login(&'static str),
    /// Execution functions.
    Functions(&'static [&'static str]),
    /// Any operating system except Unix.
    Windows,
}

impl Feature {
    async fn assert_is_absent(&self, issue: &str) {
        let hint = format!("the feature is there: replace the row by a test of the CVE ({issue})");
        match self {
            Feature::Login(name) => {
                let system =
                    System::start(&format!("external_auth: {{{name}: {{root: ['.*', '@wheel', '@runner']}}}}\n")).await;
                let login = map! {"eauth" => *name, "username" => "root", "password" => "x"};
                let answer = ask(&system, with(map! {"cmd" => "mk_token"}, &login)).await;
                assert_eq!(answer, "".into(), "{hint}");
                for cmd in ["runner", "wheel"] {
                    let load = with(map! {"cmd" => cmd, "fun" => "key.list_all", "user" => "nobody"}, &login);
                    let answer = ask(&system, load).await;
                    assert_eq!(error_of(&answer), "EauthAuthenticationError", "{answer}: {hint}");
                }
                let message = format!("external_auth '{name}' is not supported");
                assert!(system.master_log().contains(&message), "{hint}");
            }
            Feature::Functions(names) => {
                let system = System::new("");
                for name in *names {
                    let said = stderr(&salt_call(&system, &[name]));
                    assert!(said.contains("is not available"), "{name}: {said}: {hint}");
                }
            }
            Feature::Windows => assert_eq!(std::env::consts::FAMILY, "unix", "{hint}"),
        }
    }
}

fn with(mut load: Map, more: &Map) -> Map {
    load.extend(more.clone());
    load
}

/// One test per row: the CVE, the feature that has the defect in Salt, the issue that would add it.
macro_rules! absent {
    ($($(#[doc = $doc:literal])* $name:ident: $feature:expr, $issue:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                $feature.assert_is_absent($issue).await;
            }
        )*
    };
}

absent! {
    /// Python modules: `vmware` and certificates. `tls` tests the existing functions.
    cve_2020_28972_vmware_verifies_certificates: Feature::Functions(&["vsphere.get_service_instance_via_proxy"]), "#16";
    /// Python modules: `asam`, `keystone`, `zenoss` and certificates. `tls` tests the existing functions.
    cve_2020_35662_modules_verify_certificates:
        Feature::Functions(&["keystone.auth", "zenoss.device_discovered", "splunk.list_users"]), "#16";
    /// The installer for Windows accepts a directory planted by other users.
    cve_2021_22004_the_windows_installer_owns_its_directory: Feature::Windows, "no issue";
    /// Logins: `auth.pki` accepts a certificate as a proof.
    cve_2024_38825_pki_logins_prove_possession: Feature::Login("pki"), "#15";
    /// Python modules: `junos` and unsafe YAML. `content` tests the existing loader.
    cve_2025_62348_junos_loads_safe_yaml: Feature::Functions(&["junos.get_table"]), "#16";
}
