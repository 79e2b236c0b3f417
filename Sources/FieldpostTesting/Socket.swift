#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// One blocking TCP socket on this machine, with only what the proxy needs.
///
/// A value that names a descriptor; whoever holds it last closes it.
struct Socket: Hashable, Sendable {
    let descriptor: Int32

    /// The system's reason, in words.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
    }

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    private static func make() throws(Failure) -> Socket {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #elseif canImport(Musl)
            let kind = SOCK_STREAM | SOCK_CLOEXEC
        #else
            let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        if descriptor < 0 { throw Failure("socket") }
        let made = Socket(descriptor)
        made.prepare()
        return made
    }

    private func prepare() {
        set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        #if canImport(Darwin)
            set(SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        #if canImport(Darwin)
            address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
        #endif
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        return address
    }

    /// A socket that listens on a free port of 127.0.0.1.
    static func listening() throws(Failure) -> (socket: Socket, port: UInt16) {
        let socket = try make()
        var address = address(0)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.descriptor, $0, size) == 0
            }
        }
        var length = size
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(socket.descriptor, $0, &length) == 0
            }
        }
        guard isBound, isNamed, listen(socket.descriptor, 64) == 0 else {
            let failure = Failure("listen")
            socket.close()
            throw failure
        }
        return (socket, UInt16(bigEndian: address.sin_port))
    }

    /// A connection to `port` of 127.0.0.1.
    static func connected(to port: UInt16) throws(Failure) -> Socket {
        let socket = try make()
        var address = address(port)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else {
            let failure = Failure("connect")
            socket.close()
            throw failure
        }
        return socket
    }

    /// The next connection; `nil` once the socket was shut down.
    func accepted() -> Socket? {
        while true {
            let descriptor = accept(descriptor, nil, nil)
            if descriptor >= 0 {
                let socket = Socket(descriptor)
                socket.prepare()
                return socket
            }
            if errno != EINTR && errno != ECONNABORTED { return nil }
        }
    }

    /// Waits for input and leaves it there; `false` at the end of the stream.
    func hasInput() -> Bool {
        var byte: UInt8 = 0
        while true {
            let count = recv(descriptor, &byte, 1, Int32(truncatingIfNeeded: Int(MSG_PEEK)))
            if count >= 0 || errno != EINTR { return count > 0 }
        }
    }

    /// Some of what came; empty at the end of the stream or after a failure.
    func receive() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { return Array(buffer.prefix(count)) }
            if count == 0 || errno != EINTR { return [] }
        }
    }

    /// Whether all of `bytes` were taken.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(truncatingIfNeeded: Int(MSG_NOSIGNAL))
        #endif
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                systemSend(descriptor, $0.baseAddress, $0.count, flags)
            }
            if count > 0 { sent += count } else if errno != EINTR { return false }
        }
        return true
    }

    /// Wakes whoever reads or accepts on it; it is still to be closed.
    func shutDown() { shutdown(descriptor, Int32(truncatingIfNeeded: Int(SHUT_RDWR))) }

    /// Makes the coming ``close()`` a reset, which discards what is on its way.
    func resetOnClose() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    func close() { systemClose(descriptor) }
}

// Inside the type, `send` and `close` are its own.
private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int
{
    send(descriptor, bytes, count, flags)
}

private func systemClose(_ descriptor: Int32) { _ = close(descriptor) }
