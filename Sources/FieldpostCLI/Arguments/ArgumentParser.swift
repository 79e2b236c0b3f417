internal import FieldpostCore

/// Finds the command in a list of arguments and checks the rest against it.
struct ArgumentParser {
    let commands: [CommandSpec]

    /// What a command line asks for.
    enum Request {
        case run(CommandSpec, Invocation)
        case help(CommandSpec)
        /// The commands whose names begin with these words.
        case overview([String])
        case version
    }

    func parse(_ arguments: [String]) throws(UsageError) -> Request {
        var arguments = arguments[...]
        if arguments.first == "--version" { return .version }
        if arguments.first == "help" { arguments = arguments.dropFirst() + ["--help"] }
        guard let first = arguments.first else {
            throw UsageError("Say which command to run; fieldpost --help lists them.")
        }
        if first == "--help" || first == "-h" { return .overview([]) }
        var words: [String] = []
        while let word = arguments.first, !word.hasPrefix("-") {
            let known = Set(
                commands.filter { $0.path.starts(with: words) && $0.path.count > words.count }.map {
                    $0.path[words.count]
                }
            )
            if known.isEmpty { break }
            guard known.contains(word) else { throw unknown(word, after: words, known.sorted()) }
            words.append(word)
            arguments = arguments.dropFirst()
        }
        guard let command = commands.first(where: { $0.path == words }) else {
            return try group(words, arguments)
        }
        return try parse(command, arguments)
    }

    private func unknown(_ word: String, after words: [String], _ known: [String]) -> UsageError {
        let place = words.isEmpty ? "" : "\(words.joined(separator: " ")) "
        let hint = nearest(to: word, in: known).map { "; did you mean \(place)\($0)?" } ?? "."
        return UsageError("There is no command \(place)\(word)\(hint)")
    }

    private func group(_ words: [String], _ rest: ArraySlice<String>) throws(UsageError) -> Request {
        if rest.first == "--help" || rest.first == "-h" { return .overview(words) }
        if words.isEmpty, let option = rest.first {
            throw UsageError("There is no option \(option) before a command.")
        }
        let next = commands.filter { $0.path.starts(with: words) }.map { $0.path[words.count] }
        throw UsageError(
            "Say what \(words.joined(separator: " ")) shall do: \(next.joined(separator: ", "))."
        )
    }

    private func parse(_ command: CommandSpec, _ arguments: ArraySlice<String>) throws(UsageError) -> Request
    {
        var invocation = Invocation()
        var rest = arguments
        var isLiteral = false
        while let argument = rest.popFirst() {
            if isLiteral || !argument.hasPrefix("-") || argument == "-" {
                invocation.operands.append(argument)
            } else if argument == "--" {
                isLiteral = true
            } else if argument == "--help" || argument == "-h" {
                return .help(command)
            } else {
                try takeOption(argument, &rest, command, &invocation)
            }
        }
        try check(invocation, command)
        return .run(command, invocation)
    }

    private func takeOption(
        _ argument: String,
        _ rest: inout ArraySlice<String>,
        _ command: CommandSpec,
        _ invocation: inout Invocation
    ) throws(UsageError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init
        )
        let name = String(parts[0].drop(while: { $0 == "-" }))
        guard argument.hasPrefix("--"), let option = command.options.first(where: { $0.name == name }) else {
            let hint =
                nearest(to: name, in: command.options.map(\.name) + ["help"]).map {
                    "; did you mean --\($0)?"
                } ?? "."
            throw UsageError("\(command.name) has no option \(parts[0])\(hint)", command: command.name)
        }
        if invocation.values[name] != nil, !option.isRepeated {
            throw UsageError("--\(name) is given twice; give it once.", command: command.name)
        }
        if option.value == nil {
            if parts.count > 1 {
                throw UsageError("--\(name) takes no value; leave it out.", command: command.name)
            }
            invocation.values[name, default: []].append("")
        } else if let value = parts.count > 1 ? parts[1] : rest.popFirst() {
            invocation.values[name, default: []].append(value)
        } else {
            throw UsageError("--\(name) needs a value: \(option.value ?? "").", command: command.name)
        }
    }

    private func check(_ invocation: Invocation, _ command: CommandSpec) throws(UsageError) {
        for option in command.options where option.isRequired && invocation.values[option.name] == nil {
            throw UsageError(
                "--\(option.name) \(option.value ?? "") is missing; add it.",
                command: command.name
            )
        }
        if invocation.operands.count < command.operands.count {
            let missing = command.operands[invocation.operands.count].name
            throw UsageError("\(missing) is missing; add it.", command: command.name)
        }
        if invocation.operands.count > command.operands.count {
            let extra = invocation.operands[command.operands.count]
            throw UsageError("“\(extra)” is one argument too many; leave it out.", command: command.name)
        }
    }
}
