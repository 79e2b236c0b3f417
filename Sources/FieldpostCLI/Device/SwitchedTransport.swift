internal import Fieldpost
internal import FieldpostCore
internal import Synchronization

/// A transport with a switch: down, it reaches nobody and cuts what is open.
final class SwitchedTransport: Transport {
    private struct State {
        var isUp = true
        var running: [Int: @Sendable () -> Void] = [:]
        var next = 0
    }

    private let inner: any Transport
    private let state = Mutex(State())

    init(_ inner: any Transport) { self.inner = inner }

    /// Turns the network on or off.
    func set(up: Bool) {
        let cut = state.withLock { state in
            state.isUp = up
            return up ? [] : Array(state.running.values)
        }
        for cancel in cut { cancel() }
    }

    func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure) -> PushResponse {
        try await exchange { [inner] () throws(ExchangeFailure) in try await inner.push(push, context) }
    }

    func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?
    {
        try await exchange { [inner] () throws(ExchangeFailure) in try await inner.void(operations, context) }
    }

    func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        try await exchange { [inner] () throws(ExchangeFailure) in
            try await inner.pull(cursor: cursor, context)
        }
    }

    func probe(_ context: RequestContext) async -> Bool {
        let answer = try? await exchange { [inner] () throws(ExchangeFailure) in await inner.probe(context) }
        return answer ?? false
    }

    func events(cursor: String?, _ context: RequestContext) -> ServerEvents? {
        guard let events = inner.events(cursor: cursor, context) else { return nil }
        return ServerEvents { continuation in
            // Unstructured, since a stream has no task that it belongs to: its end, or the switch, cancels it.
            let task = Task {
                do {
                    for try await event in events { continuation.yield(event) }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            let ticket = enter {
                continuation.finish(throwing: Self.down)
                task.cancel()
            }
            continuation.onTermination = { _ in
                task.cancel()
                _ = self.leave(ticket)
            }
        }
    }

    private func exchange<Answer: Sendable>(
        _ body: @escaping @Sendable () async throws(ExchangeFailure) -> Answer
    ) async throws(ExchangeFailure) -> Answer {
        guard state.withLock({ $0.isUp }) else { throw Self.down }
        // A task of its own, so that the switch can cancel it whoever waits for it.
        let task = Task { () async -> Result<Answer, ExchangeFailure> in
            do throws(ExchangeFailure) { return .success(try await body()) } catch { return .failure(error) }
        }
        let ticket = enter { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        let isUp = leave(ticket)
        if case .failure = result, !isUp { throw Self.down }
        return try result.get()
    }

    private static let down = ExchangeFailure.unreachable("the network is down")

    private func enter(_ cancel: @escaping @Sendable () -> Void) -> Int {
        let (ticket, isUp) = state.withLock { state in
            state.next += 1
            state.running[state.next] = cancel
            return (state.next, state.isUp)
        }
        // Turned off since it was looked at.
        if !isUp { cancel() }
        return ticket
    }

    private func leave(_ ticket: Int) -> Bool {
        state.withLock { state in
            state.running[ticket] = nil
            return state.isUp
        }
    }
}
