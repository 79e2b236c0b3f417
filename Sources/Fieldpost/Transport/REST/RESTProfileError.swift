/// Everything that is wrong with a profile.
public struct RESTProfileError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One fault: where, what and what to do about it.
    public struct Problem: Equatable, Sendable, CustomStringConvertible {
        /// The place, such as `tables.notes.create.path`.
        public var place: String
        /// What is wrong.
        public var message: String
        /// What to do.
        public var remedy: String

        /// The fault in one line.
        public var description: String { (place.isEmpty ? "" : place + ": ") + message + "; " + remedy }
    }

    /// The faults, in the order found.
    public var problems: [Problem]

    /// Every fault, one a line.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects the faults found while a profile is read or checked.
struct RESTProblems {
    private(set) var list: [RESTProfileError.Problem] = []

    mutating func add(_ place: String, _ message: String, _ remedy: String) {
        list.append(.init(place: place, message: message, remedy: remedy))
    }

    func check() throws(RESTProfileError) {
        if !list.isEmpty { throw RESTProfileError(problems: list) }
    }
}
