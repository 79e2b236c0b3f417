/// The name of a tenant: a store of its own, which no query can leave.
public struct TenantName: Hashable, Sendable, CustomStringConvertible {
    /// One to 63 lower-case letters, digits and `_`.
    public let text: String

    /// The tenant that lives in the store's path itself.
    public static let main = TenantName(known: "main")

    private init(known text: String) { self.text = text }

    /// The tenant called `text`.
    ///
    /// - Throws: ``ServerError/Code/invalidTenant``. The name becomes a part of a file's name. Three names that
    ///   SQLite gives its own files are refused, and `-`, with which one tenant's log could be another's database.
    public init(_ text: String) throws(ServerError) {
        let bytes = text.utf8
        let wellFormed =
            (1...63).contains(bytes.count)
            && bytes.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
        guard wellFormed, !["wal", "shm", "journal"].contains(text) else {
            throw ServerError(
                .invalidTenant,
                "A tenant's name has up to 63 lower-case letters, digits and _, and is not wal, shm or journal."
            )
        }
        self.text = text
    }

    /// Where the tenant's store lives, given the server's path.
    package func path(in path: String) -> String { self == .main ? path : "\(path)-\(text)" }

    /// The name.
    public var description: String { text }
}
