#if canImport(CryptoKit)
    internal import CryptoKit
#else
    internal import CFieldpostCrypto
#endif

/// The HMAC-SHA-256 of `message` under `key` (RFC 2104), 32 bytes.
package func hmacSHA256(key: [UInt8], message: [UInt8]) -> [UInt8] {
    #if canImport(CryptoKit)
        return Array(HMAC<CryptoKit.SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    #else
        var digest = [UInt8](repeating: 0, count: SHA256.digestLength)
        // libcrypto takes no key at address nil, which an empty array may have.
        let keyBytes = key.isEmpty ? [0] : key
        let result = HMAC(EVP_sha256(), keyBytes, Int32(key.count), message, message.count, &digest, nil)
        precondition(result != nil, "libcrypto offers no HMAC")
        return digest
    #endif
}

/// Whether two secrets are equal, in a time that depends on their length alone.
///
/// A comparison that stops at the first difference tells an attacker how much of a guess was right.
package func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
}

/// `count` bytes from the system's generator, fit for keys and tokens.
package func randomBytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}
