extension Merge {
    /// What two operations come to, of which the second follows the first on the same row and neither was ever sent.
    package enum Coalesced: Equatable, Sendable {
        /// Nothing is left to send.
        case nothing
        /// One operation in the place of both.
        case one(Operation.Action, Change)
        /// They stay two.
        case apart
    }

    /// Coalesces two operations.
    ///
    /// - Parameters:
    ///   - first: the earlier one's action and change.
    ///   - second: the later one's.
    ///   - base: the row as the server last knew it, which a row that was deleted and created again is compared with.
    ///   - table: the row's table.
    /// - Returns: what, applied to whatever row the server has by then, ends as both would; but a row deleted and created
    ///   again is an update of what differs from `base`.
    package static func coalesce(
        _ first: (action: Operation.Action, change: Change),
        _ second: (action: Operation.Action, change: Change),
        base: JSONObject?,
        table: Table
    ) -> Coalesced {
        switch (first.action, second.action) {
        case (.create, .update): return updatedCreate(first.change, second.change)
        case (.create, .delete): return .nothing
        case (.update, .update):
            guard let change = first.change.followed(by: second.change) else { return .apart }
            return change.json.isEmpty ? .nothing : .one(.update, change)
        case (.update, .delete): return .one(.delete, Change())
        case (.delete, .create):
            guard let base, let change = Change(from: base, to: second.change.set, table) else {
                return .apart
            }
            return change.json.isEmpty ? .nothing : .one(.update, change)
        default: return .apart
        }
    }

    private static func updatedCreate(_ first: Change, _ second: Change) -> Coalesced {
        for member in second.inc.members where first.set[member.name]?.integer == nil { return .apart }
        for member in second.inc.members {
            let (then, by) = (first.set[member.name]?.integer ?? 0, member.value.integer ?? 0)
            if then.addingReportingOverflow(by).overflow { return .apart }
        }
        return .one(.create, Change(set: changed(first.set, by: second)))
    }
}

extension Change {
    /// The one change that does what this and then `later` does; `nil` where there is none.
    fileprivate func followed(by later: Change) -> Change? {
        var change = self
        for member in later.set.members { change.set[member.name] = member.value }
        for member in later.inc.members {
            let (sum, overflow) = (inc[member.name]?.integer ?? 0)
                .addingReportingOverflow(member.value.integer ?? 0)
            if overflow { return nil }
            change.inc[member.name] = sum == 0 ? nil : .integer(sum)
        }
        for name in Set(later.add.names + later.remove.names).sorted(by: utf8Less) {
            let (added, removed) = (later.add[name]?.array ?? [], later.remove[name]?.array ?? [])
            guard var adds = try? SetValue(add[name] ?? []), var removes = try? SetValue(remove[name] ?? [])
            else { return nil }
            adds.remove(removed)
            removes.remove(added)
            guard (try? adds.add(added)) != nil,
                (try? removes.add(removed.filter { !added.contains($0) })) != nil
            else { return nil }
            change.add[name] = adds.elements.isEmpty ? nil : .array(adds.elements)
            change.remove[name] = removes.elements.isEmpty ? nil : .array(removes.elements)
        }
        return change
    }

    /// What makes one row another, each column by its rule; `nil` where a difference does not fit.
    fileprivate init?(from old: JSONObject, to new: JSONObject, _ table: Table) {
        self.init()
        for column in table.columns where column.name != table.key {
            let name = column.name
            guard let value = new[name], value != old[name] else { continue }
            switch table.rule(for: name) {
            case .counter:
                let (difference, overflow) = (value.integer ?? 0)
                    .subtractingReportingOverflow(old[name]?.integer ?? 0)
                if overflow { return nil }
                inc[name] = .integer(difference)
            case .set:
                let (then, now) = (old[name]?.array ?? [], value.array ?? [])
                let (added, removed) = (now.filter { !then.contains($0) }, then.filter { !now.contains($0) })
                if !added.isEmpty { add[name] = .array(added) }
                if !removed.isEmpty { remove[name] = .array(removed) }
            default: set[name] = value
            }
        }
    }
}
