# Everything a newcomer needs: `make demo` and `make test`.
.PHONY: setup build demo test format lint docs client-only sanitize bench-store bench-outbox examples clean

setup:
	@Scripts/setup

build: setup
	swift build -c release --product fieldpost

# Plays a morning at a car wash with no signal, and lets the sqlite3 shell say how it ended.
demo: build
	@python3 Scripts/demo.py

test: setup
	@Scripts/test

format:
	swift format -i -r Sources Tests Package.swift

lint: setup
	swift format lint --strict -r Sources Tests Package.swift

# An app that links the client and nothing of the server.
client-only: setup
	@Scripts/client-only

docs: setup
	@Scripts/docs

# Data races, in the suites that have threads.
sanitize: setup
	@Scripts/sanitize

# The store's speed, as ratios to raw C in the same run; ROUNDS=5 unless told.
bench-store: setup
	@Benchmarks/bench-store.py

# The outbox's speed, likewise; MILLION=1 also measures beside a million operations.
bench-outbox: setup
	@Benchmarks/bench-outbox.py $(if $(MILLION),--million)

# Programs that see the public API alone.
examples: setup
	swift run --package-path Examples FieldNotes

clean:
	rm -rf .build build
