import Glibc

/// One client's connection: its parser, the request that runs, and what waits to be sent.
///
/// Used on its loop's thread only. One request runs at a time: the next is not even parsed before the answer to the last has
/// left, so that a client that sends without reading costs no more than one answer. The rules are elsewhere: how
/// requests are read in ``RequestParser``, how long one may wait in ``Waiting``.
final class Connection {
    /// Each case names what leaves it.
    enum Life {
        /// Serving. Leaves when an answer announces the end, or on a failure.
        case open
        /// Sending the last answer. Leaves when the socket has taken it.
        case closing(lingers: Bool)
        /// Our side is closed and input is thrown away. Leaves when the client closes, or in time.
        case lingering(since: ContinuousClock.Instant)
        /// The descriptor is gone; never left.
        case closed
    }

    let id: ConnectionID
    let peer: PeerAddress
    unowned let loop: EventLoop

    var life = Life.open
    var parser: RequestParser
    /// Bytes read that belong to later requests, from `unreadStart` on.
    var unread: [UInt8] = []
    var unreadStart = 0
    /// Whether the socket may have input: its edge came and has not been used up.
    var isInputReady = false
    var isParsing = false
    var hasPeerClosed = false

    var output = OutputQueue()
    var exchange: Exchange?
    var lastNumber: UInt64 = 0

    var idleSince: ContinuousClock.Instant
    var headSince: ContinuousClock.Instant?
    /// When the client last took a byte of what waits.
    var lastProgress: ContinuousClock.Instant

    var descriptor: Int32 { id.descriptor }

    init(id: ConnectionID, peer: PeerAddress, loop: EventLoop) {
        self.id = id
        self.peer = peer
        self.loop = loop
        parser = RequestParser(limits: loop.limits)
        idleSince = loop.now
        lastProgress = loop.now
    }

    /// Deals with what the kernel reports.
    func becameReady(_ reasons: Poller.Reasons) {
        if reasons.contains(.broken) {
            close()
            return
        }
        if reasons.contains(.writable), !output.isEmpty { flush() }
        if reasons.contains(.peerClosed) { hasPeerClosed = true }
        if !reasons.isDisjoint(with: [.readable, .peerClosed]) { isInputReady = true }
        proceed()
    }

    /// Goes on after others had their turn.
    func takeTurn() {
        if !output.isEmpty { flush() }
        proceed()
    }

    /// Does what is possible now: reads on, parses on, closes.
    func proceed() {
        guard !isParsing else { return }
        parseUnread()
        readMore()
        settle()
    }

    private func settle() {
        switch life {
        case .closing(let lingers) where output.isEmpty:
            if lingers { linger() } else { close() }
        case .open where hasPeerClosed && exchange != nil && !wantsInput:
            // A client that closes its side while it waits for an answer has left: it looks the same as one that has, and
            // a handler must not work on for nobody.
            close()
        case .open where loop.isDraining && isIdle: close()
        case .open, .closing, .lingering, .closed: break
        }
    }

    /// Whether nothing of a request has come and nothing is left to send.
    private var isIdle: Bool { exchange == nil && headSince == nil && output.isEmpty && unread.isEmpty }

    /// Whether input can be used now.
    var wantsInput: Bool {
        switch life {
        case .open:
            guard let exchange else { return output.isEmpty }
            return !exchange.isBodyComplete && exchange.pausedAt == nil
        case .lingering: return true
        case .closing, .closed: return false
        }
    }

    /// What decides how long this connection may take.
    var waiting: Waiting {
        if case .lingering(let since) = life { return .goodbye(since: since) }
        if !output.isEmpty { return .reader(since: lastProgress) }
        guard let exchange else { return headSince.map(Waiting.head) ?? .request(since: idleSince) }
        if exchange.isBodyComplete || exchange.pausedAt != nil { return .handler }
        return .body(since: exchange.bodySince, received: exchange.bodyReceived)
    }

    /// Ends the connection when it is late.
    func checkDeadline() {
        switch waiting.verdict(at: loop.now, loop.limits) {
        case .onTime: break
        case .close: close()
        case .answerTimeout:
            refuse(RequestRefusal(status: 408, reason: "The request did not arrive in time."))
            proceed()
        }
    }

    /// Begins a graceful stop.
    func drain() {
        if exchange?.isEndless == true {
            exchange?.isEndedByStop = true
            exchange?.task?.cancel()
        }
        proceed()
    }

    /// Closes our side first, so that the client can read the answer: closing with unread input resets the connection.
    private func linger() {
        shutdown(descriptor, Int32(SHUT_WR))
        life = .lingering(since: loop.now)
        unread = []
        isInputReady = true
        readMore()
    }

    func close() {
        if case .closed = life { return }
        life = .closed
        exchange?.abandon()
        exchange = nil
        output = OutputQueue()
        unread = []
        loop.forget(self)
    }
}
