public import Foundation

extension RESTProfile {
    /// The profile of a Kinto server (26 or later), one collection a table; the token is `user:password`.
    ///
    /// Conditional writes, deletions by tombstone and pulls with an overlap of two seconds, since a PostgreSQL behind Kinto
    /// may show an older timestamp late. A 412 is compared with what was sent, so a lost answer is no conflict. A collection
    /// that was wiped or purged is read again from the start.
    ///
    /// What Kinto itself does not hold: `If-Match` is not atomic on its PostgreSQL back end, so two devices that edit one
    /// record within the same milliseconds may overwrite each other there. Fields called `id`, `last_modified`, `schema`
    /// and `deleted` are Kinto's own.
    ///
    /// - Parameters:
    ///   - server: with the version, such as `https://kinto.example.com/v1`; no redirect is followed.
    ///   - bucket: `default` is the user's own.
    ///   - tables: each is the collection of the same name.
    ///   - pageSize: rows of a page, at most what the server's `paginate_by` allows.
    public static func kinto(server: URL, bucket: String = "default", tables: [String], pageSize: Int = 500)
        -> RESTProfile
    {
        var profile = RESTProfile(base: server)
        profile.authorization = .basic
        profile.health = "/__heartbeat__"
        profile.errors.code = "errno"
        profile.answers = kintoAnswers
        for table in tables {
            profile.resources[table] = kintoResource(
                "/buckets/\(bucket)/collections/\(table)/records",
                pageSize: pageSize
            )
        }
        return profile
    }

    private static let kintoAnswers = [
        // A race for the same millisecond, not a conflict.
        Answer(409...409, code: "122", .retry),
        Answer(412...412, .conflict, current: "details.existing"),
        // The bucket is unknown or not ours: nothing an operation could help.
        Answer(403...403, .forbidden),
        // A collection or bucket that is not there (110 is a record that is not).
        Answer(404...404, code: "111", .misconfigured),
        Answer(410...410, .misconfigured),
        Answer(405...405, .forbidden),
    ]

    private static func kintoResource(_ records: String, pageSize: Int) -> Resource {
        var record = Record()
        record.at = "data"
        record.version = "last_modified"
        record.versionHeader = "ETag"
        let ifMatch = ["If-Match": "\"{version}\""]
        return Resource(
            create: Action(
                "PUT",
                "\(records)/{id}",
                headers: ["If-None-Match": "*"],
                wrap: "data",
                omitsNull: true
            ),
            update: Action("PATCH", "\(records)/{id}", headers: ifMatch, wrap: "data"),
            delete: Action("DELETE", "\(records)/{id}", headers: ifMatch, content: .none),
            item: "\(records)/{id}",
            list: List(
                records,
                query: ["_sort": "last_modified", "_limit": "\(pageSize)"],
                since: "_since",
                next: .header("Next-Page"),
                items: "data",
                cursorHeader: "ETag",
                overlap: 2_000,
                isTime: true
            ),
            record: record
        )
    }
}
