#if canImport(CryptoKit)
    internal import CryptoKit
#else
    internal import CFieldpostCrypto
#endif

/// SHA-256 of bytes in memory (FIPS 180-4).
package enum SHA256 {
    /// The length of a digest in bytes.
    package static let digestLength = 32

    /// The digest of `bytes`.
    package static func hash(_ bytes: [UInt8]) -> [UInt8] {
        let hasher = SHA256Hasher()
        hasher.update(bytes)
        return hasher.finalize()
    }
}

/// SHA-256 of content that arrives in pieces.
package final class SHA256Hasher {
    #if canImport(CryptoKit)
        private var state = CryptoKit.SHA256()

        /// Starts with no content.
        package init() {}

        /// Adds `bytes` to the content.
        package func update(_ bytes: UnsafeRawBufferPointer) { state.update(bufferPointer: bytes) }

        /// The digest of all content so far; more may follow.
        package func finalize() -> [UInt8] { Array(state.finalize()) }
    #else
        private let state: OpaquePointer

        /// Starts with no content.
        package init() {
            guard let state = EVP_MD_CTX_new(), EVP_DigestInit_ex(state, EVP_sha256(), nil) == 1 else {
                preconditionFailure("libcrypto offers no SHA-256")
            }
            self.state = state
        }

        deinit { EVP_MD_CTX_free(state) }

        /// Adds `bytes` to the content.
        package func update(_ bytes: UnsafeRawBufferPointer) {
            precondition(
                EVP_DigestUpdate(state, bytes.baseAddress, bytes.count) == 1,
                "libcrypto refuses to hash"
            )
        }

        /// The digest of all content so far; more may follow.
        package func finalize() -> [UInt8] {
            // On a copy, because libcrypto's digest cannot go on once it was read.
            guard let copy = EVP_MD_CTX_new() else { preconditionFailure("memory ran out") }
            defer { EVP_MD_CTX_free(copy) }
            var digest = [UInt8](repeating: 0, count: SHA256.digestLength)
            let succeeded =
                EVP_MD_CTX_copy_ex(copy, state) == 1 && EVP_DigestFinal_ex(copy, &digest, nil) == 1
            precondition(succeeded, "libcrypto refuses to hash")
            return digest
        }
    #endif

    /// Adds `bytes` to the content.
    package func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// Adds `bytes` to the content.
    package func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { update($0) } }
}
