internal import Fieldpost
internal import FieldpostCore

/// What SQLite stores, as the device's protocol writes it.
enum SQLValues {
    /// The values of `args`.
    static func values(_ json: JSON?) throws(Failure) -> [Value] {
        guard let json, json != .null else { return [] }
        guard let list = json.array else { throw DeviceRequest.usage("“args” is a list of values.") }
        var values: [Value] = []
        for element in list { values.append(try value(element)) }
        return values
    }

    private static func value(_ json: JSON) throws(Failure) -> Value {
        switch json {
        case .null: return .null
        case .bool(let value): return .integer(value ? 1 : 0)
        case .integer(let value): return .integer(value)
        case .real(let value): return .real(value)
        case .string(let text): return .text(text)
        case .object(let object) where object.names == ["base64"]:
            if let text = object["base64"]?.string, let bytes = Base64.decode(text) { return .blob(bytes) }
        default: break
        }
        let message =
            "A value is null, a number of 64 bits, a string, or {\"base64\":…}; pass other JSON as its text."
        throw Failure("type", message, exit: .badData)
    }

    /// A row as an object; a name selected twice gets a number.
    static func json(_ row: QueryRow) -> JSON {
        var object = JSONObject()
        for (column, value) in zip(row.columns, row.values) {
            var name = column
            var count = 1
            while object[name] != nil {
                count += 1
                name = "\(column)_\(count)"
            }
            object.append(name, json(value))
        }
        return .object(object)
    }

    private static func json(_ value: Value) -> JSON {
        switch value {
        case .null: .null
        case .integer(let value): .integer(value)
        // JSON has no infinity; SQLite and most readers of JSON take this literal for one.
        case .real(let value): value.isFinite ? .real(value) : .number(value > 0 ? "9e999" : "-9e999")
        case .text(let text): .string(text)
        case .blob(let bytes): ["base64": .string(Base64.encode(bytes))]
        }
    }
}
