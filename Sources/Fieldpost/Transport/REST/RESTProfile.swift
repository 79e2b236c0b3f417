public import FieldpostCore
public import Foundation

/// How to speak to one REST server that knows nothing of Fieldpost: its addresses, its bodies, and what its answers mean.
///
/// A value, to be written in Swift or read from a JSON file of equal meaning by ``init(json:)``. It says nothing until a
/// ``RESTTransport`` has checked it against the store's schema.
///
///     var profile = RESTProfile(base: URL(string: "https://api.example.com/v2")!)
///     profile.resources["notes"] = RESTProfile.Resource(
///         create: .init("PUT", "/notes/{id}", headers: ["If-None-Match": "*"]),
///         update: .init("PATCH", "/notes/{id}", headers: ["If-Match": "\"{version}\""]),
///         delete: .init("DELETE", "/notes/{id}", headers: ["If-Match": "\"{version}\""]),
///         list: .init("/notes", since: "updated_since"))
///
/// Templates: `{id}` is the row's key, `{operation}` the operation's id (the idempotency key), `{version}` the version that
/// the edit was made on, `{token}` the token, and any other name a column of the row. In a path values are
/// percent-encoded. A header whose value is not known is no reason to send without it: the row is looked up first.
public struct RESTProfile: Equatable, Sendable {
    /// Where every path starts, such as `https://api.example.com/v2`.
    public var base: URL
    /// How the token is shown.
    public var authorization = Authorization.bearer
    /// Header fields of every request.
    public var headers: [String: String] = [:]
    /// A path that answers 200 only while the server and what is behind it work.
    ///
    /// With it, a 503 for one operation from a server that is well counts as that operation's own failure.
    public var health: String?
    /// Where an error's answer says what is wrong.
    public var errors = ErrorFields()
    /// What answers mean, first match first; ``standardAnswers`` follow.
    public var answers: [Answer] = []
    /// What is done for each table, by its name.
    public var resources: [String: Resource] = [:]

    /// A profile without tables.
    public init(base: URL) { self.base = base }

    /// How the token is shown to the server.
    public enum Authorization: String, Sendable, CaseIterable {
        /// `Authorization: Bearer TOKEN`.
        case bearer
        /// `Authorization: Basic …`; the token is `user:password`.
        case basic
        /// Not at all, or by a header of one's own with `{token}`.
        case none
    }

    /// Where an error's JSON says what is wrong: names with dots between.
    public struct ErrorFields: Equatable, Sendable {
        /// The stable code, a string or a number.
        public var code = "code"
        /// The reason in words.
        public var message = "message"

        /// The names `code` and `message`.
        public init() {}
    }

    /// What is asked of the server.
    public enum Step: String, Sendable, CaseIterable {
        /// A row's creation.
        case create
        /// A row's change.
        case update
        /// A row's end.
        case delete
        /// A page of the list.
        case list
    }

    /// What one kind of answer means.
    public struct Answer: Equatable, Sendable {
        /// The statuses.
        public var status: ClosedRange<Int>
        /// Only with this error code.
        public var code: String?
        /// Only as an answer to these; empty for all.
        public var steps: [Step]
        /// What it means.
        public var outcome: Outcome
        /// Where a conflict's answer holds the record as it is, with dots between; without it the record is fetched.
        public var current: String?

        /// A line of the table.
        public init(
            _ status: ClosedRange<Int>,
            code: String? = nil,
            steps: [Step] = [],
            _ outcome: Outcome,
            current: String? = nil
        ) {
            self.status = status
            self.code = code
            self.steps = steps
            self.outcome = outcome
            self.current = current
        }
    }

    /// What an answer means.
    public enum Outcome: String, Sendable, CaseIterable {
        /// Done.
        case applied
        /// The record is not as expected; whether this is a replay is seen by comparing it with what was sent.
        case conflict
        /// There is no such record.
        case absent
        /// Never will be accepted.
        case rejected
        /// A race that was lost; the same request again.
        case retry
        /// The server struggles as a whole; no operation is to blame.
        case busy
        /// The server failed, perhaps because of this operation.
        case failed
        /// The token is not accepted.
        case unauthenticated
        /// The token may not do this; everything pauses.
        case forbidden
        /// The address is wrong or no longer served; everything pauses.
        case misconfigured
        /// The list's cursor is no longer honoured.
        case resync
        /// Not the server's own answer.
        case unreachable
    }

    /// What answers mean unless a profile says otherwise.
    public static let standardAnswers: [Answer] = [
        Answer(200...299, .applied), Answer(300...399, .unreachable), Answer(401...401, .unauthenticated),
        Answer(404...404, steps: [.update, .delete], .absent),
        Answer(410...410, steps: [.update, .delete], .absent),
        Answer(410...410, steps: [.list], .resync), Answer(404...405, .misconfigured),
        Answer(410...410, .misconfigured),
        Answer(408...408, .busy), Answer(425...425, .busy), Answer(429...429, .busy),
        Answer(502...504, .busy),
        Answer(403...403, steps: [.list], .forbidden),
        Answer(409...409, steps: [.create, .update, .delete], .conflict),
        Answer(412...412, steps: [.create, .update, .delete], .conflict),
        Answer(400...499, steps: [.list], .misconfigured),
        Answer(400...499, .rejected), Answer(500...599, .failed),
    ]
}

extension RESTProfile {
    /// What is done for one table.
    ///
    /// What is left out is not offered by the server.
    public struct Resource: Equatable, Sendable {
        /// How a row is created.
        public var create: Action?
        /// How a row is changed.
        public var update: Action?
        /// How a row is deleted.
        public var delete: Action?
        /// The path of one record, to look at it.
        public var item: String?
        /// Where changes come from.
        public var list: List?
        /// How a record reads.
        public var record: Record
        /// The server's names of columns that differ.
        public var columns: [String: String]
        /// What becomes of an edit of a row that has changed meanwhile.
        public var onConflict: ConflictAnswer

        /// A resource of the given parts; `item` is by default the path of `update`.
        public init(
            create: Action? = nil,
            update: Action? = nil,
            delete: Action? = nil,
            item: String? = nil,
            list: List? = nil,
            record: Record = Record(),
            columns: [String: String] = [:],
            onConflict: ConflictAnswer = .bySchema
        ) {
            self.create = create
            self.update = update
            self.delete = delete
            self.item = item ?? update?.path
            self.list = list
            self.record = record
            self.columns = columns
            self.onConflict = onConflict
        }
    }

    /// What becomes of an edit that meets a record that is not as expected.
    public enum ConflictAnswer: String, Sendable, CaseIterable {
        /// ``report`` where every touched column is settled by compare-and-set, else ``overwrite``.
        case bySchema
        /// The row takes the server's state, and the edit is kept as a conflict.
        case report
        /// The edit is sent again, on the record as it is now.
        case overwrite
        /// The row takes the server's state, and the edit is dropped.
        case adopt
    }

    /// One request.
    public struct Action: Equatable, Sendable {
        /// What a body holds.
        public enum Content: String, Sendable, CaseIterable {
            /// The columns that were touched; in a create, all.
            case change
            /// The whole row.
            case row
            /// Nothing.
            case none
        }

        /// The method.
        public var method: String
        /// The path, a template.
        public var path: String
        /// Header fields, templates.
        public var headers: [String: String]
        /// What the body holds; always nothing for `DELETE` and `GET`.
        public var content: Content
        /// The member of the body that holds it all.
        public var wrap: String?
        /// Whether columns without a value are left out.
        public var omitsNull: Bool
        /// Fields that are always the same.
        public var constants: JSONObject

        /// A request of the given parts.
        public init(
            _ method: String,
            _ path: String,
            headers: [String: String] = [:],
            content: Content = .change,
            wrap: String? = nil,
            omitsNull: Bool = false,
            constants: JSONObject = [:]
        ) {
            self.method = method
            self.path = path
            self.headers = headers
            self.content = content
            self.wrap = wrap
            self.omitsNull = omitsNull
            self.constants = constants
        }
    }

    /// How a record reads.
    ///
    /// Versions are integers that only grow for a record.
    public struct Record: Equatable, Sendable {
        /// Where an answer about one record holds it, with dots between; `nil` for the whole body.
        public var at: String?
        /// The field of the key.
        public var id = "id"
        /// The field of the version.
        public var version: String? = "version"
        /// The header of the version, such as `ETag`, without quotes and weak mark; the field comes first.
        public var versionHeader: String?
        /// The field that is `true` in a record that is gone.
        public var deleted: String? = "deleted"

        /// A record that is the body, with `id`, `version` and `deleted`.
        public init() {}
    }

    /// A list of changed records.
    public struct List: Equatable, Sendable {
        /// Where the next page is named.
        public enum Next: Equatable, Sendable {
            /// A header that holds an address.
            case header(String)
            /// The header `Link` with `rel="next"`.
            case link
            /// A field of the body, with dots between, that holds an address.
            case field(String)
            /// A field of the body that holds what this parameter of the query is to be.
            case token(field: String, parameter: String)
        }

        /// The path.
        public var path: String
        /// Parameters of every first page, such as the order (oldest change first) and the page's size.
        public var query: [String: String]
        /// The parameter that asks for what is newer than a version.
        public var since: String
        /// Its value at the first pull.
        public var first: String
        /// Where the next page is named; `nil` when all comes at once.
        public var next: Next?
        /// Where the records are, with dots between; `nil` for the whole body.
        public var items: String?
        /// The header that holds the version of the list as a whole, such as `ETag`; without it the highest version seen.
        public var cursorHeader: String?
        /// How far behind the cursor each pull starts: a server may show an older version later.
        public var overlap: Int64
        /// Whether versions are milliseconds since 1970, so that one far in the future is not taken for a cursor.
        public var isTime: Bool

        /// A list of the given parts.
        public init(
            _ path: String,
            query: [String: String] = [:],
            since: String = "since",
            first: String = "0",
            next: Next? = nil,
            items: String? = nil,
            cursorHeader: String? = nil,
            overlap: Int64 = 0,
            isTime: Bool = false
        ) {
            self.path = path
            self.query = query
            self.since = since
            self.first = first
            self.next = next
            self.items = items
            self.cursorHeader = cursorHeader
            self.overlap = overlap
            self.isTime = isTime
        }
    }
}
