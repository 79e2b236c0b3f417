/// Asks for the token whenever one is needed, and for a fresh one once for all who find theirs refused.
///
/// It keeps nothing beyond a refresh that runs.
actor TokenKeeper {
    private let source: SyncEngine.TokenSource
    private var refresh: Task<String?, Never>?

    init(_ source: @escaping SyncEngine.TokenSource) { self.source = source }

    /// The token of now; `nil` when nobody is signed in.
    func current() async -> String? { try? await source(false) }

    /// Another token than `refused`; `nil` when there is none to be had.
    ///
    /// Whoever asks while a refresh runs is answered by it, and one who was refused with an older token than the
    /// present one gets that.
    func replacement(for refused: String?) async -> String? {
        if let refresh { return await refresh.value }
        // Unstructured, since it serves all who wait and outlives the cancellation of the first.
        let task = Task { [source] () -> String? in
            let present = try? await source(false)
            if let present, present != refused { return present }
            return try? await source(true)
        }
        refresh = task
        defer { refresh = nil }
        return await task.value
    }
}
