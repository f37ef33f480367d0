//! Returners of SQL servers. This file documents them; `returner.rs` stores and reads, `layout.rs` has the statements that
//! differ, `mysql.rs` and `postgres.rs` the clients, which are built by the features of their names.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod layout;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod returner;

use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use returner::SqlError;

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
        KEEP_JOBS_SECONDS,
    ],
    open: mysql::open,
    // The connection is opened by the first operation.
    check: |options| mysql::open(options).map(|_| ()),
};

/// The documentation of a backend; the names of its options but the password differ by the prefix alone.
macro_rules! backend {
    ($name:literal, $password:literal, $open:path, $doc:literal) => {
        Backend {
            name: $name,
            doc: concat!($doc, " `salt-run returner.setup ", $name, "` creates and upgrades the tables."),
            options: &[
                BackendOption {
                    name: concat!("returner.", $name, ".host"),
                    default: Some("localhost"),
                    doc: "The host name or address of the server.",
                },
                BackendOption {
                    name: concat!("returner.", $name, ".port"),
                    default: Some("5432"),
                    doc: "The port of the server.",
                },
                BackendOption {
                    name: concat!("returner.", $name, ".user"),
                    default: Some("salt"),
                    doc: "The name of the database user.",
                },
                BackendOption {
                    name: concat!("returner.", $name, ".", $password),
                    default: Some("salt"),
                    doc: "The password of the database user.",
                },
                BackendOption {
                    name: concat!("returner.", $name, ".db"),
                    default: Some("salt"),
                    doc: "The name of the database.",
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
    "passwd",
    postgres::open_text,
    "Jobs, returns and events in a PostgreSQL database, in the tables of Salt's returner, with JSON as text."
);

pub(crate) const PGJSONB: Backend = backend!(
    "pgjsonb",
    "pass",
    postgres::open_jsonb,
    "Jobs, returns and events in a PostgreSQL database, in the tables of Salt's returner, with JSON as jsonb."
);
