internal import Fieldpost
internal import FieldpostCore

/// Operations laid out for a terminal of 80 columns.
enum OutboxTable {
    /// One line an operation, and one more for what was wrong with it.
    static func text(_ items: [OutboxItem], now: Timestamp, hasMore: Bool) -> String {
        if items.isEmpty { return "Nothing waits.\n" }
        var lines = [line("NO", "STATE", "ACTION", "TABLE", "ROW", "AGE")]
        for item in items {
            lines.append(
                line(
                    "\(item.seq)",
                    item.state.rawValue,
                    item.action,
                    item.table,
                    item.row,
                    age(item.createdAt, now: now)
                )
            )
            switch item.decision {
            case .discard: lines.append("       to be discarded, unless the server has it")
            case .edit: lines.append("       to be edited, once the server has answered")
            case nil: break
            }
            if let failure = item.failure {
                let words = failure.message.isEmpty ? failure.code : "\(failure.code): \(failure.message)"
                lines.append(HelpText.wrapped(words, indent: 7, firstIndent: 7))
            } else if item.state == .held, let holder = item.heldBy {
                lines.append("       waits for \(holder.text)")
            }
        }
        if hasMore { lines.append("There are more; --limit 0 shows all.") }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func line(
        _ seq: String,
        _ state: String,
        _ action: String,
        _ table: String,
        _ row: String,
        _ age: String
    ) -> String {
        let cells = [(seq, 6), (state, 8), (action, 6), (table, 14), (row, 36)]
        return cells.map { cell($0.0, $0.1) }.joined(separator: " ") + " " + age
    }

    private static func cell(_ text: String, _ width: Int) -> String {
        if text.count > width { return text.prefix(width - 1) + "…" }
        return text + String(repeating: " ", count: width - text.count)
    }

    /// How long ago, in the largest unit.
    static func age(_ time: Timestamp, now: Timestamp) -> String {
        let seconds = max(0, (now.milliseconds - time.milliseconds) / 1_000)
        switch seconds {
        case ..<60: return "\(seconds)s"
        case ..<3_600: return "\(seconds / 60)m"
        case ..<86_400: return "\(seconds / 3_600)h"
        case ..<(1_000 * 86_400): return "\(seconds / 86_400)d"
        default: return ">2y"
        }
    }

    /// Everything about one operation.
    static func details(_ item: OutboxItem, now: Timestamp) -> String {
        var lines: [(String, String)] = [
            ("operation", item.operation.text), ("number", "\(item.seq), group \(item.group)"),
            ("change", "\(item.action) \(item.table) \(item.row)"), ("state", item.state.rawValue),
            ("attempts", "\(item.attempts)"),
        ]
        if let holder = item.heldBy { lines.append(("waits for", holder.text)) }
        if let failure = item.failure {
            lines.append(("refused", "\(failure.code): \(failure.message)"))
            if !failure.fields.isEmpty { lines.append(("columns", failure.fields.joined(separator: ", "))) }
        }
        switch item.decision {
        case .discard: lines.append(("decided", "to discard it, once the server has said whether it has it"))
        case .edit(let values):
            lines.append(("decided", "to set \(values.text), once the server has answered"))
        case nil: break
        }
        for attempt in item.history {
            lines.append(("attempt", "\(age(attempt.at, now: now)) ago: \(attempt.code) \(attempt.message)"))
        }
        for (name, part) in item.change.json.members.map({ ($0.name, $0.value.object ?? [:]) }) {
            for member in part.members { lines.append((name, "\(member.name) = \(member.value.text())")) }
        }
        return lines.map { cell($0.0, 10) + $0.1 }.joined(separator: "\n") + "\n"
    }
}
