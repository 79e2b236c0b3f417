import Foundation
import Glibc

/// A small HTTP/1.1 server.
///
/// Listens on one address and serves one ``HTTPService`` on one or more threads of its own. It speaks HTTP/1.1 and 1.0 over
/// plain TCP; TLS towards the internet and HTTP/2 belong to a proxy in front. It refuses what two readers of the
/// same bytes could read in two ways, and every resource that a client can use is bounded by ``HTTPLimits``. A client
/// that closes its side while it waits counts as gone, and its handler is cancelled.
///
///     let server = HTTPServer(service: Hello())
///     let address = try server.listen(host: "127.0.0.1", port: 0)
///     server.start()
///     …
///     await server.stop(grace: .seconds(10))
package final class HTTPServer: Sendable {
    /// Where a handler begins.
    package enum HandlerStart: Sendable {
        /// On the loop's thread until it first waits: an answer from memory costs no thread hop.
        case onLoopThread
        /// On Swift's task pool, for handlers that compute long before they wait.
        case onTaskPool
    }

    /// Each case names what leaves it.
    private enum State {
        /// Leaves on ``listen(host:port:)``.
        case new
        /// Clients can connect and wait. Leaves on ``start()`` or ``stop(grace:)``.
        case listening([EventLoop], [ListeningSocket])
        /// Leaves on ``stop(grace:)``.
        case serving([EventLoop])
        /// Never left; the loops are kept for whoever else waits for their end.
        case stopped([EventLoop])

        var isNew: Bool { if case .new = self { true } else { false } }
    }

    private let service: any HTTPService
    private let limits: HTTPLimits
    private let threads: Int
    private let handlerStart: HandlerStart
    private let clock: HTTPServerClock
    private let census: ConnectionCensus
    private let state = Guarded(State.new)

    /// - Parameter threads: Loops, each with a thread; one serves tens of thousands of small requests a second.
    package init(
        service: any HTTPService,
        limits: HTTPLimits = HTTPLimits(),
        threads: Int = 1,
        handlerStart: HandlerStart = .onLoopThread,
        clock: HTTPServerClock = .system
    ) {
        precondition(threads > 0, "A server needs at least one thread.")
        self.service = service
        self.limits = limits
        self.threads = threads
        self.handlerStart = handlerStart
        self.clock = clock
        census = ConnectionCensus(limits: limits)
    }

    deinit {
        // A server that never started still holds its address.
        if case .listening(_, let sockets) = state.withLock({ $0 }) {
            for socket in sockets { close(socket.descriptor) }
        }
    }

    /// Connections that are open now.
    package var connectionCount: Int { census.count }

    /// Takes an address; clients can connect from now on and are served from ``start()`` on.
    ///
    /// - Parameters:
    ///   - host: An IPv4 or IPv6 address, or `localhost`, which means 127.0.0.1.
    ///   - port: 0 takes a free one.
    /// - Returns: The address with the real port.
    package func listen(host: String, port: UInt16) throws(HTTPServerError) -> HTTPServerAddress {
        let sockets = try ListeningSocket.open(host: host, port: port, count: threads)
        do throws(HTTPServerError) {
            var loops: [EventLoop] = []
            for socket in sockets { loops.append(try makeLoop(socket)) }
            try state.withLock { state throws(HTTPServerError) in
                if case .stopped = state { throw .stopped }
                precondition(state.isNew, "A server listens once.")
                state = .listening(loops, sockets)
            }
            return sockets[0].address
        } catch {
            for socket in sockets { close(socket.descriptor) }
            throw error
        }
    }

    private func makeLoop(_ socket: ListeningSocket) throws(HTTPServerError) -> EventLoop {
        try EventLoop(
            listener: socket.descriptor,
            service: service,
            limits: limits,
            clock: clock,
            handlerStart: handlerStart,
            census: census
        )
    }

    /// Begins to serve; without effect when it already does or has stopped.
    package func start() {
        let loops: [EventLoop] = state.withLock { state in
            precondition(!state.isNew, "A server listens before it starts.")
            guard case .listening(let loops, _) = state else { return [] }
            state = .serving(loops)
            return loops
        }
        for (index, loop) in loops.enumerated() {
            let thread = Thread { loop.run() }
            thread.name = "http-\(index)"
            thread.start()
        }
    }

    /// Stops gracefully: accepts nobody, finishes what runs, ends endless streams, and closes what is left after `grace`.
    ///
    /// Returns when all threads have ended; handlers that ignore their cancellation may still run. A second call with a
    /// shorter `grace` hurries the first.
    package func stop(grace: Duration) async {
        let (loops, unused): ([EventLoop], [ListeningSocket]) = state.withLock { state in
            switch state {
            case .new:
                state = .stopped([])
                return ([], [])
            case .listening(_, let sockets):
                state = .stopped([])
                return ([], sockets)
            case .serving(let loops), .stopped(let loops):
                state = .stopped(loops)
                return (loops, [])
            }
        }
        for socket in unused { close(socket.descriptor) }
        await withTaskGroup { group in
            for loop in loops {
                group.addTask { await loop.stop(grace: grace) }
            }
        }
    }

    /// Serves until the task is cancelled, then stops gracefully.
    package func run(grace: Duration) async {
        start()
        let (never, _continuation) = AsyncStream<Never>.makeStream()
        // Nothing ever comes: it ends with the task's cancellation.
        for await _ in never {}
        _continuation.finish()
        await stop(grace: grace)
    }
}
