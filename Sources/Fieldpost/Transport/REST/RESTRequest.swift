internal import FieldpostCore

/// One request, derived from an operation: the same operation on the same base gives the same bytes at every retry.
struct RESTRequest: Equatable, Sendable {
    var method: String
    /// Path and query below the profile's base.
    var path: String
    var headers: [String: String] = [:]
    var body: [UInt8]?
}

/// What an operation is sent with.
struct RESTSubject {
    var operation: Operation
    /// The version that the record is expected to have.
    var version: Int64?
    /// The columns that the body carries.
    var columns: JSONObject
    /// The row after the operation as far as it is known, for names in templates.
    var row: JSONObject

    func value(_ name: String) -> String? {
        switch name {
        case "id": operation.row
        case "operation": operation.id.text
        case "version": version.map { "\($0)" }
        default: RESTValues.text(row[name]) ?? row[name]?.bool.map { "\($0)" }
        }
    }
}

extension RESTMapping {
    /// The request that does `action` for `subject`.
    ///
    /// - Throws: the name in a template that has no value.
    func request(_ action: RESTProfile.Action, _ subject: RESTSubject) throws(RESTTemplate.Unknown)
        -> RESTRequest
    {
        let path = try RESTTemplate(action.path).expanded(isPath: true, subject.value)
        var headers: [String: String] = [:]
        for (name, template) in action.headers {
            // The token is filled in when the request leaves.
            headers[name] = try RESTTemplate(template).expanded(isPath: false) {
                $0 == "token" ? "{token}" : subject.value($0)
            }
        }
        return RESTRequest(
            method: action.method,
            path: path,
            headers: headers,
            body: body(subject.columns, for: action)
        )
    }
}
