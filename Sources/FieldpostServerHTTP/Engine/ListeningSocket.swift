import Glibc

/// Where a server listens.
package struct HTTPServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// A numeric address.
    package var host: String
    /// The real port, also when a free one was asked for.
    package var port: UInt16

    /// As it stands in a URL.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A bound, listening, non-blocking TCP socket.
struct ListeningSocket {
    let descriptor: Int32
    let address: HTTPServerAddress

    /// Clients that may wait to be accepted; the kernel caps it at `net.core.somaxconn`.
    private static let backlog: Int32 = 4_096

    /// Opens `count` sockets on one address, which share its clients.
    static func open(host: String, port: UInt16, count: Int) throws(HTTPServerError) -> [ListeningSocket] {
        let host = host == "localhost" ? "127.0.0.1" : host
        // With SO_REUSEPORT two servers of one user could share a port unnoticed, so the first socket, bound without it,
        // finds out whether the port is free.
        let first = try ListeningSocket(host: host, port: port, isShared: false)
        guard count > 1 else { return [first] }
        close(first.descriptor)
        var sockets: [ListeningSocket] = []
        do throws(HTTPServerError) {
            for _ in 0..<count {
                sockets.append(try ListeningSocket(host: host, port: first.address.port, isShared: true))
            }
        } catch {
            for socket in sockets { close(socket.descriptor) }
            throw error
        }
        return sockets
    }

    private init(host: String, port: UInt16, isShared: Bool) throws(HTTPServerError) {
        var address = try SocketAddress(host: host, port: port)
        let place = HTTPServerAddress(host: host, port: port).description
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { throw .listening(on: place, failed: errno) }
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        // A restart must not wait for the last connections' TIME_WAIT.
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
        if address.family == AF_INET6 {
            // `::` takes IPv4 clients too, whatever the machine's default is.
            var off: Int32 = 0
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
        }
        if isShared { setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, size) }
        guard address.bind(descriptor), listen(descriptor, Self.backlog) == 0 else {
            let error = errno
            close(descriptor)
            throw .listening(on: place, failed: error)
        }
        self.descriptor = descriptor
        self.address = HTTPServerAddress(host: host, port: SocketAddress.port(of: descriptor) ?? port)
    }
}

/// A `sockaddr` of either family.
private struct SocketAddress {
    private var storage = sockaddr_storage()
    private let size: socklen_t
    var family: Int32 { Int32(storage.ss_family) }

    /// Takes an IPv4 or IPv6 address in numbers.
    init(host: String, port: UInt16) throws(HTTPServerError) {
        var ipv4 = sockaddr_in()
        var ipv6 = sockaddr_in6()
        if inet_pton(AF_INET, host, &ipv4.sin_addr) == 1 {
            ipv4.sin_family = sa_family_t(AF_INET)
            ipv4.sin_port = port.bigEndian
            size = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: ipv4, as: sockaddr_in.self) }
        } else if inet_pton(AF_INET6, host, &ipv6.sin6_addr) == 1 {
            ipv6.sin6_family = sa_family_t(AF_INET6)
            ipv6.sin6_port = port.bigEndian
            size = socklen_t(MemoryLayout<sockaddr_in6>.size)
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: ipv6, as: sockaddr_in6.self) }
        } else {
            throw .invalidHost(host)
        }
    }

    mutating func bind(_ descriptor: Int32) -> Bool {
        withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, size) == 0
            }
        }
    }

    static func port(of descriptor: Int32) -> UInt16? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        // Both families keep the port in the same place.
        return result == 0
            ? withUnsafeBytes(of: &storage) { UInt16(bigEndian: $0.load(as: sockaddr_in.self).sin_port) }
            : nil
    }
}
