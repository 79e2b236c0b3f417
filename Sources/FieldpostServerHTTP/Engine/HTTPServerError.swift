import Glibc

/// A reason why a server cannot listen.
///
/// Branch on ``code``. ``message`` is a sentence for an operator, with the remedy.
package struct HTTPServerError: Error, Sendable, CustomStringConvertible {
    package let code: Code
    package let message: String
    /// The `errno` behind ``code``, when the system reported the failure.
    package let systemError: Int32?

    package var description: String { message }

    /// What the caller can act on.
    package struct Code: Hashable, Sendable {
        private enum Wrapped {
            case addressInUse, permissionDenied, addressNotAvailable, invalidHost, stopped, system
        }
        private let wrapped: Wrapped

        /// Another program listens there.
        package static let addressInUse = Code(wrapped: .addressInUse)
        /// This user may not listen there.
        package static let permissionDenied = Code(wrapped: .permissionDenied)
        /// The address is not one of this machine's.
        package static let addressNotAvailable = Code(wrapped: .addressNotAvailable)
        /// The host is neither an IPv4 nor an IPv6 address nor `localhost`.
        package static let invalidHost = Code(wrapped: .invalidHost)
        /// The server was stopped before it listened.
        package static let stopped = Code(wrapped: .stopped)
        /// Anything else; see ``HTTPServerError/systemError``.
        package static let system = Code(wrapped: .system)
    }
}

extension HTTPServerError {
    static func invalidHost(_ host: String) -> HTTPServerError {
        HTTPServerError(
            code: .invalidHost,
            message: "Cannot listen on “\(host)”: give an IPv4 or IPv6 address, or localhost.",
            systemError: nil
        )
    }

    static let stopped = HTTPServerError(
        code: .stopped,
        message: "Cannot listen: the server has been stopped; make a new one.",
        systemError: nil
    )

    /// Names the remedy for a failure of one of the calls that open a listening socket.
    static func listening(on place: String, failed error: Int32) -> HTTPServerError {
        let (code, why): (Code, String) =
            switch error {
            case EADDRINUSE:
                (.addressInUse, "another program listens there; stop it or choose another port.")
            case EACCES, EPERM:
                (.permissionDenied, "not permitted; choose a port above 1023 or grant CAP_NET_BIND_SERVICE.")
            case EADDRNOTAVAIL:
                (
                    .addressNotAvailable,
                    "this machine does not have that address; 0.0.0.0 stands for all it has."
                )
            case EMFILE, ENFILE:
                (.system, "no file descriptor is left; raise the limit (ulimit -n).")
            default:
                (.system, "\(String(cString: strerror(error))).")
            }
        return HTTPServerError(code: code, message: "Cannot listen on \(place): \(why)", systemError: error)
    }
}
