package import FieldpostSQLite

/// A failure that Fieldpost itself reports; SQLite's are `StoreError`.
///
/// Branch on ``code``: it is the same word in device lines, in `--json` and in the table of codes in the documentation.
public struct FieldpostError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What went wrong, in terms a caller can act on.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable word.
        public let description: String

        /// A code by its word.
        package init(_ word: String) { description = word }

        /// A row with this key exists.
        public static let rowExists = Code("row_exists")
        /// There is no row with this key.
        public static let rowMissing = Code("row_missing")
        /// The schema has no such table.
        public static let unknownTable = Code("unknown_table")
        /// The table has no such column.
        public static let unknownColumn = Code("unknown_column")
        /// A value does not fit its column.
        public static let type = Code("type")
        /// A named check or a reference failed.
        public static let check = Code("check")
        /// The table belongs to Fieldpost.
        public static let reservedTable = Code("reserved_table")
        /// A query would write.
        public static let notReadOnly = Code("not_read_only")
        /// There is no such operation.
        public static let operationMissing = Code("operation_missing")
        /// Other operations depend on this one.
        public static let hasDependants = Code("has_dependants")
        /// The outbox is at its limit.
        public static let outboxFull = Code("outbox_full")
        /// One transaction made too many or too large changes.
        public static let transactionTooLarge = Code("transaction_too_large")
        /// The table only takes new rows.
        public static let appendOnly = Code("append_only")
        /// The call is not understood.
        public static let usage = Code("usage")
        /// Not built yet.
        public static let unsupported = Code("unsupported")
        /// The file was written by a newer version of the app or of Fieldpost.
        public static let newerFormat = Code("newer_format")
        /// The file is a database, but none of Fieldpost's.
        public static let notAStore = Code("not_a_store")
        /// This process has the file open with another schema.
        public static let alreadyOpen = Code("already_open")
        /// Changes are not on the server yet.
        public static let unsentWork = Code("unsent_work")
        /// The state of the operation does not allow it.
        public static let wrongState = Code("wrong_state")
    }

    /// The reason.
    public let code: Code
    /// One sentence that says what to do, without user data.
    public let message: String
    /// Columns or operations that the reason names.
    public let names: [String]

    /// An error of the given parts.
    package init(_ code: Code, _ message: String, names: [String] = []) {
        self.code = code
        self.message = message
        self.names = names
    }

    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}

extension FieldpostError {
    /// What a failed write means to the app; errors that mean nothing special to Fieldpost stay as they are.
    package init?(_ error: StoreError, writing table: String? = nil) {
        let detail = error.detail ?? ""
        switch error.code {
        case .aborted where detail.hasPrefix("fieldpost "):
            let parts = detail.dropFirst("fieldpost ".count).split(separator: ":", maxSplits: 1)
            let message = parts.count > 1 ? parts[1].trimmingPrefix(while: { $0 == " " }) : ""
            self.init(Code(String(parts[0])), String(message))
        case .constraint:
            guard let mapped = FieldpostError(constraint: detail) else { return nil }
            self = mapped
        default: return nil
        }
    }

    private init?(constraint detail: String) {
        let name = String(detail.split(separator: ":").last?.drop(while: { $0 == " " }) ?? "")
        let column = String(name.split(separator: ".").last ?? "")
        if detail.hasPrefix("UNIQUE") || detail.hasPrefix("PRIMARY KEY") {
            self.init(.rowExists, "A row with this key exists; update it instead.", names: [column])
        } else if detail.hasPrefix("NOT NULL") {
            self.init(.type, "\(name) needs a value.", names: [column])
        } else if detail.hasPrefix("CHECK") {
            if let range = name.range(ofTypeCheck: ()) {
                let path = name[..<range]
                self.init(
                    .type,
                    "\(path) is not \(name[range...].dropFirst("_is_".count)).",
                    names: [String(path.split(separator: ".").last ?? path)]
                )
            } else {
                self.init(.check, "The check \(name) failed.", names: [name])
            }
        } else if detail.hasPrefix("FOREIGN KEY") {
            self.init(.check, "A referenced row is missing, or rows still refer to this one.")
        } else if detail.hasPrefix("cannot store") {
            self.init(.type, "A value does not fit its column: \(detail).")
        } else {
            return nil
        }
    }
}

extension String {
    /// The end of the column's name in the name of a type's own check, such as `paid_is_boolean`.
    fileprivate func range(ofTypeCheck: Void) -> Index? {
        for type in ["_is_uuid", "_is_boolean", "_is_json", "_is_set", "_is_file"] where hasSuffix(type) {
            return index(endIndex, offsetBy: -type.count)
        }
        return nil
    }
}
