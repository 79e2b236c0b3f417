internal import Foundation

/// A server that reads each request and answers it with bytes of the test's own, however wrong.
package final class RawServer: @unchecked Sendable {
    // Safe because: every access to what is not constant is under the lock.
    private let lock = NSLock()
    private let listener: Socket
    package let port: UInt16
    private let answer: @Sendable (String) -> Reply
    private var seen: [String] = []
    private var accepted = 0
    private var sockets: Set<Socket> = []
    private var threads = 1
    private var isStopping = false
    private var watchers:
        [(isMet: @Sendable (RawServer) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    /// One answer.
    package struct Reply: Sendable {
        /// What becomes of the connection afterwards.
        package enum End: Sendable { case keep, close, reset, hold }
        package var bytes: [UInt8]
        package var end: End

        package init(_ bytes: [UInt8], then end: End = .keep) {
            self.bytes = bytes
            self.end = end
        }

        /// An answer with a body and its length, under our protocol's header unless it is not ours.
        package init(
            _ status: String = "200 OK",
            headers: [String] = [],
            body: [UInt8] = [],
            isOurs: Bool = true,
            then end: End = .keep
        ) {
            var lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + headers
            if isOurs { lines.append("Fieldpost-Protocol: 1") }
            self.init(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body, then: end)
        }
    }

    /// A server that gives one reply after another; a request beyond them is held.
    package convenience init(_ replies: [Reply]) throws {
        let left = Guarded(replies)
        try self.init(answering: { _ in
            left.withLock { $0.isEmpty ? Reply([], then: .hold) : $0.removeFirst() }
        })
    }

    /// A server that answers each request, head and body as text, as it deserves.
    package init(answering answer: @escaping @Sendable (String) -> Reply) throws {
        self.answer = answer
        (listener, port) = try Socket.listening()
        Thread.detachNewThread { [self] in acceptConnections() }
    }

    /// The requests so far, head and body as text.
    package var requests: [String] { lock.withLock { seen } }
    /// How often someone connected.
    package var connections: Int { lock.withLock { accepted } }

    /// Returns once `count` requests have been read and their replies sent.
    package func untilRequests(_ count: Int) async { await until { $0.seen.count >= count } }

    /// Closes every connection and returns once all threads have ended.
    package func stop() async {
        lock.withLock {
            // Only the first stop may touch the listener: its number may be another's by the second.
            if isStopping { return }
            isStopping = true
            for socket in sockets { socket.shutDown() }
            listener.shutDown()
        }
        await until { $0.threads == 0 }
    }

    private func until(_ isMet: @escaping @Sendable (RawServer) -> Bool) async {
        await withCheckedContinuation { continuation in change { $0.watchers.append((isMet, continuation)) } }
    }

    private func change(_ body: (RawServer) -> Void) {
        let woken = lock.withLock {
            body(self)
            let woken = watchers.filter { $0.isMet(self) }
            if !woken.isEmpty { watchers = watchers.filter { !$0.isMet(self) } }
            return woken
        }
        for watcher in woken { watcher.continuation.resume() }
    }

    private func acceptConnections() {
        while let socket = listener.accepted() {
            let isWelcome = lock.withLock {
                if isStopping { return false }
                accepted += 1
                threads += 1
                sockets.insert(socket)
                return true
            }
            if !isWelcome {
                socket.close()
                continue
            }
            Thread.detachNewThread { [self] in
                serve(socket)
                lock.withLock {
                    sockets.remove(socket)
                    socket.close()
                }
                change { $0.threads -= 1 }
            }
        }
        listener.close()
        change { $0.threads -= 1 }
    }

    private func serve(_ socket: Socket) {
        var reader = HTTPMessageReader(socket)
        while let request = reader.next() {
            let text = String(decoding: request.bytes, as: UTF8.self)
            let reply = answer(text)
            socket.send(reply.bytes)
            change { $0.seen.append(text) }
            switch reply.end {
            case .keep: continue
            case .close: return
            case .reset: return socket.resetOnClose()
            case .hold:
                while !socket.receive().isEmpty {}
                return
            }
        }
    }
}
