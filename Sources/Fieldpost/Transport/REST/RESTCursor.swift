internal import FieldpostCore

/// Where a pull over several lists stands: our own JSON text.
struct RESTCursor: Equatable {
    /// How far each table is, by version.
    var since: [String: Int64] = [:]
    /// The table whose pages are being read; `nil` at a checkpoint.
    var at: String?
    /// The next page of it.
    var next: String?
    /// How far the table will be after its last page.
    var mark: Int64?

    init() {}

    /// Reads what ``text`` wrote; `nil` for anything else.
    init?(_ text: String) {
        guard let object = try? JSON(text: text).object, object["rest"]?.integer == 1,
            let since = object["since"]?.object
        else { return nil }
        for member in since.members { self.since[member.name] = member.value.integer }
        at = object["at"]?.string
        next = object["next"]?.string
        mark = object["mark"]?.integer
    }

    var text: String {
        let since = JSONObject(
            distinct: since.sorted { $0.key < $1.key }.map { ($0.key, .integer($0.value)) }
        )
        var object: JSONObject = ["rest": 1, "since": .object(since)]
        if let at { object.append("at", .string(at)) }
        if let next { object.append("next", .string(next)) }
        if let mark { object.append("mark", .integer(mark)) }
        return object.text
    }
}
