"""The reader of EPUBs: package, tables of contents, pages, and the chapters that these make together."""
