#pragma once
#include <sqlite3.h>
/* SQLITE_TRANSIENT is a function-pointer cast macro, which Swift cannot import. */
static inline sqlite3_destructor_type fieldpost_transient(void) { return SQLITE_TRANSIENT; }
/* sqlite3_db_config is variadic, which Swift cannot import. */
static inline int fieldpost_db_config(sqlite3 *db, int op, int value, int *out) { return sqlite3_db_config(db, op, value, out); }
