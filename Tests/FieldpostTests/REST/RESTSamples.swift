import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// What the tests of REST servers share.
enum RESTSamples {
    /// The package's own folder.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func schema(
        _ conflict: ConflictPolicy = .lastWriteWins,
        _ onRemoteDelete: RemoteDeletePolicy = .deleteWins
    ) -> Schema {
        var notes = Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text).optional()
            Column("done", .boolean).optional()
            Column("n", .integer).optional()
        }
        notes.conflict = conflict
        notes.onRemoteDelete = onRemoteDelete
        return Schema(version: 1, tables: [notes])
    }

    static func id(_ number: Int) -> OperationID {
        OperationID(stored: "0191b2a0-0000-7000-8000-00000000000\(String(number, radix: 16))")
    }

    static func operation(
        _ number: Int,
        _ action: FieldpostCore.Operation.Action,
        _ row: String = "n1",
        _ set: JSONObject = [:],
        base: FieldpostCore.Operation.Base = .none,
        after: [OperationID] = []
    ) -> FieldpostCore.Operation {
        FieldpostCore.Operation(
            id: id(number),
            table: "notes",
            row: row,
            action: action,
            change: Change(set: set),
            base: base,
            after: after,
            seq: Int64(number),
            schema: 1,
            at: Timestamp(milliseconds: 5)
        )
    }

    static func push(_ groups: [FieldpostCore.Operation]...) -> OutgoingPush {
        OutgoingPush(body: PushRequest(groups: groups.map { OperationGroup(operations: $0) }).bytes())
    }

    static func context(_ token: String? = "ayu:secret") -> RequestContext {
        RequestContext(
            token: token,
            device: "0191b2a0-0000-7000-8000-00000000000d",
            schema: 1,
            now: Timestamp(milliseconds: 1_796_000_000_000)
        )
    }

    /// A profile with every kind of header, for a server on `port`.
    static func profile(_ port: UInt16) -> RESTProfile {
        var profile = RESTProfile(base: URL(string: "http://127.0.0.1:\(port)/api")!)
        profile.answers = [.init(412...412, .conflict, current: "details.existing")]
        var record = RESTProfile.Record()
        record.at = "data"
        record.versionHeader = "ETag"
        let headers = ["Idempotency-Key": "{operation}", "If-Match": "\"{version}\""]
        profile.resources["notes"] = RESTProfile.Resource(
            create: .init(
                "POST",
                "/notes",
                headers: ["Idempotency-Key": "{operation}"],
                wrap: "data",
                omitsNull: true,
                constants: ["source": "app"]
            ),
            update: .init("PUT", "/notes/{id}", headers: headers, content: .row, wrap: "data"),
            delete: .init("DELETE", "/notes/{id}", headers: headers, content: .none),
            item: "/notes/{id}",
            list: .init(
                "/notes",
                query: ["limit": "2"],
                next: .header("Next-Page"),
                items: "data",
                overlap: 10
            ),
            record: record,
            columns: ["title": "name"]
        )
        return profile
    }

    static func answer(_ status: String, _ body: String = "", _ headers: String...) -> RawServer.Reply {
        .init(
            status,
            headers: headers + ["Content-Type: application/json"],
            body: Array(body.utf8),
            isOurs: false
        )
    }

    /// A record as the sample server answers it.
    static func record(_ version: Int, _ name: String = "A") -> String {
        #"{"data":{"id":"n1","name":"\#(name)","done":true,"n":null,"version":\#(version)}}"#
    }
}

/// A scripted server and a transport to it.
struct RESTRig {
    let server: RawServer
    let transport: RESTTransport

    init(
        schema: Schema = RESTSamples.schema(),
        _ replies: [RawServer.Reply],
        knowledge: RESTKnowledge = RESTKnowledge(),
        _ change: (inout RESTProfile) -> Void = { _ in }
    ) throws {
        server = try RawServer(replies)
        var profile = RESTSamples.profile(server.port)
        change(&profile)
        // By the clock it is given no push here takes long, however slow the machine is; what hangs is still cut off.
        var environment = ManualClock().environment
        environment.sleep = Environment.live.sleep
        transport = try RESTTransport(
            profile: profile,
            schema: schema,
            knowledge: knowledge,
            environment: environment
        )
    }

    /// The results of a push, or what it failed with.
    func push(_ groups: [FieldpostCore.Operation]...) async -> Result<[OperationResult], ExchangeFailure> {
        let body = PushRequest(groups: groups.map { OperationGroup(operations: $0) }).bytes()
        do throws(ExchangeFailure) {
            return .success(try await transport.push(OutgoingPush(body: body), RESTSamples.context()).results)
        } catch { return .failure(error) }
    }

    /// The request lines so far.
    var lines: [String] { server.requests.map { String($0.prefix { $0 != "\r\n" }) } }
}
