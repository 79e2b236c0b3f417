import FieldpostCore
import Foundation
import Testing

/// Hints of a real kernel: a live device in a network namespace of its own, whose interfaces come and go.
@Suite struct ConnectivityTests {
    private let folder: TemporaryFolder
    private let device: BuiltProgram

    init() throws {
        folder = try TemporaryFolder()
        // The far ends are up from the start: what the near end does then decides alone.
        let interfaces = """
            set -e
            ip link add wlan0 type veth peer name far0; ip addr add 10.9.8.1/24 dev wlan0; ip link set far0 up
            ip link add wwan0 type veth peer name far1; ip addr add 10.9.9.1/24 dev wwan0; ip link set far1 up
            exec "$@"
            """
        device = try BuiltProgram(
            executable: "/usr/bin/unshare",
            [
                "--map-root-user", "--net", "sh", "-c", interfaces, "sh", BuiltProgram.url.path, "device",
                "--schema", folder.schema, "--db", folder.file("a.db"), "--live",
            ]
        )
        // Once it answers, it listens.
        try device.send(#"{"do":"outbox"}"#)
        while try device.receive()["entries"] == nil {}
    }

    private func ip(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
        process.arguments =
            ["--target", "\(device.processIdentifier)", "--user", "--preserve-credentials", "--net", "ip"]
            + arguments
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    /// The next hint: its transports, and whether they are metered.
    private func hint() throws -> [String] {
        while true {
            let line = try device.receive()
            if line["event"] == "connectivity" {
                return line.strings("transports") + (line["metered"] == true ? ["metered"] : [])
            }
        }
    }

    @Test func `interfaces that go up and down are told, and what they are`() throws {
        try ip("link", "set", "wlan0", "up")
        let wifi = try hint()
        try ip("link", "set", "wwan0", "up")
        let both = try hint()
        try ip("link", "set", "wlan0", "down")
        let cellular = try hint()
        try ip("addr", "del", "10.9.9.1/24", "dev", "wwan0")
        let none = try hint()

        #expect(wifi == ["wifi"])
        #expect(both == ["cellular", "wifi"])
        #expect(cellular == ["cellular", "metered"])
        #expect(none == [])
        #expect(try device.end() == 0)
    }

    @Test func `the device's own switch is a hint too, and hides the system's while it is off`() throws {
        try device.send(#"{"do":"network","up":false}"#)
        let off = try hint()
        try ip("link", "set", "wlan0", "up")
        try device.send(#"{"do":"network","up":true}"#)
        let on = try hint()
        try ip("link", "set", "wlan0", "down")

        #expect(off == [])
        #expect(on == ["other"])
        #expect(try hint() == [])
        #expect(try device.end() == 0)
    }
}
