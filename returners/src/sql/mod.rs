//! Returners of SQL servers. This file documents them; `returner.rs` stores and reads, `layout.rs` contains the
//! statements that differ, `columns.rs` the columns, `mysql.rs` and `postgres.rs` the clients, which are built by the
//! features of their names, and `tls.rs` the TLS of PostgreSQL.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod columns;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod layout;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod returner;
#[cfg(feature = "postgres")]
mod tls;

use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS};

#[cfg(not(feature = "mysql"))]
mod mysql {
    use crate::{Options, Returner, ReturnerError};

    pub(super) fn open(_: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
        Err(ReturnerError::NotBuilt { name: "mysql" })
    }
}

#[cfg(not(feature = "postgres"))]
mod postgres {
    use crate::{Options, Returner, ReturnerError};

    pub(super) fn open_text(_: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
        Err(ReturnerError::NotBuilt { name: "postgres" })
    }

    pub(super) fn open_jsonb(_: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
        Err(ReturnerError::NotBuilt { name: "pgjsonb" })
    }

    pub(super) fn open_local_cache(_: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
        Err(ReturnerError::NotBuilt { name: "postgres_local_cache" })
    }
}

pub(crate) const MYSQL: Backend = Backend {
    name: "mysql",
    doc: "Jobs, returns and events in a MySQL or MariaDB database, in the tables of Salt's returner. \
          `salt-run returner.setup mysql` creates and upgrades the tables.",
    options: &[
        BackendOption { name: "mysql.host", default: Some("salt"), doc: "The host name or address of the server." },
        BackendOption { name: "mysql.port", default: Some("3306"), doc: "The port of the server." },
        BackendOption { name: "mysql.user", default: Some("salt"), doc: "The name of the database user." },
        BackendOption { name: "mysql.pass", default: Some("salt"), doc: "The password of the database user." },
        BackendOption { name: "mysql.db", default: Some("salt"), doc: "The name of the database." },
        BackendOption {
            name: "mysql.ssl_ca",
            default: None,
            doc: "The PEM file of the authorities that are trusted in addition to the public ones. Each of these three \
                  options turns TLS on; the server's certificate must name the host.",
        },
        BackendOption { name: "mysql.ssl_cert", default: None, doc: "The PEM file of the client's certificate." },
        BackendOption { name: "mysql.ssl_key", default: None, doc: "The PEM file of the client's key." },
        KEEP_JOBS_SECONDS,
    ],
    open: mysql::open,
    // The connection is opened by the first operation.
    check: |options| mysql::open(options).map(|_| ()),
};

/// Defines the documentation of a backend. The names of its options differ only by the prefix, except the password's.
macro_rules! backend {
    ($name:literal, $prefix:literal, $password:literal, $open:path, $doc:literal) => {
        Backend {
            name: $name,
            doc: concat!($doc, " `salt-run returner.setup ", $name, "` creates and upgrades the tables."),
            options: &[
                BackendOption {
                    name: concat!($prefix, ".host"),
                    default: Some("localhost"),
                    doc: "The host name or address of the server.",
                },
                BackendOption {
                    name: concat!($prefix, ".port"),
                    default: Some("5432"),
                    doc: "The port of the server.",
                },
                BackendOption {
                    name: concat!($prefix, ".user"),
                    default: Some("salt"),
                    doc: "The name of the database user.",
                },
                BackendOption {
                    name: concat!($prefix, ".", $password),
                    default: Some("salt"),
                    doc: "The password of the database user.",
                },
                BackendOption {
                    name: concat!($prefix, ".db"),
                    default: Some("salt"),
                    doc: "The name of the database.",
                },
                BackendOption {
                    name: concat!($prefix, ".connect_timeout"),
                    default: Some("5"),
                    doc: "The timeout of a connection attempt in seconds.",
                },
                BackendOption {
                    name: concat!($prefix, ".sslmode"),
                    default: Some("prefer"),
                    doc: "How TLS is used, as in libpq: disable, allow, prefer (if the server can, unverified), require \
                          (unverified without sslrootcert), verify-ca or verify-full.",
                },
                BackendOption {
                    name: concat!($prefix, ".sslrootcert"),
                    default: None,
                    doc: "The PEM file of the trusted authorities; the host's own if unset.",
                },
                BackendOption {
                    name: concat!($prefix, ".sslcrl"),
                    default: None,
                    doc: "The PEM file of revoked certificates.",
                },
                BackendOption {
                    name: concat!($prefix, ".sslcert"),
                    default: None,
                    doc: "The PEM file of the client's certificate.",
                },
                BackendOption {
                    name: concat!($prefix, ".sslkey"),
                    default: None,
                    doc: "The PEM file of the client's key.",
                },
                KEEP_JOBS_SECONDS,
            ],
            open: $open,
            // The connection is opened by the first operation.
            check: |options| $open(options).map(|_| ()),
        }
    };
}

pub(crate) const POSTGRES: Backend = backend!(
    "postgres",
    "returner.postgres",
    "passwd",
    postgres::open_text,
    "Jobs, returns and events in a PostgreSQL database, in the tables of Salt's returner, with JSON as text."
);

pub(crate) const PGJSONB: Backend = backend!(
    "pgjsonb",
    "returner.pgjsonb",
    "pass",
    postgres::open_jsonb,
    "Jobs, returns and events in a PostgreSQL database, in the tables of Salt's returner, with JSON as jsonb."
);

pub(crate) const POSTGRES_LOCAL_CACHE: Backend = backend!(
    "postgres_local_cache",
    "master_job_cache.postgres",
    "passwd",
    postgres::open_local_cache,
    "A job cache in a PostgreSQL database with a column for each field of a job, in the tables of Salt's returner."
);
