/// Commands that were read and wait for their turn; a reader that is far ahead waits for the worker.
actor CommandQueue<Element: Sendable> {
    /// How far reading may be ahead: far enough for any `network` line behind a `sync`, and bounded.
    private let limit: Int
    private var elements: [Element] = []
    private var isEnded = false
    private var taker: CheckedContinuation<Element?, Never>?
    private var putter: CheckedContinuation<Void, Never>?

    init(limit: Int = 1_000) { self.limit = limit }

    /// Adds an element, once there is room; for one task at a time.
    func put(_ element: Element) async {
        if elements.count >= limit { await withCheckedContinuation { putter = $0 } }
        if let taker {
            self.taker = nil
            taker.resume(returning: element)
        } else {
            elements.append(element)
        }
    }

    /// Says that nothing more comes.
    func end() {
        isEnded = true
        taker?.resume(returning: nil)
        taker = nil
    }

    /// The next element, or `nil` after the last; for one task at a time.
    func take() async -> Element? {
        putter?.resume()
        putter = nil
        if !elements.isEmpty { return elements.removeFirst() }
        if isEnded { return nil }
        return await withCheckedContinuation { taker = $0 }
    }
}
