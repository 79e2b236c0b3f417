import FieldpostCore
import FieldpostServer
import FieldpostServerHTTP
import Foundation

/// Serves a fresh file until standard input ends: `ServerBench FILE SCHEMA`; prints the address and a token.
@main struct ServerBench {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let schema = try Schema(json: Array(try Data(contentsOf: URL(fileURLWithPath: arguments[2]))))
        let server = try await SQLiteServer(path: arguments[1], schema: schema)
        let (token, _) = try await server.createToken(name: "bench", scopes: .all)
        let http = FieldpostHTTPServer(server: server, listen: .init(port: 0))
        let answer = "{\"url\":\"http://\(try http.start())\",\"token\":\"\(token)\"}\n"
        FileHandle.standardOutput.write(Data(answer.utf8))
        while readLine() != nil {}
        await http.stop()
        await server.close()
    }
}
