import FieldpostCore
import FieldpostTesting
import Foundation
import Glibc
import Testing

@testable import Fieldpost

/// A real Kinto, a server that nobody here wrote, for the time of one suite.
struct KintoServer: Sendable {
    let port: UInt16
    /// The way to it through mitmproxy, and what that has done so far, line by line.
    var faults: (port: UInt16, log: String)?
    static let user = "alice:s3cret"

    /// The server of the suite that runs.
    @TaskLocal static var current: KintoServer?

    var base: String { "http://127.0.0.1:\(port)/v1" }

    /// Asks the server by curl, which shares nothing with what is tested.
    @discardableResult
    func curl(_ method: String, _ path: String, _ body: String? = nil) async throws -> JSON {
        var arguments = ["-sS", "--max-time", "20", "-X", method, "-u", Self.user, base + path]
        if let body { arguments += ["-H", "Content-Type: application/json", "-d", body] }
        let text = try await Tool.run("curl", arguments)
        return try text.isEmpty ? .null : JSON(text: text)
    }

    /// A collection `notes` in a bucket of its own.
    func makeCollection(_ bucket: String) async throws {
        try await curl("PUT", "/buckets/\(bucket)")
        try await curl("PUT", "/buckets/\(bucket)/collections/notes")
    }

    /// The collection's records by id, as the server has them.
    func records(_ bucket: String) async throws -> [String: JSONObject] {
        let list =
            try await curl("GET", "/buckets/\(bucket)/collections/notes/records").object?["data"]?.array ?? []
        let records = list.compactMap(\.object).compactMap { record in
            record["id"]?.string.map { ($0, record) }
        }
        return Dictionary(records, uniquingKeysWith: { first, _ in first })
    }
}

/// Starts Kinto before a suite and stops it after.
struct RunsKinto: SuiteTrait, TestScoping {
    /// What mitmproxy does before it; without a plan there is none.
    var plan: JSON?

    @concurrent
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        do {
            let server = try await start(in: folder)
            try await server.curl("PUT", "/accounts/alice", #"{"data":{"password":"s3cret"}}"#)
            try await KintoServer.$current.withValue(server) { try await function() }
        } catch {
            try await stop(folder)
            throw error
        }
        try await stop(folder)
    }

    private func start(in folder: TemporaryFolder) async throws -> KintoServer {
        let path = folder.url.path
        let owner = "\(ProcessInfo.processInfo.processIdentifier)"
        var server = KintoServer(port: try await freePort())
        try await run("kinto-start", path, "\(server.port)", owner)
        if let plan {
            let file = folder.path("plan.json")
            try Data(plan.bytes()).write(to: URL(fileURLWithPath: file))
            let port = try await freePort()
            try await run("faults-start", path, "\(port)", "\(server.port)", file, owner)
            server.faults = (port, folder.path("faults.txt"))
        }
        return server
    }

    private func run(_ script: String, _ arguments: String...) async throws {
        let script = RESTSamples.root.appending(path: "Scripts/\(script)").path
        _ = try await Tool.run("bash", [script] + arguments)
    }

    /// A port that was free a moment ago.
    private func freePort() async throws -> UInt16 {
        let probe = try RawServer([])
        await probe.stop()
        return probe.port
    }

    private func stop(_ folder: TemporaryFolder) async throws {
        _ = try await Tool.run("bash", ["-c", "kill $(cat '\(folder.url.path)'/*.pid)"])
    }
}

extension Trait where Self == RunsKinto {
    /// Runs the suite beside a real Kinto.
    static var kinto: RunsKinto { RunsKinto() }

    /// Runs the suite beside a real Kinto, and mitmproxy before it, which spoils what `plan` says.
    static func kinto(faults plan: JSON) -> RunsKinto { RunsKinto(plan: plan) }
}

/// Other programs.
///
/// By `posix_spawn`: Foundation's `Process` has crashed when many start at once, and blocks signals in its children.
enum Tool {
    struct Failure: Error, CustomStringConvertible { let description: String }

    /// Runs a program to its end; what it printed.
    static func run(_ name: String, _ arguments: [String]) async throws -> String {
        let folder = try TemporaryFolder()
        let (out, err) = (folder.path("out"), folder.path("err"))
        let child = try spawn([name] + arguments, out, err)
        let status = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var status: Int32 = 0
                while waitpid(child, &status, 0) < 0, errno == EINTR {}
                continuation.resume(returning: status)
            }
        }
        guard status == 0 else {
            let reason = FileManager.default.contents(atPath: err) ?? Data()
            throw Failure(
                description: "\(name) ended with \(status): \(String(decoding: reason, as: UTF8.self))"
            )
        }
        return String(decoding: FileManager.default.contents(atPath: out) ?? Data(), as: UTF8.self)
    }

    /// Starts a program whose output goes to files: what it leaves running must keep nobody waiting.
    private static func spawn(_ arguments: [String], _ out: String, _ err: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        for (descriptor, file) in [(Int32(1), out), (2, err)] {
            posix_spawn_file_actions_addopen(&actions, descriptor, file, O_WRONLY | O_CREAT, 0o600)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Threads of Swift's pool block signals, and a child would inherit that.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let failure = posix_spawnp(&child, arguments[0], &actions, &attributes, &words, environ)
        guard failure == 0 else {
            throw Failure(description: "\(arguments[0]): \(String(cString: strerror(failure)))")
        }
        return child
    }
}
