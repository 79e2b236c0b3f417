internal import FieldpostCore
public import Observation

/// Where the user's data stands, for views.
///
///     struct StatusLine: View {
///         @State var model: SyncStatusModel
///         var body: some View { Text(model.sentence).task { await model.run() } }
///     }
@MainActor @Observable public final class SyncStatusModel {
    /// The status last read from the store.
    public private(set) var status = SyncStatus()
    private let store: Store

    /// A model of `store`, which shows nothing before ``run()``.
    public init(_ store: Store) { self.store = store }

    /// One quiet sentence: "All changes synced", "3 changes waiting for network".
    public var sentence: String { status.sentence }

    /// Whether someone has to decide something.
    public var needsAttention: Bool { status.state == .needsAttention }

    /// Follows the store, until cancelled or until the store is closed.
    public func run() async {
        do {
            for try await status in store.statusUpdates { self.status = status }
        } catch {
            status.state = .storeFailed
        }
    }
}
