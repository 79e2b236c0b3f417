import Foundation
import Glibc

/// One thread that serves its share of the connections.
///
/// All connections belong to the loop's thread; other threads reach them through ``post(_:)`` with the number of a request, so
/// that a late message finds nobody instead of the next request.
final class EventLoop: @unchecked Sendable {
    // Safe because: everything that changes is touched by the loop's own thread only, from `run()` on; other threads
    // use the inbox and the exit, which have locks, and constants.

    let service: any HTTPService
    let limits: HTTPLimits
    private let clock: HTTPServerClock
    private let handlerStart: HTTPServer.HandlerStart
    private let census: ConnectionCensus
    private let poller: Poller
    private let inbox: LoopInbox
    private let exit = ExitSignal()

    private var listener: Int32
    private var isAccepting = false
    private var thread: pthread_t?
    /// By descriptor, which the kernel keeps small.
    private var connections: [Connection?] = []
    private var connectionCount = 0
    private var lastSerial: UInt32 = 0
    private var revisits: [ConnectionID] = []
    private var nextCheck: ContinuousClock.Instant
    private var stopDeadline: ContinuousClock.Instant?
    private var date: (second: Int, line: [UInt8]) = (-1, [])

    /// Read once for each turn.
    private(set) var now: ContinuousClock.Instant
    /// Shared by all connections, so that an idle one holds no memory.
    let inputBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
    var outputBuffer: [UInt8] = []

    private enum Tag {
        static let inbox: UInt64 = 0
        static let listener: UInt64 = 1
    }

    /// Takes over a listening socket.
    init(
        listener: Int32,
        service: any HTTPService,
        limits: HTTPLimits,
        clock: HTTPServerClock,
        handlerStart: HTTPServer.HandlerStart,
        census: ConnectionCensus
    ) throws(HTTPServerError) {
        self.listener = listener
        self.service = service
        self.limits = limits
        self.clock = clock
        self.handlerStart = handlerStart
        self.census = census
        poller = try Poller()
        inbox = try LoopInbox()
        now = clock.now()
        nextCheck = now + limits.deadlineResolution
    }

    deinit { inputBuffer.deallocate() }

    // MARK: For other threads

    func post(_ message: LoopMessage) { inbox.post(message) }

    /// Posts a message, or handles it at once on the loop's own thread.
    ///
    /// Only for tasks of this loop: they begin after `thread` is set.
    func deliver(_ message: LoopMessage) {
        if let thread, pthread_equal(pthread_self(), thread) != 0 { handle(message) } else { post(message) }
    }

    /// Starts a task as ``HTTPServer/HandlerStart`` says.
    func startTask(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        switch handlerStart {
        case .onLoopThread: Task.immediate { await work() }
        case .onTaskPool: Task { await work() }
        }
    }

    /// Asks the loop to stop and waits until it has.
    func stop(grace: Duration) async {
        post(.stop(grace: grace))
        await exit.wait()
    }

    // MARK: The loop

    var isDraining: Bool { stopDeadline != nil }

    /// Serves until stopped.
    func run() {
        thread = pthread_self()
        blockBrokenPipeSignal()
        _ = poller.watchLevel(inbox.waker, tag: Tag.inbox)
        resumeAccepting()
        while !isDone {
            let count = poller.wait(milliseconds: timeToWait)
            now = clock.now()
            for index in 0..<count { dispatch(poller.report(index)) }
            revisitConnections()
            if now >= nextCheck { checkDeadlines() }
        }
        for connection in connections { connection?.close() }
        inbox.closeForGood()
        exit.signal()
    }

    private var isDone: Bool {
        guard let stopDeadline else { return false }
        return connectionCount == 0 || now >= stopDeadline
    }

    /// `nil` when there is nothing that could become late.
    private var timeToWait: Int32? {
        if !revisits.isEmpty { return 0 }
        if connectionCount == 0, isAccepting { return nil }
        let next = min(nextCheck, stopDeadline ?? nextCheck)
        // Rounded up: waking a moment too early would spin.
        return Int32(clamping: max(0, now.duration(to: next).wholeMilliseconds + 1))
    }

    private func dispatch(_ report: (tag: UInt64, reasons: Poller.Reasons)) {
        switch report.tag {
        case Tag.inbox: for message in inbox.takeAll() { handle(message) }
        case Tag.listener: acceptClients()
        default: connection(ConnectionID(tag: report.tag))?.becameReady(report.reasons)
        }
    }

    private func handle(_ message: LoopMessage) {
        switch message {
        case .answered(let id, let response, let writer):
            if let connection = connection(running: id) {
                connection.answer(response, writer: writer)
            } else {
                writer?.close()
            }
        case .wrote(let id, let piece): connection(running: id)?.write(piece)
        case .finished(let id, let cut): connection(running: id)?.finishStream(cut: cut)
        case .drained(let id): connection(running: id)?.bodyDrained()
        case .stop(let grace): beginStop(grace: grace)
        }
    }

    private func connection(_ id: ConnectionID) -> Connection? {
        let index = Int(id.descriptor)
        guard connections.indices.contains(index), let connection = connections[index], connection.id == id
        else {
            return nil
        }
        return connection
    }

    private func connection(running id: ExchangeID) -> Connection? {
        guard let connection = connection(id.connection), connection.exchange?.id == id else { return nil }
        return connection
    }

    /// Gives a connection with more to read or send another turn after the others.
    func revisit(_ id: ConnectionID) { revisits.append(id) }

    private func revisitConnections() {
        let ids = revisits
        revisits = []
        for id in ids { connection(id)?.takeTurn() }
    }

    private func checkDeadlines() {
        nextCheck = now + limits.deadlineResolution
        for connection in connections { connection?.checkDeadline() }
        // Whatever had run out may be there again.
        if !isAccepting, !isDraining { resumeAccepting() }
    }

    private func beginStop(grace: Duration) {
        if let stopDeadline {
            self.stopDeadline = min(stopDeadline, now + grace)
            return
        }
        stopDeadline = now + grace
        pauseAccepting()
        close(listener)
        for connection in connections { connection?.drain() }
    }

    func dateLine() -> [UInt8] {
        let second = clock.unixTime()
        if second != date.second { date = (second, ResponseEncoder.dateLine(unixTime: second)) }
        return date.line
    }

    /// `sendfile` has no flag against the signal that a closed connection raises, and its default ends the process.
    private func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}

// MARK: - Clients

extension EventLoop {
    /// Clients taken in one turn, so that a flood of new ones does not stop the old ones.
    private static let acceptsPerTurn = 64

    private static let overloaded = Array(
        """
        HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n
        """.utf8
    )

    private func acceptClients() {
        for _ in 0..<Self.acceptsPerTurn {
            switch Poller.accept(from: listener) {
            case .success(let client): admit(client.descriptor, client.peer)
            case .failure(let error) where error.isPassing: continue
            case .failure(let error):
                // A listener that cannot be emptied reports itself for ever: looked at again with the next check.
                if error.code != EAGAIN { pauseAccepting() }
                return
            }
        }
    }

    private func admit(_ descriptor: Int32, _ peer: PeerAddress) {
        guard census.admit(peer.network) else {
            turnAway(descriptor)
            return
        }
        setOptions(descriptor)
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        let id = ConnectionID(descriptor: descriptor, serial: lastSerial)
        guard poller.watchChanges(descriptor, tag: id.tag) else {
            close(descriptor)
            census.release(peer.network)
            return
        }
        while connections.count <= Int(descriptor) { connections.append(nil) }
        connections[Int(descriptor)] = Connection(id: id, peer: peer, loop: self)
        connectionCount += 1
        // The first one after a quiet time: the last check may be long ago.
        if connectionCount == 1 { nextCheck = now + limits.deadlineResolution }
    }

    private func setOptions(_ descriptor: Int32) {
        let seconds = Int32(clamping: max(limits.silentTime.components.seconds, 1))
        for (level, option, value) in [
            (Int32(IPPROTO_TCP), TCP_NODELAY, 1),
            (SOL_SOCKET, SO_KEEPALIVE, 1),
            (Int32(IPPROTO_TCP), TCP_KEEPIDLE, seconds),
            (Int32(IPPROTO_TCP), TCP_KEEPINTVL, max(seconds / 4, 1)),
            (Int32(IPPROTO_TCP), TCP_KEEPCNT, 4),
        ] {
            var value = value
            setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    /// Answers a client that is one too many, at once and without keeping anything.
    private func turnAway(_ descriptor: Int32) {
        _ = send(descriptor, Self.overloaded, Self.overloaded.count, Int32(MSG_NOSIGNAL))
        shutdown(descriptor, Int32(SHUT_WR))
        // What it has sent already would reset the connection, and with it the answer.
        _ = recv(descriptor, inputBuffer.baseAddress, inputBuffer.count, 0)
        close(descriptor)
    }

    /// Closes a connection's descriptor and forgets it.
    func forget(_ connection: Connection) {
        connections[Int(connection.descriptor)] = nil
        connectionCount -= 1
        close(connection.descriptor)
        census.release(connection.peer.network)
    }

    private func pauseAccepting() {
        guard isAccepting else { return }
        isAccepting = false
        poller.unwatch(listener)
    }

    private func resumeAccepting() {
        isAccepting = poller.watchLevel(listener, tag: Tag.listener)
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
