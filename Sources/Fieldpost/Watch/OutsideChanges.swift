internal import Dispatch
internal import Foundation

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// Notices that something wrote a database file: another process, or another connection of this one.
///
/// The system reports writes to the log; a slow timer is there only for file systems that report nothing. What was
/// written is not known here: the store asks SQLite whether it was somebody else.
///
/// The report comes when a commit's pages are written, and the commit counts only after that, with a flush between them
/// and no further report. So after each report SQLite is asked several times, with growing pauses, and never more often
/// than the first pause allows.
final class OutsideChanges: Sendable {
    /// How often to look where the system reports nothing.
    static let backstop = Duration.seconds(30)
    /// Pauses after a report: a flush takes from 50 µs to a second.
    static let pauses: [Duration] = [
        .milliseconds(2), .milliseconds(10), .milliseconds(50), .milliseconds(250), .seconds(1),
    ]

    private struct State {
        var wasReported = false
        var isStopped = false
        var chase: Task<Void, Never>?
    }

    private let state = Locked(State())
    private let source = Locked<FileEvents?>(nil)
    private let timer = Locked<Task<Void, Never>?>(nil)
    private let sleep: @Sendable (Duration) async throws -> Void
    private let check: @Sendable () async -> Bool

    /// - Parameters:
    ///   - log: the path of the write-ahead log.
    ///   - sleep: waits between looks.
    ///   - check: asks whether somebody else has written since the last time.
    init(
        log: String,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        check: @escaping @Sendable () async -> Bool
    ) {
        self.sleep = sleep
        self.check = check
        let events = FileEvents(path: log) { [weak self] in self?.report() }
        source.withLock { $0 = events }
        // Unstructured, since it lives as long as something is watched, whoever watches.
        let task = Task { [weak self] in
            while (try? await sleep(Self.backstop)) != nil { self?.report() }
        }
        timer.withLock { $0 = task }
    }

    func stop() {
        source.withLock { $0 }?.stop()
        timer.withLock { $0 }?.cancel()
        state.withLock { state in
            state.isStopped = true
            return state.chase
        }?.cancel()
    }

    private func report() {
        state.withLock { state in
            state.wasReported = true
            if state.isStopped || state.chase != nil { return }
            // Unstructured, since a file event has no task that it belongs to.
            state.chase = Task { await chase() }
        }
    }

    private func chase() async {
        var pauses = Self.pauses[...]
        while true {
            state.withLock { $0.wasReported = false }
            let found = await check()
            let isOver = state.withLock { state in
                if state.wasReported { return false }
                guard found || pauses.isEmpty else { return false }
                state.chase = nil
                return true
            }
            if isOver { return }
            if state.withLock({ $0.wasReported }) { pauses = Self.pauses[...] }
            guard (try? await sleep(pauses.popFirst() ?? Self.pauses[0])) != nil else {
                state.withLock { $0.chase = nil }
                return
            }
        }
    }
}

/// The system's events for one file.
private final class FileEvents: @unchecked Sendable {
    // Safe because: dispatch sources may be used from any thread, and the descriptors are only closed by the source's own
    // cancel handler.
    private let source: any DispatchSourceProtocol

    #if os(Linux) || os(Android)
        init?(path: String, onWrite: @escaping @Sendable () -> Void) {
            let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
            guard descriptor >= 0 else { return nil }
            guard inotify_add_watch(descriptor, path, UInt32(IN_MODIFY)) >= 0 else {
                close(descriptor)
                return nil
            }
            let source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor,
                queue: DispatchQueue(label: "fieldpost.outside")
            )
            source.setEventHandler {
                var buffer = [UInt8](repeating: 0, count: 4096)
                while read(descriptor, &buffer, buffer.count) > 0 {}
                onWrite()
            }
            source.setCancelHandler { close(descriptor) }
            source.resume()
            self.source = source
        }
    #else
        init?(path: String, onWrite: @escaping @Sendable () -> Void) {
            let descriptor = open(path, O_EVTONLY)
            guard descriptor >= 0 else { return nil }
            let source = DispatchSource.makeFileSystemObjectSource(
                fileDescriptor: descriptor,
                eventMask: [.write, .extend],
                queue: DispatchQueue(label: "fieldpost.outside")
            )
            source.setEventHandler(handler: onWrite)
            source.setCancelHandler { close(descriptor) }
            source.resume()
            self.source = source
        }
    #endif

    func stop() { source.cancel() }
}
