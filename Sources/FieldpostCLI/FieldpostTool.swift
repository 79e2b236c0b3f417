internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// The command line: finds the command, runs it, and reports its failure.
package enum FieldpostTool {
    /// The version of this program.
    package static let version = "0.1.0"

    static let commands: [CommandSpec] = [
        ServeCommand.spec, TokenCommands.create, TokenCommands.list, TokenCommands.revoke, DeviceCommand.spec,
        SyncCommand.spec, ImportCommand.spec, OutboxCommands.list, OutboxCommands.show, OutboxCommands.retry,
        OutboxCommands.discard, OutboxCommands.edit, OutboxCommands.undo, OutboxCommands.export,
        SchemaCommand.check, StatusCommand.spec, SimulateCommand.spec,
    ]

    /// Runs the process's own arguments on its own streams; returns its exit code.
    @concurrent package static func main() async -> Int32 {
        Heap.keepFreedMemory()
        return await run(Array(CommandLine.arguments.dropFirst()), on: .process()).code
    }

    /// Runs `arguments` on `console`.
    @concurrent package static func run(_ arguments: [String], on console: Console) async -> ExitCode {
        do {
            switch try ArgumentParser(commands: commands).parse(arguments) {
            case .version:
                console.line(
                    "fieldpost \(version) (protocol \(WireLimits.protocolVersion), SQLite \(Connection.sqliteVersion))"
                )
            case .overview(let words): console.write(HelpText.overview(commands, under: words))
            case .help(let command): console.write(HelpText.of(command))
            case .run(let command, let invocation):
                do { return try await command.run(invocation, console) } catch {
                    return report(error, on: console, asJSON: invocation.has("json"))
                }
            }
            return .done
        } catch {
            return report(error, on: console, asJSON: arguments.contains("--json"))
        }
    }

    private static func report(_ error: any Error, on console: Console, asJSON: Bool) -> ExitCode {
        let failure = Failure(error)
        console.errorLine("fieldpost: " + failure.message)
        if let usage = error as? UsageError {
            console.errorLine("See fieldpost \(usage.command.map { $0 + " " } ?? "")--help.")
        }
        if asJSON { console.line(failure.json.text) }
        return failure.exit
    }
}
