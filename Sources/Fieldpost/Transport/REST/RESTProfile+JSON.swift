internal import FieldpostCore
internal import Foundation

extension RESTProfile {
    /// Reads a profile from a JSON file, with the meaning of the Swift form.
    ///
    /// A name that the format does not know is a fault that names the nearest known one.
    /// - Throws: ``RESTProfileError`` with every fault found.
    public init(json bytes: [UInt8]) throws(RESTProfileError) {
        let json: JSON
        do { json = try JSON(bytes: bytes) } catch {
            throw RESTProfileError(problems: [
                .init(
                    place: "byte \(error.offset)",
                    message: "the file is not JSON: \(error.message)",
                    remedy: "correct the text there"
                )
            ])
        }
        var reader = RESTProfileReader()
        let profile = reader.profile(json)
        try reader.problems.check()
        self = profile
    }
}

/// Turns the JSON of a profile into values, collecting faults as it goes.
private struct RESTProfileReader {
    var problems = RESTProblems()

    // MARK: Parts

    mutating func profile(_ json: JSON) -> RESTProfile {
        let root = members(
            json,
            "",
            ["base", "authorization", "headers", "health", "errors", "answers", "tables"]
        )
        let url = text(root, "base", "").flatMap { URL(string: $0) }
        if url?.host() == nil || !["http", "https"].contains(url?.scheme?.lowercased() ?? "") {
            problems.add("base", "there is no address", "write \"base\": \"https://host/path\"")
        }
        var profile = RESTProfile(base: url ?? URL(filePath: "/"))
        profile.authorization = choice(root["authorization"], "authorization") ?? .bearer
        profile.headers = texts(root["headers"], "headers")
        profile.health = text(root, "health", "")
        if let errors = root["errors"] {
            let errors = members(errors, "errors", ["code", "message"])
            profile.errors.code = text(errors, "code", "errors") ?? profile.errors.code
            profile.errors.message = text(errors, "message", "errors") ?? profile.errors.message
        }
        for (index, line) in list(root["answers"], "answers").enumerated() {
            if let answer = answer(line, "answers[\(index)]") { profile.answers.append(answer) }
        }
        guard let tables = root["tables"]?.object else {
            problems.add("tables", "there are no tables", "write \"tables\": { \"notes\": { … } }")
            return profile
        }
        for member in tables.members {
            profile.resources[member.name] = resource(member.value, "tables.\(member.name)")
        }
        return profile
    }

    private mutating func answer(_ json: JSON, _ place: String) -> RESTProfile.Answer? {
        let object = members(json, place, ["status", "code", "for", "means", "current"])
        let statuses = RESTValues.text(object["status"]).flatMap(Self.statuses)
        if statuses == nil {
            problems.add(place + ".status", "it is no status", "write 412, \"4xx\" or \"500-503\"")
        }
        let means: RESTProfile.Outcome? = choice(object["means"], place + ".means")
        if object["means"] == nil {
            problems.add(place, "it says not what the status means", "add \"means\": \"conflict\"")
        }
        guard let statuses, let means else { return nil }
        let steps = list(object["for"], place + ".for").compactMap { (step: JSON) -> RESTProfile.Step? in
            choice(step, place + ".for")
        }
        return RESTProfile.Answer(
            statuses,
            code: RESTValues.text(object["code"]),
            steps: steps,
            means,
            current: text(object, "current", place)
        )
    }

    /// The range of `412`, `4xx` or `500-503`.
    private static func statuses(_ text: String) -> ClosedRange<Int>? {
        if text.count == 3, text.hasSuffix("xx"), let digit = text.first?.wholeNumberValue,
            (2...5).contains(digit)
        {
            return digit * 100...digit * 100 + 99
        }
        let ends = text.split(separator: "-").map { Int($0) }
        guard (1...2).contains(ends.count), let low = ends[0], let high = ends[ends.count - 1], low <= high,
            (200...599).contains(low), high <= 599
        else { return nil }
        return low...high
    }

    private mutating func resource(_ json: JSON, _ place: String) -> RESTProfile.Resource {
        let object = members(
            json,
            place,
            ["create", "update", "delete", "item", "list", "record", "columns", "conflict"]
        )
        var resource = RESTProfile.Resource(
            create: action(object["create"], place + ".create", .change),
            update: action(object["update"], place + ".update", .change),
            delete: action(object["delete"], place + ".delete", .none),
            item: text(object, "item", place),
            list: list(object["list"], at: place + ".list"),
            columns: texts(object["columns"], place + ".columns")
        )
        resource.onConflict = choice(object["conflict"], place + ".conflict") ?? .bySchema
        if let record = object["record"] { resource.record = self.record(record, place + ".record") }
        return resource
    }

    private mutating func action(
        _ json: JSON?,
        _ place: String,
        _ content: RESTProfile.Action.Content
    ) -> RESTProfile.Action? {
        guard let json else { return nil }
        let object = members(
            json,
            place,
            ["method", "path", "headers", "content", "wrap", "omit_null", "constants"]
        )
        let method = needed(object, "method", place, "\"PUT\"")
        var action = RESTProfile.Action(
            method,
            needed(object, "path", place, "\"/notes/{id}\""),
            headers: texts(object["headers"], place + ".headers")
        )
        action.content = choice(object["content"], place + ".content") ?? content
        action.wrap = text(object, "wrap", place)
        action.omitsNull = flag(object, "omit_null", place) ?? false
        if let constants = object["constants"] {
            if let fields = constants.object {
                action.constants = fields
            } else {
                problems.add(place + ".constants", "it is not an object", "write { \"field\": value }")
            }
        }
        return action
    }

    private mutating func record(_ json: JSON, _ place: String) -> RESTProfile.Record {
        let object = members(json, place, ["at", "id", "version", "version_header", "deleted"])
        var record = RESTProfile.Record()
        record.at = text(object, "at", place)
        record.id = text(object, "id", place) ?? record.id
        record.version = optionalText(object, "version", place, default: record.version)
        record.versionHeader = text(object, "version_header", place)
        record.deleted = optionalText(object, "deleted", place, default: record.deleted)
        return record
    }

    private mutating func list(_ json: JSON?, at place: String) -> RESTProfile.List? {
        guard let json else { return nil }
        let object = members(
            json,
            place,
            ["path", "query", "since", "first", "next", "items", "cursor_header", "overlap", "times"]
        )
        var list = RESTProfile.List(
            needed(object, "path", place, "\"/notes\""),
            query: texts(object["query"], place + ".query")
        )
        list.since = text(object, "since", place) ?? list.since
        list.first = text(object, "first", place) ?? list.first
        list.items = text(object, "items", place)
        list.cursorHeader = text(object, "cursor_header", place)
        list.isTime = flag(object, "times", place) ?? false
        if let overlap = object["overlap"] {
            if let value = overlap.integer, value >= 0 {
                list.overlap = value
            } else {
                problems.add(
                    place + ".overlap",
                    "it is no number from 0",
                    "write how far versions may come late"
                )
            }
        }
        if let next = object["next"] { list.next = self.next(next, place + ".next") }
        return list
    }

    private mutating func next(_ json: JSON, _ place: String) -> RESTProfile.List.Next? {
        if json.string == "link" { return .link }
        let object = members(json, place, ["header", "field", "token", "parameter"])
        if let header = text(object, "header", place) { return .header(header) }
        if let field = text(object, "field", place) { return .field(field) }
        if let field = text(object, "token", place), let parameter = text(object, "parameter", place) {
            return .token(field: field, parameter: parameter)
        }
        problems.add(
            place,
            "it does not say where the next page is named",
            "write \"link\", { \"header\": … }, { \"field\": … } or { \"token\": …, \"parameter\": … }"
        )
        return nil
    }

    // MARK: Small readings

    private func inside(_ place: String, _ name: String) -> String {
        place.isEmpty ? name : place + "." + name
    }

    private mutating func members(_ json: JSON, _ place: String, _ known: [String]) -> JSONObject {
        guard let object = json.object else {
            problems.add(place, "it is not an object", "write it as { … }")
            return JSONObject()
        }
        for name in object.names where !known.contains(name) {
            let remedy = nearest(to: name, in: known).map { "did you mean \($0)?" } ?? "leave it out"
            problems.add(inside(place, name), "there is no such name here", remedy)
        }
        return object
    }

    private mutating func list(_ json: JSON?, _ place: String) -> [JSON] {
        guard let json else { return [] }
        if let list = json.array { return list }
        problems.add(place, "it is not a list", "write it as [ … ]")
        return []
    }

    private mutating func text(_ object: JSONObject, _ name: String, _ place: String) -> String? {
        guard let json = object[name] else { return nil }
        if let text = json.string, !text.isEmpty { return text }
        problems.add(inside(place, name), "it is no text", "write it in quotes")
        return nil
    }

    /// A text that `null` takes away.
    private mutating func optionalText(
        _ object: JSONObject,
        _ name: String,
        _ place: String,
        default fallback: String?
    ) -> String? {
        if object[name] == .null { return nil }
        return object[name] == nil ? fallback : text(object, name, place)
    }

    private mutating func needed(_ object: JSONObject, _ name: String, _ place: String, _ example: String)
        -> String
    {
        if object[name] == nil {
            problems.add(place, "the \(name) is missing", "add \"\(name)\": \(example)")
        }
        return text(object, name, place) ?? ""
    }

    private mutating func flag(_ object: JSONObject, _ name: String, _ place: String) -> Bool? {
        guard let json = object[name] else { return nil }
        if json.bool == nil { problems.add(inside(place, name), "it is no boolean", "write true or false") }
        return json.bool
    }

    private mutating func texts(_ json: JSON?, _ place: String) -> [String: String] {
        guard let json else { return [:] }
        guard let object = json.object else {
            problems.add(place, "it is not an object", "write { \"name\": \"value\" }")
            return [:]
        }
        var result: [String: String] = [:]
        for name in object.names { result[name] = text(object, name, place) }
        return result
    }

    private mutating func choice<T: RawRepresentable & CaseIterable>(_ json: JSON?, _ place: String) -> T?
    where T.RawValue == String {
        guard let json else { return nil }
        if let text = json.string, let value = T(rawValue: text) { return value }
        let known = T.allCases.map(\.rawValue)
        problems.add(
            place,
            "“\(json.string ?? "…")” is not known",
            nearest(to: json.string ?? "", in: known).map { "did you mean \($0)?" } ?? ""
        )
        return nil
    }
}
