/// Every bound of the server, each with its reason.
package struct HTTPLimits: Sendable {
    /// Bytes of a request head: twice what browsers and proxies send, and what nginx allows a head by default per buffer.
    package var headBytes = 16 * 1024
    /// Header lines: with the bytes bounded, this bounds the allocations.
    package var headerCount = 100
    /// From the first byte of a head to its last; a head fits in a few packets, so 10 s is a bad radio link.
    package var headTime: Duration = .seconds(10)
    /// Time before a body must keep up ``bodyBytesPerSecond``, for links that start slowly.
    package var bodyGrace: Duration = .seconds(10)
    /// The slowest average upload: below 1 KiB/s a client holds a connection without using it.
    package var bodyBytesPerSecond = 1024
    /// How long a client may take no byte of an answer that waits for it: longer than a change of radio cell.
    package var writeStall: Duration = .seconds(30)
    /// How long a connection may stay open between requests: below the 75 s after which common proxies reuse blindly.
    package var idleTime: Duration = .seconds(60)
    /// How long unread input is thrown away after an early answer, so that the client can read that answer:
    /// closing at once would reset the connection, and a reset destroys the answer on its way.
    package var lingerTime: Duration = .seconds(5)
    /// How often deadlines are looked at; a deadline may be late by this much.
    package var deadlineResolution: Duration = .milliseconds(500)
    /// Silence after which the kernel asks whether the client is still there, and asks again each quarter of it, four
    /// times: a phone that lost its network says nothing, and an event stream would wait for it for ever.
    package var silentTime: Duration = .seconds(60)
    /// Open connections of the whole server, at 1 KiB for an idle one and 6 KiB for an event stream; others get a 503.
    package var connections = 10_000
    /// Open connections of one IPv4 address or one IPv6 /64 network: an office behind one address has hundreds.
    package var connectionsPerAddress = 1_000
    /// Bytes of a streamed answer that wait for the client before its writer has to wait.
    package var streamHighWater = 256 * 1024

    package init() {}
}
