internal import FieldpostCore
internal import FieldpostGzip
internal import Foundation

/// One row that a CSV holds.
struct ImportRow: Sendable {
    let line: Int
    let values: [Value]
}

/// Reads a CSV file, plain or gzip, as batches of rows.
final class ImportFile {
    /// Rows in one transaction.
    static let rowsPerBatch = 500
    /// Bytes of values after which a batch is full early: a transaction may hold 4 MiB of changes.
    static let bytesPerBatch = 1 << 20
    /// Small, since gzip may unpack each piece to a thousand times its size.
    private static let piece = 16 << 10

    private let descriptor: Int32
    private let size: Int64
    private var consumed: Int64 = 0
    private var gzip: GzipReader?
    private var isAtEnd = false
    private let rows: RowCollector
    private let parser: CSVParser
    private var failure: (any Error)?

    /// Opens the file at `path` for rows of `table`.
    init(path: String, table: Table) throws {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(
                "missing",
                "There is no file \(path) that can be read; check the path.",
                exit: .missingFile
            )
        }
        var status = stat()
        fstat(descriptor, &status)
        if status.st_mode & S_IFMT == S_IFDIR {
            close(descriptor)
            throw Failure("missing", "\(path) is a folder; give a CSV file.", exit: .missingFile)
        }
        size = Int64(status.st_size)
        let rows = RowCollector(table)
        self.rows = rows
        parser = CSVParser { try rows.take($0) }
    }

    deinit { close(descriptor) }

    /// How much of the file was read, from 0 to 1.
    var progress: Double { size > 0 ? Double(consumed) / Double(size) : 1 }

    /// The columns that the header names, once a batch was read.
    var reader: FieldReader? { rows.reader }

    /// The next rows, a whole batch but at the end; empty after it.
    ///
    /// - Throws: What is wrong with a row of this batch; the batches before it were returned.
    func nextBatch() throws -> [ImportRow] {
        while !rows.hasBatch, !isAtEnd, failure == nil {
            do { try readPiece() } catch { failure = error }
        }
        if !rows.hasBatch, let failure { throw failure }
        return rows.nextBatch()
    }

    private func readPiece() throws {
        let isFirst = consumed == 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.piece) { space, count in
            count = max(0, read(descriptor, space.baseAddress, Self.piece))
        }
        consumed += Int64(bytes.count)
        if isFirst, bytes.starts(with: [0x1F, 0x8B]) { gzip = GzipReader() }
        if bytes.isEmpty {
            isAtEnd = true
            try gzip?.finish()
            try parser.finish()
            if rows.reader == nil {
                throw CSVError(line: 1, message: "the file is empty; begin it with the columns' names")
            }
        } else if let gzip {
            try gzip.feed(bytes) { try parser.feed($0) }
        } else {
            try parser.feed(bytes[...])
        }
    }
}

/// Turns records into rows and cuts those into batches.
private final class RowCollector {
    private let table: Table
    private(set) var reader: FieldReader?
    private var batches: [[ImportRow]] = []
    private var current: [ImportRow] = []
    private var bytes = 0

    init(_ table: Table) { self.table = table }

    var hasBatch: Bool { !batches.isEmpty }

    func take(_ record: CSVRecord) throws {
        guard let reader else { return reader = try FieldReader(record, table) }
        current.append(ImportRow(line: record.line, values: try reader.values(record)))
        for index in 0..<record.count { bytes += record[index].count }
        if current.count >= ImportFile.rowsPerBatch || bytes >= ImportFile.bytesPerBatch { cut() }
    }

    private func cut() {
        batches.append(current)
        current.removeAll(keepingCapacity: true)
        bytes = 0
    }

    func nextBatch() -> [ImportRow] {
        if batches.isEmpty { cut() }
        return batches.removeFirst()
    }
}
