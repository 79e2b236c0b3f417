/// Names one connection for its whole life, also after its descriptor is used again.
struct ConnectionID: Hashable, Sendable {
    let descriptor: Int32
    let serial: UInt32

    init(descriptor: Int32, serial: UInt32) {
        self.descriptor = descriptor
        self.serial = serial
    }

    /// The form in which the kernel hands it back; never below 2³², as serials begin at 1.
    var tag: UInt64 { UInt64(serial) << 32 | UInt64(UInt32(bitPattern: descriptor)) }

    init(tag: UInt64) {
        descriptor = Int32(truncatingIfNeeded: tag)
        serial = UInt32(truncatingIfNeeded: tag >> 32)
    }
}

/// Names one request, so that an answer that comes too late finds nobody.
struct ExchangeID: Hashable, Sendable {
    let connection: ConnectionID
    let number: UInt64
}

/// One request and its answer, from the end of its head until its answer is handed to the socket.
struct Exchange {
    /// Where the body goes.
    enum Sink {
        case collect(max: Int)
        case stream(BodyStream)
        /// Nowhere: this is the answer, whatever it says.
        case reject(HTTPResponse)
    }

    let id: ExchangeID
    /// Until the handler has it.
    var head: HTTPRequestHead?
    let isHeadRequest: Bool
    let isVersion10: Bool
    let clientKeepsAlive: Bool
    let sink: Sink

    var body: [UInt8] = []
    var bodyReceived = 0
    var bodySince: ContinuousClock.Instant
    /// When reading was paused because the handler is slow.
    var pausedAt: ContinuousClock.Instant?
    var isBodyComplete = false

    var task: Task<Void, Never>?
    /// Whether the head of the answer has gone out.
    var isAnswered = false
    /// Whether the answer says that the connection closes after it.
    var closes = false
    var writer: ResponseWriter?
    var answerFraming = ResponseEncoder.Framing.none
    /// Bytes of the streamed answer that the writer counts as queued.
    var unsentStreamBytes = 0
    var isEndless = false
    /// Whether a graceful stop ended the stream, so that its error is no failure.
    var isEndedByStop = false

    init(id: ExchangeID, parsed: ParsedHead, sink: Sink, now: ContinuousClock.Instant) {
        self.id = id
        head = parsed.head
        isHeadRequest = parsed.head.method == "HEAD"
        isVersion10 = parsed.isVersion10
        clientKeepsAlive = parsed.keepsAlive
        self.sink = sink
        bodySince = now
    }

    /// Ends what still runs for it: nobody waits for the answer any more.
    func abandon() {
        task?.cancel()
        writer?.close()
        if case .stream(let stream) = sink { stream.abandon() }
    }
}
