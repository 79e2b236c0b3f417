internal import CFieldpostSQLite

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Android)
    internal import Android
#else
    internal import Glibc
#endif

/// What the file system says about a path that could not be opened.
///
/// SQLite answers most such failures with "unable to open database file"; these facts say why.
struct OpenFacts {
    var exists = false
    var isFolder = false
    var folderExists = false
    var folderIsWritable = false
    var isReadable = false
    var isWritable = false
    var header: [UInt8] = []

    /// Looks at `path` and at its folder; reads at most 100 bytes.
    init(path: String) {
        var status = stat()
        exists = stat(path, &status) == 0
        isFolder = exists && status.st_mode & S_IFMT == S_IFDIR
        isReadable = Self.allowed(path, R_OK)
        isWritable = Self.allowed(path, W_OK)
        let folder = Self.folder(of: path)
        folderExists = stat(folder, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        folderIsWritable = Self.allowed(folder, W_OK | X_OK)
        if exists && !isFolder { header = Self.prefix(of: path) }
    }

    /// Whether the effective user may do it; `access` would ask about the real user.
    private static func allowed(_ path: String, _ mode: Int32) -> Bool {
        faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func prefix(of path: String) -> [UInt8] {
        guard let file = fopen(path, "rb") else { return [] }
        defer { fclose(file) }
        return [UInt8](unsafeUninitializedCapacity: 100) { buffer, count in
            count = fread(buffer.baseAddress, 1, 100, file)
        }
    }

    /// Whether the header is SQLite's but asks for a reader newer than this one.
    var needsNewerSQLite: Bool {
        header.count >= 20 && header.starts(with: Array("SQLite format 3\0".utf8)) && header[19] > 2
    }
}

extension StoreError {
    /// Explains why opening failed, from SQLite's answer and what the file system says.
    ///
    /// Pure: it looks at nothing but its arguments.
    static func opening(_ code: Int32, detail: String?, mode: OpenMode, facts: OpenFacts?) -> StoreError {
        let plain = StoreError(sqlite: code, detail: detail)
        if detail == "unsupported file format" || facts?.needsNewerSQLite == true {
            let message = "A newer version of SQLite wrote this database; update this program."
            return StoreError(.newerFormat, message, sqliteCode: code, detail: detail)
        }
        guard let facts, let (kind, message) = obstacle(plain.code, mode: mode, facts: facts) else {
            return plain
        }
        return StoreError(kind, message, sqliteCode: code, detail: detail)
    }

    private static func obstacle(_ code: Code, mode: OpenMode, facts: OpenFacts) -> (Code, String)? {
        guard [.cantOpen, .accessDenied, .readOnly, .ioError].contains(code) else { return nil }
        if facts.isFolder {
            return (.cantOpen, "A folder is in the way of the database file; choose another path.")
        }
        if !facts.exists {
            if !facts.folderExists {
                return (.missing, "The folder of the database file does not exist; create it first.")
            }
            if mode != .readWriteCreate {
                return (.missing, "There is no database file at this path; check the path or create it.")
            }
        } else if !facts.isReadable {
            return (.accessDenied, "The database file may not be read; correct its permissions.")
        } else if mode != .readOnly && !facts.isWritable {
            return (.readOnly, "The database file may not be written; correct its permissions.")
        }
        if !facts.folderIsWritable {
            return (.accessDenied, "The database's folder may not be written; correct its permissions.")
        }
        return nil
    }
}
