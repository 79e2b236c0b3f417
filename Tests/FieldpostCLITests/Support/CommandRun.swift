import FieldpostCore
import Foundation
import Synchronization

@testable import FieldpostCLI

/// What a command wrote and how it ended.
struct CommandRun {
    let exit: ExitCode
    let output: String
    let errors: String

    /// Runs a command in this process, with `input` as its standard input.
    static func of(_ arguments: String..., input: [String] = []) async -> CommandRun {
        let output = Collected()
        let errors = Collected()
        let lines = Mutex(input[...])
        let console = Console(
            write: { output.append($0) },
            writeError: { errors.append($0) },
            nextLine: { lines.withLock { $0.popFirst() }.map { Array($0.utf8) } }
        )
        let exit = await FieldpostTool.run(arguments, on: console)
        return CommandRun(exit: exit, output: output.text, errors: errors.text)
    }

    /// Runs a device on `db` and returns its replies.
    static func device(_ folder: TemporaryFolder, db: String = "a.db", _ input: String...) async throws
        -> [JSONObject]
    {
        let run = await of(
            "device",
            "--schema",
            folder.schema,
            "--db",
            folder.file(db),
            "--token",
            "t",
            input: input
        )
        return try run.replies
    }

    var replies: [JSONObject] {
        get throws { try output.split(separator: "\n").map { try JSON(text: String($0)).object ?? [:] } }
    }
}

/// Text gathered from any thread.
final class Collected: Sendable {
    private let parts = Mutex("")

    var text: String { parts.withLock { $0 } }

    func append(_ text: String) { parts.withLock { $0 += text } }
}

extension JSONObject {
    /// The code of an error reply.
    var code: String? { self["error"]?.object?["code"]?.string }
    var message: String? { self["error"]?.object?["message"]?.string }
    var isOK: Bool { self["ok"] == true }

    func objects(_ name: String) -> [JSONObject] { (self[name]?.array ?? []).compactMap(\.object) }
    func strings(_ name: String) -> [String] { (self[name]?.array ?? []).compactMap(\.string) }
}
