import Fieldpost
import Foundation

/// A walk through the model without a screen: what an app's views would do, printed.
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
        await until { model.openCount == 1 && status.status.local == 4 }
        print("after finishing the birds, open: \(model.openCount)")
        print(status.sentence)

        following.forEach { $0.cancel() }
        await store.close()
    }

    /// Lets the models take their turns until they show what is expected.
    @MainActor private static func until(_ condition: () -> Bool) async {
        while !condition() { await Task.yield() }
    }
}
