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

    /// The kinds of event that any larger number of runs must have met; one that never happens shows nothing.
    public static let kinds = [
        "write", "refused write", "device killed", "server killed", "offline", "online", "request lost",
        "request doubled",
        "late request", "answer lost", "push", "pull", "run",
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
        }
        world.close()
        return world.report
    }
}

/// A promise found broken.
struct Violation: Error {
    let message: String
}
