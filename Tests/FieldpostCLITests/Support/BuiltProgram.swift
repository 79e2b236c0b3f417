import FieldpostCore
import Foundation

/// The `fieldpost` program that was built beside the tests, as a child process driven by lines.
final class BuiltProgram {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer: [UInt8] = []

    struct Missing: Error {}

    static var url: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
            path: "fieldpost"
        )
    }

    convenience init(_ arguments: String...) throws { try self.init(executable: Self.url.path, arguments) }

    /// Another program, which becomes this one.
    init(executable: String, _ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    var processIdentifier: Int32 { process.processIdentifier }

    deinit { if process.isRunning { process.terminate() } }

    /// Sends a line.
    func send(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// The next line of output, read as JSON; blocks until it comes.
    func receive() throws -> JSONObject {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                defer { buffer.removeFirst(end + 1) }
                return try JSON(bytes: Array(buffer[..<end])).object ?? [:]
            }
            let data = output.fileHandleForReading.availableData
            if data.isEmpty { throw Missing() }
            buffer += data
        }
    }

    /// Sends a command and returns its reply.
    func reply(to line: String) throws -> JSONObject {
        try send(line)
        return try receive()
    }

    /// Ends the input and returns the exit code.
    func end() throws -> Int32 {
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Asks the program to stop, as a supervisor does, and returns its exit code.
    func stop() -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Runs the program to its end without input; returns its output and its exit code.
    static func run(_ arguments: String...) throws -> (output: String, exit: Int32) {
        let process = Process()
        let output = Pipe()
        process.executableURL = url
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: data, as: UTF8.self), process.terminationStatus)
    }
}
