public import Fieldpost
public import FieldpostCore

/// A server of a few lines: answers each request by the next line of a script, and records what was sent.
///
///     let transport = ScriptedTransport([.fail(.unreachable("timeout")), .accept])
///     let engine = SyncEngine(store: store, transport: transport) { _ in "token" }
///     _ = await engine.sync()
///     #expect(transport.pushes[0].ids == transport.pushes[1].ids)
///
/// Pulls and probes have defaults, since most scripts are about pushes: a pull answers an empty checkpoint, a probe
/// succeeds. A push that no line is left for fails with ``unscripted``, and ``unscriptedCalls`` counts it.
public final class ScriptedTransport: Transport {
    private let state: Guarded<State>
    private let hold = Hold()

    private struct State {
        var pushScript: [PushLine]
        var pullScript: [PullLine]
        var probeScript: [Bool]
        var pushes: [SentPush] = []
        var pulls: [SentPull] = []
        var probes: [RequestContext] = []
        var unscriptedCalls = 0
        var version: Int64 = 0
        var watchers: [(pushes: Int, pulls: Int, continuation: CheckedContinuation<Void, Never>)] = []

        /// Those who waited for what has been sent by now.
        mutating func satisfied() -> [CheckedContinuation<Void, Never>] {
            let (sent, asked) = (pushes.count, pulls.count)
            defer { watchers.removeAll { $0.pushes <= sent && $0.pulls <= asked } }
            return watchers.filter { $0.pushes <= sent && $0.pulls <= asked }.map(\.continuation)
        }
    }

    /// What a call that the script does not foresee fails with.
    public static let unscripted = ExchangeFailure.misconfigured(
        "unscripted call: the transport's script has no line left"
    )

    /// What becomes of one push.
    public indirect enum PushLine: Sendable {
        /// Every operation is applied.
        case accept
        /// Every operation is applied, and the answer is lost.
        case acceptAndLoseAnswer
        /// Every operation is rejected for this reason.
        case reject(code: String)
        /// Every operation lost against this row; `nil` for one that is gone.
        case conflict(row: JSONObject?, version: Int64)
        /// Every operation is to be tried again after so many milliseconds.
        case retry(afterMilliseconds: Int64?)
        /// Every operation waits for this one.
        case blocked(by: OperationID?)
        /// No answer that counts.
        case fail(ExchangeFailure)
        /// An answer of its own for each operation; `nil` leaves it out.
        case each(@Sendable (Operation) -> OperationResult?)
        /// What the other line says, once ``ScriptedTransport/release()`` is called.
        case hold(PushLine)
    }

    /// What becomes of one pull.
    public indirect enum PullLine: Sendable {
        /// This page.
        case page(PullPage)
        /// No answer that counts.
        case fail(ExchangeFailure)
        /// What the other line says, once ``ScriptedTransport/release()`` is called.
        case hold(PullLine)
    }

    /// A push as it was sent.
    public struct SentPush: Sendable {
        /// The JSON body.
        public var body: [UInt8]
        /// The operations by group.
        public var groups: [OperationGroup]
        /// Who sent it, and when.
        public var context: RequestContext
        /// The operations' ids in order.
        public var ids: [OperationID] { groups.flatMap(\.operations).map(\.id) }
    }

    /// A pull as it was sent.
    public struct SentPull: Sendable {
        /// The cursor it asked with.
        public var cursor: String?
        /// Who asked, and when.
        public var context: RequestContext
    }

    /// A transport that follows a script for each kind of call.
    public init(_ pushes: [PushLine] = [], pulls: [PullLine] = [], probes: [Bool] = []) {
        state = Guarded(State(pushScript: pushes, pullScript: pulls, probeScript: probes))
    }

    /// Adds lines for more pushes.
    public func append(_ lines: [PushLine]) { state.withLock { $0.pushScript += lines } }

    /// The pushes so far.
    public var pushes: [SentPush] { state.withLock { $0.pushes } }
    /// The pulls so far.
    public var pulls: [SentPull] { state.withLock { $0.pulls } }
    /// The probes so far.
    public var probes: [RequestContext] { state.withLock { $0.probes } }
    /// Pushes that no line foresaw; a test expects none.
    public var unscriptedCalls: Int { state.withLock { $0.unscriptedCalls } }
    /// Lines for pushes that nothing has used.
    public var unusedLines: Int { state.withLock { $0.pushScript.count } }

    // MARK: Waiting

    /// Returns once `count` pushes have been sent.
    public func untilPushes(_ count: Int) async { await until(pushes: count, pulls: 0) }

    /// Returns once `count` pulls have been asked for.
    public func untilPulls(_ count: Int) async { await until(pushes: 0, pulls: count) }

    private func until(pushes: Int, pulls: Int) async {
        await withCheckedContinuation { continuation in
            let woken = state.withLock { state in
                state.watchers.append((pushes, pulls, continuation))
                return state.satisfied()
            }
            for one in woken { one.resume() }
        }
    }

    // MARK: Holding

    /// Returns once a request is held.
    public func untilHeld() async { await hold.untilHeld() }

    /// Lets the requests that are held be answered.
    public func release() { hold.release() }

    // MARK: Transport

    /// Records a push and answers it by the script's next line.
    public func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse
    {
        let groups: [OperationGroup]
        do { groups = try push.request().groups } catch {
            throw .invalid(Problem("malformed", status: 400, detail: "the body is no push: \(error)"))
        }
        let (line, woken) = state.withLock { state -> (PushLine?, [CheckedContinuation<Void, Never>]) in
            state.pushes.append(SentPush(body: push.body, groups: groups, context: context))
            if state.pushScript.isEmpty { state.unscriptedCalls += 1 }
            return (state.pushScript.isEmpty ? nil : state.pushScript.removeFirst(), state.satisfied())
        }
        for one in woken { one.resume() }
        guard let line else { throw Self.unscripted }
        return try await answer(to: groups.flatMap(\.operations), by: line, context)
    }

    private func answer(
        to operations: [Operation],
        by line: PushLine,
        _ context: RequestContext
    ) async throws(ExchangeFailure) -> PushResponse {
        let make: (Operation) -> OperationResult?
        switch line {
        case .hold(let line):
            try await hold.wait()
            return try await answer(to: operations, by: line, context)
        case .fail(let failure): throw failure
        case .acceptAndLoseAnswer: throw .unreachable("the answer was lost")
        case .each(let answer): make = answer
        case .accept: make = { Self.result($0, .applied) { $0.version = self.nextVersion() } }
        case .reject(let code):
            make = { Self.result($0, .rejected) { ($0.code, $0.message) = (code, "the script says so") } }
        case .conflict(let row, let version):
            make = {
                Self.result($0, .conflict) { ($0.row, $0.version, $0.deleted) = (row, version, row == nil) }
            }
        case .retry(let after): make = { Self.result($0, .retry) { $0.afterMilliseconds = after } }
        case .blocked(let by): make = { Self.result($0, .blocked) { $0.by = by } }
        }
        return PushResponse(results: operations.compactMap { make($0) }, serverTime: context.now)
    }

    private func nextVersion() -> Int64 {
        state.withLock { state in
            state.version += 1
            return state.version
        }
    }

    /// Records a pull and answers it by the script's next line, or with an empty checkpoint.
    public func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        let (line, woken) = state.withLock { state -> (PullLine?, [CheckedContinuation<Void, Never>]) in
            state.pulls.append(SentPull(cursor: cursor, context: context))
            return (state.pullScript.isEmpty ? nil : state.pullScript.removeFirst(), state.satisfied())
        }
        for one in woken { one.resume() }
        guard let line else {
            return PullPage(changes: [], cursor: cursor ?? "start", more: false, serverTime: context.now)
        }
        return try await answer(line)
    }

    private func answer(_ line: PullLine) async throws(ExchangeFailure) -> PullPage {
        switch line {
        case .page(let page): return page
        case .fail(let failure): throw failure
        case .hold(let line):
            try await hold.wait()
            return try await answer(line)
        }
    }

    /// Records a probe and answers it by the script's next line, or with success.
    public func probe(_ context: RequestContext) async -> Bool {
        state.withLock { state in
            state.probes.append(context)
            return state.probeScript.isEmpty ? true : state.probeScript.removeFirst()
        }
    }

    private static func result(
        _ operation: Operation,
        _ status: OperationResult.Status,
        _ fill: (inout OperationResult) -> Void
    ) -> OperationResult {
        var result = OperationResult(id: operation.id, status: status)
        fill(&result)
        return result
    }
}
