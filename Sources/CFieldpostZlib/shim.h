#pragma once
#include <zlib.h>
/* deflateInit2 and inflateInit2 are macros over functions that take the version. */
static inline int fieldpost_deflate_init(z_stream *s, int level, int window) { return deflateInit2(s, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY); }
static inline int fieldpost_inflate_init(z_stream *s, int window) { return inflateInit2(s, window); }
