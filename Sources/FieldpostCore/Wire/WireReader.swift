/// A message that is not what the protocol says.
public struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Where in the message.
    public var place: String
    /// What is wrong, without the message's values.
    public var message: String

    /// A fault at `place`.
    public init(place: String, message: String) {
        self.place = place
        self.message = message
    }

    /// The reason in words.
    public var description: String { place.isEmpty ? message : "\(place): \(message)" }
}

/// Limits that both sides keep.
public enum WireLimits {
    /// Nesting allowed in a push: enough for rows of JSON columns, too little to exhaust a stack.
    public static let jsonDepth = 32
    /// Nesting allowed in an answer: a value that another program wrote on the server must not stop a page.
    public static let answerDepth = 512
    /// Operations in one push.
    public static let operationsPerPush = 1_000
    /// Bytes of a push as sent, compressed or not.
    public static let compressedBytes = 1 << 20
    /// Bytes of a push once unpacked.
    public static let unpackedBytes = 8 << 20
    /// Bytes of a page once unpacked, as a device accepts it.
    public static let pageBytes = 32 << 20
    /// Rows of one page.
    public static let rowsPerPage = 1_000
    /// The protocol version spoken here.
    public static let protocolVersion = 1
}

/// Reads the members of one JSON object, naming the place of whatever is missing.
struct WireReader {
    let object: JSONObject
    let place: String

    init(_ json: JSON, _ place: String) throws(WireError) {
        guard let object = json.object else { throw WireError(place: place, message: "expected an object") }
        self.object = object
        self.place = place
    }

    static func root(_ bytes: [UInt8], maxDepth: Int) throws(WireError) -> WireReader {
        let json: JSON
        do { json = try JSON(bytes: bytes, maxDepth: maxDepth) } catch {
            throw WireError(place: "byte \(error.offset)", message: "not JSON: \(error.message)")
        }
        return try WireReader(json, "")
    }

    func array(_ name: String) throws(WireError) -> [JSON] {
        guard let value = object[name]?.array else { throw missing(name, "an array") }
        return value
    }

    func string(_ name: String) throws(WireError) -> String {
        guard let value = object[name]?.string else { throw missing(name, "a string") }
        return value
    }

    func integer(_ name: String) throws(WireError) -> Int64 {
        guard let value = object[name] else { throw missing(name, "an integer") }
        return try integer(value, name)
    }

    func integer(_ json: JSON, _ name: String) throws(WireError) -> Int64 {
        guard let value = json.integer else { throw missing(name, "an integer") }
        return value
    }

    func operationID(_ name: String) throws(WireError) -> OperationID {
        guard let id = OperationID(try string(name)) else { throw missing(name, "a UUID") }
        return id
    }

    func operationIDs(_ name: String) throws(WireError) -> [OperationID] {
        guard object[name] != nil else { return [] }
        return try array(name).map { (json) throws(WireError) in
            guard let id = json.string.flatMap({ OperationID($0) }) else {
                throw missing(name, "a list of UUIDs")
            }
            return id
        }
    }

    private func missing(_ name: String, _ what: String) -> WireError {
        WireError(place: place, message: "“\(name)” must be \(what)")
    }
}
