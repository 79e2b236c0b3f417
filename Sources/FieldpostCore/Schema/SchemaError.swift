/// Everything that is wrong with a schema.
public struct SchemaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One fault: where, what and what to do about it.
    public struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// The table, where the fault lies in one.
        public var table: String?
        /// The column, where the fault lies in one.
        public var column: String?
        /// What is wrong.
        public var message: String
        /// What to do.
        public var remedy: String

        package init(table: String?, column: String?, message: String, remedy: String) {
            self.table = table
            self.column = column
            self.message = message
            self.remedy = remedy
        }

        /// The reason in words.
        public var description: String {
            let place = [table, column].compactMap(\.self).joined(separator: ".")
            return (place.isEmpty ? "" : place + ": ") + message + "; " + remedy
        }
    }

    /// The faults, in the order of the schema.
    public var problems: [Problem]

    package init(problems: [Problem]) { self.problems = problems }

    /// The reason in words.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects the faults found while a schema is read or checked.
struct SchemaProblems {
    private(set) var list: [SchemaError.Problem] = []

    mutating func add(_ table: String?, _ column: String?, _ message: String, remedy: String) {
        list.append(.init(table: table, column: column, message: message, remedy: remedy))
    }

    func check() throws(SchemaError) {
        if !list.isEmpty { throw SchemaError(problems: list) }
    }
}

/// The name in `known` that `name` was probably meant to be.
package func nearest(to name: String, in known: [String]) -> String? {
    known.map { ($0, editDistance(name.lowercased(), $0.lowercased())) }.min { $0.1 < $1.1 }?.0
}

private func editDistance(_ left: String, _ right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (index, character) in left.enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in right.indices {
            let substituted = diagonal + (character == right[column] ? 0 : 1)
            diagonal = row[column + 1]
            row[column + 1] = min(substituted, row[column] + 1, row[column + 1] + 1)
        }
    }
    return row[right.count]
}
