internal import Dispatch

/// Runs an actor's jobs on one dispatch queue.
///
/// SQLite calls block, and a thread of the cooperative pool must not.
package final class SerialQueueExecutor: SerialExecutor {
    private let queue: DispatchQueue

    /// Creates an executor whose queue shows as `label` in debuggers.
    package init(label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
