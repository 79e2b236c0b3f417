/// `fieldpost import`.
enum ImportCommand {
    static let spec = CommandSpec(path: ["import"], summary: "Write the rows of a CSV file.") { _, _ in .done }
}
