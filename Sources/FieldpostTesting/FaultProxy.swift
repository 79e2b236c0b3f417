internal import Dispatch
internal import Foundation

/// A bad network between a client and a real server: a TCP proxy on 127.0.0.1 that spoils exchanges by plan.
///
/// Each request takes the next ``Fault`` of the plan, in the order in which requests arrive; when the plan is used up,
/// requests pass. Faults are done with real sockets, so that a client sees what a bad network shows it.
///
///     let proxy = try FaultProxy(to: address.port)
///     proxy.plan([.dropAfter, .pass])
///     let transport = HTTPTransport(server: URL(string: "http://127.0.0.1:\(proxy.port)")!)
///     …
///     #expect(proxy.exchanges.map(\.fault) == [.dropAfter, .pass])
///     await proxy.stop()
///
/// It runs on threads of its own, never sleeps, and must be stopped.
public final class FaultProxy: @unchecked Sendable {
    // Safe because: every access to what is not constant is under the lock.
    private let lock = NSLock()
    private let listener: Socket
    private let upstream: UInt16
    /// Where it listens.
    public let port: UInt16
    private var faults: [Fault] = []
    private var records: [Exchange] = []
    private var sockets: Set<Socket> = []
    private var held: [Gate] = []
    private var threads = 0
    private var isStopping = false
    private var watchers:
        [(isMet: @Sendable (FaultProxy) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    /// What happens to one exchange.
    public enum Fault: String, Hashable, Sendable, CaseIterable {
        /// Nothing.
        case pass
        /// The connection is reset before any byte of the request is read.
        case refuse
        /// The request is read whole and never reaches the server.
        case dropBefore
        /// The server has acted; its answer is lost.
        case dropAfter
        /// Half of the answer arrives, then the connection is reset.
        case cut
        /// The request waits for ``FaultProxy/release()``, also when the client has given up: it then arrives late.
        case delayRequest
        /// The server has acted; its answer waits for ``FaultProxy/release()``.
        case delayAnswer
        /// The request reaches the server twice; the second answer is returned.
        case duplicate
        /// The request reaches the server twice; both answers are lost.
        case duplicateAndDrop
    }

    /// One request that came, and what was done to it.
    public struct Exchange: Equatable, Sendable {
        /// The request line, such as `POST /v1/push HTTP/1.1`; empty for a refused one.
        public var request: String
        /// The body as it travelled.
        public var body: [UInt8]
        /// What was done to it.
        public var fault: Fault
        /// How often the server answered it.
        public var answers: Int
        /// Bytes of the answer that were sent to the client.
        public var answeredBytes: Int
    }

    /// A proxy, already listening, to the server on `port` of 127.0.0.1.
    ///
    /// - Throws: an error that names the system call that failed.
    public init(to port: UInt16) throws {
        upstream = port
        (listener, self.port) = try Socket.listening()
        threads = 1
        Thread.detachNewThread { [self] in acceptConnections() }
    }

    // MARK: For tests

    /// Adds what is to happen to the next exchanges, one after another.
    public func plan(_ faults: [Fault]) { lock.withLock { self.faults += faults } }

    /// What has happened so far; an exchange enters when the proxy is done with it.
    public var exchanges: [Exchange] { lock.withLock { records } }

    /// Returns once `count` exchanges are over.
    public func untilExchanges(_ count: Int) async { await until { $0.records.count >= count } }

    /// Returns once `count` exchanges wait for ``release()``.
    public func untilHeld(_ count: Int = 1) async { await until { $0.held.count >= count } }

    /// Lets the exchanges that wait go on.
    public func release() {
        let gates = lock.withLock {
            defer { held = [] }
            return held
        }
        for gate in gates { gate.open() }
    }

    /// Closes every connection and returns once all threads have ended.
    public func stop() async {
        lock.withLock {
            // Only the first stop may touch the listener: its number may be another's by the second.
            if isStopping { return }
            isStopping = true
            for socket in sockets { socket.shutDown() }
            listener.shutDown()
        }
        release()
        await until { $0.threads == 0 }
    }

    private func until(_ isMet: @escaping @Sendable (FaultProxy) -> Bool) async {
        await withCheckedContinuation { continuation in
            change { proxy in proxy.watchers.append((isMet, continuation)) }
        }
    }

    /// Changes the state and wakes those who waited for it.
    private func change<Result>(_ body: (FaultProxy) -> Result) -> Result {
        let (result, woken) = lock.withLock {
            let result = body(self)
            let woken = watchers.filter { $0.isMet(self) }
            if !woken.isEmpty { watchers = watchers.filter { !$0.isMet(self) } }
            return (result, woken)
        }
        for watcher in woken { watcher.continuation.resume() }
        return result
    }

    // MARK: Threads

    private func acceptConnections() {
        while let socket = listener.accepted() {
            let isWelcome = lock.withLock {
                if isStopping { return false }
                sockets.insert(socket)
                threads += 1
                return true
            }
            if !isWelcome {
                socket.close()
                continue
            }
            Thread.detachNewThread { [self] in
                serve(socket)
                close(socket)
                change { $0.threads -= 1 }
            }
        }
        listener.close()
        change { $0.threads -= 1 }
    }

    private func close(_ socket: Socket) {
        // Under the lock, since the number of a closed descriptor may soon be another's.
        lock.withLock {
            sockets.remove(socket)
            socket.close()
        }
    }

    /// Serves one client until it leaves or a fault ends the connection.
    private func serve(_ client: Socket) {
        var reader = HTTPMessageReader(client)
        while true {
            guard reader.hasInput || client.hasInput() else { return }
            if nextIsRefusal() {
                record(Exchange(request: "", body: [], fault: .refuse, answers: 0, answeredBytes: 0))
                return client.resetOnClose()
            }
            guard let request = reader.next() else { return }
            let fault = lock.withLock { faults.isEmpty ? .pass : faults.removeFirst() }
            var exchange = Exchange(
                request: request.start,
                body: Array(request.body),
                fault: fault,
                answers: 0,
                answeredBytes: 0
            )
            let answer = perform(fault, request.bytes, &exchange)
            if let answer { exchange.answeredBytes = answer.count }
            let isKept = answer.map { client.send($0) } ?? false
            if !isKept || fault == .cut { client.resetOnClose() }
            record(exchange)
            if !isKept || fault == .cut { return }
        }
    }

    private func nextIsRefusal() -> Bool {
        lock.withLock {
            guard faults.first == .refuse else { return false }
            faults.removeFirst()
            return true
        }
    }

    private func record(_ exchange: Exchange) { change { $0.records.append(exchange) } }

    /// What the client gets of the answer; `nil` for a reset.
    private func perform(_ fault: Fault, _ request: [UInt8], _ exchange: inout Exchange) -> [UInt8]? {
        if fault == .dropBefore { return nil }
        if fault == .delayRequest { wait() }
        if fault == .duplicate || fault == .duplicateAndDrop { _ = forward(request, &exchange) }
        guard let answer = forward(request, &exchange) else { return nil }
        if fault == .delayAnswer { wait() }
        switch fault {
        case .dropAfter, .duplicateAndDrop: return nil
        case .cut: return Array(answer.prefix(answer.count / 2))
        default: return answer
        }
    }

    /// Sends a request on a connection of its own; returns the whole answer.
    private func forward(_ request: [UInt8], _ exchange: inout Exchange) -> [UInt8]? {
        guard let server = try? Socket.connected(to: upstream) else { return nil }
        let isWelcome = lock.withLock {
            if !isStopping { sockets.insert(server) }
            return !isStopping
        }
        guard isWelcome else {
            server.close()
            return nil
        }
        defer { close(server) }
        guard server.send(request) else { return nil }
        var reader = HTTPMessageReader(server)
        guard let answer = reader.next(isAnswer: true) else { return nil }
        exchange.answers += 1
        return answer.bytes
    }

    private func wait() {
        let gate = Gate()
        let isHeld = change { proxy in
            if !proxy.isStopping { proxy.held.append(gate) }
            return !proxy.isStopping
        }
        if isHeld { gate.wait() }
    }
}

/// Where one thread waits until it is let through.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }
    func open() { semaphore.signal() }
}
