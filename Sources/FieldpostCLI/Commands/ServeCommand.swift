/// `fieldpost serve`.
enum ServeCommand {
    static let spec = CommandSpec(path: ["serve"], summary: "Serve devices over HTTP.") { _, _ in .done }
}
