use std::path::Path;

use brine_value::map;

use super::*;

fn config(directory: &Path, change: impl FnOnce(&mut MasterConfig)) -> MasterConfig {
    let mut config =
        MasterConfig { pki_dir: directory.to_owned(), id: Some("host_master".into()), ..Default::default() };
    change(&mut config);
    config
}

#[test]
fn the_domain_is_appended_to_the_id_of_the_master() {
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for (id, domain, expected) in [
        (Some("m1"), "", "m1".to_owned()),
        (Some("m1"), "foo.org", "m1.foo.org".into()),
        (Some("m1.foo.org"), "foo.org", "m1.foo.org".into()),
        (Some("m1."), "foo.org", "m1.".into()),
        (None, "", format!("{host}_master")),
        (None, "foo.org", format!("{host}.foo.org_master")),
    ] {
        let config = MasterConfig { id: id.map(str::to_owned), append_domain: domain.to_owned(), ..Default::default() };
        assert_eq!(own_id(&config).unwrap().as_str(), expected, "{id:?} {domain}");
    }
}

fn public(config: &MasterConfig) -> String {
    Identity::load_or_generate(config).unwrap().public_key_pem
}

#[test]
fn the_key_is_found_under_the_names_of_all_releases() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), |_| {});
    let public_key = public(&config);
    for ending in ["pem", "pub"] {
        let path = |name: &str| directory.path().join(format!("{name}.{ending}"));
        std::fs::rename(path("master"), path("host")).unwrap();
        std::os::unix::fs::symlink(path("host"), path("master")).unwrap();
    }
    assert_eq!(public(&config), public_key);
    // A copied directory, whose links still point to the old location.
    std::fs::remove_file(directory.path().join("master.pem")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/host.pem", directory.path().join("master.pem")).unwrap();
    assert_eq!(public(&config), public_key);
    assert_eq!(Identity::load(&config).unwrap().unwrap().public().to_pem().trim_end(), public_key);
}

#[test]
fn a_passphrase_is_used_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let with = config(directory.path(), |config| config.key_pass = Some("secret".into()));
    let public_key = public(&with);
    assert!(std::fs::read_to_string(directory.path().join("master.pem")).unwrap().contains("ENCRYPTED"));
    assert_eq!(public(&with), public_key);
    assert!(Identity::load_or_generate(&config(directory.path(), |_| {})).is_err());
}

#[test]
fn configurations_that_would_generate_new_keys_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (opts, reported) in [
        (
            map! {"keys.cache_driver" => "redis"},
            "option 'keys.cache_driver': the keys are kept by 'redis'; Brine reads 'localfs_key', files below pki_dir, alone",
        ),
        (
            map! {"cluster_id" => "c1"},
            "option 'cluster_id': Salt's clusters on a shared file system are not supported: use 'cluster' (docs/cluster.md)",
        ),
    ] {
        let config = config(directory.path(), |config| config.opts = opts);
        let error = Identity::load_or_generate(&config).err().unwrap();
        assert_eq!(error.to_string(), reported);
    }
    let sdb = config(directory.path(), |config| config.key_pass = Some("sdb://vault/pass".into()));
    assert!(Identity::load_or_generate(&sdb).err().unwrap().to_string().starts_with("option 'key_pass': sdb://"));
    assert!(!directory.path().join("master.pem").exists());
}

#[test]
fn a_signing_key_or_a_prepared_signature_signs_the_public_key() {
    let directory = tempfile::tempdir().unwrap();
    let algorithm = SignatureAlgorithm::default();
    assert_eq!(
        Identity::load_or_generate(&config(directory.path(), |_| {})).unwrap().signature(algorithm).unwrap(),
        None
    );
    let signs = config(directory.path(), |config| config.master_sign_pubkey = true);
    let identity = Identity::load_or_generate(&signs).unwrap();
    let signature = identity.signature(algorithm).unwrap().unwrap();
    let signer = PrivateKey::load(directory.path().join("master_sign.pem"), None).unwrap().unwrap().public();
    let raw = BASE64_STANDARD.decode(&signature).unwrap();
    signer.verify(identity.public_key_pem.as_bytes(), &raw, algorithm).unwrap();

    let shows = config(directory.path(), |config| {
        config.master_sign_pubkey = true;
        config.master_use_pubkey_signature = true;
    });
    assert!(Identity::load_or_generate(&shows).err().unwrap().to_string().contains("there is no signature in"));
    for name in ["host_master_pubkey_signature", "master_pubkey_signature"] {
        std::fs::write(directory.path().join(name), format!("{name}\n")).unwrap();
        assert_eq!(Identity::load_or_generate(&shows).unwrap().signature(algorithm).unwrap().unwrap(), name);
    }
}
