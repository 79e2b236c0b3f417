extension Connection {
    /// Bodies up to this size are copied behind their head and leave in one packet train with one call.
    private static let joinedBodySize = 32 * 1024

    /// Runs the handler; an answer that needs no waiting is sent before this returns.
    func startHandler(_ request: HTTPRequest) {
        let service = loop.service
        run { await service.handle(request) }
    }

    /// Sends an answer that needs no handler.
    func startAnswer(_ response: HTTPResponse) {
        if case .stream = response.body {
            run { response }
        } else {
            answer(response, writer: nil)
        }
    }

    private func run(_ respond: @escaping @Sendable () async -> HTTPResponse) {
        guard let exchange else { return }
        let id = exchange.id
        let loop = loop
        let wantsBody = !exchange.isHeadRequest
        // Unstructured because the loop is no task: the exchange owns it and cancels it when the client leaves.
        let task = loop.startTask {
            let response = await respond()
            guard wantsBody, response.allowsBody, case .stream(_, let produce) = response.body else {
                loop.deliver(.answered(id, response, nil))
                return
            }
            let writer = ResponseWriter(highWater: loop.limits.streamHighWater) {
                loop.deliver(.wrote(id, $0))
            }
            loop.deliver(.answered(id, response, writer))
            do {
                try await produce(writer)
                loop.deliver(.finished(id, cut: false))
            } catch {
                loop.deliver(.finished(id, cut: true))
            }
        }
        if self.exchange?.id == id { self.exchange?.task = task } else { task.cancel() }
    }

    /// Sends the head of an answer and, unless a writer follows, its body.
    func answer(_ response: HTTPResponse, writer: ResponseWriter?) {
        guard let exchange, !exchange.isAnswered else {
            writer?.close()
            return
        }
        let framing = response.framing(isVersion10: exchange.isVersion10)
        let closes =
            !exchange.clientKeepsAlive || !exchange.isBodyComplete || loop.isDraining || framing == .close
        self.exchange?.isAnswered = true
        self.exchange?.closes = closes
        self.exchange?.answerFraming = framing
        self.exchange?.writer = writer
        encodeHead(of: response, framing: framing, closes: closes)
        let wantsBody = !exchange.isHeadRequest && response.allowsBody
        switch response.body {
        case .bytes(let bytes) where wantsBody:
            if bytes.count <= Self.joinedBodySize {
                loop.outputBuffer.append(contentsOf: bytes)
                send(loop.outputBuffer)
            } else {
                send(loop.outputBuffer)
                send(bytes)
            }
        case .file(let file, let offset, let length) where wantsBody:
            send(loop.outputBuffer)
            output.append(file, offset: offset, length: length)
            flush()
        case .stream(let lifetime, _) where writer != nil:
            self.exchange?.isEndless = lifetime == .endless
            send(loop.outputBuffer)
            if loop.isDraining { drain() }
            return
        case .bytes, .file, .stream:
            send(loop.outputBuffer)
        }
        finishExchange()
    }

    /// Sends one piece of a streamed answer.
    func write(_ piece: [UInt8]) {
        guard let exchange, let writer = exchange.writer else { return }
        if exchange.answerFraming == .chunked { sendChunk(piece) } else { send(piece) }
        if output.isEmpty {
            writer.sent(piece.count)
        } else {
            self.exchange?.unsentStreamBytes += piece.count
        }
    }

    private func sendChunk(_ piece: [UInt8]) {
        loop.outputBuffer.removeAll(keepingCapacity: true)
        ResponseEncoder.appendChunkStart(size: piece.count, to: &loop.outputBuffer)
        if piece.count <= Self.joinedBodySize {
            loop.outputBuffer.append(contentsOf: piece)
            loop.outputBuffer.append(contentsOf: ResponseEncoder.chunkEnd)
            send(loop.outputBuffer)
        } else {
            send(loop.outputBuffer)
            send(piece)
            send(ResponseEncoder.chunkEnd)
        }
    }

    /// Ends a streamed answer; one cut short closes the connection without its end mark, so that the client notices.
    func finishStream(cut: Bool) {
        guard let exchange else { return }
        if cut, !exchange.isEndedByStop { return close() }
        if exchange.answerFraming == .chunked { send(ResponseEncoder.lastChunk) }
        finishExchange()
    }

    private func finishExchange() {
        guard let ended = exchange else { return }
        exchange = nil
        ended.writer?.close()
        if case .stream(let stream) = ended.sink, !ended.isBodyComplete { stream.abandon() }
        idleSince = loop.now
        if ended.closes || loop.isDraining, case .open = life {
            // A client that asked for the end and sent all it had to has nothing left that could cause a reset.
            let isClean = !ended.clientKeepsAlive && ended.isBodyComplete && unread.isEmpty
            life = .closing(lingers: !isClean)
        }
        proceed()
    }

    /// Answers instead of the handler, and closes.
    func refuse(_ refusal: RequestRefusal) {
        guard case .open = life else { return }
        let ended = exchange
        exchange = nil
        ended?.abandon()
        // Two answers to one request would be worse than none.
        if ended?.isAnswered == true { return close() }
        let response = loop.service.refusal(status: refusal.status, reason: refusal.reason)
        encodeHead(of: response, framing: response.framing(isVersion10: false), closes: true)
        if ended?.isHeadRequest != true, case .bytes(let bytes) = response.body {
            loop.outputBuffer.append(contentsOf: bytes)
        }
        life = .closing(lingers: true)
        send(loop.outputBuffer)
    }

    private func encodeHead(of response: HTTPResponse, framing: ResponseEncoder.Framing, closes: Bool) {
        loop.outputBuffer.removeAll(keepingCapacity: true)
        ResponseEncoder.appendHead(
            of: response,
            framing: framing,
            closes: closes,
            dateLine: loop.dateLine(),
            to: &loop.outputBuffer
        )
    }

    func send(_ bytes: [UInt8]) {
        if case .closed = life { return }
        if output.isEmpty { lastProgress = loop.now }
        switch output.send(bytes, to: descriptor) {
        case .emptied, .blocked, .interrupted: break
        case .failed: close()
        }
    }

    /// Sends what waits, as far as the socket takes it.
    func flush() {
        if case .closed = life { return }
        switch output.flush(to: descriptor) {
        case .emptied:
            if let unsent = exchange?.unsentStreamBytes, unsent > 0 {
                exchange?.unsentStreamBytes = 0
                exchange?.writer?.sent(unsent)
            }
        case .blocked(let progressed):
            if progressed { lastProgress = loop.now }
        case .interrupted:
            lastProgress = loop.now
            loop.revisit(id)
        case .failed: close()
        }
    }
}

extension HTTPResponse {
    /// 204 and 304 end with their head (RFC 9112, 6.3).
    var allowsBody: Bool { status != 204 && status != 304 }

    func framing(isVersion10: Bool) -> ResponseEncoder.Framing {
        guard allowsBody else { return .none }
        return switch body {
        case .bytes(let bytes): .length(bytes.count)
        case .file(_, _, let length): .length(length)
        case .stream: isVersion10 ? .close : .chunked
        }
    }
}
