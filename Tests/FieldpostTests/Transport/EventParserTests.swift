import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct EventParserTests {
    private func items(_ pieces: String...) throws -> [EventParser.Item] {
        var parser = EventParser()
        return try pieces.flatMap { try parser.take(Array($0.utf8)) }
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `an event is read whatever its line ends are and wherever the bytes are cut`(_ end: String) throws {
        let text = ["retry: 250", "", ": alive", "event: changed", "data: a", "data:b", "", "data", "", ""]
            .joined(separator: end)
        var parser = EventParser()

        let whole = try parser.take(Array(text.utf8))
        var cut = EventParser()
        let pieces = try text.utf8.flatMap { try cut.take([$0]) }

        #expect(
            whole == [
                .retry(milliseconds: 250), .event(name: "changed", data: "a\nb"),
                .event(name: "message", data: ""),
            ]
        )
        #expect(pieces == whole)
    }

    @Test func `an event without data, an unknown field and a retry that is no number are nothing`() throws {
        #expect(try items("event: changed\n\n", "id: 7\n\n", "retry: soon\n", "retry:-1\n") == [])
    }

    @Test func `a byte order mark is no part of the first line`() throws {
        #expect(try items("\u{FEFF}data: x\n\n") == [.event(name: "message", data: "x")])
    }

    @Test func `a line that never ends is refused, not kept`() throws {
        var parser = EventParser()
        let piece = [UInt8](repeating: 0x61, count: 8_000)
        _ = try parser.take(piece)

        #expect(throws: ExchangeFailure.self) { try parser.take(piece) }
    }

    // MARK: When to come again

    @Test
    func
        `a lost line is taken up again after a random while that grows, and is short again once it is heard`()
    {
        var random = SeededRandom(seed: 4)
        var steady = Backoff()
        steady.jitter = .none
        var line = EventLine()
        line.asks(0)

        let growing = (0..<4).map { _ in line.lost(.unreachable("cut"), steady, using: &random) }
        line.opened()

        #expect(growing == [1_000, 2_000, 4_000, 8_000])
        #expect(line.lost(nil, steady, using: &random) == 1_000)
    }

    @Test func `those whom the server lost together return spread over what it asks for`() {
        var waits: [Int64] = []
        for seed in 0..<200 {
            var random = SeededRandom(seed: UInt64(seed))
            var line = EventLine()
            line.asks(5_000)
            waits.append(line.lost(nil, Backoff(), using: &random))
        }

        #expect(waits.allSatisfy { (0...5_000).contains($0) })
        #expect(waits.min() ?? 0 < 1_000 && waits.max() ?? 0 > 4_000)
    }

    @Test func `a full server is left alone as long as it asks, a server without events for five minutes`() {
        var random = SeededRandom(seed: 1)
        var line = EventLine()

        let full = line.lost(.busy(retryAfterSeconds: 60), Backoff(), using: &random)

        #expect((60_000...120_000).contains(full))
        #expect(line.lost(.misconfigured("404"), Backoff(), using: &random) == 300_000)
    }
}
