//! Files and entries that other people write: certificates and keys, password files, entries of access lists, rosters,
//! archives, and configurations in the format of git's. Any of them is parsed or refused.

#![allow(clippy::disallowed_methods, reason = "inputs in a directory of this process")]

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use brine_auth::{Acl, CallKind, Credentials, ExternalAuth, JobRequest};
use brine_context::Context;
use brine_function::Args;
use brine_jinja::Host as Functions;
use brine_modules_files::archive;
use brine_ssh::roster::{RosterOptions, hosts};
use brine_target::TargetKind;
use brine_testing::Alone;
use brine_value::{Map, Value, map};
use brine_x509::{Certificate, Container, PrivateKey, PublicKey, Request, RevocationList};

use super::text_of;
use crate::fingerprint;

/// The directory of the files of this process.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("brine-fuzz-{}-files", std::process::id()));
    std::fs::create_dir_all(&directory).expect("creating a directory in the temporary directory");
    directory
});

/// Stores an input as a file.
fn stored(name: &str, bytes: &[u8]) -> PathBuf {
    let path = DIRECTORY.join(name);
    std::fs::write(&path, bytes).expect("writing into the directory of this process");
    path
}

/// Certificates, signing requests, revocation lists and keys. The first byte selects the structure.
pub fn x509(bytes: &[u8]) -> u64 {
    let Some((kind, bytes)) = bytes.split_first() else { return 0 };
    let password = (kind & 64 != 0).then_some("secret");
    let kind = kind & 7;
    match kind {
        0 => {
            let read = Certificate::load(bytes, password);
            if let Ok(loaded) = &read {
                for certificate in loaded.chain.iter().chain([&loaded.certificate]) {
                    _ = (certificate.details(), certificate.public_key(), certificate.to_pem());
                }
            }
            fingerprint(kind, read)
        }
        1 => Certificate::from_der(bytes).map_or(0, |certificate| fingerprint(kind, certificate.details())),
        2 => fingerprint(kind, Request::load(bytes).and_then(|(request, _)| request.details())),
        3 => fingerprint(kind, RevocationList::load(bytes).map(|(list, _)| list.details())),
        4 => fingerprint(kind, PrivateKey::load(bytes, password)),
        5 => fingerprint(kind, PublicKey::load(bytes)),
        _ => fingerprint(kind, Container::open(bytes, password).map(|container| container.is_some())),
    }
}

/// Files of users and passwords: the first byte selects their format, the second line is the user's name.
pub fn passwords(bytes: &[u8]) -> u64 {
    let Some((kind, bytes)) = bytes.split_first() else { return 0 };
    let text = text_of(bytes);
    // Slow hashes are slow on purpose.
    if text.match_indices("$2").any(|(at, _)| text[at..].get(3..7).is_none_or(|cost| cost != "$04$")) {
        return 1;
    }
    let filetype = ["text", "htpasswd", "htdigest"][usize::from(kind % 3)];
    let options = map! {"file" => map! {
        "^filename" => stored("passwords", text.as_bytes()), "^filetype" => filetype, "^realm" => "realm", "*" => brine_value::list!["test.*"],
    }};
    let name = text.lines().next().and_then(|line| line.split(':').next()).unwrap_or_default();
    let credentials =
        |password: &str| Credentials { eauth: "file".into(), username: name.into(), password: password.into() };
    let auth = ExternalAuth::new(&options);
    let right = auth.authenticate(&credentials("pw"));
    assert!(right.is_err() || auth.authenticate(&credentials("other")).is_err() || filetype == "text", "two passwords");
    fingerprint(*kind % 3, right)
}

/// Entries of `external_auth` and `publisher_acl`, as YAML.
pub fn acl(bytes: &[u8]) -> u64 {
    let text = text_of(bytes);
    let Ok(Value::List(entries)) = brine_yaml::load(text) else { return 0 };
    let acl = Acl::new(&entries);
    let minions = ["web1".to_owned(), "db1".to_owned()];
    let args = [Value::from("uptime"), map! {"__kwarg__" => true, "cwd" => "/tmp"}.into()];
    let job = JobRequest { functions: vec![("cmd.run", &args), ("test.ping", &[])], minions: &minions };
    let matching = |_: &str| Some(HashSet::from(["web1".to_owned()]));
    let outcome = [
        acl.permits_job(&job, matching),
        acl.permits_job(&job, |_| None),
        acl.permits_call(CallKind::Runner, "jobs.active", &[], &Map::new()),
        acl.permits_call(CallKind::Wheel, "key.accept", &args[..1], &Map::new()),
        acl.is_empty(),
    ];
    assert!(!acl.is_empty() || outcome.iter().filter(|permitted| **permitted).count() == 1, "an empty list permits");
    outcome.iter().fold(1, |sum, bit| sum * 2 + u64::from(*bit))
}

/// Rosters: the first byte selects the format.
pub fn roster(bytes: &[u8]) -> u64 {
    let Some((kind, bytes)) = bytes.split_first() else { return 0 };
    let name = ["flat", "sshconfig", "sshknownhosts", "dir"][usize::from(kind % 4)];
    let text = text_of(bytes);
    let file = stored("roster", text.as_bytes());
    let directory = DIRECTORY.join("roster.d");
    if name == "dir" {
        std::fs::create_dir_all(&directory).expect("creating a directory of this process");
        std::fs::write(directory.join("host"), text).expect("writing into the directory of this process");
    }
    let options = RosterOptions {
        roster: name.into(),
        known_hosts: file.clone(),
        file,
        defaults: Map::new(),
        user: None,
        port: None,
        passwd: None,
        key: None,
        priv_passwd: None,
        sudo: false,
        sudo_user: None,
        identities_only: false,
        nodegroups: Map::new(),
        opts: Map::new(),
        directory,
        domain: String::new(),
        scan: (vec![22], Duration::from_millis(1)),
        range_server: String::new(),
        cached: HashMap::new(),
    };
    fingerprint(*kind % 4, hosts(&options, &"*".into(), TargetKind::Glob, &Functions::new()))
}

thread_local! {
    static CONTEXT: Context = {
        static MODULES: brine_context::Modules = brine_context::Modules(&[brine_modules_files::MODULES]);
        brine_testing::context_of(brine_testing::minion(&MODULES, &[], Arc::new(Alone::default())))
    };
}

/// Archives: the listing of tar, and ZIP files, which are extracted. Nothing is written outside of the target.
pub fn archives(bytes: &[u8]) -> u64 {
    let Some((kind, bytes)) = bytes.split_first() else { return 0 };
    if kind & 1 == 0 {
        let listing = archive::tar_listing(text_of(bytes));
        return fingerprint(0, listing.special.first().map_or(Ok(()), |_| Err("special")));
    }
    let (path, target) = (stored("archive.zip", bytes), DIRECTORY.join("target"));
    let before = std::fs::read_dir(&*DIRECTORY).into_iter().flatten().count();
    let call = |function: &str, keyword: Map| CONTEXT.with(|context| context.call(function, Args::keyword(keyword)));
    _ = call("archive.list", map! {"name" => path.clone(), "archive_format" => "zip"});
    _ = std::fs::create_dir_all(&target);
    let result = call("archive.unzip", map! {"zip_file" => path, "dest" => target.clone()});
    let after = std::fs::read_dir(&*DIRECTORY).into_iter().flatten().count();
    _ = std::fs::remove_dir_all(&target);
    assert!(after <= before + 1, "a file was written outside of the target");
    fingerprint(1, result.map_err(|error| error.to_string()))
}

/// Files in the format of `.git/config` and other INI files: an option that was set is read.
pub fn ini(bytes: &[u8]) -> u64 {
    let path = stored("config", text_of(bytes).as_bytes());
    let call = |function: &str, keyword: Map| CONTEXT.with(|context| context.call(function, Args::keyword(keyword)));
    let read = call("ini.get_ini", map! {"file_name" => path.clone()});
    let set =
        call("ini.set_option", map! {"file_name" => path.clone(), "sections" => map! {"core" => map! {"bare" => "x"}}});
    if set.is_ok() {
        let got = call("ini.get_option", map! {"file_name" => path, "section" => "core", "option" => "bare"});
        // Lines that continued the former value continue the new one, as in Salt.
        assert!(got.is_ok_and(|value| value.to_string().starts_with('x')), "an option that was set is read");
    }
    fingerprint(0, read.map_err(|error| error.to_string()))
}
