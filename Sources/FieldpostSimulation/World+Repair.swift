internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// What people do with operations, set aside or not, also while requests are out.
extension World {
    private enum Action: Int {
        case retry, edit, discard, discardWithDependants, undo

        var word: String {
            switch self {
            case .retry: "retry"
            case .edit: "edit"
            case .discard: "discard"
            case .discardWithDependants: "discard with dependants"
            case .undo: "undo"
            }
        }
    }

    /// One entry as a repair finds it.
    private struct Before {
        var id: String
        var group: Int64
        var table: String
        var row: String
        var isRefused: Bool
    }

    func repair(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        guard let id = try someOperation(device), let action = Action(rawValue: random.below(5)) else {
            return
        }
        let before = try entries(device)
        let bases = try Checks.bases(device)
        let time = device.clock(now)
        var draws = random
        let values = Workload.mended(before.values.first { $0.id == id }?.table ?? "", random: &draws)
        let gone: [OperationID]?
        do {
            gone = try app.living(killedAfter: countdown(5, upTo: 25)) { database in
                let repair = Repair(database)
                let operation = OperationID(stored: id)
                switch action {
                case .retry: _ = try repair.retry(operation, now: time, random: &draws)
                case .edit: _ = try repair.edit(operation, set: values, now: time, random: &draws)
                case .discard: return try repair.discard(operation, now: time)
                case .discardWithDependants:
                    return try repair.discard(operation, dependants: true, now: time)
                case .undo: return try repair.undo(operation, now: time)
                }
                return []
            }
        } catch let error as FieldpostError where Self.isAnswer(error.code, to: action) {
            random = draws
            return note("repair refused", "\(app.name): \(action.word) of \(id): \(error.code)")
        }
        random = draws
        guard let gone else { return try restart(device, app, "killed during a repair") }
        note(action.word, "\(app.name): \(action.word) of \(id)")
        if !app.isAlive {
            note("device killed", "\(app.name) was killed after a repair")
            try app.restart(now: time, random: &random)
        }
        try remember(device, before, gone.map(\.text))
        try check(device, before, gone.map(\.text), bases)
    }

    /// Whether a repair may be refused with `code`.
    private static func isAnswer(_ code: FieldpostError.Code, to action: Action) -> Bool {
        switch action {
        case .retry: code == .wrongState
        case .edit: code == .usage
        case .discard: code == .hasDependants
        case .discardWithDependants: false
        case .undo: [.wrongState, .hasDependants].contains(code)
        }
    }

    /// One that was set aside, more often than not.
    private func someOperation(_ device: SimulatedDevice) throws -> String? {
        let aside = random.chance(70) ? "WHERE state >= 2" : ""
        let ids = try device.database.connection.query(
            "SELECT id FROM fieldpost_outbox \(aside) ORDER BY seq"
        )
        return ids.isEmpty ? nil : ids[random.below(ids.count)][0].text
    }

    private func entries(_ device: SimulatedDevice) throws -> [Int64: Before] {
        let rows = try device.database.connection.query(
            """
            SELECT seq, id, ifnull(grp, seq), tbl, row, state = 3 AND ifnull(error -> '$.unsettled', 'false') <> 'true'
            FROM fieldpost_outbox
            """
        )
        var entries: [Int64: Before] = [:]
        for row in rows {
            entries[row[0].integer ?? 0] = Before(
                id: row[1].text ?? "",
                group: row[2].integer ?? 0,
                table: row[3].text ?? "",
                row: row[4].text ?? "",
                isRefused: row[5] == 1
            )
        }
        return entries
    }

    /// What the user knows after a repair: which operations are gone, and which have new names.
    private func remember(_ device: SimulatedDevice, _ before: [Int64: Before], _ gone: [String]) throws {
        let after = try entries(device)
        for (seq, entry) in before {
            if let new = after[seq] {
                if new.id != entry.id {
                    if !entry.isRefused {
                        throw Violation(message: "P2: \(entry.id) was not refused and has a new id")
                    }
                    device.rename(entry.id, to: new.id)
                    device.sentAgain.insert(entry.group)
                }
            } else if !gone.contains(entry.id) {
                throw Violation(message: "P1: a repair on \(device.name) lost \(entry.id)")
            }
        }
    }

    private func check(
        _ device: SimulatedDevice,
        _ before: [Int64: Before],
        _ gone: [String],
        _ bases: [String: JSONObject]
    ) throws {
        let checks = Checks(self)
        try checks.nothingLost(on: device)
        let kept = try device.database.connection.query(
            "SELECT id FROM fieldpost_outcomes WHERE status = 'discarded'"
        ).compactMap { $0[0].text }
        // What is in doubt stays until the server has had its word.
        let waiting = Set(try entries(device).values.map(\.id))
        if let id = Set(gone).subtracting(waiting).subtracting(kept).first {
            throw Violation(message: "P7: \(id) was discarded on \(device.name) and has no outcome")
        }
        note("decision", waiting.intersection(gone).count, "\(device.name) will give up what is in doubt")
        for entry in before.values where gone.contains(entry.id) {
            try checks.isReplay(device, entry.table, entry.row, on: bases["\(entry.table)/\(entry.row)"])
        }
        try checks.everyRowIsReplay(on: device)
    }
}
