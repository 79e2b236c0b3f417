/// What the program tells its caller when it ends.
package struct ExitCode: Equatable, Sendable {
    package let code: Int32

    /// Everything was done.
    package static let done = ExitCode(code: 0)
    /// Work remains, also for want of a network.
    package static let workRemains = ExitCode(code: 3)
    /// A person has to decide, sign in or correct something.
    package static let personNeeded = ExitCode(code: 4)
    /// The command line is not understood.
    package static let usage = ExitCode(code: 64)
    /// A schema, a CSV, JSON or the version of a store is not usable.
    package static let badData = ExitCode(code: 65)
    /// A file is missing.
    package static let missingFile = ExitCode(code: 66)
    /// An address is taken, or a store is unusable.
    package static let unavailable = ExitCode(code: 69)
    /// A fault in this program.
    package static let bug = ExitCode(code: 70)
    /// Another program holds a lock.
    package static let locked = ExitCode(code: 75)
}
