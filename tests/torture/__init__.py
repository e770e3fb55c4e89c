"""The campaign against the promises of docs/reliability.md; `make torture` runs it."""
