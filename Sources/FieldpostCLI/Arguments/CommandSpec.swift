/// One command of the program: what it takes, what it says of itself, and what it does.
struct CommandSpec: Sendable {
    /// What follows `fieldpost`, such as `["token", "create"]`.
    let path: [String]
    /// One sentence for lists and for the head of the help.
    let summary: String
    /// What stands without an option's name, in order.
    var operands: [Operand] = []
    /// The options, in the order of the help.
    var options: [Option] = []
    /// What else the help says, a paragraph each.
    var notes: [String] = []
    /// Runs the command.
    let run: @Sendable (Invocation, Console) async throws -> ExitCode

    /// The path as it is typed.
    var name: String { path.joined(separator: " ") }

    /// An argument known by its place.
    struct Operand: Sendable {
        let name: String
        let help: String
    }

    /// An argument known by its name.
    struct Option: Sendable {
        /// The name without `--`.
        let name: String
        /// What its value stands for in the help; `nil` for a switch.
        var value: String?
        let help: String
        var isRequired = false
        var isRepeated = false
    }
}

extension CommandSpec.Option {
    static let json = Self(name: "json", help: "print JSON for programs")
    static let help = Self(name: "help", help: "print this help")

    static func required(_ name: String, _ value: String, _ help: String) -> Self {
        Self(name: name, value: value, help: help, isRequired: true)
    }

    static func optional(_ name: String, _ value: String, _ help: String) -> Self {
        Self(name: name, value: value, help: help)
    }

    static func flag(_ name: String, _ help: String) -> Self { Self(name: name, help: help) }
}

/// The arguments of one call, checked against its ``CommandSpec``.
struct Invocation: Sendable {
    var values: [String: [String]] = [:]
    var operands: [String] = []

    /// The value of an option, the last one given.
    subscript(_ name: String) -> String? { values[name]?.last }

    /// Whether a switch was given.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// The value of a required option, which the parser has seen to.
    func required(_ name: String) throws(UsageError) -> String {
        guard let value = self[name] else { throw UsageError("--\(name) is missing; add it.") }
        return value
    }
}

/// A command line that is not understood.
struct UsageError: Error {
    let message: String
    /// The command whose help explains it.
    var command: String?

    init(_ message: String, command: String? = nil) {
        self.message = message
        self.command = command
    }
}
