#if canImport(Network)
    internal import Foundation
    internal import Network

    /// Hints of the system: `NWPathMonitor`.
    public struct SystemConnectivity: ConnectivitySource {
        /// The system's hints.
        public init() {}

        /// What connects the device, whenever that has changed since the call.
        public func hints() -> AsyncStream<ConnectivityHint> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let monitor = NWPathMonitor()
                // The first path is how things stand, and no change.
                let last = Locked<ConnectivityHint?>(nil)
                monitor.pathUpdateHandler = { path in
                    let hint = ConnectivityHint(path)
                    let known = last.withLock { last in
                        defer { last = hint }
                        return last
                    }
                    if let known, known != hint { continuation.yield(hint) }
                }
                continuation.onTermination = { _ in monitor.cancel() }
                monitor.start(queue: DispatchQueue(label: "fieldpost.connectivity"))
            }
        }
    }

    extension ConnectivityHint {
        fileprivate init(_ path: NWPath) {
            guard path.status == .satisfied else {
                self.init()
                return
            }
            let kinds = path.availableInterfaces.filter { path.usesInterfaceType($0.type) }.map { interface in
                switch interface.type {
                case .wifi: Kind.wifi
                case .cellular: Kind.cellular
                case .wiredEthernet: Kind.ethernet
                default: Kind.other
                }
            }
            self.init(
                kinds.isEmpty ? [.other] : Set(kinds),
                isMetered: path.isExpensive || path.isConstrained
            )
        }
    }
#else
    internal import Dispatch
    internal import Foundation

    #if canImport(Glibc)
        internal import Glibc
    #elseif canImport(Musl)
        internal import Musl
    #elseif canImport(Android)
        internal import Android
    #endif

    /// Hints of the system: Linux's routing socket.
    ///
    /// Where the system keeps that from apps, as Android does, it says nothing; ``ManualConnectivity`` is then the way.
    public struct SystemConnectivity: ConnectivitySource {
        /// The system's hints.
        public init() {}

        /// What connects the device, whenever that has changed since the call.
        public func hints() -> AsyncStream<ConnectivityHint> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let last = Locked<ConnectivityHint?>(nil)
                let look: @Sendable () -> Void = {
                    let hint = ConnectivityHint(NetworkInterface.all())
                    let known = last.withLock { last in
                        defer { last = hint }
                        return last
                    }
                    if let known, known != hint { continuation.yield(hint) }
                }
                guard let socket = RoutingSocket(onMessage: look) else { return continuation.finish() }
                // After the socket is there, so that no change falls between.
                look()
                continuation.onTermination = { _ in socket.stop() }
            }
        }
    }

    /// The kernel's messages of links and addresses that come and go.
    private final class RoutingSocket: @unchecked Sendable {
        // Safe because: dispatch sources may be used from any thread, and the descriptor is only closed by the source's
        // own cancel handler.
        private let source: any DispatchSourceProtocol

        init?(onMessage: @escaping @Sendable () -> Void) {
            guard let descriptor = Self.open() else { return nil }
            let source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor,
                queue: DispatchQueue(label: "fieldpost.connectivity")
            )
            source.setEventHandler {
                // What changed is not read but looked up: messages are lost when there are many at once.
                var buffer = [UInt8](repeating: 0, count: 8_192)
                var count = 1
                while count > 0 || count < 0 && errno == ENOBUFS {
                    count = recv(descriptor, &buffer, buffer.count, 0)
                }
                onMessage()
            }
            source.setCancelHandler { close(descriptor) }
            source.resume()
            self.source = source
        }

        func stop() { source.cancel() }

        /// `struct sockaddr_nl` and the constants beside it, which Swift's C module does not show.
        private struct RoutingAddress {
            var family = UInt16(16)  // AF_NETLINK
            var padding: UInt16 = 0
            var process: UInt32 = 0
            // Links, and addresses of both families: RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR.
            var groups: UInt32 = 0x1 | 0x10 | 0x100
        }

        private static func open() -> Int32? {
            let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let descriptor = socket(16, type, 0)  // AF_NETLINK, NETLINK_ROUTE
            guard descriptor >= 0 else { return nil }
            var address = RoutingAddress()
            let size = socklen_t(MemoryLayout<RoutingAddress>.size)
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
            }
            guard bound == 0 else {
                close(descriptor)
                return nil
            }
            return descriptor
        }
    }
#endif
