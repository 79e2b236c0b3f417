import FieldpostCrypto
import Testing

@Suite struct CryptoTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    // FIPS 180-4 examples.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 gives the published digests`(_ text: String, _ digest: String) {
        #expect(Hex.encode(SHA256.hash(bytes(text))) == digest)
    }

    @Test func `content in pieces has the digest of the whole, at every point`() {
        let content = (0..<1_000).map { UInt8(truncatingIfNeeded: $0) }
        let hasher = SHA256Hasher()
        for start in stride(from: 0, to: 1_000, by: 37) {
            hasher.update(content[start..<min(start + 37, 1_000)])
            #expect(hasher.finalize() == SHA256.hash(Array(content.prefix(start + 37))))
        }
    }

    // RFC 4231, test cases 1, 2 and 6; the last is OpenSSL's answer for nothing at all.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0b, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        ([], "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ])
    func `HMAC gives the published codes`(_ key: [UInt8], _ message: String, _ code: String) {
        #expect(Hex.encode(hmacSHA256(key: key, message: bytes(message))) == code)
    }

    @Test func `secrets are equal only when all bytes are`() {
        #expect(constantTimeEquals([], []))
        #expect(constantTimeEquals([1, 2], [1, 2]))
        #expect(!constantTimeEquals([1, 2], [1, 3]))
        #expect(!constantTimeEquals([1, 2], [1]))
    }

    @Test func `random bytes differ`() {
        #expect(randomBytes(0).isEmpty)
        #expect(randomBytes(32).count == 32)
        #expect(randomBytes(32) != randomBytes(32))
    }

    @Test func `hexadecimal reads both cases and refuses the rest`() {
        #expect(Hex.encode([0, 0x0f, 0xff]) == "000fff")
        #expect(Hex.decode("00Ff") == [0, 255])
        #expect(Hex.encode([]) == "" && Hex.decode("") == [])
        for text in ["0", "0g", "é0", " 0"] { #expect(Hex.decode(text) == nil) }
    }

    // RFC 4648, section 10, without padding, and the two digits of its section 5.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"), ("~~~???", "fn5-Pz8_"),
    ])
    func `base64url gives the published texts`(_ content: String, _ text: String) {
        #expect(Base64URL.encode(bytes(content)) == text)
        #expect(Base64URL.decode(text) == bytes(content))
    }

    @Test(arguments: ["A", "Zg==", "Zh", "Zm9=", "Z+", "Z/", "Zm 8", "Zmé", "Zm9vY"])
    func `base64url refuses anything it would not write`(_ text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func `base64url keeps any bytes`() {
        for count in 0..<100 {
            let content = randomBytes(count)
            #expect(Base64URL.decode(Base64URL.encode(content)) == content)
        }
    }
}
