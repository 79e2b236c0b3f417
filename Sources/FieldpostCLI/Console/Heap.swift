internal import Foundation

/// The C heap's habits, which belong to the process and so to its main.
enum Heap {
    /// Keeps freed memory instead of giving it back at once.
    ///
    /// SQLite allocates and frees a few hundred kilobytes for each row that fires a trigger. glibc returns the top of a
    /// heap to the system above 128 KiB, so each row would cost a system call and the page faults of getting it back:
    /// a fourth of the time of an import.
    static func keepFreedMemory() {
        #if canImport(Glibc)
            // <malloc.h> is not in Swift's module map of glibc.
            guard let symbol = dlsym(nil, "mallopt") else { return }
            typealias Mallopt = @convention(c) (Int32, Int32) -> Int32
            let mallopt = unsafeBitCast(symbol, to: Mallopt.self)
            let trimThreshold: Int32 = -1
            _ = mallopt(trimThreshold, 16 << 20)
        #endif
    }
}
