public import FieldpostCore

/// Why a request brought no answer that counts.
///
/// None of these says anything about an operation, but for ``serverError(_:)``, ``tooLarge`` and ``invalid(_:)``, which may
/// be the fault of something in the request.
public enum ExchangeFailure: Error, Equatable, Sendable {
    /// The network: no connection, a cut, a portal, an answer that is not ours or not whole.
    case unreachable(String)
    /// The server is struggling, or asks to come back later, in seconds.
    case busy(retryAfterSeconds: Int?)
    /// The server failed; something in the request may be the cause.
    case serverError(Int)
    /// The token is missing, unknown or expired.
    case unauthenticated
    /// The token belongs to another account than the file.
    case otherAccount
    /// The credential may not do this.
    case forbidden(String)
    /// The same request is being worked on.
    case inProgress
    /// The server knows another history of this device.
    case deviceReset
    /// The request is too large.
    case tooLarge
    /// The server cannot read the request.
    case invalid(Problem)
    /// The address is not a Fieldpost server's.
    case misconfigured(String)
    /// The server speaks a newer protocol.
    case needsUpgrade
    /// The server's schema is older than the app's.
    case serverBehind
    /// The cursor is no longer honoured.
    case resyncRequired
}
