import Glibc

extension Connection {
    /// Reads before others get a turn: one fast upload must not hold the loop.
    private static let readsPerTurn = 16

    /// Reads and parses until the socket is empty or nothing can be used.
    func readMore() {
        var readsLeft = Self.readsPerTurn
        while isInputReady, wantsInput {
            guard readsLeft > 0 else {
                loop.revisit(id)
                return
            }
            readsLeft -= 1
            let count = recv(descriptor, loop.inputBuffer.baseAddress, loop.inputBuffer.count, 0)
            if count > 0 {
                // A read that does not fill the buffer has emptied the socket; more input brings a new edge. The end of
                // the stream may have been reported already, then only another read shows it.
                if count < loop.inputBuffer.count, !hasPeerClosed { isInputReady = false }
                received(UnsafeRawBufferPointer(rebasing: loop.inputBuffer[..<count]))
            } else if count == 0 {
                close()
            } else if errno == EAGAIN {
                isInputReady = false
            } else if errno != EINTR {
                close()
            }
        }
    }

    private func received(_ input: UnsafeRawBufferPointer) {
        guard case .open = life else { return }
        var offset = 0
        parse(input, &offset)
        if offset < input.count, case .open = life {
            unread = Array(input[offset...])
            unreadStart = 0
        }
    }

    /// Parses what had to wait for an earlier answer or a slow handler.
    ///
    /// Also without bytes: the end of a body comes as an event of its own, after a pause perhaps.
    func parseUnread() {
        guard wantsInput else { return }
        let input = unread
        var offset = unreadStart
        unread = []
        input.withUnsafeBytes { parse($0, &offset) }
        if offset < input.count, case .open = life {
            unread = input
            unreadStart = offset
        }
    }

    private func parse(_ input: UnsafeRawBufferPointer, _ offset: inout Int) {
        isParsing = true
        while wantsInput, let event = parser.next(in: input, at: &offset) {
            switch event {
            case .head(let parsed): headArrived(parsed)
            case .body(let piece): bodyArrived(piece)
            case .end: requestEnded()
            case .refused(let refusal): refuse(refusal)
            }
        }
        isParsing = false
        if exchange == nil, headSince == nil, parser.isInsideHead { headSince = loop.now }
    }

    private func headArrived(_ parsed: ParsedHead) {
        var parsed = parsed
        parsed.head.remoteAddress = peer.text
        headSince = nil
        lastNumber += 1
        let id = ExchangeID(connection: self.id, number: lastNumber)
        switch loop.service.plan(parsed.head) {
        case .collect(let max):
            exchange = Exchange(id: id, parsed: parsed, sink: .collect(max: max), now: loop.now)
            if case .length(let count) = parsed.framing {
                guard count <= max else { return refuseTooLarge() }
                // Not all of it: a client that announces much has not sent it yet.
                exchange?.body.reserveCapacity(min(count, 64 * 1024))
            }
            continueIfExpected(parsed)
        case .stream(let highWater):
            let loop = loop
            let stream = BodyStream(highWater: highWater) { loop.post(.drained(id)) }
            exchange = Exchange(id: id, parsed: parsed, sink: .stream(stream), now: loop.now)
            continueIfExpected(parsed)
            startHandler(HTTPRequest(head: parsed.head, stream: stream))
        case .reject(let response):
            exchange = Exchange(id: id, parsed: parsed, sink: .reject(response), now: loop.now)
            // Without a body the request is complete with the next event, and the connection can go on.
            if parsed.framing != .none { startAnswer(response) }
        }
    }

    private func continueIfExpected(_ parsed: ParsedHead) {
        if parsed.expectsContinue, parsed.framing != .none { send(ResponseEncoder.continueHead) }
    }

    private func bodyArrived(_ piece: UnsafeRawBufferPointer) {
        // Not copied out as a whole: a second reference to the body would copy it with each piece.
        guard let sink = exchange?.sink else { return }
        exchange?.bodyReceived += piece.count
        switch sink {
        case .collect(let max):
            if exchange?.bodyReceived ?? 0 > max { return refuseTooLarge() }
            exchange?.body.append(contentsOf: piece)
        case .stream(let stream):
            if !stream.append(Array(piece)) { exchange?.pausedAt = loop.now }
        case .reject: break
        }
    }

    private func requestEnded() {
        exchange?.isBodyComplete = true
        guard let exchange else { return }
        switch exchange.sink {
        case .collect:
            guard let head = self.exchange?.head else { return }
            let body = exchange.body
            self.exchange?.head = nil
            self.exchange?.body = []
            startHandler(HTTPRequest(head: head, body: body))
        case .stream(let stream): stream.finish()
        case .reject(let response): if !exchange.isAnswered { startAnswer(response) }
        }
    }

    /// The handler has made room.
    func bodyDrained() {
        guard let pausedAt = exchange?.pausedAt else { return }
        exchange?.pausedAt = nil
        // The time in which the handler was slow is not the client's.
        exchange?.bodySince += pausedAt.duration(to: loop.now)
        proceed()
    }

    private func refuseTooLarge() {
        refuse(RequestRefusal(status: 413, reason: "The request body is too large."))
    }
}
