//! `external_auth: ldap` with a real server, OpenLDAP's slapd, which `tests/run` installs.
#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brine_auth::{AuthError, Credentials, ExternalAuth, Identity};
use brine_system::ports::free_port;
use brine_value::{Map, Value, list, map};

const SLAPD: &str = "/usr/sbin/slapd";
/// A certificate for localhost and 127.0.0.1 with its key, and its certificate authority.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../minion/host/src/web/server.pem");
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../minion/host/src/web/authority.pem");

const CONFIG: &str = "include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
objectclass ( 1.3.6.1.4.1.99999.1 NAME 'computer' SUP device STRUCTURAL )
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile CERTIFICATE
TLSCertificateKeyFile CERTIFICATE
database mdb
suffix dc=example
rootdn cn=admin,dc=example
rootpw s3rvice
directory ROOT/data
access to attrs=userPassword by anonymous auth by * none
access to * by * read
";

const DATA: &str = "dn: dc=example
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: ou=People,dc=example
objectClass: organizationalUnit
ou: People

dn: ou=Groups,dc=example
objectClass: organizationalUnit
ou: Groups

dn: ou=Web,dc=example
objectClass: organizationalUnit
ou: Web

dn: uid=fred,ou=People,dc=example
objectClass: inetOrgPerson
uid: fred
cn: Fred
sn: Fred
userPassword: pw

dn: uid=ann,ou=People,dc=example
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Twin
userPassword: pw

dn: uid=bob,ou=People,dc=example
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: Twin
userPassword: pw

dn: uid=two,ou=People,dc=example
objectClass: inetOrgPerson
uid: second
uid: two
cn: Two
sn: Double
userPassword: pw

dn: cn=ops,ou=Groups,dc=example
objectClass: posixGroup
cn: ops
gidNumber: 1000
memberUid: fred
memberUid: ann

dn: cn=web,ou=Groups,dc=example
objectClass: posixGroup
cn: web
gidNumber: 1001
memberUid: fred

dn: cn=staff,ou=Groups,dc=example
objectClass: groupOfNames
cn: staff
member: uid=fred,ou=People,dc=example

dn: cn=WEB1.corp.example,ou=Web,dc=example
objectClass: computer
cn: WEB1.corp.example

dn: cn=web2,ou=Web,dc=example
objectClass: computer
cn: web2

dn: cn=x or *,ou=Web,dc=example
objectClass: computer
cn: x or *
";

/// A running LDAP server with test data.
struct Server {
    child: Child,
    _directory: tempfile::TempDir,
    plain: u16,
    tls: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server; `None` if slapd is not installed, except in CI.
    fn start() -> Option<Self> {
        if !Path::new(SLAPD).exists() {
            assert!(std::env::var_os("BRINE_CI").is_none(), "{SLAPD} is missing: tests/run installs it");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("data")).unwrap();
        let config = root.join("slapd.conf");
        let text = CONFIG.replace("ROOT", root.to_str().unwrap()).replace("CERTIFICATE", CERTIFICATE);
        std::fs::write(&config, text).unwrap();
        let run = |program: &str, words: &[&str], input: &str| {
            let mut child = Command::new(program)
                .args(["-f", config.to_str().unwrap()])
                .args(words)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child
        };
        assert!(run("/usr/sbin/slapadd", &[], DATA).wait().unwrap().success());
        let (plain, tls) = (free_port().unwrap(), free_port().unwrap());
        let urls = format!("ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{tls}");
        let mut server = Server { child: run(SLAPD, &["-d", "0", "-h", &urls], ""), _directory: directory, plain, tls };
        let start = Instant::now();
        while [plain, tls].iter().any(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()) {
            assert_eq!(server.child.try_wait().unwrap(), None, "slapd has ended");
            assert!(start.elapsed() < Duration::from_secs(60), "slapd does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    /// Returns the options of a master that uses this server; the names of `more` get the prefix `auth.ldap.`.
    fn options(&self, more: Map) -> Map {
        let mut options = map! {
            "external_auth" => map! {"ldap" => map! {
                "fred" => list!["test.*", map! {"ldap(OU=Web,dc=example)" => list!["pkg.*"]}],
                "ops%" => list!["cmd.run"],
            }},
            "auth.ldap.server" => "127.0.0.1",
            "auth.ldap.port" => i64::from(self.plain),
            "auth.ldap.basedn" => "dc=example",
            "auth.ldap.filter" => "uid={{ username }}",
        };
        options.extend(more.into_iter().map(|(name, value)| (format!("auth.ldap.{name}").into(), value)));
        options
    }

    fn login(&self, more: Map, user: &str, password: &str) -> Result<Identity, AuthError> {
        login(&self.options(more), user, password)
    }
}

fn login(options: &Map, user: &str, password: &str) -> Result<Identity, AuthError> {
    let external = ExternalAuth::new(options);
    assert!(external.check().is_empty(), "{:?}", external.check());
    let (username, password) = (user.to_owned(), password.to_owned());
    external.authenticate(&Credentials { eauth: "ldap".to_owned(), username, password })
}

/// Options with which the master binds itself to search for the user.
fn service() -> Map {
    map! {"binddn" => "cn=admin,dc=example", "bindpw" => "s3rvice"}
}

fn with(mut options: Map, more: Map) -> Map {
    options.extend(more);
    options
}

#[test]
fn passwords_bind_as_the_users_entry() {
    let Some(server) = Server::start() else { return };
    let direct = || map! {"binddn" => "uid={{ username }},ou=People,dc=example"};
    let anonymous = || map! {"anonymous" => true};
    for options in [service(), direct(), anonymous()] {
        for (user, password, accepted) in [
            ("fred", "pw", true),
            ("fred", "wrong", false),
            ("fred", "", false),
            ("nobody", "pw", false),
            ("*", "pw", false),
            ("fred)(uid=*", "pw", false),
            ("fr*", "pw", false),
            ("fred,ou=People", "pw", false),
            ("cn=admin,dc=example", "s3rvice", false),
            ("fred\\", "pw", false),
            ("\u{0}", "pw", false),
        ] {
            let outcome = server.login(options.clone(), user, password);
            assert_eq!(outcome.is_ok(), accepted, "{options:?} {user:?} {password}: {outcome:?}");
            assert!(!matches!(outcome, Err(AuthError::Backend(_))), "{options:?} {user:?}: {outcome:?}");
        }
    }
    // A filter that finds two entries authenticates neither.
    let ambiguous = with(service(), map! {"filter" => "(|(sn=Twin)(uid={{ username }}))"});
    assert!(matches!(server.login(ambiguous, "ann", "pw"), Err(AuthError::Denied)));
    let elsewhere = with(service(), map! {"basedn" => "ou=Nowhere,dc=example"});
    assert!(matches!(server.login(elsewhere, "fred", "pw"), Err(AuthError::Denied)));
    // The scope excludes deeper entries.
    let near = with(service(), map! {"scope" => 1});
    assert!(matches!(server.login(near, "fred", "pw"), Err(AuthError::Denied)));
    // A wrong password of the master itself is a backend error, not a denial.
    let error = server.login(with(service(), map! {"bindpw" => "wr0ng"}), "fred", "pw").unwrap_err();
    assert!(matches!(error, AuthError::Backend(_)) && !error.to_string().contains("wr0ng"), "{error}");
}

#[test]
fn every_spelling_that_finds_an_entry_is_the_same_user() {
    let Some(server) = Server::start() else { return };
    let direct = map! {"binddn" => "uid={{ username }},ou=People,dc=example"};
    let by_mail = with(service(), map! {"filter" => "(|(uid={{ username }})(cn={{ username }}))"});
    for options in [service(), direct, map! {"anonymous" => true}, by_mail] {
        for user in [
            "fred",
            "FRED",
            "Fred",
            "ｆred",
            "ＦＲＥＤ",
            "fred ",
            "fred  ",
            " fred",
            "fr\0ed",
            "fre\u{301}d",
            "fr\u{ad}ed",
            "fred\u{200b}",
            "f\u{2060}red",
        ] {
            let options = server.options(options.clone());
            let external = ExternalAuth::new(&options);
            let credentials = Credentials { eauth: "ldap".into(), username: user.into(), password: "pw".into() };
            let outcome = external.authenticate(&credentials);
            assert!(!matches!(outcome, Err(AuthError::Backend(_))), "{user:?}: {outcome:?}");
            // Which of them the directory takes for the name is its matter.
            assert!(outcome.is_ok() || !user.is_ascii() || user.trim() != user || user.contains('\0'), "{user:?}");
            let Ok(identity) = outcome else { continue };
            assert_eq!(identity.username().as_str(), "fred", "{options:?} {user:?}");
            assert_eq!(identity.groups(), ["ops", "web"], "{user:?}");
            assert!(external.must_ask(&identity), "{user:?} has other entries than fred");
        }
    }
    // The entry of another person is not taken for it.
    assert_eq!(server.login(service(), "ANN", "pw").unwrap().username().as_str(), "ann");
    let blacklist = brine_auth::Blacklist::new(Some(&map! {"users" => list!["ann"]}.into()));
    assert!(blacklist.has_user(server.login(service(), "ANN", "pw").unwrap().username()));
}

#[test]
fn the_name_of_a_user_is_the_account_attribute_of_its_entry() {
    let Some(server) = Server::start() else { return };
    let named =
        |attribute: &str, filter: &str| with(service(), map! {"accountattributename" => attribute, "filter" => filter});
    for (options, typed, name) in [
        (named("cn", "uid={{ username }}"), "fred", Some("Fred")),
        (named("uid", "cn={{ username }}"), "FRED", Some("fred")),
        // The default attribute is one of groups: those of the filter are next.
        (with(service(), map! {"filter" => "(&(objectClass=inetOrgPerson)(cn={{ username }}))"}), "fred", Some("Fred")),
        // Several values: the one in the name of the entry.
        (named("uid", "uid={{ username }}"), "second", Some("two")),
        (named("uid", "uid={{ username }}"), "TWO", Some("two")),
        // No attribute with a name.
        (with(service(), map! {"filter" => "sn=Fre{{ username }}"}), "d", None),
    ] {
        let outcome = server.login(options.clone(), typed, "pw");
        let actual = outcome.as_ref().ok().map(|identity| identity.username().as_str());
        assert_eq!(actual, name, "{options:?} {typed}: {outcome:?}");
    }
}

#[test]
fn groups_are_found_in_every_supported_schema() {
    let Some(server) = Server::start() else { return };
    let posix = service();
    let active = with(
        service(),
        map! {
            "activedirectory" => true, "accountattributename" => "uid", "groupclass" => "groupOfNames",
        },
    );
    let freeipa = with(
        service(),
        map! {
            "freeipa" => true,
            "group_basedn" => "ou=Groups,dc=example",
            "group_filter" => "(&(memberUid={{ username }})(objectClass=posixGroup))",
        },
    );
    let whole = with(service(), map! {"groupou" => ""});
    let direct = map! {"binddn" => "uid={{ username }},ou=People,dc=example"};
    for (options, user, groups) in [
        (&posix, "fred", &["ops", "web"][..]),
        (&posix, "ann", &["ops"]),
        (&posix, "bob", &[]),
        (&whole, "fred", &["ops", "web"]),
        (&direct, "fred", &["ops", "web"]),
        (&active, "fred", &["staff"]),
        (&active, "ann", &[]),
        (&freeipa, "fred", &["ops", "web"]),
        (&freeipa, "bob", &[]),
    ] {
        assert_eq!(server.login(options.clone(), user, "pw").unwrap().groups(), groups, "{options:?} {user}");
    }
}

#[test]
fn entries_for_an_organisational_unit_target_its_computers() {
    let Some(server) = Server::start() else { return };
    let options = server.options(with(service(), map! {"minion_stripdomains" => list![".corp.example"]}));
    let external = ExternalAuth::new(&options);
    let (username, password) = ("fred".to_owned(), "pw".to_owned());
    let identity = external.authenticate(&Credentials { eauth: "ldap".to_owned(), username, password }).unwrap();
    assert!(external.must_ask(&identity));
    // An invalid minion id is not inserted into the target.
    let expected = list!["test.*", map! {"L@web1,web2" => list!["pkg.*"]}, "cmd.run"];
    assert_eq!(Value::from(external.current_entries(&identity).unwrap()), expected);
    let ann = Identity::assumed("ldap", "ann", identity.groups().to_vec());
    assert!(!external.must_ask(&ann));
    assert_eq!(Value::from(external.current_entries(&ann).unwrap()), list!["cmd.run"]);
}

#[test]
fn connections_are_encrypted_and_verified() {
    let Some(server) = Server::start() else { return };
    let ldaps = || map! {"server" => "localhost", "port" => i64::from(server.tls), "tls" => true};
    let authority = || map! {"ca_bundle" => AUTHORITY};
    let bundle = PathBuf::from("/nonexistent.pem").display().to_string();
    for (more, reason) in [
        (with(ldaps(), authority()), None),
        (with(map! {"starttls" => true}, authority()), None),
        (with(map! {"uri" => format!("ldap://127.0.0.1:1 ldaps://127.0.0.1:{}", server.tls)}, authority()), None),
        (with(ldaps(), map! {"no_verify" => true}), None),
        (with(map! {"starttls" => true}, map! {"no_verify" => true}), None),
        // The host does not trust the certificate authority.
        (with(ldaps(), map! {"ca_bundle" => CERTIFICATE}), Some("certificate")),
        (with(ldaps(), map! {"ca_bundle" => bundle}), Some("nonexistent")),
        (map! {"port" => 1}, Some("refused")),
    ] {
        let outcome = server.login(with(service(), more.clone()), "fred", "pw");
        match (outcome, reason) {
            (Ok(identity), None) => assert_eq!(identity.username().as_str(), "fred"),
            (Err(error @ AuthError::Backend(_)), Some(reason)) => {
                let text = error.to_string();
                assert!(text.to_lowercase().contains(reason) && !text.contains("s3rvice"), "{more:?}: {text}");
            }
            (outcome, _) => panic!("{more:?}: {outcome:?}"),
        }
    }
}

#[test]
fn a_lost_server_is_an_error_until_it_returns() {
    let Some(mut server) = Server::start() else { return };
    assert!(server.login(service(), "fred", "pw").is_ok());
    // A suspended server accepts connections, but does not answer.
    let pid = i32::try_from(server.child.id()).unwrap();
    let signal = |signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    signal(nix::sys::signal::Signal::SIGSTOP);
    let begun = Instant::now();
    let error = server.login(service(), "fred", "pw").unwrap_err();
    assert!(error.to_string().contains("no answer within"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    signal(nix::sys::signal::Signal::SIGCONT);
    assert!(server.login(service(), "fred", "pw").is_ok());
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let error = server.login(service(), "fred", "pw").unwrap_err();
    assert!(matches!(error, AuthError::Backend(_)), "{error}");
}
