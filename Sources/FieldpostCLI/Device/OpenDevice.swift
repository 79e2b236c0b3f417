internal import Fieldpost
internal import FieldpostCore
internal import Foundation

/// A device as the command line opens it: a store, and an engine when there is a server.
struct OpenDevice: Sendable {
    let store: Store
    let clock: AdjustableClock
    let network: SwitchedTransport?
    let connectivity: SwitchedConnectivity
    let engine: SyncEngine?

    static let options: [CommandSpec.Option] = [
        .required("schema", "FILE", "the app's schema"),
        .required("db", "FILE", "the device's database, made if absent"),
        .optional("server", "URL", "the server to sync with"),
        .optional("rest", "FILE", "how to sync with a REST server that is not Fieldpost's"),
        .optional("mock", "FILE", "rows by table of a backend that is only in memory; no server is needed"),
        .optional("token", "TOKEN", "what the server lets in"),
        .optional("token-file", "FILE", "a file that holds the token"),
    ]

    /// The account of a device that is opened by hand: tokens change, the file stays.
    private static let account = "default"

    init(_ invocation: Invocation) async throws {
        let schema = try Files.schema(try invocation.required("schema"))
        let server = try Files.server(invocation)
        let profile = try Files.profile(invocation)
        let fixtures = try Files.fixtures(invocation, schema)
        if [server != nil, profile != nil, fixtures != nil].count(where: \.self) > 1 {
            throw UsageError("Give one of --server, --rest and --mock.")
        }
        let token = try Files.token(invocation)
        clock = AdjustableClock()
        var configuration = Store.Configuration()
        configuration.environment = clock.environment
        connectivity = SwitchedConnectivity(configuration.environment.connectivity)
        configuration.environment.connectivity = connectivity
        let store = try await Store.open(
            at: try invocation.required("db"),
            schema: schema,
            configuration: configuration
        )
        self.store = store
        if token != nil || fixtures != nil {
            // A file of an app has an account already, and it stays.
            do { try await store.signIn(account: Self.account) } catch let error as FieldpostError
                where error.code == .wrongState
            {}
        }
        let environment = configuration.environment
        if let profile {
            network = SwitchedTransport(try RESTTransport(profile: profile, store: store))
        } else if let fixtures {
            network = SwitchedTransport(
                MockTransport(schema: schema, fixtures: fixtures, environment: environment)
            )
        } else {
            network = server.map { SwitchedTransport(HTTPTransport(server: $0, environment: environment)) }
        }
        engine = network.map { SyncEngine(store: store, transport: $0) { _ in token } }
    }
}
