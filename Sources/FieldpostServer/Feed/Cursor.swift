internal import FieldpostCore
internal import FieldpostCrypto

/// A place in the feed, which only the server that gave it out understands.
///
/// Signed, and bound to the epoch, the tenant and what its credential may read: under any other it is a resync and never a
/// guess.
struct Cursor: Equatable {
    /// Raised when the meaning of a cursor changes.
    static let format: UInt8 = 1
    private static let epochBytes = 8
    private static let readableBytes = 16
    private static let signatureBytes = 16

    /// The history that ``version`` counts in.
    var epoch: [UInt8]
    /// Everything up to this version has been served.
    var version: Int64
    /// A digest of tenant and scopes.
    var readable: [UInt8]

    init(epoch: [UInt8], version: Int64, credential: Credential) {
        self.epoch = epoch
        self.version = version
        readable = Cursor.readable(by: credential)
    }

    /// What decides which rows a credential reads, and not which token it is.
    static func readable(by credential: Credential) -> [UInt8] {
        let text = JSON.array([.string(credential.tenant.text), credential.scopes.json]).text()
        return Array(SHA256.hash(Array(text.utf8)).prefix(readableBytes))
    }

    private var payload: [UInt8] {
        let number = UInt64(bitPattern: version)
        return [Cursor.format] + epoch + (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
            + readable
    }

    private static func signature(_ payload: [UInt8], _ key: [UInt8]) -> [UInt8] {
        Array(hmacSHA256(key: key, message: payload).prefix(signatureBytes))
    }

    func text(key: [UInt8]) -> String {
        let payload = payload
        return Base64URL.encode(payload + Cursor.signature(payload, key))
    }

    /// The cursor written as `text`, or `nil` unless it is one that `key` signed.
    init?(_ text: String, key: [UInt8]) {
        let payloadBytes = 1 + Cursor.epochBytes + 8 + Cursor.readableBytes
        guard text.utf8.count <= 256, let bytes = Base64URL.decode(text),
            bytes.count == payloadBytes + Cursor.signatureBytes, bytes[0] == Cursor.format
        else { return nil }
        let payload = Array(bytes.prefix(payloadBytes))
        guard constantTimeEquals(Cursor.signature(payload, key), Array(bytes.suffix(Cursor.signatureBytes)))
        else { return nil }
        epoch = Array(payload[1..<9])
        version = Int64(bitPattern: payload[9..<17].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        readable = Array(payload[17...])
    }
}
