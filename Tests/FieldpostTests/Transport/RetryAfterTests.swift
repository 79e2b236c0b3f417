import FieldpostCore
import Testing

@testable import Fieldpost

@Suite struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT.
    private let now = Timestamp(milliseconds: 784_111_777_000)

    @Test(arguments: [
        ("0", 0), ("120", 120), ("86400", 86_400), ("99999999", 86_400), ("99999999999999999999", 86_400),
    ])
    func `seconds count as they are, up to a day`(_ header: String, _ expected: Int) {
        #expect(RetryAfter.seconds(header, now: now) == expected)
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0), ("Mon, 07 Nov 1994 00:00:00 GMT", 54_623),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 86_400),
    ])
    func `a date counts from now, never backwards`(_ header: String, _ expected: Int) {
        #expect(RetryAfter.seconds(header, now: now) == expected)
    }

    @Test func `a moment within a second is waited for whole`() {
        let late = Timestamp(milliseconds: 784_111_777_001)

        #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:38 GMT", now: late) == 1)
    }

    @Test(arguments: [
        "", "soon", "-1", "1.5", "+5", "06 Nov 1994", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 9223372036854775807 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 9223372036854775807 08:49:37 GMT", "Sun, 06 Nov 1994 9223372036854775807:49:37 GMT",
        "Sun, 06 Nov -9223372036854775808 08:49:37 GMT", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
    ])
    func `garbage means nothing and traps nothing`(_ header: String) {
        #expect(RetryAfter.seconds(header, now: now) == nil)
    }
}
