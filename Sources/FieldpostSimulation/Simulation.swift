internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting
internal import Foundation

/// A world of devices and a server in one thread, of which one seed decides everything: what people do, what the
/// network loses, doubles and delays, and which process dies before which statement.
///
/// It runs the real decisions on real SQLite files under a virtual clock.
public struct Simulation {
    /// What a run is made of.
    public struct Configuration: Sendable {
        /// Decides everything.
        public var seed: UInt64
        /// How many devices.
        public var devices = 3
        /// How many things happen before the network heals.
        public var steps = 400

        /// A run of `seed`.
        public init(seed: UInt64) { self.seed = seed }
    }

    /// What happened.
    public struct Report: Sendable {
        /// The promise that was broken, or `nil`.
        public var violation: String?
        /// What happened, a line for each step.
        public var story: [String] = []
        /// How often each kind of fault and event happened.
        public var counts: [String: Int] = [:]
    }

    /// The kinds of event that a dozen runs must have met; one that never happens shows nothing.
    public static let kinds = [
        "write", "refused write", "device killed", "server killed", "offline", "online", "request lost",
        "request doubled", "late request", "answer lost", "push", "pull", "run", "app run", "extension run",
        "stale answer", "rejection", "held", "conflict", "retry later", "poison", "too large", "busy",
        "signed out",
        "retry", "edit", "discard", "discard with dependants", "repair refused", "decision", "clock ahead",
        "clock back",
    ]
    /// The kinds that fifty runs must have met as well.
    public static let rareKinds = [
        "gave up", "sign-in", "undo", "void", "edit carried out", "sleep", "healed by hand", "healed by time",
        "opened anew", "dead letter credit_limit", "dead letter status_allowed", "dead letter title_allowed",
        "dead letter group", "dead letter server_error", "dead letter too_large",
    ]

    /// Runs the whole of `configuration` in a folder of its own.
    ///
    /// - Throws: only for what the machine refuses; a broken promise is in the report.
    public static func run(_ configuration: Configuration) throws -> Report {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "fieldpost-simulation-\(configuration.seed)-\(UUID().uuidString)"
        )
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let world = try World(configuration, folder: folder.path)
        do {
            for _ in 0..<configuration.steps { try world.step() }
            try world.heal()
        } catch let violation as Violation {
            world.report.violation = violation.message
        } catch {
            world.report.violation = "an error that nobody expected: \(error)"
        }
        world.close()
        return world.report
    }

    /// The shortest run of `configuration`, found by halving, that still breaks a promise.
    ///
    /// A longer run need not break one that a shorter one breaks, so it is short rather than the shortest.
    public static func shrunk(_ configuration: Configuration) throws -> (steps: Int, report: Report) {
        var configuration = configuration
        var least = (steps: configuration.steps, report: try run(configuration))
        var passing = 0
        while least.steps - passing > 1 {
            configuration.steps = (passing + least.steps) / 2
            let report = try run(configuration)
            if report.violation == nil {
                passing = configuration.steps
            } else {
                least = (configuration.steps, report)
            }
        }
        return least
    }
}

/// A promise found broken.
struct Violation: Error {
    let message: String
}
