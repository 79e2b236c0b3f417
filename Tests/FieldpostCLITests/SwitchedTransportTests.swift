import Fieldpost
import FieldpostCore
import Testing

@testable import FieldpostCLI

/// The device's switch stands before whatever transport it has, and hides nothing of it.
@Suite struct SwitchedTransportTests {
    @Test func `it has operations voided as the transport behind it does`() async throws {
        let schema = Schema(version: 1) { Table("notes") { Column("id", .text).primaryKey() } }
        let transport = SwitchedTransport(MockTransport(schema: schema))
        let id = try #require(OperationID("0191b2a0-0000-7000-8000-00000000000a"))
        let context = RequestContext(token: nil, device: "d", schema: 1, now: Timestamp(milliseconds: 0))

        #expect(try await transport.void([id], context)?.results.map(\.code) == ["voided"])
        transport.set(up: false)
        await #expect(throws: ExchangeFailure.self) { try await transport.void([id], context) }
    }
}
