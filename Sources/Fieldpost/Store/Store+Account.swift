internal import FieldpostCore

extension Store {
    /// Binds the file to an account at its first sign-in, and opens it to that account again after ``signOut(_:)``.
    ///
    /// The name is the app's own, such as a user's number. Beside it the server's name for the account is kept from the
    /// first answer on: whatever the app says, a token of another account sends nothing of this file.
    ///
    /// - Throws: ``FieldpostError/Code/wrongState`` when it belongs to another: that account opens another file.
    public func signIn(account: String) async throws {
        try await writer.repair { db, _, _ in try FileAccount(db).signIn(account) }
    }

    /// Signs the account out and closes the store.
    ///
    /// With ``SignOutPolicy/keep`` the unsent changes stay, and nothing is sent until the same account signs in again.
    /// With ``SignOutPolicy/discard`` the synced tables are emptied, and the file is free for any account.
    ///
    ///     do { try await store.signOut() } catch let error as FieldpostError where error.code == .unsentWork {
    ///         ask(error.message)    // "3 changes are not on the server yet; …"
    ///     }
    ///
    /// - Throws: ``FieldpostError/Code/unsentWork``, which says how many, when there are any and the policy is to
    ///   refuse. The store stays open then.
    public func signOut(_ policy: SignOutPolicy = .refuse) async throws {
        try await writer.perform { db, now, random in
            try FileAccount(db).signOut(policy, now: now, random: &random)
        }
        await close()
    }
}
