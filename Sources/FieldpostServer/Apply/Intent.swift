public import FieldpostCore
internal import FieldpostSQLite

/// What an app's server does when a device asks for it by name.
///
/// It runs inside the push's transaction and in its operation's savepoint: when it throws, nothing of it remains. A
/// ``Rejection`` settles the operation for ever; any other error fails the push, which is then sent again.
public struct IntentHandler: Sendable {
    let run: @Sendable (JSON, IntentTransaction) throws -> Void

    /// A handler that runs `body` with the operation's payload.
    public init(
        _ body: @escaping @Sendable (_ payload: JSON, _ transaction: IntentTransaction) throws -> Void
    ) {
        run = body
    }
}

/// The transaction an intent runs in, lent to its handler.
///
/// Whatever it writes reaches the devices that may see it.
public struct IntentTransaction {
    let connection: Connection
    /// The operation asked for; its `row` and `table` are what the device named.
    public let operation: Operation
    /// Who asks.
    public let credential: Credential
    /// The server's clock.
    public let now: Timestamp

    /// Runs one statement.
    ///
    /// - Throws: A store error; a broken constraint is not a ``Rejection`` until the handler says so.
    public func run(_ sql: String, _ arguments: [Value] = []) throws { try connection.run(sql, arguments) }

    /// All rows of a query.
    public func query(_ sql: String, _ arguments: [Value] = []) throws -> [[Value]] {
        try connection.query(sql, arguments)
    }
}
