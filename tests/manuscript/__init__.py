"""The library of documents, by itself; tests of formats and casting through a studio are in tests/longform."""
