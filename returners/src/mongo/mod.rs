//! `mongo`: a MongoDB database in the layout of Salt's returner. This file documents it; `client.rs` is built by the feature
//! `mongo`, and `documents.rs` converts values.

#[cfg(feature = "mongo")]
mod client;
#[cfg(feature = "mongo")]
mod documents;

use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS};

const NAME: &str = "mongo";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs, returns and events in the collections `jobs`, `saltReturns` and `events` of a MongoDB database, in the layout \
          of Salt's `mongo` returner of 3006 and 3007: dots in the keys of returns become hyphens. Minions that are expected in \
          addition to those of a job are in `jobMinions`. A document has at most 16 MiB, and holds a return twice. Events \
          are not removed. In builds with `--features databases`.",
    options: &[
        BackendOption { name: "mongo.host", default: Some("localhost"), doc: "The host name of the server." },
        BackendOption { name: "mongo.port", default: Some("27017"), doc: "The port of the server." },
        BackendOption {
            name: "mongo.db",
            default: None,
            doc: "The name of the database. Required unless `mongo.uri` has one.",
        },
        BackendOption { name: "mongo.user", default: None, doc: "The user name." },
        BackendOption { name: "mongo.password", default: None, doc: "The password." },
        BackendOption {
            name: "mongo.uri",
            default: None,
            doc: "A connection string such as `mongodb://user:password@db1,db2/salt?replicaSet=rs`, in place of `mongo.host`. \
                  Names of `mongodb+srv` are not resolved.",
        },
        BackendOption {
            name: "mongo.indexes",
            default: Some("False"),
            doc: "Whether indexes are created; `salt-run returner.setup mongo` creates them, too.",
        },
        KEEP_JOBS_SECONDS,
    ],
    open,
    check: |options| open(options).map(drop),
};

#[cfg(feature = "mongo")]
use client::open;

#[cfg(not(feature = "mongo"))]
fn open(_: &crate::Options) -> Result<Box<dyn crate::Returner>, crate::ReturnerError> {
    Err(crate::ReturnerError::NotBuilt { name: NAME })
}
