//! The statements of each returner: Salt's tables in the dialects of MySQL and PostgreSQL. Missing tables, columns and
//! indexes are created without touching existing rows.

use super::columns::{self, Columns};

/// The statements of a returner.
pub(super) struct Layout {
    /// Salt's name of the returner.
    pub name: &'static str,
    /// The statements that create and upgrade the tables, each idempotent.
    pub setup: &'static [&'static str],
    /// The columns of jobs and returns.
    pub columns: Columns,
    /// Stores a load; parameters: those of [`Columns::of_load`].
    pub replace_load: &'static str,
    /// The start of the statement that inserts returns, and the placeholders of a row: [`Columns::of_return`].
    pub insert_return: &'static str,
    pub return_group: &'static str,
    /// The text before and after the rows (job id, minion id) of expected minions; existing rows are kept.
    pub insert_minions: [&'static str; 2],
    /// The start of the statement that inserts events, and the placeholders of a row: tag, JSON, master id.
    pub insert_event: &'static str,
    pub event_group: &'static str,
    /// Selects the load of a job id, in the columns of [`Columns::to_load`].
    pub load_of_jid: &'static str,
    /// Selects all loads, in the columns of [`Columns::to_load`], newest first.
    pub loads: &'static str,
    /// Selects job id, minion id and the text of [`Columns::to_summary`] of the returns of a job id, oldest first.
    pub returns_of_jid: &'static str,
    /// Selects the same columns of each minion's newest return of a function.
    pub newest_returns: &'static str,
    /// Selects the job ids below a given one that have a return younger than `SECONDS`.
    pub returned_since: &'static str,
    /// The condition of events older than `SECONDS`.
    pub old_events: &'static str,
    /// The texts of false and true in the column `success`.
    pub booleans: [&'static str; 2],
    /// Whether the JSON columns can contain NUL characters.
    pub holds_nul: bool,
}

/// MySQL and MariaDB: JSON as text. Minion ids and job ids of tables made here are compared byte by byte.
#[cfg(feature = "mysql")]
pub(super) static MYSQL: Layout = Layout {
    name: "mysql",
    setup: &[
        "CREATE TABLE IF NOT EXISTS `jids` (
            `jid` varchar(255) NOT NULL, `load` longtext NOT NULL, UNIQUE KEY `jid` (`jid`)
        ) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        "CREATE TABLE IF NOT EXISTS `salt_returns` (
            `fun` varchar(255) NOT NULL, `jid` varchar(255) NOT NULL, `return` longtext NOT NULL,
            `id` varchar(255) NOT NULL, `success` varchar(10) NOT NULL, `full_ret` longtext NOT NULL,
            `alter_time` timestamp DEFAULT CURRENT_TIMESTAMP,
            KEY `id` (`id`), KEY `jid` (`jid`), KEY `fun` (`fun`), KEY `alter_time` (`alter_time`)
        ) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        "CREATE TABLE IF NOT EXISTS `salt_events` (
            `id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `tag` varchar(255) NOT NULL, `data` longtext NOT NULL,
            `alter_time` timestamp DEFAULT CURRENT_TIMESTAMP, `master_id` varchar(255) NOT NULL,
            KEY `tag` (`tag`), KEY `alter_time` (`alter_time`)
        ) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        "CREATE TABLE IF NOT EXISTS `jid_minions` (
            `jid` varchar(255) NOT NULL, `id` varchar(255) NOT NULL, PRIMARY KEY (`jid`, `id`)
        ) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        // Salt's own tables truncate functions of more than 50 characters and returns of more than 16 MiB.
        "ALTER TABLE `jids` MODIFY `load` longtext NOT NULL",
        "ALTER TABLE `salt_returns` MODIFY `fun` varchar(255) NOT NULL, MODIFY `return` longtext NOT NULL,
            MODIFY `full_ret` longtext NOT NULL",
        "ALTER TABLE `salt_events` MODIFY `data` longtext NOT NULL",
    ],
    columns: columns::WHOLE,
    replace_load: "INSERT INTO `jids` (`jid`, `load`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `load` = VALUES(`load`)",
    insert_return: "INSERT INTO `salt_returns` (`fun`, `jid`, `return`, `id`, `success`, `full_ret`)",
    return_group: "(?, ?, ?, ?, ?, ?)",
    insert_minions: ["INSERT IGNORE INTO `jid_minions` (`jid`, `id`)", ""],
    insert_event: "INSERT INTO `salt_events` (`tag`, `data`, `master_id`)",
    event_group: "(?, ?, ?)",
    load_of_jid: "SELECT `load` FROM `jids` WHERE `jid` = ?",
    loads: "SELECT `load` FROM `jids` ORDER BY `jid` DESC",
    returns_of_jid: "SELECT `jid`, `id`, `full_ret` FROM `salt_returns` WHERE `jid` = ? ORDER BY `alter_time`",
    newest_returns: "SELECT one.`jid`, one.`id`, one.`full_ret` FROM `salt_returns` one
        JOIN (SELECT `id`, `fun`, MAX(`jid`) AS `jid` FROM `salt_returns` WHERE `fun` = ? GROUP BY `id`, `fun`) newest
        ON one.`jid` = newest.`jid` AND one.`id` = newest.`id` AND one.`fun` = newest.`fun` ORDER BY one.`alter_time`",
    returned_since: "SELECT DISTINCT `jid` FROM `salt_returns`
        WHERE `jid` < ? AND `alter_time` >= NOW() - INTERVAL SECONDS SECOND ORDER BY `jid`",
    old_events: "`alter_time` < NOW() - INTERVAL SECONDS SECOND",
    booleans: ["0", "1"],
    holds_nul: true,
};

/// The common layout of `postgres` and `pgjsonb`; `$json` is the type of the JSON columns, `$value` the placeholder of
/// a JSON parameter.
#[cfg(feature = "postgres")]
macro_rules! postgres {
    ($name:literal, $json:literal, $value:literal, $holds_nul:literal) => {
        Layout {
            name: $name,
            setup: &[
                concat!(
                    "CREATE TABLE IF NOT EXISTS jids (jid varchar(255) PRIMARY KEY, load ", $json, " NOT NULL)"
                ),
                concat!(
                    "CREATE TABLE IF NOT EXISTS salt_returns (
                        fun varchar(255) NOT NULL, jid varchar(255) NOT NULL, return ", $json, " NOT NULL,
                        full_ret ", $json, ", id varchar(255) NOT NULL, success varchar(10) NOT NULL,
                        alter_time timestamp with time zone DEFAULT now()
                    )"
                ),
                "CREATE SEQUENCE IF NOT EXISTS seq_salt_events_id",
                concat!(
                    "CREATE TABLE IF NOT EXISTS salt_events (
                        id bigint NOT NULL UNIQUE DEFAULT nextval('seq_salt_events_id'), tag varchar(255) NOT NULL,
                        data ", $json, " NOT NULL, alter_time timestamp with time zone DEFAULT now(),
                        master_id varchar(255) NOT NULL
                    )"
                ),
                "CREATE TABLE IF NOT EXISTS jid_minions (
                    jid varchar(255) NOT NULL, id varchar(255) NOT NULL, PRIMARY KEY (jid, id)
                )",
                "CREATE INDEX IF NOT EXISTS idx_salt_returns_id ON salt_returns (id)",
                "CREATE INDEX IF NOT EXISTS idx_salt_returns_jid ON salt_returns (jid)",
                "CREATE INDEX IF NOT EXISTS idx_salt_returns_fun ON salt_returns (fun)",
                "CREATE INDEX IF NOT EXISTS idx_salt_returns_updated ON salt_returns (alter_time)",
                "CREATE INDEX IF NOT EXISTS idx_salt_events_tag ON salt_events (tag)",
                "CREATE INDEX IF NOT EXISTS idx_salt_events_updated ON salt_events (alter_time)",
                // Salt's own tables reject job ids with a PID and functions of more than 50 characters.
                "ALTER TABLE jids ALTER COLUMN jid TYPE varchar(255)",
                "ALTER TABLE salt_returns ALTER COLUMN fun TYPE varchar(255)",
            ],
            columns: columns::WHOLE,
            replace_load: concat!(
                "INSERT INTO jids (jid, load) VALUES (?, ", $value, ")
                    ON CONFLICT (jid) DO UPDATE SET load = EXCLUDED.load"
            ),
            insert_return: "INSERT INTO salt_returns (fun, jid, return, id, success, full_ret)",
            return_group: concat!("(?, ?, ", $value, ", ?, ?, ", $value, ")"),
            insert_minions: ["INSERT INTO jid_minions (jid, id)", "ON CONFLICT DO NOTHING"],
            insert_event: "INSERT INTO salt_events (tag, data, master_id)",
            event_group: concat!("(?, ", $value, ", ?)"),
            load_of_jid: "SELECT CAST(load AS text) FROM jids WHERE jid = ?",
            loads: "SELECT CAST(load AS text) FROM jids ORDER BY jid DESC",
            returns_of_jid: "SELECT jid, id, CAST(full_ret AS text) FROM salt_returns WHERE jid = ? ORDER BY alter_time",
            newest_returns: "SELECT jid, id, full_ret FROM (
                    SELECT DISTINCT ON (id) jid, id, CAST(full_ret AS text) AS full_ret FROM salt_returns WHERE fun = ?
                    ORDER BY id, jid DESC, alter_time
                ) newest",
            returned_since: "SELECT DISTINCT jid FROM salt_returns
                WHERE jid < ? AND alter_time >= now() - interval 'SECONDS seconds' ORDER BY jid",
    old_events: "alter_time < now() - interval 'SECONDS seconds'",
            booleans: ["false", "true"],
            holds_nul: $holds_nul,
        }
    };
}

/// PostgreSQL with JSON as text.
#[cfg(feature = "postgres")]
pub(super) static POSTGRES: Layout = postgres!("postgres", "text", "?", true);

/// PostgreSQL with JSON as jsonb. The order of keys is PostgreSQL's.
#[cfg(feature = "postgres")]
pub(super) static PGJSONB: Layout = postgres!("pgjsonb", "jsonb", "CAST(CAST(? AS text) AS jsonb)", false);

/// PostgreSQL with a column for each field of a job. Brine adds the column `load`, which contains all fields.
#[cfg(feature = "postgres")]
pub(super) static POSTGRES_LOCAL_CACHE: Layout = Layout {
    name: "postgres_local_cache",
    setup: &[
        "CREATE TABLE IF NOT EXISTS jids (
            jid varchar(255) PRIMARY KEY, started timestamp with time zone DEFAULT now(), tgt_type text NOT NULL,
            cmd text NOT NULL, tgt text NOT NULL, kwargs text NOT NULL, ret text NOT NULL, username text NOT NULL,
            arg text NOT NULL, fun text NOT NULL, load text
        )",
        "CREATE TABLE IF NOT EXISTS salt_returns (
            added timestamp with time zone DEFAULT now(), fun text NOT NULL, jid varchar(255) NOT NULL,
            return text NOT NULL, id text NOT NULL, success boolean
        )",
        "CREATE TABLE IF NOT EXISTS salt_events (
            id serial, tag text NOT NULL, data text NOT NULL, alter_time timestamp with time zone DEFAULT now(),
            master_id text NOT NULL
        )",
        "CREATE TABLE IF NOT EXISTS jid_minions (
            jid varchar(255) NOT NULL, id varchar(255) NOT NULL, PRIMARY KEY (jid, id)
        )",
        // Salt's documentation creates the indexes without names; these are the names that PostgreSQL generates.
        "CREATE INDEX IF NOT EXISTS salt_returns_added_idx ON salt_returns (added)",
        "CREATE INDEX IF NOT EXISTS salt_returns_id_idx ON salt_returns (id)",
        "CREATE INDEX IF NOT EXISTS salt_returns_jid_idx ON salt_returns (jid)",
        "CREATE INDEX IF NOT EXISTS salt_returns_fun_idx ON salt_returns (fun)",
        "CREATE INDEX IF NOT EXISTS salt_events_tag_idx ON salt_events (tag)",
        "CREATE INDEX IF NOT EXISTS salt_events_updated_idx ON salt_events (alter_time)",
        // An index of Salt's rejects events of more than 2,704 bytes.
        "DROP INDEX IF EXISTS salt_events_data_idx",
        "ALTER TABLE jids ALTER COLUMN jid TYPE varchar(255)",
        "ALTER TABLE jids ADD COLUMN IF NOT EXISTS load text",
        "ALTER TABLE salt_returns ALTER COLUMN jid TYPE varchar(255)",
    ],
    columns: columns::SEPARATE,
    replace_load: "INSERT INTO jids (jid, load, tgt_type, cmd, tgt, kwargs, ret, username, arg, fun, started)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(CAST(? AS text) AS timestamp with time zone))
        ON CONFLICT (jid) DO UPDATE SET load = EXCLUDED.load, tgt_type = EXCLUDED.tgt_type, cmd = EXCLUDED.cmd,
            tgt = EXCLUDED.tgt, kwargs = EXCLUDED.kwargs, ret = EXCLUDED.ret, username = EXCLUDED.username,
            arg = EXCLUDED.arg, fun = EXCLUDED.fun",
    insert_return: "INSERT INTO salt_returns (fun, jid, return, id, success)",
    return_group: "(?, ?, ?, ?, CAST(NULLIF(CAST(? AS text), '') AS boolean))",
    insert_minions: ["INSERT INTO jid_minions (jid, id)", "ON CONFLICT DO NOTHING"],
    insert_event: "INSERT INTO salt_events (tag, data, master_id)",
    event_group: "(?, ?, ?)",
    load_of_jid: "SELECT load, jid, tgt_type, cmd, tgt, kwargs, ret, username, arg, fun FROM jids WHERE jid = ?",
    loads: "SELECT load, jid, tgt_type, cmd, tgt, kwargs, ret, username, arg, fun FROM jids ORDER BY jid DESC",
    returns_of_jid: "SELECT jid, id, return FROM salt_returns WHERE jid = ? ORDER BY added",
    newest_returns: "SELECT jid, id, return FROM (
            SELECT DISTINCT ON (id) jid, id, return FROM salt_returns WHERE fun = ? ORDER BY id, jid DESC, added
        ) newest",
    returned_since: "SELECT DISTINCT jid FROM salt_returns
        WHERE jid < ? AND added >= now() - interval 'SECONDS seconds' ORDER BY jid",
    old_events: "alter_time < now() - interval 'SECONDS seconds'",
    booleans: ["false", "true"],
    // The columns are plain text, not JSON, which would escape NUL characters.
    holds_nul: false,
};
