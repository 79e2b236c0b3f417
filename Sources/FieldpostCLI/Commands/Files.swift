internal import Fieldpost
internal import FieldpostCore
internal import Foundation

/// Files that are named on the command line.
enum Files {
    /// A schema is read whole; no sensible one is a hundredth as long.
    private static let longest = 16 << 20

    /// The schema in the file at `path`.
    static func schema(_ path: String) throws -> Schema {
        let bytes = try bytes(path, "schema")
        return try Schema(json: bytes)
    }

    /// The token from `--token` or `--token-file`.
    static func token(_ invocation: Invocation) throws -> String? {
        if invocation.has("token"), invocation.has("token-file") {
            throw UsageError("Give either --token or --token-file.")
        }
        guard let path = invocation["token-file"] else { return invocation["token"] }
        let text = String(decoding: try bytes(path, "token"), as: UTF8.self)
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        if token.isEmpty {
            throw Failure(
                "usage",
                "The token file \(path) is empty; write the token into it.",
                exit: .badData
            )
        }
        return token
    }

    /// The address from `--server`.
    static func server(_ invocation: Invocation) throws -> URL? {
        guard let text = invocation["server"] else { return nil }
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
            ["http", "https"].contains(scheme),
            url.host()?.isEmpty == false
        else { throw UsageError("--server takes an address such as http://127.0.0.1:8080.") }
        return url
    }

    /// The profile in the file that `--rest` names.
    static func profile(_ invocation: Invocation) throws -> RESTProfile? {
        guard let path = invocation["rest"] else { return nil }
        return try RESTProfile(json: try bytes(path, "profile"))
    }

    /// The rows by table in the file that `--mock` names.
    static func fixtures(_ invocation: Invocation, _ schema: Schema) throws -> [String: [JSONObject]]? {
        guard let path = invocation["mock"] else { return nil }
        let bytes = try bytes(path, "fixtures")
        do {
            guard let object = try JSON(bytes: bytes).object else {
                throw Fault(place: "", reason: "no object of tables")
            }
            return try Dictionary(
                uniqueKeysWithValues: object.members.map {
                    ($0.name, try rows($0.value, of: $0.name, schema))
                }
            )
        } catch let error as JSONError {
            throw Failure(
                "type",
                "The fixtures file \(path) is not JSON at byte \(error.offset): \(error.message).",
                exit: .badData
            )
        } catch {
            throw Failure(
                "type",
                "The fixtures file \(path) is not {\"table\": [rows]}: \(error).",
                exit: .badData
            )
        }
    }

    private static func rows(_ json: JSON, of name: String, _ schema: Schema) throws(Fault) -> [JSONObject] {
        guard let table = schema.table(name) else {
            throw Fault(place: name, reason: "the schema has no such table")
        }
        guard let list = json.array else { throw Fault(place: name, reason: "no list of rows") }
        var rows: [JSONObject] = []
        var keys: Set<JSON> = []
        for (index, json) in list.enumerated() {
            let place = "\(name)[\(index)]"
            guard let row = json.object else { throw Fault(place: place, reason: "no row") }
            try check(row, place, table)
            guard keys.insert(row[table.key] ?? .null).inserted else {
                throw Fault(place: place, reason: "its key is there twice")
            }
            rows.append(row)
        }
        return rows
    }

    private static func check(_ row: JSONObject, _ place: String, _ table: Table) throws(Fault) {
        for member in row.members {
            guard let column = table.column(member.name) else {
                throw Fault(place: place, reason: "the table has no column \(member.name)")
            }
            do throws(ColumnTypeError) { _ = try column.value(from: member.value) } catch {
                throw Fault(place: "\(place).\(column.name)", reason: error.message)
            }
        }
        guard row[table.key] != nil else {
            throw Fault(place: place, reason: "its key \(table.key) is missing")
        }
        for column in table.columns where row[column.name] == nil && !column.isOptional {
            if column.defaultValue == nil {
                throw Fault(place: place, reason: "the column \(column.name) is missing and has no default")
            }
        }
    }

    /// What is wrong at a place of a file.
    private struct Fault: Error, CustomStringConvertible {
        let place: String
        let reason: String
        var description: String { place.isEmpty ? reason : "\(place): \(reason)" }
    }

    private static func bytes(_ path: String, _ what: String) throws -> [UInt8] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
            throw Failure("missing", "There is no \(what) file \(path); check the path.", exit: .missingFile)
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Failure(
                "missing",
                "The \(what) file \(path) cannot be read; correct its permissions.",
                exit: .missingFile
            )
        }
        guard data.count <= longest else {
            throw Failure(
                "usage",
                "The \(what) file \(path) is longer than 16 MiB; give the right file.",
                exit: .badData
            )
        }
        return [UInt8](data)
    }
}
