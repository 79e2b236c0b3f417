import Glibc

/// Who is at the other end of a connection.
struct PeerAddress {
    /// What connections are counted by: one IPv4 address, or one IPv6 /64, which is what one subscriber gets.
    struct Network: Hashable {
        let isIPv4: Bool
        let bits: UInt64
    }

    let text: String
    let network: Network

    init(_ storage: sockaddr_storage) {
        var storage = storage
        if Int32(storage.ss_family) == AF_INET6 {
            let address = withUnsafeBytes(of: &storage) { $0.load(as: sockaddr_in6.self).sin6_addr }
            self.init(ipv6: withUnsafeBytes(of: address) { Array($0) })
        } else {
            let address = withUnsafeBytes(of: &storage) { $0.load(as: sockaddr_in.self).sin_addr }
            self.init(ipv4: withUnsafeBytes(of: address) { Array($0) })
        }
    }

    init(ipv4 bytes: [UInt8]) {
        text = Self.text(of: bytes, family: AF_INET)
        network = Network(isIPv4: true, bits: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }

    init(ipv6 bytes: [UInt8]) {
        // ::ffff:a.b.c.d is an IPv4 client on a dual-stack socket.
        if bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] {
            self = PeerAddress(ipv4: Array(bytes.suffix(4)))
        } else {
            self = PeerAddress(
                text: Self.text(of: bytes, family: AF_INET6),
                network: Network(isIPv4: false, bits: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
            )
        }
    }

    private init(text: String, network: Network) {
        self.text = text
        self.network = network
    }

    private static func text(of address: [UInt8], family: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(family, address, &buffer, socklen_t(buffer.count)) != nil else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
