//! Schema of the database, and its migrations.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{Error, Result};
use crate::limits::BUSY;

/// `PRAGMA application_id` of a store: "lmcv".
const APPLICATION_ID: i64 = 0x6c6d_6376;

/// Migrations: the one at index `n` leads from version `n` to `n + 1`.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql")];

/// Opens a database, creates it if it does not exist, and migrates an older one.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    create(path).map_err(|source| Error::Open { path: path.to_owned(), source })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    let read = committed_version(&mut connection, path);
    // The header is that of another format.
    if read.as_ref().is_err_and(|error| matches!(error, Error::Damaged(source) if source.sqlite_error_code() == Some(ErrorCode::NotADatabase)))
    {
        return Err(Error::Foreign { path: path.to_owned() });
    }
    read?;
    connection.execute_batch(SETTINGS)?;
    migrate(&mut connection, path, MIGRATIONS)?;
    Ok(connection)
}

/// Settings of a connection.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;
    PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = 16777216;";

/// Creates a database in memory.
pub(crate) fn in_memory() -> Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(SETTINGS)?;
    migrate(&mut connection, Path::new(":memory:"), MIGRATIONS)?;
    Ok(connection)
}

/// Creates an empty file that only its user can read; SQLite gives its other files the same permissions.
fn create(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match options.open(path) {
        // Another program was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        opened => opened.map(drop),
    }
}

/// Version in one read transaction: between two statements of their own, another program could commit.
fn committed_version(connection: &mut Connection, path: &Path) -> Result<usize> {
    version(&*connection.transaction()?, path)
}

/// Version of a store; 0 for an empty database. Its three statements have to run in one transaction.
fn version(connection: &Connection, path: &Path) -> Result<usize> {
    let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    let foreign = || Error::Foreign { path: path.to_owned() };
    match (application, version) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION_ID, version) => {
            let known = MIGRATIONS.len() as i64;
            let newer = Error::Newer { path: path.to_owned(), found: version, known };
            usize::try_from(version)
                .map_err(|_| foreign())
                .and_then(|version| if version > MIGRATIONS.len() { Err(newer) } else { Ok(version) })
        }
        _ => Err(foreign()),
    }
}

/// Runs the missing migrations in one transaction. Two programs that start at once do so one after the other.
fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<()> {
    if committed_version(connection, path)? == migrations.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in &migrations[version(&transaction, path)?..] {
        transaction.execute_batch(step)?;
    }
    let version = migrations.len();
    transaction.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
    ))?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_migrations_keep_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let mut connection = open(&path).expect("is created");
        connection
            .execute("INSERT INTO conversations (owner, id, title, created, updated) VALUES ('', 'c1', 'Old', 1, 2)", [])
            .expect("a row");
        let steps = [MIGRATIONS[0], "ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0"];
        // The program of the test knows one version only.
        let failing = [steps[0], steps[1], "CREATE TABLE conversations (x)"];
        assert!(migrate(&mut connection, &path, &failing).is_err());
        let columns = |connection: &Connection| {
            let count = "SELECT count(*) FROM pragma_table_info('conversations') WHERE name = 'pinned'";
            connection.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        assert_eq!(columns(&connection), 0, "a failed migration changes nothing");
        migrate(&mut connection, &path, &steps).expect("migrates");
        let row = connection.query_row("SELECT title, pinned FROM conversations", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        });
        assert_eq!(row.expect("the row"), ("Old".to_owned(), 0));
        drop(connection);
        let error = open(&path).expect_err("this program knows version 1");
        assert!(matches!(error, Error::Newer { found: 2, known: 1, .. }), "{error}");
    }
}
