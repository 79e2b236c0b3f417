// An app imports Fieldpost and has what it needs: the schema, values and results of the core, and the store's errors.
@_exported public import FieldpostCore

@_exported public import struct FieldpostSQLite.StoreError
@_exported public import enum FieldpostSQLite.Synchronous
