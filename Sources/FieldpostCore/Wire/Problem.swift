/// An error answer: an RFC 9457 problem document with a stable type.
public struct Problem: Error, Equatable, Sendable {
    /// The stable last part of the type URI, such as `resync-required`.
    public var code: String
    /// The HTTP status.
    public var status: Int
    /// One sentence that says what to do.
    public var detail: String
    /// After how many seconds a retry makes sense.
    public var retryAfterSeconds: Int?

    /// A problem of the given parts.
    public init(_ code: String, status: Int, detail: String, retryAfterSeconds: Int? = nil) {
        self.code = code
        self.status = status
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// What comes before ``code`` in the type URI.
    public static let typePrefix = "https://fieldpost.dev/problems/"

    /// The JSON body.
    public func bytes() -> [UInt8] {
        JSON.object([
            "type": .string(Problem.typePrefix + code), "title": .string(code.replacing("-", with: " ")),
            "status": .integer(Int64(status)), "detail": .string(detail),
        ]).bytes()
    }

    /// Reads the body of an answer with `status`; `nil` unless it is one of our problem documents.
    public init?(bytes: [UInt8], status: Int) {
        guard let object = try? JSON(bytes: bytes).object, let type = object["type"]?.string,
            type.hasPrefix(Problem.typePrefix)
        else { return nil }
        self.init(
            String(type.dropFirst(Problem.typePrefix.count)),
            status: status,
            detail: object["detail"]?.string ?? ""
        )
    }
}

extension String {
    fileprivate func replacing(_ character: Character, with other: Character) -> String {
        String(map { $0 == character ? other : $0 })
    }
}
