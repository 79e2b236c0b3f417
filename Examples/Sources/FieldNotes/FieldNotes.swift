import Fieldpost
import Foundation

/// A walk through the model without a screen: what an app's views would do, printed.
///
/// The backend is only in memory, so that nothing else has to run; an app in the field has an `HTTPTransport` there.
@main struct FieldNotes {
    @MainActor static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "field-notes-\(UUID().uuidString)"
        )
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try await Store.open(
            at: folder.appending(path: "notes.db").path,
            schema: fieldNotesSchema
        )
        let backend = MockTransport(schema: fieldNotesSchema, fixtures: fixtures) { operation in
            operation.change.set["title"] == "" ? "title_missing" : nil
        }
        let engine = SyncEngine(store: store, transport: backend) { _ in nil }
        try await store.signIn(account: "ranger")
        let model = NotesModel(store)
        let status = SyncStatusModel(store)
        let following = [Task { await model.run() }, Task { await status.run() }]

        let heron = await model.add("Grey heron at the weir", at: Date())
        await model.add("Loose stone on the steps", kind: .hazard, at: Date())
        if let heron {
            await model.edit(heron) {
                $0.tags.insert("bird")
                $0.place = Note.Place(latitude: 52.1, longitude: 5.2)
            }
        }
        await until { model.notes.count == 2 && model.notes.contains { $0.tags == ["bird"] } }
        for note in model.notes { print("- \(note.title) \(note.tags.sorted())") }
        print("open: \(model.openCount), hazards: \(await model.counts()[.hazard] ?? 0)")

        model.show(.tagged("bird"))
        await until { model.notes.count == 1 }
        await model.finishAll()
        await until { model.openCount == 1 && status.status.pending == 4 }
        print("after finishing the birds, open: \(model.openCount)")
        print(status.sentence)

        try await sync(engine, backend, model, status)

        following.forEach { $0.cancel() }
        await store.close()
    }

    /// What the ranger's office knows already.
    private static let fixtures: [String: [JSONObject]] = [
        "notes": [
            [
                "id": "0191b2a0-0000-7000-8000-000000000001", "title": "Closed: the north path", "kind": "hazard",
                "seen_at": 1_764_460_800_000,
            ]
        ]
    ]

    /// No signal, then a signal, then a note that the office refuses and the ranger mends.
    @MainActor private static func sync(
        _ engine: SyncEngine,
        _ backend: MockTransport,
        _ model: NotesModel,
        _ status: SyncStatusModel
    ) async throws {
        backend.setOffline(true)
        _ = await engine.sync()
        await until { status.status.state == .offline }
        print(status.sentence)

        backend.setOffline(false)
        model.show(.all)
        _ = await engine.sync()
        await until { status.status.state == .allSynced && model.notes.count == 3 }
        print("\(status.sentence); notes here: \(model.notes.count), at the office: \(backend.rows("notes").count)")

        await model.add("", at: Date())
        _ = await engine.sync()
        await until { status.needsAttention }
        let refused = await model.refused()
        print("\(status.sentence): \(refused.map { $0.failure?.code ?? "" })")
        for item in refused { await model.mend(item, title: "Untitled") }
        _ = await engine.sync()
        await until { status.status.state == .allSynced }
        print("\(status.sentence); the office has \(backend.rows("notes").count) notes")
    }

    /// Lets the models take their turns until they show what is expected.
    @MainActor private static func until(_ condition: () -> Bool) async {
        while !condition() { await Task.yield() }
    }
}
