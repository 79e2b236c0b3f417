internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// Which rows of one table, and in what order.
///
///     let open = Order.where(\.status == .open).order(by: \.openedAt, .descending).limit(20)
///     let orders = try await store.fetchAll(open)
///
/// A query is a value: it runs when it is fetched, counted or watched, as often as wanted.
public struct RecordQuery<Record: SyncedRecord>: Sendable {
    /// Upwards or downwards.
    public enum Direction: Sendable {
        /// The smallest first; `nil` is the smallest.
        case ascending
        /// The largest first.
        case descending
    }

    private var filter: RecordFilter<Record>?
    private var orders: [@Sendable (RecordLayout) throws -> String] = []
    private var limit: Int?
    private var offset = 0

    /// All rows, in no order.
    public init() {}

    private func with(_ change: (inout RecordQuery) -> Void) -> RecordQuery {
        var copy = self
        change(&copy)
        return copy
    }

    /// Only the rows that meet the condition too.
    public func `where`(_ filter: RecordFilter<Record>) -> RecordQuery {
        with { query in query.filter = query.filter.map { $0 && filter } ?? filter }
    }

    /// Only the rows that meet the condition too, written with the columns given to `condition`.
    public func `where`(_ condition: (RecordColumns<Record>) -> RecordFilter<Record>) -> RecordQuery {
        `where`(condition(RecordColumns()))
    }

    /// Ordered by a property; a second call orders the rows that are equal by the first.
    public func order<Part: Encodable & Sendable>(
        by path: any KeyPath<Record, Part> & Sendable,
        _ direction: Direction = .ascending
    ) -> RecordQuery {
        with {
            $0.orders.append { layout in
                if Part.self is Decimal.Type || Part.self is Decimal?.Type {
                    throw FieldpostError(
                        .unsupported,
                        "\(layout.typeName): decimals are stored as text, which has another order."
                    )
                }
                let name = quoted(try RecordColumn(path: path).column(layout).name)
                return direction == .ascending ? name : name + " DESC"
            }
        }
    }

    /// At most `count` rows.
    public func limit(_ count: Int) -> RecordQuery { with { $0.limit = max(0, count) } }

    /// Leaves out the first `count` rows.
    public func offset(_ count: Int) -> RecordQuery { with { $0.offset = max(0, count) } }

    // MARK: SQL

    func selectSQL(_ layout: RecordLayout) throws -> SQL {
        var sql = SQL(layout.selectSQL)
        try appendRest(layout, &sql)
        return sql
    }

    func countSQL(_ layout: RecordLayout) throws -> SQL {
        let isPart = limit != nil || offset > 0
        let text = "SELECT \(isPart ? "1" : "count(*)") FROM \(quoted(layout.table.name))"
        var sql = SQL(text)
        try appendRest(layout, &sql)
        return isPart ? SQL("SELECT count(*) FROM (\(sql.text))", sql.arguments) : sql
    }

    private func appendRest(_ layout: RecordLayout, _ sql: inout SQL) throws {
        if let filter {
            sql.append(" WHERE ")
            try filter.render(layout, &sql)
        }
        if !orders.isEmpty {
            sql.append(" ORDER BY " + (try orders.map { try $0(layout) }).joined(separator: ", "))
        }
        guard limit != nil || offset > 0 else { return }
        // SQLite takes an offset only after a limit; -1 is none.
        sql.append(" LIMIT ")
        sql.append(.integer(limit.map(Int64.init) ?? -1))
        sql.append(" OFFSET ")
        sql.append(.integer(Int64(offset)))
    }
}

extension SyncedRecord {
    /// Every row.
    public static var all: RecordQuery<Self> { RecordQuery() }

    /// The rows that meet a condition: `Order.where(\.status == .open)`.
    public static func `where`(_ filter: RecordFilter<Self>) -> RecordQuery<Self> { all.where(filter) }

    /// The rows that meet a condition: `Order.where { $0.plate.hasPrefix("B ") }`.
    public static func `where`(_ condition: (RecordColumns<Self>) -> RecordFilter<Self>) -> RecordQuery<Self>
    {
        all.where(condition)
    }

    /// Every row, ordered: `Order.order(by: \.openedAt, .descending)`.
    public static func order<Part: Encodable & Sendable>(
        by path: any KeyPath<Self, Part> & Sendable,
        _ direction: RecordQuery<Self>.Direction = .ascending
    ) -> RecordQuery<Self> { all.order(by: path, direction) }
}
