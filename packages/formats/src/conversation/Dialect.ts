/** Names the session logs that Daybook reads. Spec: specs/formats.md. */
import { Schema } from "effect"

/**
 * Who wrote a session log: `pi`, `xcsh` and `omp` write entry logs, `thread` is a folder with `session.jsonl` and
 * `metadata.json`; `claude-code` and `codex` are only read.
 */
export const Dialect = Schema.Literal("pi", "xcsh", "omp", "thread", "claude-code", "codex")
export type Dialect = typeof Dialect.Type
