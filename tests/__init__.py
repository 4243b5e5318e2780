"""The project's tests, in folders that mirror the source tree: engine, studio, clients, browser."""
