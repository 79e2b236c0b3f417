import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct BackoffTests {
    private func delays(_ jitter: Backoff.Jitter, failures: Int) -> [Int64] {
        var backoff = Backoff()
        backoff.jitter = jitter
        var random = SeededRandom(seed: 3)
        return (0..<500).map { _ in backoff.delay(failures: failures, using: &random) }
    }

    @Test(
        arguments: [
            (1, 1_000), (2, 2_000), (3, 4_000), (9, 256_000), (10, 300_000), (40, 300_000),
            (Int.max, 300_000),
        ] as [(Int, Int64)]
    )
    func `without jitter a delay doubles up to the cap`(_ failures: Int, _ expected: Int64) {
        #expect(Set(delays(.none, failures: failures)) == [expected])
    }

    @Test func `full jitter spreads over the whole delay`() {
        let delays = delays(.full, failures: 4)

        #expect(delays.allSatisfy { (0...8_000).contains($0) })
        #expect(delays.min()! < 800 && delays.max()! > 7_200)
    }

    @Test func `equal jitter spreads over the upper half`() {
        let delays = delays(.equal, failures: 4)

        #expect(delays.allSatisfy { (4_000...8_000).contains($0) })
        #expect(delays.min()! < 4_400 && delays.max()! > 7_600)
    }

    @Test(arguments: [-5, 0, 1, 63, 64, .max])
    func `no count of failures and no setting makes it trap`(_ failures: Int) {
        var random = SeededRandom(seed: 3)
        for (base, cap) in [(Int64.max, Int64.max), (-1, -1), (0, 0), (1_000, -7), (.min, .min)] {
            for jitter in [Backoff.Jitter.full, .equal, .none] {
                var backoff = Backoff()
                (backoff.baseMilliseconds, backoff.capMilliseconds, backoff.jitter) = (base, cap, jitter)
                #expect(backoff.delay(failures: failures, using: &random) >= 0)
            }
        }
    }
}
