import Fieldpost
import Foundation
import Observation

/// What the list of notes shows and does.
///
/// A view observes it; nothing here knows a view or the network.
@MainActor @Observable final class NotesModel {
    /// Which notes the list shows.
    enum Filter: Equatable { case all, open, tagged(String) }

    private(set) var notes: [Note] = []
    /// How many notes are open, whatever the list shows.
    private(set) var openCount = 0
    /// What to tell the user when something failed; the app goes on.
    var alert: String?
    /// The list follows a change at once.
    private(set) var filter = Filter.all

    private let store: Store
    private var listing: Task<Void, Never>?

    init(_ store: Store) { self.store = store }

    /// Follows the store until cancelled: `.task { await model.run() }`.
    func run() async {
        show(filter)
        do {
            for try await count in store.watchCount(Note.where(\.isDone == false)) { openCount = count }
        } catch { alert = text(error) }
        listing?.cancel()
    }

    /// Shows other notes.
    func show(_ filter: Filter) {
        self.filter = filter
        let query = Self.query(filter).order(by: \.seenAt, .descending).limit(200)
        listing?.cancel()
        listing = Task {
            do {
                for try await notes in store.watch(query) { self.notes = notes }
            } catch { alert = text(error) }
        }
    }

    private static func query(_ filter: Filter) -> RecordQuery<Note> {
        switch filter {
        case .all: Note.all
        case .open: Note.where(\.isDone == false)
        case .tagged(let tag): Note.where { $0.tags.contains(tag) }
        }
    }

    // MARK: What the user does

    /// Adds a note; with or without a network, it is there when this returns.
    @discardableResult
    func add(_ title: String, kind: Note.Kind = .observation, at date: Date) async -> Note? {
        await attempt { store in
            try await store.write { transaction in
                let note = Note(id: transaction.newID(), title: title, kind: kind, seenAt: date)
                try transaction.insert(note)
                return note
            }
        }
    }

    /// Changes a note as it is now; only what changed is sent, so that edits by others stay.
    func edit(_ note: Note, _ change: @escaping @Sendable (inout Note) -> Void) async {
        await attempt { try await $0.update(note, change) }
    }

    /// Marks every note of the list as done, as one change: the server takes all of it or none.
    func finishAll() async {
        let ids = notes.map(\.id)
        await attempt { store in
            try await store.write { transaction in
                for id in ids { try transaction.update(Note.self, id) { $0.isDone = true } }
            }
        }
    }

    /// What the server refused, for a sheet that shows its reason.
    func refused() async -> [OutboxItem] { await attempt { try await $0.outbox(.failed) } ?? [] }

    /// Gives a refused note another title and sends it again.
    func mend(_ item: OutboxItem, title: String) async {
        await attempt { try await $0.edit(item.operation, set: ["title": .string(title)]) }
    }

    func delete(_ note: Note) async { await attempt { try await $0.delete(note) } }

    /// How many notes there are of each kind: an aggregate, by SQL.
    func counts() async -> [Note.Kind: Int] {
        struct Count: Decodable, Sendable { var kind: Note.Kind, count: Int }
        let counts = await attempt {
            try await $0.fetchAll(
                Count.self,
                "select kind, count(*) as count from \(Note.self) group by kind"
            )
        }
        return Dictionary(uniqueKeysWithValues: (counts ?? []).map { ($0.kind, $0.count) })
    }

    @discardableResult
    private func attempt<Result: Sendable>(_ body: @Sendable (Store) async throws -> Result) async -> Result?
    {
        do { return try await body(store) } catch {
            alert = text(error)
            return nil
        }
    }

    private func text(_ error: any Error) -> String {
        switch error {
        case let error as FieldpostError where error.code == .outboxFull:
            "Too much is waiting; find a network first."
        case let error as FieldpostError: error.message
        case let error as StoreError where error.code == .full: "The device is full; free some space."
        default: "Something went wrong: \(error)"
        }
    }
}
