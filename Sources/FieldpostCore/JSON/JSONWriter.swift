extension JSON {
    /// The shortest JSON text of this value as UTF-8 bytes.
    ///
    /// Doubles are written so that they read back exactly.
    ///
    /// - Parameter canonical: object members in the order of their names and whole doubles as integers, so that
    ///   two texts of equal meaning become equal bytes.
    public func bytes(canonical: Bool = false) -> [UInt8] {
        var out: [UInt8] = []
        write(to: &out, canonical: canonical)
        return out
    }

    /// ``bytes(canonical:)`` as a string.
    public func text(canonical: Bool = false) -> String {
        String(decoding: bytes(canonical: canonical), as: UTF8.self)
    }

    package func write(to out: inout [UInt8], canonical: Bool = false) {
        switch self {
        case .null: out.append(contentsOf: "null".utf8)
        case .bool(let value): out.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): JSON.write(value, to: &out)
        case .real(let value):
            if canonical, let whole = Int64(exactly: value) {
                JSON.write(whole, to: &out)
            } else {
                out.append(contentsOf: value.description.utf8)
            }
        case .number(let literal): out.append(contentsOf: literal.utf8)
        case .string(let value): JSON.write(value, to: &out)
        case .array(let elements):
            out.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                element.write(to: &out, canonical: canonical)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let object): object.write(to: &out, canonical: canonical)
        }
    }

    package static func write(_ value: Int64, to out: inout [UInt8]) {
        if value >= 0, value < 10 {
            out.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
        } else {
            out.append(contentsOf: value.description.utf8)
        }
    }

    package static func write(_ value: String, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        var value = value
        value.withUTF8 { bytes in
            var start = 0
            for (index, byte) in bytes.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5C {
                out.append(contentsOf: bytes[start..<index])
                start = index + 1
                writeEscape(byte, to: &out)
            }
            out.append(contentsOf: bytes[start...])
        }
        out.append(UInt8(ascii: "\""))
    }

    private static func writeEscape(_ byte: UInt8, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x22, 0x5C: out.append(byte)
        case 0x0A: out.append(UInt8(ascii: "n"))
        case 0x0D: out.append(UInt8(ascii: "r"))
        case 0x09: out.append(UInt8(ascii: "t"))
        default:
            let digits = Array("0123456789abcdef".utf8)
            out.append(contentsOf: "u00".utf8)
            out.append(digits[Int(byte >> 4)])
            out.append(digits[Int(byte & 15)])
        }
    }
}

extension JSONObject {
    package func write(to out: inout [UInt8], canonical: Bool = false) {
        out.append(UInt8(ascii: "{"))
        for (index, member) in (canonical ? sorted : self).members.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            JSON.write(member.name, to: &out)
            out.append(UInt8(ascii: ":"))
            member.value.write(to: &out, canonical: canonical)
        }
        out.append(UInt8(ascii: "}"))
    }

    /// The shortest JSON text of the object.
    public var text: String { JSON.object(self).text() }
}
