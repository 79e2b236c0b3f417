import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct ScheduleTests {
    let device: Device
    let schedule: Schedule

    init() throws {
        device = try Device()
        schedule = Schedule(device.db)
    }

    private var steady: Backoff {
        var backoff = Backoff()
        backoff.jitter = .none
        return backoff
    }

    private func due() throws -> Int64 { try schedule.due(now: device.now) - device.now.milliseconds }

    @Test func `each failure waits longer, and a success ends it`() throws {
        var waits: [Int64] = []
        for _ in 0..<3 {
            try schedule.failed(steady, now: device.now, random: &device.random)
            waits.append(try due())
        }

        try schedule.succeeded()

        #expect(waits == [1_000, 2_000, 4_000])
        #expect(try schedule.due(now: device.now) == 0)
    }

    @Test func `a Retry-After longer than the cap is honoured`() throws {
        try schedule.failed(steady, atLeast: 3_600, now: device.now, random: &device.random)

        #expect(try due() == 3_600_000)
    }

    @Test func `a clock set back does not stall the work, and one set forward does not stampede it`() throws {
        try schedule.failed(steady, now: device.now, random: &device.random)

        device.advance(-86_400_000)
        let back = try due()
        device.advance(2 * 86_400_000)
        let forward = try due()

        #expect(back == 1_000)
        #expect(forward <= 0)
    }

    @Test func `after the clock was set back, the delay passes once, however often it is asked for`() throws {
        try schedule.failed(steady, now: device.now, random: &device.random)
        device.advance(-86_400_000)

        var waits: [Int64] = []
        for _ in 0..<3 {
            waits.append(try due())
            device.advance(500)
        }

        #expect(waits == [1_000, 500, 0])
    }

    @Test func `a reset makes everything due`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.push(OperationResult.retry(50_000))
        try schedule.failed(steady, now: device.now, random: &device.random)

        try schedule.reset()

        #expect(try schedule.due(now: device.now) == 0)
        #expect(try device.plan()?.entries.count == 1)
    }

    @Test func `the delay outlives a restart`() throws {
        try schedule.failed(steady, now: device.now, random: &device.random)

        try device.reopen()

        #expect(try Schedule(device.db).due(now: device.now) == device.now.milliseconds + 1_000)
    }
}
