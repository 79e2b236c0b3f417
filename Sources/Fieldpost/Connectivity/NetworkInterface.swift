#if !canImport(Network)
    internal import Foundation

    #if canImport(Glibc)
        internal import Glibc
    #elseif canImport(Musl)
        internal import Musl
    #elseif canImport(Android)
        internal import Android
    #endif

    /// One network interface, as far as it matters for a hint.
    struct NetworkInterface: Equatable {
        var name: String
        /// Whether it is switched on and its link is there.
        var isRunning: Bool
        var isLoopback: Bool
        /// Whether it has an address that leads further than the link.
        var hasAddress: Bool
        var hasRadio: Bool

        var kind: ConnectivityHint.Kind {
            if hasRadio || name.hasPrefix("wl") { return .wifi }
            if ["wwan", "rmnet", "ppp", "ccmni"].contains(where: name.hasPrefix) { return .cellular }
            if ["eth", "en", "usb"].contains(where: name.hasPrefix) { return .ethernet }
            return .other
        }

        /// Every interface of this machine, or of the network namespace that the process is in.
        static func all() -> [NetworkInterface] {
            var first: UnsafeMutablePointer<ifaddrs>?
            guard getifaddrs(&first) == 0 else { return [] }
            defer { freeifaddrs(first) }
            var byName: [String: NetworkInterface] = [:]
            for entry in sequence(first: first, next: { $0?.pointee.ifa_next }) {
                guard let entry, let name = entry.pointee.ifa_name.map({ String(cString: $0) }) else {
                    continue
                }
                let flags = UInt32(entry.pointee.ifa_flags)
                // IFF_UP, IFF_RUNNING and IFF_LOOPBACK of <linux/if.h>.
                var interface =
                    byName[name]
                    ?? NetworkInterface(
                        name: name,
                        isRunning: flags & 0x41 == 0x41,
                        isLoopback: flags & 0x8 != 0,
                        hasAddress: false,
                        hasRadio: access("/sys/class/net/\(name)/phy80211", F_OK) == 0
                    )
                if let address = entry.pointee.ifa_addr, leadsFurther(address) { interface.hasAddress = true }
                byName[name] = interface
            }
            return Array(byName.values)
        }

        /// Whether an address is more than one that an interface gives itself.
        private static func leadsFurther(_ address: UnsafeMutablePointer<sockaddr>) -> Bool {
            switch Int32(address.pointee.sa_family) {
            case AF_INET:
                address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 16 != 0xA9FE  // 169.254/16
                }
            case AF_INET6:
                address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    withUnsafeBytes(of: $0.pointee.sin6_addr) { !($0[0] == 0xFE && $0[1] & 0xC0 == 0x80) }
                }
            default: false
            }
        }
    }

    extension ConnectivityHint {
        /// What these interfaces say; a mobile operator counts as metered.
        init(_ interfaces: [NetworkInterface]) {
            let usable = interfaces.filter { $0.isRunning && !$0.isLoopback && $0.hasAddress }
            let kinds = Set(usable.map(\.kind))
            self.init(kinds, isMetered: kinds == [.cellular])
        }
    }
#endif
