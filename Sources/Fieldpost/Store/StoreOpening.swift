internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// Opens a file for a store: checks it after an unclean end, and saves what can be read of a damaged one.
struct StoreOpening {
    let file: StoreFile
    let schema: Schema
    let options: LocalDatabase.Options
    let environment: Environment

    /// Files up to this many bytes are checked: a check reads the whole file, about 500 MB a second.
    static let checkedBytes: Int64 = 32 << 20

    /// Names this opening in the file while it is open, so that the next one knows how it ended.
    let owner: String

    init(file: StoreFile, schema: Schema, options: LocalDatabase.Options, environment: Environment) {
        self.file = file
        self.schema = schema
        self.options = options
        self.environment = environment
        owner = environment.ownerName()
    }

    /// The open file, and what was saved when it was found damaged.
    func open() throws -> (LocalDatabase, Rescue?) {
        do {
            let database = try openFile()
            if let problems = try checkAfterUncleanEnd(database) {
                database.connection.close()
                throw StoreError(.corrupt, "The database file is damaged.", detail: problems)
            }
            return (database, nil)
        } catch let error as StoreError where error.code == .corrupt && file.vfs == nil {
            let rescuer = Rescuer(path: file.path, schema: schema, options: options, environment: environment)
            let rescue = try rescuer.run()
            return (try openFile(), rescue)
        }
    }

    private func openFile() throws -> LocalDatabase {
        var random = environment.random
        let database = try LocalDatabase(
            path: file.path,
            schema: schema,
            options: options,
            now: environment.now(),
            random: &random
        )
        return database
    }

    /// What is wrong with a file that was not closed; `nil` when nothing is known to be.
    private func checkAfterUncleanEnd(_ database: LocalDatabase) throws -> String? {
        if file.vfs != nil { return nil }
        let found = try database.meta(Self.mark)?.text
        // Another process that works beside this one has the mark, and will take it away.
        if let found, !isOurs(found), environment.isOwnerAlive(found) { return nil }
        try database.setMeta(Self.mark, .text(owner))
        guard found != nil, try size(of: database.connection) <= Self.checkedBytes else { return nil }
        let problems = try database.connection.quickCheck()
        return problems.isEmpty ? nil : problems.joined(separator: "\n")
    }

    private func size(of connection: Connection) throws -> Int64 {
        let pages = try connection.scalar("PRAGMA page_count")?.integer ?? 0
        return pages * (try connection.scalar("PRAGMA page_size")?.integer ?? 0)
    }

    /// Whether an earlier opening of this very process left the mark: it holds no claim any more, so it is gone.
    private func isOurs(_ found: String) -> Bool {
        found.split(separator: "/").first == owner.split(separator: "/").first
    }

    private static let mark = "open"

    /// Takes the mark away.
    ///
    /// A failure only makes the next opening check the file.
    func noteCleanEnd(_ database: LocalDatabase) {
        if let found = try? database.meta(Self.mark), found == .text(owner) {
            try? database.setMeta(Self.mark, .null)
        }
    }
}
