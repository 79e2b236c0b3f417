internal import FieldpostCore

/// Reads lists of changed records, page by page.
///
/// Pure: it says what to ask and what an answer means.
struct RESTPull {
    let profile: RESTProfile
    /// The tables that have a list, parents before children as the schema has them.
    let tables: [Table]

    init(profile: RESTProfile, schema: Schema) {
        self.profile = profile
        tables = schema.tables.filter { profile.resources[$0.name]?.list != nil }
    }

    /// What is asked next; `nil` when no table has a list.
    func request(_ cursor: RESTCursor, now: Timestamp) -> (table: Table, target: RESTTarget)? {
        guard let table = table(cursor), let list = profile.resources[table.name]?.list else { return nil }
        if let next = cursor.next { return (table, .absolute(next)) }
        var query = list.query
        query[list.since] =
            since(cursor, table, list, now: now).map { "\(max(0, $0 - list.overlap))" } ?? list.first
        let text = query.sorted { $0.key < $1.key }.map {
            RESTTemplate.encoded($0.key) + "=" + RESTTemplate.encoded($0.value)
        }
        return (table, .below(list.path + "?" + text.joined(separator: "&")))
    }

    /// The page that `answer` is, asked with `cursor`.
    func page(_ answer: HTTPAnswer, _ cursor: RESTCursor, _ table: Table, now: Timestamp)
        throws(ExchangeFailure) -> PullPage
    {
        let verdict = RESTVerdict(answer, to: .list, profile)
        if let failure = verdict.failure(answer, now: now) { throw failure }
        guard verdict.outcome == .applied else {
            if verdict.outcome == .failed { throw .serverError(answer.status) }
            throw .misconfigured(verdict.message)
        }
        guard let resource = profile.resources[table.name], let list = resource.list,
            let body = RESTValues.json(answer),
            let items = RESTValues.at(list.items, in: body)?.array
        else { throw .unreachable("the list of \(table.name) is not whole JSON with its records") }
        let (changes, unreadable) = read(items, RESTMapping(table: table, resource: resource))
        let next = try self.next(list, answer, body, cursor)
        let mark = list.cursorHeader.flatMap { RESTValues.version(answer.headers[$0.lowercased()]) }
        if cursor.next == nil, let mark, let since = since(cursor, table, list, now: now) {
            try checkHistory(mark: mark, since: since, isEmpty: items.isEmpty && next == nil)
        }
        var moved = cursor
        // The list's own version as of the first page: what changes while pages are read comes again.
        moved.mark = cursor.next == nil ? mark : cursor.mark
        if list.cursorHeader == nil || moved.mark == nil {
            moved.mark = max(cursor.mark ?? cursor.since[table.name] ?? 0, changes.map(\.version).max() ?? 0)
        }
        advance(&moved, past: table, next: next)
        var page = PullPage(changes: changes, cursor: moved.text, more: moved.at != nil, serverTime: now)
        page.unreadable = unreadable
        page.calmSeconds = AnswerTable.calm(answer)
        return page
    }

    private func table(_ cursor: RESTCursor) -> Table? {
        tables.first { $0.name == cursor.at } ?? tables.first
    }

    /// How far a table is, but never in the future: a server refuses that, and one wrong clock would stop everybody.
    private func since(_ cursor: RESTCursor, _ table: Table, _ list: RESTProfile.List, now: Timestamp)
        -> Int64?
    {
        guard let since = cursor.since[table.name] else { return nil }
        return list.isTime && since > now.milliseconds + Self.farFuture ? now.milliseconds : since
    }

    /// Half a day, in milliseconds: a device's own clock may be wrong by hours.
    private static let farFuture: Int64 = 43_200_000

    /// A list that went back, or forward without showing why, has lost its history.
    private func checkHistory(mark: Int64, since: Int64, isEmpty: Bool) throws(ExchangeFailure) {
        if mark < since || (isEmpty && mark > since) { throw .resyncRequired }
    }

    private func read(_ items: [JSON], _ mapping: RESTMapping) -> ([PulledChange], [WireError]) {
        var changes: [PulledChange] = []
        var unreadable: [WireError] = []
        for (index, item) in items.enumerated() {
            guard let record = item.object, let key = mapping.key(record),
                let version = mapping.version(record)
            else {
                unreadable.append(
                    WireError(
                        place: "\(mapping.table.name)[\(index)]",
                        message: "the record has no key or no integer version"
                    )
                )
                continue
            }
            let row = mapping.isDeleted(record) ? nil : mapping.row(record, key: key)
            changes.append(PulledChange(table: mapping.table.name, row: key, version: version, set: row))
        }
        return (changes, unreadable)
    }

    private func next(
        _ list: RESTProfile.List,
        _ answer: HTTPAnswer,
        _ body: JSON,
        _ cursor: RESTCursor
    ) throws(ExchangeFailure) -> String? {
        let address: String?
        switch list.next {
        case nil: return nil
        case .header(let name)?: address = answer.headers[name.lowercased()]
        case .link?: address = Self.link(answer.headers["link"])
        case .field(let path)?: address = RESTValues.at(path, in: body)?.string
        case .token(let field, let parameter)?:
            guard let token = RESTValues.text(RESTValues.at(field, in: body)), !token.isEmpty else {
                return nil
            }
            let query = (list.query.map { ($0.key, $0.value) } + [(parameter, token)]).sorted { $0.0 < $1.0 }
            address =
                profile.basePath + list.path + "?"
                + query.map { RESTTemplate.encoded($0.0) + "=" + RESTTemplate.encoded($0.1) }.joined(
                    separator: "&"
                )
        }
        guard let address, !address.isEmpty else { return nil }
        guard let target = RESTValues.target(address), target != cursor.next else {
            throw .unreachable("the next page of the list leads nowhere")
        }
        return target
    }

    /// The address of `<…>; rel="next"`.
    private static func link(_ header: String?) -> String? {
        for part in (header ?? "").split(separator: ",") {
            let pieces = part.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\"" } }
            if pieces.dropFirst().contains("rel=next"), let address = pieces.first, address.hasPrefix("<") {
                return String(address.dropFirst().dropLast())
            }
        }
        return nil
    }

    private func advance(_ cursor: inout RESTCursor, past table: Table, next: String?) {
        cursor.next = next
        cursor.at = table.name
        if next != nil { return }
        cursor.since[table.name] = cursor.mark
        cursor.mark = nil
        let index = tables.firstIndex { $0.name == table.name } ?? 0
        cursor.at = index + 1 < tables.count ? tables[index + 1].name : nil
    }
}

/// Where a request goes.
enum RESTTarget: Equatable {
    /// Below the profile's base.
    case below(String)
    /// A path of the same server.
    case absolute(String)
}
