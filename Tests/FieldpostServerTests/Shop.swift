import FieldpostCore
import FieldpostSQLite

@testable import FieldpostServer

/// A store of one shop with one connection, as the simulator drives it.
final class Shop {
    let folder: ScratchFolder
    let path: String
    let connection: Connection
    let core: ServerCore
    let random = CountingRandom()
    var now = Timestamp(milliseconds: 1_700_000_000_000)
    private var ids: Int64 = 0

    init(schema: Schema = Shop.schema, folder: ScratchFolder? = nil, intents: [String: IntentHandler] = [:])
        throws
    {
        self.folder = try folder ?? ScratchFolder()
        path = self.folder.path + "/shop.db"
        connection = try Connection(path: path)
        let random = random
        core = try ServerCore.open(
            connection,
            schema: schema,
            intents: intents,
            now: now,
            random: { random.bytes($0) }
        )
    }

    static let schema = Schema(version: 2) {
        Table("orders", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("plate", .text).optional()
            Column("total_idr", .integer)
            Column("status", .text).defaults(to: "open")
        }
        .conflict(.compareAndSet).check("total_not_negative", "total_idr >= 0").unique("branch_id", "plate")
        Table("lines", scopeFrom: "order_id") {
            Column("id", .uuid).primaryKey()
            Column("order_id", .uuid).references("orders", onDelete: .cascade)
            Column("text", .text)
        }
        Table("payments", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("order_id", .uuid).references("orders")
            Column("amount_idr", .integer)
        }
        .conflict(.appendOnly)
        Table("notes") {
            Column("id", .uuid).primaryKey()
            Column("title", .text).optional()
            Column("body", .text).defaults(to: "")
            Column("tags", .set).defaults(to: [])
            Column("likes", .integer).defaults(to: 0)
            Column("pinned", .boolean).defaults(to: false)
            Column("rating", .real).optional()
            Column("due", .date).optional()
            Column("raw", .blob).optional()
            Column("extra", .json).optional()
            Column("photo", .file).optional()
            Column("price", .integer).optional()
        }
        .rule("body", .keepLosingVersion).rule("tags", .set).rule("likes", .counter).rule(
            "price",
            .compareAndSet
        )
        Table("settings") {
            Column("id", .text).primaryKey()
            Column("value", .text)
        }
        .writable(by: ["admin"])
    }

    // MARK: Who

    static let everywhere = Credential(tokenID: "t-all", scopes: .all)
    static let first = Credential(tokenID: "t-1", scopes: .only(["B1"]))
    static let second = Credential(tokenID: "t-2", scopes: .only(["B2"]))
    static let both = Credential(tokenID: "t-12", scopes: .only(["B1", "B2"]))
    static let device = Device(id: "00000000-0000-7000-8000-00000000d001", schema: 2)
    static let otherDevice = Device(id: "00000000-0000-7000-8000-00000000d002", schema: 2)

    static func id(_ number: Int64) -> String {
        let digits = String(number, radix: 16)
        return "00000000-0000-7000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    // MARK: Operations

    func operation(
        _ table: String,
        _ row: Int64,
        _ action: Operation.Action,
        _ set: JSONObject = [:],
        base: Operation.Base = .none,
        after: [OperationID] = [],
        schema: Int = 2
    ) -> Operation {
        ids += 1
        return Operation(
            id: OperationID(Shop.id(0xF000 + ids))!,
            table: table,
            row: Shop.id(row),
            action: action,
            change: Change(set: set),
            base: base,
            after: after,
            seq: ids,
            schema: schema,
            at: now
        )
    }

    func order(_ row: Int64, branch: String = "B1", total: JSON = 100, plate: JSON? = nil) -> Operation {
        var set: JSONObject = ["branch_id": .string(branch), "total_idr": total]
        if let plate { set.append("plate", plate) }
        return operation("orders", row, .create, set)
    }

    func note(_ row: Int64, _ set: JSONObject = [:]) -> Operation { operation("notes", row, .create, set) }

    // MARK: Calls

    @discardableResult
    func push(
        groups: [[Operation]],
        as credential: Credential = Shop.everywhere,
        device: Device? = Shop.device
    ) throws -> [OperationResult] {
        let body = PushRequest(groups: groups.map(OperationGroup.init)).bytes()
        let answer = try core.push(body, on: connection, credential: credential, device: device, now: now)
        return try PushResponse(bytes: answer).results
    }

    @discardableResult
    func push(
        _ operations: Operation...,
        as credential: Credential = Shop.everywhere,
        device: Device? = Shop.device
    ) throws -> [OperationResult] {
        try push(groups: operations.map { [$0] }, as: credential, device: device)
    }

    func pull(
        _ cursor: String? = nil,
        limit: Int? = nil,
        as credential: Credential = Shop.everywhere,
        device: Device? = nil
    ) throws -> PullPage {
        try PullPage(
            bytes: core.pull(
                cursor: cursor,
                limit: limit,
                on: connection,
                credential: credential,
                device: device,
                now: now
            )
        )
    }

    /// The stored row in wire form.
    func row(_ table: String, _ row: Int64) throws -> JSONObject? {
        guard let access = core.tables[table] else { return nil }
        return try access.values(connection, Shop.id(row)).map(access.wire)
    }

    func count(_ sql: String) throws -> Int64 {
        try connection.scalar("SELECT count(*) FROM " + sql)?.integer ?? -1
    }
}

extension OperationResult {
    /// Status and code in one word, for tables of expectations.
    var verdict: String { code.map { "\(status.rawValue) \($0)" } ?? status.rawValue }
}

extension PullPage {
    /// The rows in order, `-` before those that are gone.
    var rows: [String] {
        changes.map { change in
            let number = String(Int64(change.row.suffix(12), radix: 16) ?? -1)
            return (change.set == nil ? "-" : "") + number + (change.reason.map { " \($0)" } ?? "")
        }
    }
}
