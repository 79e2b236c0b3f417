internal import CFieldpostSQLite
internal import FieldpostCore

/// How hard a commit is pressed to the disk.
public enum Synchronous: String, Sendable {
    /// A commit that returned survives a power cut.
    case full = "FULL"
    /// A power cut may undo the last commits, never tear one; a killed process loses nothing.
    case normal = "NORMAL"
    /// Only for scratch files: a power cut may destroy the database.
    case off = "OFF"
}

extension Connection {
    /// Sets this connection up as the file's one writer: write-ahead log, foreign keys on.
    ///
    /// - Throws: ``StoreError/Code/cantOpen`` when the file cannot have a write-ahead log.
    public func configureWriter(synchronous: Synchronous) throws(StoreError) {
        let mode = try scalar("PRAGMA journal_mode = WAL")?.text
        // A database in memory answers "memory", and has nothing to log.
        guard mode == "wal" || mode == "memory" else {
            throw StoreError(
                .cantOpen,
                "This file system holds no write-ahead log; move the database elsewhere."
            )
        }
        try execute("PRAGMA synchronous = \(synchronous.rawValue)")
        try execute("PRAGMA foreign_keys = ON")
        // 1,000 pages is SQLite's own choice; the log is cut to 4 MiB after it grew for a large transaction.
        try execute("PRAGMA wal_autocheckpoint = 1000")
        try execute("PRAGMA journal_size_limit = 4194304")
        #if canImport(Darwin)
            // On Apple's systems fsync alone leaves the data in the drive's cache.
            try execute("PRAGMA fullfsync = \(synchronous == .full ? "ON" : "OFF")")
            try execute("PRAGMA checkpoint_fullfsync = ON")
        #endif
    }

    /// Sets this connection up as a reader, which neither writes nor checkpoints, not even when it closes.
    ///
    /// SQLite before 3.51.3 can corrupt a file that two connections checkpoint.
    public func configureReader() throws(StoreError) {
        try execute("PRAGMA query_only = ON")
        try execute("PRAGMA wal_autocheckpoint = 0")
        try database.check(fieldpost_db_config(database.pointer, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil))
    }

    /// Checks the file's structure, which reads all of it.
    ///
    /// - Returns: What is wrong, at most 100 lines; empty for a sound file.
    public func quickCheck() throws(StoreError) -> [String] {
        do throws(StoreError) {
            let lines = try query("PRAGMA quick_check(100)").compactMap { $0.first?.text }
            return lines == ["ok"] ? [] : lines
        } catch {
            guard error.code == .corrupt else { throw error }
            // Damage can be bad enough to end the check itself, which is a finding and no failure of it.
            return [error.detail ?? error.message]
        }
    }

    /// A number that changes when another connection changed the file.
    public var dataVersion: Int64 {
        get throws(StoreError) { try scalar("PRAGMA data_version")?.integer ?? 0 }
    }

    /// The version of the SQLite library in use, such as `3.40.1`.
    public static var sqliteVersion: String { String(cString: sqlite3_libversion()) }
}
