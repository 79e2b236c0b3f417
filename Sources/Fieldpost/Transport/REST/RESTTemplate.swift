/// Text with `{names}` in it.
struct RESTTemplate {
    private enum Part {
        case text(String)
        case name(String)
    }

    private var parts: [Part] = []

    /// A brace without its partner is text.
    init(_ text: String) {
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            parts.append(.text(String(rest[..<open])))
            parts.append(.name(String(rest[rest.index(after: open)..<close])))
            rest = rest[rest.index(after: close)...]
        }
        parts.append(.text(String(rest)))
    }

    /// The names, in the order written.
    var names: [String] {
        parts.compactMap { if case .name(let name) = $0 { name } else { nil } }
    }

    /// The text with every name replaced.
    ///
    /// - Parameter isPath: whether values are percent-encoded; one that would climb out of its folder is refused.
    /// - Throws: ``Unknown`` for a name without a value.
    func expanded(isPath: Bool, _ value: (String) -> String?) throws(Unknown) -> String {
        var result = ""
        for part in parts {
            switch part {
            case .text(let text): result += text
            case .name(let name):
                guard let text = value(name), !isPath || !["", ".", ".."].contains(text) else {
                    throw Unknown(name: name)
                }
                result += isPath ? Self.encoded(text) : text
            }
        }
        return result
    }

    /// A name without a usable value.
    struct Unknown: Error, Equatable { var name: String }

    /// Percent-encoded but for what RFC 3986 calls unreserved.
    static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
