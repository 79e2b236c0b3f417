public import FieldpostCore

/// An edit that lost against the server's row, for people and programs to look at.
public struct ConflictItem: Equatable, Sendable {
    /// The conflict's own number in this file.
    public var id: Int64
    /// The operation that lost.
    public var operation: OperationID
    /// The table.
    public var table: String
    /// The row's key.
    public var row: String
    /// What the edit wanted.
    public var mine: Change
    /// The server's row, or `nil` for one that is gone.
    public var theirs: JSONObject?
    /// When it was found.
    public var at: Timestamp

    /// The conflict as programs read it.
    public var json: JSONObject {
        [
            "conflict": .integer(id), "operation": .string(operation.text), "table": .string(table),
            "row": .string(row),
            "mine": .object(mine.json), "theirs": theirs.map(JSON.object) ?? .null,
            "at": .integer(at.milliseconds),
        ]
    }
}

extension ConflictItem {
    /// A row of the conflicts' table: id, operation, table, row, mine, theirs, time.
    init(_ values: [Value], schema: Schema) {
        func object(_ value: Value) -> JSONObject? { value.text.flatMap { try? JSON(text: $0).object } }
        id = values[0].integer ?? 0
        operation = OperationID(stored: values[1].text ?? "")
        table = values[2].text ?? ""
        row = values[3].text ?? ""
        mine = Change(json: object(values[4]) ?? [:])
        if let table = schema.table(table) { mine.set = LocalJSON.wire(mine.set, table) }
        theirs = object(values[5])
        at = Timestamp(milliseconds: values[6].integer ?? 0)
    }
}
