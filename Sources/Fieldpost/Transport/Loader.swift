internal import FieldpostCore
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One `URLSession` with its traps closed.
///
/// On Linux a session can hang without its own timeouts firing (a 401 that offers Basic), follows redirects with
/// credentials but without the body, and reports most failures alike. So redirects are refused, a watchdog of our own
/// ends what no longer moves, and whatever is not a whole HTTP answer is `unreachable`.
final class Loader: NSObject, Sendable {
    /// Takes the bytes of an answer as they come; `false` leaves them to be gathered.
    typealias Sink = @Sendable (_ head: HTTPAnswer, _ bytes: [UInt8]) throws(ExchangeFailure) -> Bool

    private let stall: Duration
    private let patience: Int
    private let sleep: @Sendable (Duration) async throws -> Void
    private let exchanges = Exchanges()
    private let session: URLSession

    /// - Parameters:
    ///   - stall: how often to look whether a byte has moved.
    ///   - patience: how many looks in a row may find that none has.
    ///   - sleep: waits between looks.
    init(
        stall: Duration,
        patience: Int = 1,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.stall = stall
        self.patience = patience
        self.sleep = sleep
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // The watchdog decides; this is only the last resort, far beyond it.
        configuration.timeoutIntervalForRequest = 300
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    func invalidate() { session.invalidateAndCancel() }

    /// The whole answer, but for what `sink` took.
    func load(_ request: URLRequest, sink: Sink? = nil) async throws(ExchangeFailure) -> HTTPAnswer {
        let task = session.dataTask(with: request)
        let exchange = Exchange(sink: sink)
        exchanges.add(exchange, task.taskIdentifier)
        // The watchdog belongs to this request alone and ends with it.
        let (stall, patience, sleep) = (stall, patience, sleep)
        let watchdog = Task {
            var (seen, idle) = (-1, 0)
            while !exchange.isDone {
                let moved = exchange.moved
                idle = moved == seen ? idle + 1 : 0
                if idle == patience {
                    exchange.finish(.failure(.unreachable("no byte moved for \(stall * patience)")))
                    break
                }
                seen = moved
                try await sleep(stall)
            }
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // One that was cancelled by now is never sent.
                if exchange.wait(continuation) { task.resume() }
            }
        } onCancel: {
            exchange.finish(.failure(.unreachable("the request was cancelled")))
        }
        watchdog.cancel()
        exchanges.remove(task.taskIdentifier)
        // Only what is still running: cancelling a task whose answer is being handled has deadlocked on Linux.
        if task.state == .running { task.cancel() }
        return try result.get()
    }
}

/// One request and what came back so far.
private final class Exchange: @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var continuation: CheckedContinuation<Result<HTTPAnswer, ExchangeFailure>, Never>?
    private var result: Result<HTTPAnswer, ExchangeFailure>?
    private var body: [UInt8] = []
    private var steps = 0
    private let sink: Loader.Sink?

    init(sink: Loader.Sink?) { self.sink = sink }

    var isDone: Bool { lock.withLock { result != nil } }
    /// Grows whenever a byte moves.
    var moved: Int { lock.withLock { steps } }

    func progressed() { lock.withLock { steps += 1 } }

    func append(_ data: Data, of head: HTTPAnswer?) {
        if let sink, let head {
            progressed()
            do throws(ExchangeFailure) {
                if try sink(head, Array(data)) { return }
            } catch {
                return finish(.failure(error))
            }
        }
        let isTooLong = lock.withLock {
            steps += 1
            body.append(contentsOf: data)
            return body.count > WireLimits.pageBytes
        }
        if isTooLong { finish(.failure(.unreachable("the answer is longer than any answer may be"))) }
    }

    func takeBody() -> [UInt8] { lock.withLock { body } }

    /// Answers `continuation` once there is a result; `false` when there is one already.
    func wait(_ continuation: CheckedContinuation<Result<HTTPAnswer, ExchangeFailure>, Never>) -> Bool {
        let early = lock.withLock {
            if result == nil { self.continuation = continuation }
            return result
        }
        if let early { continuation.resume(returning: early) }
        return early == nil
    }

    /// The first result counts.
    func finish(_ result: Result<HTTPAnswer, ExchangeFailure>) {
        let waiting = lock.withLock {
            guard self.result == nil else {
                return CheckedContinuation<Result<HTTPAnswer, ExchangeFailure>, Never>?.none
            }
            self.result = result
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result)
    }
}

/// The session's delegate: hands what arrives to the exchange it belongs to.
private final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var byTask: [Int: Exchange] = [:]

    func add(_ exchange: Exchange, _ task: Int) { lock.withLock { byTask[task] = exchange } }
    func remove(_ task: Int) { lock.withLock { byTask[task] = nil } }
    private func exchange(_ task: URLSessionTask) -> Exchange? {
        lock.withLock { byTask[task.taskIdentifier] }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let head = (dataTask.response as? HTTPURLResponse).map { Self.answer($0, body: []) }
        exchange(dataTask)?.append(data, of: head)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(task)?.progressed()
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    // No password is ever offered: a 401 is an answer like any other.
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let passwords = [
            NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic,
            NSURLAuthenticationMethodHTTPDigest,
        ]
        guard passwords.contains(challenge.protectionSpace.authenticationMethod) else {
            return completionHandler(.performDefaultHandling, nil)
        }
        // On Linux a refused challenge ends the task as cancelled: the answer is taken from here.
        if let response = (challenge.failureResponse ?? task.response) as? HTTPURLResponse {
            exchange(task)?.finish(.success(Self.answer(response, body: [])))
        }
        completionHandler(.rejectProtectionSpace, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = exchange(task) else { return }
        if let error {
            let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? any Error
            exchange.finish(.failure(.unreachable((underlying ?? error).localizedDescription)))
        } else if let response = task.response as? HTTPURLResponse {
            exchange.finish(.success(Self.answer(response, body: exchange.takeBody())))
        } else {
            exchange.finish(.failure(.unreachable("no HTTP answer")))
        }
    }

    private static func answer(_ response: HTTPURLResponse, body: [UInt8]) -> HTTPAnswer {
        var headers: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { headers[name] = value }
        }
        return HTTPAnswer(status: response.statusCode, headers: headers, body: body)
    }
}
