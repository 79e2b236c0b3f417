/// A JSON value that loses nothing.
///
/// Integers are exact to 64 bits; a number that neither fits 64 bits nor is written as a double keeps its own
/// digits in ``number(_:)``. Objects keep the order in which they were written, and refuse a name given twice.
public enum JSON: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// An integer within 64 bits.
    case integer(Int64)
    /// A finite double.
    case real(Double)
    /// A number outside both, as its literal.
    case number(String)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object.
    case object(JSONObject)
}

/// The members of a JSON object, in the order written.
///
/// Two objects are equal when their members are, in any order.
public struct JSONObject: Sendable {
    /// One name and its value.
    public typealias Member = (name: String, value: JSON)

    /// Every member; names are distinct.
    public private(set) var members: [Member]

    /// An object without members.
    public init() { members = [] }

    /// An object of `members`, whose names the caller knows to be distinct.
    public init(distinct members: [Member]) { self.members = members }

    /// The value called `name`; setting `nil` removes the member.
    public subscript(name: String) -> JSON? {
        get { members.first { $0.name == name }?.value }
        set {
            guard let index = members.firstIndex(where: { $0.name == name }) else {
                if let newValue { members.append((name, newValue)) }
                return
            }
            if let newValue { members[index].value = newValue } else { members.remove(at: index) }
        }
    }

    /// Whether there is no member.
    public var isEmpty: Bool { members.isEmpty }

    /// The names, in the order written.
    public var names: [String] { members.map(\.name) }

    /// Appends a member whose name the caller knows to be new.
    public mutating func append(_ name: String, _ value: JSON) { members.append((name, value)) }

    /// The same members ordered by name, as UTF-8 bytes.
    public var sorted: JSONObject {
        JSONObject(distinct: members.sorted { utf8Less($0.name, $1.name) })
    }
}

/// Whether `left` comes before `right` by UTF-8 bytes, which is also the order of Unicode code points.
package func utf8Less(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
}

extension JSONObject: Hashable {
    /// Equal when all members are.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.members.count == right.members.count else { return false }
        return left.members.allSatisfy { right[$0.name] == $0.value }
    }

    /// Feeds what equality looks at.
    public func hash(into hasher: inout Hasher) {
        for member in sorted.members {
            hasher.combine(member.name)
            hasher.combine(member.value)
        }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// A value from a literal.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        members = elements.map { (name: $0.0, value: $0.1) }
    }
}

extension JSON {
    /// Equal in kind and value: strings are compared by their bytes, not by canonical equivalence.
    public static func == (left: JSON, right: JSON) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// A value from a literal.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A value from a literal.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A value from a literal.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A value from a literal.
    public init(floatLiteral value: Double) { self = .real(value) }
    /// A value from a literal.
    public init(nilLiteral: ()) { self = .null }
    /// A value from a literal.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// A value from a literal.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(JSONObject(distinct: elements.map { (name: $0.0, value: $0.1) }))
    }
}

extension JSON {
    /// The string, or `nil` for any other kind.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The integer, or `nil` for any other kind; `5.0` and `5e0` count as 5.
    public var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .real(let value): Int64(exactly: value)
        default: nil
        }
    }
    /// The boolean, or `nil` for any other kind.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The elements, or `nil` for any other kind.
    public var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    /// The members, or `nil` for any other kind.
    public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
}
