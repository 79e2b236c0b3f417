/// Why bytes are not usable gzip.
package struct GzipError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What went wrong, in terms a caller can act on.
    package let code: Code
    /// One sentence for a log.
    package let message: String

    /// The reasons decoding can fail.
    package struct Code: Hashable, Sendable {
        private enum Wrapped { case malformed, truncated, trailingGarbage, tooLarge }
        private let wrapped: Wrapped

        /// Not gzip, or damaged on the way: its checksum or its structure is wrong.
        package static let malformed = Code(wrapped: .malformed)
        /// The bytes end before the gzip does; more may follow.
        package static let truncated = Code(wrapped: .truncated)
        /// Something that is not gzip follows the gzip.
        package static let trailingGarbage = Code(wrapped: .trailingGarbage)
        /// The content exceeds the caller's limit.
        package static let tooLarge = Code(wrapped: .tooLarge)
    }

    package var description: String { message }

    static let malformed = GzipError(
        code: .malformed,
        message: "The bytes are not gzip or are damaged; send them again."
    )
    static let truncated = GzipError(code: .truncated, message: "The gzip ends too early; send all of it.")
    static let trailingGarbage = GzipError(
        code: .trailingGarbage,
        message: "Bytes follow the end of the gzip; send one gzip and nothing else."
    )
    static func tooLarge(_ limit: Int) -> GzipError {
        GzipError(code: .tooLarge, message: "The content exceeds \(limit) bytes; send less at once.")
    }
}
