import Testing

@testable import FieldpostServerHTTP

@Suite struct WaitingTests {
    let start = ContinuousClock.now
    let limits = HTTPLimits()

    @Test func `a late head or body is told so, everything else late is closed`() {
        #expect(Waiting.head(since: start).verdict(at: start + .seconds(10), limits) == .answerTimeout)
        #expect(
            Waiting.body(since: start, received: 0).verdict(at: start + .seconds(10), limits)
                == .answerTimeout
        )
        #expect(Waiting.request(since: start).verdict(at: start + .seconds(60), limits) == .close)
        #expect(Waiting.reader(since: start).verdict(at: start + .seconds(30), limits) == .close)
        #expect(Waiting.goodbye(since: start).verdict(at: start + .seconds(5), limits) == .close)
    }

    @Test func `nothing is late before its time`() {
        #expect(Waiting.head(since: start).verdict(at: start + .seconds(9), limits) == .onTime)
        #expect(Waiting.body(since: start, received: 0).verdict(at: start + .seconds(9), limits) == .onTime)
        #expect(Waiting.request(since: start).verdict(at: start + .seconds(59), limits) == .onTime)
        #expect(Waiting.reader(since: start).verdict(at: start + .seconds(29), limits) == .onTime)
        #expect(Waiting.goodbye(since: start).verdict(at: start + .seconds(4), limits) == .onTime)
    }

    @Test func `a handler may take as long as it likes`() {
        #expect(Waiting.handler.verdict(at: start + .seconds(1_000_000), limits) == .onTime)
    }

    @Test func `each kibibyte of a body buys a second`() {
        let waiting = Waiting.body(since: start, received: 90 * 1024)

        #expect(waiting.verdict(at: start + .seconds(99), limits) == .onTime)
        #expect(waiting.verdict(at: start + .seconds(100), limits) == .answerTimeout)
    }
}
