internal import Fieldpost
internal import FieldpostCore
internal import Synchronization

/// The machine's clock, set forward or back by hand.
final class AdjustableClock: Sendable {
    private let offset = Mutex<Int64>(0)

    /// Sets the difference from real time, in milliseconds.
    func set(offset milliseconds: Int64) { offset.withLock { $0 = milliseconds } }

    /// The live environment with this clock.
    var environment: Environment {
        var environment = Environment.live
        let real = environment.now
        environment.now = { real().adding(milliseconds: self.offset.withLock { $0 }) }
        return environment
    }
}
