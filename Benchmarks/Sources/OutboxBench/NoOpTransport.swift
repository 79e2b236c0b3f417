import Fieldpost
import Synchronization

/// A server without a network: acknowledges every operation at once, and notes the time between its requests.
///
/// The time from one answer to the next request is what the library does for one batch: it takes in the answer and
/// claims what goes next.
final class NoOpTransport: Transport {
    private struct State {
        var version: Int64 = 0
        var answered: ContinuousClock.Instant?
        var gaps: [Double] = []
        var operations = 0
    }

    private let state = Mutex(State())
    private let last: Int

    /// - Parameter last: after so many requests the network is gone.
    init(last: Int = .max) { self.last = last }

    /// Seconds from each answer to the next request.
    var gaps: [Double] { state.withLock { $0.gaps } }
    /// Operations acknowledged.
    var operations: Int { state.withLock { $0.operations } }

    func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure) -> PushResponse {
        let arrived = ContinuousClock.now
        let ids = Self.ids(in: push.body)
        let response: PushResponse? = state.withLock { state in
            if let answered = state.answered { state.gaps.append((arrived - answered).seconds) }
            if state.gaps.count >= last { return nil }
            let results = ids.map { id in
                state.version += 1
                var result = OperationResult(id: id, status: .applied)
                result.version = state.version
                return result
            }
            state.operations += ids.count
            state.answered = .now
            return PushResponse(results: results, serverTime: context.now)
        }
        guard let response else { throw .unreachable("the benchmark is over") }
        return response
    }

    func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        PullPage(changes: [], cursor: "1", more: false, serverTime: context.now)
    }

    func probe(_ context: RequestContext) async -> Bool { true }

    /// The ids of a body, without reading the rest: each operation begins with its own.
    private static func ids(in body: [UInt8]) -> [OperationID] {
        let mark = Array(#"{"id":""#.utf8)
        var ids: [OperationID] = []
        var place = 0
        while place + mark.count + 36 <= body.count {
            if body[place] == mark[0], body[place + 2] == mark[2], body[place..<place + mark.count].elementsEqual(mark) {
                let id = body[place + mark.count..<place + mark.count + 36]
                if let id = OperationID(String(decoding: id, as: UTF8.self)) { ids.append(id) }
                place += mark.count + 36
            } else {
                place += 1
            }
        }
        return ids
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
