/// Why an operation will never be accepted.
///
/// Thrown by an intent's handler, and inside the server wherever a rule refuses an operation.
public struct Rejection: Error, Equatable, Sendable {
    /// A stable reason, such as `total_negative`; apps branch on it.
    public var code: String
    /// The reason in words, for people.
    public var message: String
    /// The columns at fault.
    public var fields: [String]

    /// A rejection of the given parts.
    public init(_ code: String, _ message: String, fields: [String] = []) {
        self.code = code
        self.message = message
        self.fields = fields
    }
}
