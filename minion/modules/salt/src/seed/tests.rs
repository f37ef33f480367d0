//! Functions of `seed` on directories.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use brine_config::MinionConfig;

use super::*;
use crate::testing::{self, Scripted, context_with};

const INSTALLED: &str = "$ chroot ...\n| salt-minion is /usr/bin/salt-minion";
const NOT_INSTALLED: &str = "$ chroot ...\n= 127";

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

fn apply_to(context: &Context, root: &Path, keyword: Map) -> Result<Value, String> {
    context.call("seed.apply", Args { positional: vec![root.to_owned().into()], keyword }).map_err(CallError::message)
}

#[test]
fn configuration_and_keys_are_written_for_their_owner() {
    let directory = tempfile::tempdir().unwrap();
    let mut context = testing::context(&[]);
    let master = vec!["salt.example.com".to_owned()];
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(MinionConfig { master, ..Default::default() });
    let keyword =
        map! {"config" => map! {"log_level" => "info"}, "tmp" => directory.path().to_owned(), "id_" => "web1"};
    let paths = context.call("seed.mkconfig", Args { keyword, ..Args::default() }).unwrap();
    let path = |name: &str| PathBuf::from(paths.get(name).unwrap().to_string());
    assert_eq!(text(path("config")), "id: web1\nlog_level: info\nmaster: salt.example.com\n");
    let key = PrivateKey::from_pem(&text(path("privkey"))).unwrap();
    assert_eq!(text(path("pubkey")), key.public().to_pem());
    for name in ["config", "pubkey", "privkey"] {
        assert_eq!(path(name).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    // Given keys are used, as text or as files.
    let public = directory.path().join("given.pub");
    fs::write(&public, "public\n").unwrap();
    let keyword =
        map! {"tmp" => directory.path().to_owned(), "pub_key" => public, "priv_key" => "-----BEGIN\nprivate\n"};
    context.call("seed.mkconfig", Args { keyword, ..Args::default() }).unwrap();
    assert_eq!((text(path("pubkey")).as_str(), text(path("privkey")).as_str()), ("public\n", "-----BEGIN\nprivate\n"));
    assert_eq!(text(path("config")), "master: salt.example.com\n");
}

#[test]
fn a_directory_with_a_minion_gets_its_files() {
    let root = tempfile::tempdir().unwrap();
    let context = context_with(map! {}, Scripted::new(INSTALLED));
    let config = map! {"pki_dir" => "/srv/pki"};
    assert_eq!(apply_to(&context, root.path(), map! {"id_" => "web1", "config" => config}), Ok(true.into()));
    assert_eq!(text(root.path().join("etc/salt/minion")), "id: web1\npki_dir: /srv/pki\n");
    assert!(text(root.path().join("srv/pki/minion.pem")).starts_with("-----BEGIN RSA PRIVATE KEY-----"));
    assert!(root.path().join("srv/pki/minion.pub").exists());
    assert_eq!(fs::read_dir(root.path().join("tmp")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn without_a_minion_nothing_is_seeded_unless_it_is_installed() {
    let root = tempfile::tempdir().unwrap();
    let context = context_with(map! {}, Scripted::new(NOT_INSTALLED));
    assert_eq!(apply_to(&context, root.path(), map! {"install" => false}), Ok(false.into()));
    assert!(!root.path().join("etc").exists());
    assert_eq!(apply_to(&context, Path::new("/no/such"), map! {}), Ok("/no/such does not exist".into()));
    let prepared = apply_to(&context, root.path(), map! {"prep_install" => true});
    assert!(prepared.unwrap_err().starts_with("prep_install is not available"));
}

#[test]
fn symlinks_of_an_image_cannot_reach_files_of_the_host() {
    let host = tempfile::tempdir().unwrap();
    for link in ["tmp", "etc", "etc/salt", "etc/salt/pki"] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(host.path(), path).unwrap();
        let context = context_with(map! {}, Scripted::new(INSTALLED));
        let refused = apply_to(&context, root.path(), map! {}).unwrap_err();
        assert!(refused.contains("leads out of that directory"), "{link}: {refused}");
        assert_eq!(fs::read_dir(host.path()).unwrap().count(), 0, "{link}");
    }
    // A link in place of the file itself is replaced.
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("etc/salt")).unwrap();
    fs::write(host.path().join("minion"), "of the host").unwrap();
    symlink(host.path().join("minion"), root.path().join("etc/salt/minion")).unwrap();
    let context = context_with(map! {}, Scripted::new(INSTALLED));
    assert_eq!(apply_to(&context, root.path(), map! {"id_" => "web1"}), Ok(true.into()));
    assert_eq!(text(host.path().join("minion")), "of the host");
    assert_eq!(text(root.path().join("etc/salt/minion")), "id: web1\n");
}
