//! TLS to database servers: verified servers, and certificates of clients.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{DatabaseServer, Kind, hand_over};
use brine_returners::{Options, open};
use brine_value::Map;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// PEM files: an authority, the certificate of the host `localhost`, one of a client, and an authority that has signed
/// neither.
struct Certificates(PathBuf);

impl Certificates {
    fn create(directory: &Path, kind: Kind) -> Self {
        fs::create_dir(directory).unwrap();
        let files = Certificates(directory.to_owned());
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            fs::write(files.path(name), issuer.pem()).unwrap();
            issuer
        };
        let issuer = authority("ca.pem");
        authority("other.pem");
        for name in ["localhost", "salt"] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.distinguished_name.push(rcgen::DnType::CommonName, name);
            let certificate = params.signed_by(&key, &issuer).unwrap();
            fs::write(files.path(&format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(files.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        hand_over(kind, Path::new(&files.path("localhost.key")));
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// Opens a returner with these options in place of the server's, and reads. `@` is replaced by the directory of certificates.
fn read(server: &DatabaseServer, name: &str, files: &Certificates, options: &[(&str, &str)]) -> Result<(), String> {
    let mut opts: Map = server.opts(name, "salt");
    let prefix = if name == "mysql" { "mysql".to_owned() } else { format!("returner.{name}") };
    for (option, value) in options {
        let value = value.strip_prefix('@').map_or_else(|| (*value).to_owned(), |file| files.path(file));
        opts.insert(format!("{prefix}.{option}").into(), value.into());
    }
    let returner = open(name, &Options::new(&opts, None)).map_err(|error| error.to_string())?;
    returner.setup().and_then(|()| returner.get_minions()).map(drop).map_err(|error| error.to_string())
}

#[test]
fn sslmode_sets_the_verification_of_postgresql() {
    let directory = tempfile::tempdir().unwrap();
    let files = Certificates::create(&directory.path().join("certificates"), Kind::Postgres);
    let options = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", files.path("localhost.pem")),
        format!("ssl_key_file={}", files.path("localhost.key")),
        format!("ssl_ca_file={}", files.path("ca.pem")),
    ];
    let options = options.into_iter().flat_map(|option| ["-c".to_owned(), option]).collect();
    let mut server = DatabaseServer::start_with(Kind::Postgres, directory.path(), options);
    server.create("salt");
    // From here on the server requires TLS.
    let rules = server.data().join("pg_hba.conf");
    fs::write(&rules, "hostssl all all all scram-sha-256\n").unwrap();
    server.stop();
    server.start_again();
    let host = ("host", "localhost");
    for (options, error) in [
        (&[][..], None),
        (&[("sslmode", "None")], None),
        (&[("sslmode", "require")], None),
        (&[("sslmode", "verify-ca"), ("sslrootcert", "@ca.pem")], None),
        (&[("sslmode", "verify-full"), ("sslrootcert", "@ca.pem"), host], None),
        (&[("sslmode", "disable")], Some("pg_hba.conf")),
        (&[("sslmode", "verify-full"), ("sslrootcert", "@ca.pem")], Some("not valid for name")),
        (&[("sslmode", "require"), ("sslrootcert", "@other.pem")], Some("UnknownIssuer")),
        (&[("sslmode", "verify-ca"), ("sslrootcert", "@other.pem")], Some("UnknownIssuer")),
        (&[("sslmode", "verify-full"), host], Some("UnknownIssuer")),
        (&[("sslmode", "on")], Some("'on' is invalid: expected disable, allow")),
    ] {
        let result = read(&server, "postgres", &files, options);
        match error {
            None => assert_eq!(result, Ok(()), "{options:?}"),
            Some(error) => {
                let message = result.expect_err("it connects");
                assert!(message.contains(error) && !message.contains("secret"), "{options:?}: {message}");
            }
        }
    }
    let strict = "hostssl postgres all all scram-sha-256\nhostssl salt all all scram-sha-256 clientcert=verify-full\n";
    fs::write(&rules, strict).unwrap();
    server.stop();
    server.start_again();
    let client = [("sslcert", "@salt.pem"), ("sslkey", "@salt.key")];
    assert_eq!(read(&server, "pgjsonb", &files, &client), Ok(()));
    let message = read(&server, "pgjsonb", &files, &[]).unwrap_err();
    assert!(message.contains("certificate"), "{message}");
}

#[test]
fn mysql_servers_are_verified() {
    let directory = tempfile::tempdir().unwrap();
    let files = Certificates::create(&directory.path().join("certificates"), Kind::MariaDb);
    let options = vec![
        format!("--ssl-ca={}", files.path("ca.pem")),
        format!("--ssl-cert={}", files.path("localhost.pem")),
        format!("--ssl-key={}", files.path("localhost.key")),
    ];
    let server = DatabaseServer::start_with(Kind::MariaDb, directory.path(), options);
    server.create("salt");
    let as_root = |sql: &str| server.client_as("root", "", "mysql", sql);
    as_root("CREATE USER sealed@'%' IDENTIFIED BY 'secret' REQUIRE SSL; GRANT ALL ON salt.* TO sealed@'%'");
    as_root("CREATE USER known@'%' IDENTIFIED BY 'secret' REQUIRE X509; GRANT ALL ON salt.* TO known@'%'");
    let (host, sealed, known) = (("host", "localhost"), ("user", "sealed"), ("user", "known"));
    let client = [("ssl_cert", "@salt.pem"), ("ssl_key", "@salt.key")];
    for (options, error) in [
        (&[sealed][..], Some("Access denied")),
        (&[sealed, host, ("ssl_ca", "@ca.pem")], None),
        (&[sealed, ("ssl_ca", "@ca.pem")], Some("not valid for name")),
        (&[sealed, host, ("ssl_ca", "@other.pem")], Some("UnknownIssuer")),
        (&[known, host, ("ssl_ca", "@ca.pem")], Some("Access denied")),
        (&[known, host, ("ssl_ca", "@ca.pem"), client[0], client[1]], None),
        (&[host, client[0]], Some("option 'mysql.ssl_key': it is required with ssl_cert")),
        (&[host, ("ssl_ca", "/nonexistent")], Some("option 'mysql.ssl_ca': reading /nonexistent failed")),
    ] {
        let result = read(&server, "mysql", &files, options);
        match error {
            None => assert_eq!(result, Ok(()), "{options:?}"),
            Some(error) => {
                let message = result.expect_err("it connects");
                assert!(message.contains(error) && !message.contains("secret"), "{options:?}: {message}");
            }
        }
    }
}
