/// Lays help out for a terminal of 80 columns.
enum HelpText {
    private static let width = 80

    /// The help of one command.
    static func of(_ command: CommandSpec) -> String {
        var usage = "Usage: fieldpost \(command.name)"
        for option in command.options where option.isRequired { usage += " \(spelled(option))" }
        if command.options.contains(where: { !$0.isRequired }) { usage += " [options]" }
        for operand in command.operands { usage += " \(operand.name)" }
        var parts = [wrapped(usage, indent: 4, firstIndent: 0), wrapped(command.summary)]
        if !command.operands.isEmpty {
            parts.append("Arguments:\n" + table(command.operands.map { ($0.name, $0.help) }))
        }
        let options = command.options + [.help]
        parts.append(
            "Options:\n"
                + table(options.map { (spelled($0), $0.help + ($0.isRepeated ? " (repeatable)" : "")) })
        )
        parts += command.notes.map { wrapped($0) }
        return parts.joined(separator: "\n\n") + "\n"
    }

    /// The list of commands whose path begins with `words`.
    static func overview(_ commands: [CommandSpec], under words: [String]) -> String {
        let listed = commands.filter { $0.path.starts(with: words) }
        let name = (["fieldpost"] + words).joined(separator: " ")
        var text = "Usage: \(name) COMMAND [options]\n\n"
        if words.isEmpty { text += "Offline-first sync: a server, a device and tools for both.\n\n" }
        text += "Commands:\n" + table(listed.map { ($0.name, $0.summary) }) + "\n\n"
        text += wrapped(
            "“fieldpost COMMAND --help” explains a command. Exit codes: 0 done, 3 work remains, 4 a person is needed, "
                + "64 usage, 65 bad schema, CSV or store version, 66 file missing, 69 address taken or store unusable, "
                + "70 a bug, 75 locked."
        )
        return text + "\n"
    }

    private static func spelled(_ option: CommandSpec.Option) -> String {
        "--\(option.name)" + (option.value.map { " \($0)" } ?? "")
    }

    private static func table(_ rows: [(String, String)]) -> String {
        let column = min(26, (rows.map { $0.0.count }.max() ?? 0) + 4)
        return rows.map { name, help in
            let text = wrapped(help, indent: column, firstIndent: column)
            let head = "  " + name
            if head.count + 2 > column { return head + "\n" + text }
            return head + text.dropFirst(head.count)
        }.joined(separator: "\n")
    }

    /// `text` broken at spaces; every line after the first is indented by `indent`.
    static func wrapped(_ text: String, indent: Int = 0, firstIndent: Int? = nil) -> String {
        var lines: [String] = []
        var line = String(repeating: " ", count: firstIndent ?? indent)
        var isEmpty = true
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = String(repeating: " ", count: indent)
                isEmpty = true
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return (lines + [line]).joined(separator: "\n")
    }
}
