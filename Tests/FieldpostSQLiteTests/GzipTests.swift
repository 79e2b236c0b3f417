import FieldpostGzip
import Foundation
import Testing

@Suite struct GzipTests {
    private let text = Array(String(repeating: "a field post letter; ", count: 20_000).utf8)
    // What `printf hello | gzip -n` writes.
    private let hello: [UInt8] = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0,
        0, 0,
    ]

    private func failure(_ bytes: [UInt8], limit: Int = 1_000) -> GzipError.Code? {
        do throws(GzipError) {
            _ = try Gzip.decompress(bytes, limit: limit)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a known gzip decodes`() throws {
        #expect(try Gzip.decompress(hello, limit: 5) == Array("hello".utf8))
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 400_000])
    func `what is compressed decompresses`(_ count: Int) throws {
        let bytes = Array(text.prefix(count))
        let packed = Gzip.compress(bytes)

        #expect(try Gzip.decompress(packed, limit: count) == bytes)
        #expect(Gzip.compress(bytes) == packed)
        #expect(count < 100 || packed.count < count / 10)
    }

    @Test(arguments: [Int32(0), 1, 9])
    func `each level decodes`(_ level: Int32) throws {
        #expect(try Gzip.decompress(Gzip.compress(text, level: level), limit: text.count) == text)
    }

    @Test func `the gzip tool reads ours`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Gzip.compress(text), to: "a.gz")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-d", path]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()

        #expect(FileManager.default.contents(atPath: folder.file("a")) == Data(text))
    }

    @Test func `every truncation is noticed`() {
        for count in 0..<hello.count { #expect(failure(Array(hello.prefix(count))) == .truncated) }
    }

    @Test func `bytes after the end are refused, another member too`() {
        #expect(failure(hello + [0]) == .trailingGarbage)
        #expect(failure(hello + hello) == .trailingGarbage)
    }

    @Test(arguments: [0, 1, 2, 11, 17, 21])
    func `damage is noticed`(_ index: Int) {
        var bytes = hello
        bytes[index] ^= 0xff

        #expect(failure(bytes) == .malformed)
    }

    @Test func `a zlib stream and plain text are not gzip`() {
        #expect(failure([0x78, 0x9c, 3, 0, 0, 0, 0, 1]) == .malformed)
        #expect(failure(Array("hello".utf8)) == .malformed)
    }

    @Test func `a bomb stops at the limit`() {
        let bomb = Gzip.compress([UInt8](repeating: 0, count: 100_000_000), level: 9)

        #expect(bomb.count < 200_000)
        #expect(failure(bomb, limit: 1_000_000) == .tooLarge)
        #expect(failure(hello, limit: 4) == .tooLarge)
        #expect(failure(hello, limit: 0) == .tooLarge)
    }

    @Test(arguments: [1, 7, 64, 100_000])
    func `members in pieces of any size decode as one content`(_ size: Int) throws {
        let bytes = Gzip.compress(text) + hello + Gzip.compress([])
        let reader = GzipReader()
        var content: [UInt8] = []

        for start in stride(from: 0, to: bytes.count, by: size) {
            content += try reader.feed(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        try reader.finish()

        #expect(content == text + Array("hello".utf8))
    }

    @Test func `a piece that expands is lent in bounded slices`() throws {
        let reader = GzipReader()
        var largest = 0
        var total = 0

        try reader.feed(Gzip.compress([UInt8](repeating: 1, count: 5_000_000))) {
            largest = max(largest, $0.count)
            total += $0.count
        }

        #expect(largest <= 65_536 && total == 5_000_000)
        try reader.finish()
    }

    @Test func `a reader notices an end that is missing, garbage and its limit`() throws {
        let truncated = GzipReader()
        _ = try truncated.feed(Array(hello.dropLast()))
        #expect(throws: GzipError.self) { try truncated.finish() }
        #expect(throws: GzipError.self) { try GzipReader().finish() }

        #expect(throws: GzipError.self) { try GzipReader(limit: 4).feed(hello) }

        for garbage in [[1, 2], [0x1f, 2]] as [[UInt8]] {
            let reader = GzipReader()
            _ = try reader.feed(hello)
            #expect { try reader.feed(garbage) } throws: { ($0 as? GzipError)?.code == .trailingGarbage }
        }
    }
}
