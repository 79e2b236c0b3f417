internal import FieldpostCore
internal import FieldpostSQLite

/// What became of operations, kept after they left the outbox.
struct OutcomeJournal {
    let db: LocalDatabase

    init(_ db: LocalDatabase) { self.db = db }

    /// Copies an entry of the outbox here.
    ///
    /// - Returns: whether the entry was still there.
    @discardableResult
    func keep(
        _ entry: OutboxEntry,
        as status: String,
        version: Int64? = nil,
        result: String? = nil,
        at now: Timestamp
    )
        throws -> Bool
    {
        let statement = try db.connection.statement(
            """
            INSERT OR REPLACE INTO fieldpost_outcomes
              (seq, id, grp, tbl, row, action, change, base, after, schema, created_at, status, version, result, settled_at, history)
            SELECT seq, id, grp, tbl, row, action, change, base, after, schema, created_at, ?, ?, ifnull(?, error), ?, history
            FROM fieldpost_outbox WHERE seq = ? AND id = ?
            """
        )
        try statement.bind([
            .text(status), version.map(Value.integer) ?? .null, result.map(Value.text) ?? .null,
            .integer(now.milliseconds), .integer(entry.seq), .text(entry.id.text),
        ])
        try statement.run()
        return db.connection.changes > 0
    }

    /// The reason of an operation that was coalesced away before it was ever sent.
    static let neverSent = #"{"code":"never_sent"}"#

    /// Forgets the oldest successes beyond ``PushOutcome/keptOutcomes``, and what was never sent; everything else stays.
    func prune() throws {
        try db.connection.run(
            """
            DELETE FROM fieldpost_outcomes WHERE (status = 'applied' OR result = ?2)
            AND seq <= (SELECT max(seq) FROM fieldpost_outcomes) - ?1
            """,
            .integer(PushOutcome.keptOutcomes),
            .text(Self.neverSent)
        )
    }
}

/// What came of one attempt to send an operation.
public struct Attempt: Equatable, Sendable {
    /// When it was judged.
    public var at: Timestamp
    /// The reason, as in docs/ERRORS.md.
    public var code: String
    /// The server's words.
    public var message: String

    /// Attempts that are kept of one operation: the newest.
    static let kept = 20

    /// Reads what ``json`` and SQL have gathered in a list.
    static func list(_ text: String?) -> [Attempt] {
        let array = text.flatMap { try? JSON(text: $0).array } ?? []
        return array.compactMap(\.object).map {
            Attempt(
                at: Timestamp(milliseconds: $0["at"]?.integer ?? 0),
                code: $0["code"]?.string ?? "",
                message: $0["message"]?.string ?? ""
            )
        }
    }

    /// The attempt as programs read it.
    public var json: JSONObject {
        ["at": .integer(at.milliseconds), "code": .string(code), "message": .string(message)]
    }

    /// SQL for the history of an outbox row with one more attempt, given as the JSON parameter `parameter`.
    static func appended(_ parameter: String) -> String {
        """
        json_insert(CASE WHEN json_array_length(ifnull(history, '[]')) >= \(kept) THEN json_remove(history, '$[0]')
          ELSE ifnull(history, '[]') END, '$[#]', json(\(parameter)))
        """
    }
}
