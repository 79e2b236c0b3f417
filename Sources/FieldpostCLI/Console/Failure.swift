internal import Fieldpost
internal import FieldpostCore
internal import FieldpostGzip
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostServerHTTP

/// Any error as the program reports it: a stable word, a sentence, an exit code.
struct Failure: Error, Equatable {
    let code: String
    let message: String
    var names: [String] = []
    let exit: ExitCode

    init(_ code: String, _ message: String, names: [String] = [], exit: ExitCode) {
        self.code = code
        self.message = message
        self.names = names
        self.exit = exit
    }

    /// What `error` means to whoever typed the command.
    init(_ error: any Error) {
        switch error {
        case let error as Failure: self = error
        case let error as UsageError: self.init("usage", error.message, exit: .usage)
        case let error as FieldpostError: self.init(error)
        case let error as StoreError: self.init(error)
        case let error as SchemaError:
            self.init("schema", error.problems.map(\.description).joined(separator: "\n"), exit: .badData)
        case let error as RESTProfileError: self.init("profile", error.description, exit: .badData)
        case let error as ServerError: self.init(error)
        case let error as HTTPServerError:
            self.init("address", error.message, exit: error.code == .invalidHost ? .usage : .unavailable)
        case let error as JSONError:
            self.init(
                "json",
                "The JSON is wrong at byte \(error.offset): \(error.message); correct it.",
                exit: .badData
            )
        case let error as GzipError: self.init("gzip", error.message, exit: .badData)
        case is CancellationError:
            self.init("cancelled", "The command was stopped; run it again.", exit: .workRemains)
        default:
            self.init(
                "bug",
                "Something failed that should not (\(type(of: error))); please report it.",
                exit: .bug
            )
        }
    }

    private init(_ error: FieldpostError) {
        let exit: ExitCode =
            switch error.code {
            case .newerFormat, .type, .check, .rowExists: .badData
            case .notAStore: .unavailable
            case .hasDependants, .wrongState, .outboxFull, .unsentWork: .personNeeded
            default: .usage
            }
        var message = error.message
        // The one error whose names a program needs; elsewhere they are in the message.
        let names = error.code == .hasDependants ? error.names : []
        if !names.isEmpty { message += " They are: \(names.joined(separator: ", "))." }
        self.init(error.code.description, message, names: names, exit: exit)
    }

    private init(_ error: StoreError) {
        switch error.code {
        case .sqlError, .misuse:
            self.init("usage", error.message + (error.detail.map { " (\($0))" } ?? ""), exit: .usage)
        case .constraint, .aborted:
            self.init("check", error.message + (error.detail.map { " (\($0))" } ?? ""), exit: .badData)
        case .missing: self.init("missing", error.message, exit: .missingFile)
        case .busy: self.init("locked", error.message, exit: .locked)
        case .newerFormat: self.init("newer_format", error.message, exit: .badData)
        case .tooBig: self.init("type", error.message, exit: .badData)
        case .notADatabase, .corrupt, .readOnly, .full, .ioError, .cantOpen, .accessDenied, .closed,
            .outOfMemory:
            self.init("store_failed", error.message, exit: .unavailable)
        default: self.init("store_failed", error.message, exit: .bug)
        }
    }

    private init(_ error: ServerError) {
        switch error.code {
        case .newerFormat, .newerSchema: self.init("newer_format", error.message, exit: .badData)
        case .invalidTenant, .invalidScope, .invalidRole, .invalidAccount, .unknownToken:
            self.init("usage", error.message, exit: .usage)
        case .notAStore: self.init("not_a_store", error.message, exit: .unavailable)
        case .closed: self.init("store_failed", error.message, exit: .unavailable)
        default: self.init("schema", error.message, exit: .badData)
        }
    }

    /// The error as device lines and `--json` show it.
    var json: JSONObject {
        var error: JSONObject = ["code": .string(code), "message": .string(message)]
        if !names.isEmpty { error.append("names", .array(names.map(JSON.string))) }
        return ["ok": false, "error": .object(error)]
    }

    static func unsupported(_ what: String) -> Failure {
        Failure("unsupported", "\(what) is not built yet.", exit: .usage)
    }
}
