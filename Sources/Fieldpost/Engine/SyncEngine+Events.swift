internal import FieldpostCore

extension SyncEngine {
    /// Listens to what the server says has changed, while the server can be reached and lets this device in.
    func hearServer() async {
        let environment = store.environment
        var line = EventLine()
        while await reach.wait() {
            guard let (cursor, context) = try? await asListener(), context.token != nil else {
                reach.lost()
                continue
            }
            guard let events = transport.events(cursor: cursor, context) else { return }
            let failure = await hear(events, &line)
            if failure == .unauthenticated { reach.lost() }
            var random = environment.random
            let pause = line.lost(failure, settings.backoff, using: &random)
            try? await environment.sleep(.milliseconds(pause))
        }
    }

    private func asListener() async throws -> (cursor: String?, context: RequestContext) {
        let (cursor, device, account) = try await store.writer.perform { db, _, _ in
            (try PullApply.cursor(db), try db.deviceID(), try FileAccount(db).boundTo())
        }
        return (cursor, await context(device, account: account))
    }

    /// Why it ended; `nil` when the server ended it.
    private func hear(_ events: ServerEvents, _ line: inout EventLine) async -> ExchangeFailure? {
        do {
            for try await event in events {
                switch event {
                case .opened: line.opened()
                case .retry(let milliseconds): line.asks(milliseconds)
                case .changed: note(.poked)
                }
            }
            return nil
        } catch {
            return error as? ExchangeFailure ?? .unreachable("\(error)")
        }
    }
}

/// How long to wait before the server is listened to again.
///
/// Pure: it draws from the generator it is given.
struct EventLine: Equatable {
    /// More than any server asks for between two tries.
    private static let longest: Int64 = 300_000

    private var failures = 0
    private var asked: Int64 = 5_000

    /// The server is heard.
    mutating func opened() { failures = 0 }

    /// The server says how long those who lose it are to wait.
    mutating func asks(_ milliseconds: Int64) { asked = max(0, min(milliseconds, Self.longest)) }

    /// It was lost; milliseconds until the next try, spread so that those who lost it together do not return together.
    mutating func lost(
        _ failure: ExchangeFailure?,
        _ backoff: Backoff,
        using random: inout some RandomNumberGenerator
    ) -> Int64 {
        failures += 1
        let spread = Int64.random(in: 0...asked, using: &random)
        switch failure {
        case .busy(let seconds?):
            let least = Int64(seconds) * 1_000
            return least + .random(in: 0...max(least, asked), using: &random)
        case .misconfigured, .forbidden, .otherAccount, .needsUpgrade: return Self.longest
        default: return max(spread, backoff.delay(failures: failures, using: &random))
        }
    }
}

/// Whether the last run reached the server, for the one who listens to it.
final class ServerReach: Sendable {
    private let isReached = Locked(false)
    private let alarm = Alarm()

    func ended(_ end: SyncRun.End) {
        switch end {
        case .done:
            isReached.withLock { $0 = true }
            alarm.raise()
        case .busy, .leaseHeld, .stopped, .storeFailed: break
        default: lost()
        }
    }

    func lost() { isReached.withLock { $0 = false } }

    /// Returns `true` once the server is reached, `false` once cancelled.
    func wait() async -> Bool {
        while !Task.isCancelled {
            if isReached.withLock({ $0 }) { return true }
            await alarm.wait()
        }
        return false
    }
}
