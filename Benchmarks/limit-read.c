// Raw C limit for reading rows: steps through the table and copies every value, as a program that keeps them must,
// and frees them again, which is in the time of both.
// gcc -O2 limit-read.c -lsqlite3 -o limit-read
// usage: limit-read DB ROWS     prints one JSON object; the table is the store's own
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { unsigned char id[16]; char *title, *body; int done; int64_t priority, updated; } item;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static int digit(int c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

static char *copy(sqlite3_stmt *s, int column) {
    const void *text = sqlite3_column_text(s, column);
    int count = sqlite3_column_bytes(s, column);
    char *out = malloc(count + 1);
    memcpy(out, text, count + 1);
    return out;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    sqlite3 *db;
    sqlite3_stmt *s;
    if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, 0)) return 1;
    if (sqlite3_prepare_v2(db, "SELECT id, title, body, done, priority, updated_at FROM items LIMIT ?", -1, &s, 0)) return 1;
    int rows = atoi(argv[2]), count = 0;
    item *items = calloc(rows, sizeof *items);
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        double begin = now();
        sqlite3_bind_int(s, 1, rows);
        for (count = 0; sqlite3_step(s) == SQLITE_ROW; count++) {
            item *i = &items[count];
            const unsigned char *id = sqlite3_column_text(s, 0);
            for (int byte = 0, at = 0; byte < 16; byte++, at += 2) {
                if (id[at] == '-') at++;
                i->id[byte] = digit(id[at]) << 4 | digit(id[at + 1]);
            }
            i->title = copy(s, 1);
            i->body = copy(s, 2);
            i->done = sqlite3_column_int(s, 3);
            i->priority = sqlite3_column_int64(s, 4);
            i->updated = sqlite3_column_int64(s, 5);
        }
        sqlite3_reset(s);
        for (int k = 0; k < count; k++) { free(items[k].title); free(items[k].body); }
        double took = now() - begin;
        if (took < best) best = took;
    }
    printf("{\"impl\":\"c\",\"case\":\"read\",\"rows\":%d,\"ops_s\":%.1f}\n", count, count / best);
    return 0;
}
