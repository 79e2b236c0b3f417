internal import FieldpostCore

/// Writes one JSON object a line: what was asked, by whom and how it ended; never a token, a query or a body.
struct RequestLog: Sendable {
    /// A path longer than this is somebody's experiment.
    private static let maxPathBytes = 200

    let write: @Sendable (String) -> Void

    /// A request that was answered.
    struct Entry {
        var at: Int64
        var request: String
        var method: String
        var path: String
        var status: Int
        var duration: Duration
        var device: String?
        var token: String?
        var operations: Int?
    }

    func answered(_ entry: Entry) {
        var line: JSONObject = [
            "event": "request", "at": .integer(entry.at), "request": .string(entry.request),
            "method": .string(entry.method),
            "path": .string(String(entry.path.prefix(RequestLog.maxPathBytes))),
            "status": .integer(Int64(entry.status)),
            "micros": .integer(
                entry.duration.components.seconds * 1_000_000 + entry.duration.components.attoseconds
                    / 1_000_000_000_000
            ),
        ]
        if let device = entry.device { line.append("device", .string(device)) }
        if let token = entry.token { line.append("token", .string(token)) }
        if let operations = entry.operations { line.append("operations", .integer(Int64(operations))) }
        write(line.text)
    }

    /// Operations whose results are on the disk; the answer has not left yet.
    func committed(_ operations: [OperationID], request: String, at: Int64, device: String?) {
        var line: JSONObject = ["event": "committed", "at": .integer(at), "request": .string(request)]
        if let device { line.append("device", .string(device)) }
        line.append("operations", .array(operations.map { .string($0.text) }))
        write(line.text)
    }

    /// A failure that the client was told nothing of.
    func failed(_ failure: any Error, request: String, at: Int64) {
        write(
            JSONObject(
                distinct: [
                    ("event", "failure"), ("at", .integer(at)), ("request", .string(request)),
                    ("error", .string(String(describing: failure))),
                ]
            ).text
        )
    }
}
