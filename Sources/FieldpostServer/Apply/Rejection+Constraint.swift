internal import FieldpostCore
internal import FieldpostSQLite

extension Rejection {
    /// The rejection that a broken constraint means, or `nil` when the failure is the store's and not the operation's.
    ///
    /// SQLite names the constraint or the columns in its text; that text is read here and nowhere else.
    init?(_ error: StoreError, table: Table) {
        let detail = error.detail ?? ""
        if error.code == .aborted {
            self.init("refused", "The server's own rule refused it: \(detail).")
            return
        }
        if error.code == .tooBig {
            self.init("too_big", "A value is larger than the server stores.")
            return
        }
        guard let constraint = error.constraint else { return nil }
        let subject = detail.split(separator: ":", maxSplits: 1).last.map { $0.trimmed } ?? ""
        switch constraint {
        case .check: self.init(check: subject, table: table)
        case .notNull:
            self.init("not_null", "A required column has no value.", fields: Rejection.columns(subject))
        case .unique:
            self.init("unique", "Another row has the same values.", fields: Rejection.columns(subject))
        case .primaryKey:
            self.init("row_exists", "A row with this key exists.", fields: Rejection.columns(subject))
        case .foreignKey: self.init("reference", "It refers to a row that is not there.")
        case .datatype:
            let column = detail.split(separator: " ").last.map { Rejection.columns(String($0)) } ?? []
            self.init("type", "A value does not fit its column.", fields: column)
        default: self.init("refused", "A constraint of the server refused it.")
        }
    }

    private init(check name: String, table: Table) {
        if let check = table.checks.first(where: { $0.name == name }) {
            let words = SQLWords.of(check.expression)
            let fields = table.columns.map(\.name).filter(words.contains)
            self.init(name, "The row breaks the rule \(name).", fields: fields)
        } else if let column = table.columns.first(where: { name == "\($0.name)_is_\($0.type.rawValue)" }) {
            self.init("type", "expected \(column.type.rawValue)", fields: [column.name])
        } else {
            self.init(name.isEmpty ? "check" : name, "The row breaks a rule.")
        }
    }

    /// The columns in a list such as `orders.branch_id, orders.plate`.
    private static func columns(_ list: String) -> [String] {
        list.split(separator: ",").compactMap { $0.split(separator: ".").last.map { $0.trimmed } }
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
