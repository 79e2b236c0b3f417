import FieldpostCore
import Testing

@testable import Fieldpost

/// Names in paths and headers.
@Suite struct RESTTemplateTests {
    @Test(arguments: [
        ("/notes/{id}", "/notes/a%2Fb%20%C3%A9%3F"), ("/{shop}/notes", "/b1/notes"),
        ("/open{brace", "/open{brace"),
        ("plain", "plain"),
    ])
    func `a path takes values percent-encoded`(template: String, path: String) throws {
        let values = ["id": "a/b é?", "shop": "b1"]
        #expect(try RESTTemplate(template).expanded(isPath: true) { values[$0] } == path)
    }

    @Test func `a header takes values as they are`() throws {
        #expect(try RESTTemplate("\"{version}\"").expanded(isPath: false) { _ in "7" } == "\"7\"")
    }

    @Test(arguments: ["", ".", ".."])
    func `a value that would climb out of its folder is refused`(value: String) {
        #expect(throws: RESTTemplate.Unknown(name: "id")) {
            try RESTTemplate("/notes/{id}").expanded(isPath: true) { _ in value }
        }
    }

    @Test func `a name without a value is named`() {
        #expect(throws: RESTTemplate.Unknown(name: "version")) {
            try RESTTemplate("\"{version}\"").expanded(isPath: false) { _ in nil }
        }
    }

    @Test(
        arguments: [
            ("\"123\"", 123), ("W/\"123\"", 123), ("123", 123), ("\"abc\"", nil), (nil, nil), ("\"", nil),
        ] as [(String?, Int64?)]
    )
    func `an ETag is read with its quotes and its weak mark off`(text: String?, version: Int64?) {
        #expect(RESTValues.version(text) == version)
    }

    @Test(
        arguments: [
            ("http://other:9/v1/notes?_token=x", "/v1/notes?_token=x"), ("/v1/notes?p=2", "/v1/notes?p=2"),
            ("http://other?p=2", "/?p=2"), ("//evil/x", nil), ("notes?p=2", nil), ("http://other", nil),
        ] as [(String, String?)]
    )
    func `only path and query of an address are kept`(address: String, target: String?) {
        #expect(RESTValues.target(address) == target)
    }
}
