import Glibc

/// One answer.
///
/// `Date`, `Content-Length`, `Transfer-Encoding` and `Connection` belong to the server: given here, they are left out.
/// A control character in a header becomes a space (RFC 9110, 5.5), so that no value can start a header of its own.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: Body

    /// - Parameter status: 200 to 599; interim answers are the server's own.
    package init(status: Int, headers: [(name: String, value: String)] = [], body: Body = .bytes([])) {
        precondition((200...599).contains(status), "An answer's status is between 200 and 599.")
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Where the bytes after the head come from.
    package enum Body: Sendable {
        case bytes([UInt8])
        /// `length` bytes of a file from `offset`; a file that turns out shorter closes the connection.
        case file(HTTPFile, offset: Int, length: Int)
        /// Bytes that the closure writes one after another, in the handler's task.
        ///
        /// When the closure throws, the connection closes without the end mark, so that the client sees a cut answer.
        case stream(_ lifetime: StreamLifetime = .finite, @Sendable (ResponseWriter) async throws -> Void)
    }

    /// What a graceful stop does with a streamed answer.
    package enum StreamLifetime: Sendable {
        /// Lets it finish, as any other request.
        case finite
        /// Cancels its task and ends the answer cleanly: it would never finish, as an event stream.
        case endless
    }
}

/// An open file that an answer sends; closed with the last reference, also when the answer is never sent.
package final class HTTPFile: Sendable {
    package let descriptor: Int32

    /// Takes over an open descriptor.
    package init(takingOver descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}
