/** Logs of Claude Code and Codex that are imported while their tools write them: cut at every line. Spec: IM-420. */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as ClaudeReader from "../../../packages/formats/src/claude/ClaudeReader.ts"
import * as CodexReader from "../../../packages/formats/src/codex/CodexReader.ts"
import { importLog, type ReadLog } from "../../../packages/formats/src/import/Import.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import {
  assistant,
  attachment,
  call,
  type Json,
  result,
  session,
  sessionID,
  system,
  text,
  thinking,
  user,
  uuid
} from "./ClaudeLogs.ts"
import * as CodexLogs from "./CodexLogs.ts"
import { bareRollout, clock, document, message, output, reasoning, rollout } from "./CodexLogs.ts"

/** A log by its lines, and how it is read. */
export interface GrowingLog {
  readonly name: string
  readonly lines: ReadonlyArray<string>
  readonly reader: typeof ClaudeReader.read
  /** The session's id, and the file's name with it. */
  readonly id: string
  readonly file: string
  /** The lines that it is cut behind; default: all. */
  readonly cuts?: ReadonlyArray<number>
  /** Whether a cut may divide a command from its output, which is then a note. */
  readonly commands?: true
}

const linesOf = (records: Iterable<Json>) => [...records].map((record) => JSON.stringify(record))

const claude = (name: string, records: Iterable<Json>, more: { readonly commands?: true } = {}): GrowingLog => ({
  name,
  lines: linesOf(records),
  reader: ClaudeReader.read,
  id: sessionID,
  file: sessionID,
  ...more
})

const codex = (name: string, lines: ReadonlyArray<string>): GrowingLog => ({
  name,
  lines,
  reader: CodexReader.read,
  id: CodexLogs.threadID,
  file: `rollout-2026-02-01T10-00-00-${CodexLogs.threadID}`
})

const usage = (output: number) => ({ input: 3, output, cacheRead: 100, cacheWrite: 20 })

/** Results between the lines of an answer, repeated parts, and a count of tokens that only the last line has. */
const woven: ReadonlyArray<Json> = [
  user(1, null, "do both"),
  assistant(2, 1, "m", [thinking("first one")], { usage: usage(1) }),
  assistant(3, 2, "m", [thinking("first one"), text("I look.")], { usage: usage(1) }),
  assistant(4, 3, "m", [call("a", "Bash", { command: "ls" })], { usage: usage(1) }),
  user(5, 4, [result("a", "a.ts")]),
  assistant(6, 4, "m", [call("b", "Task", { prompt: "go" })], { usage: usage(7) }),
  user(7, 6, [result("b", "gone")]),
  assistant(8, 7, "m", [text("I look.")], { usage: usage(90), stop: "end_turn" }),
  assistant(9, 8, "n", [text("Done.")], { usage: usage(4) }),
  user(10, 2, "another way"),
  assistant(11, 10, "o", [text("Fine.")], { usage: usage(2) })
]

const interrupted: ReadonlyArray<Json> = [
  { type: "summary", summary: "A title", leafUuid: uuid(3) },
  user(1, null, "<command-name>/review</command-name><command-args>all</command-args>"),
  user(2, 1, "Review all.", { isMeta: true }),
  assistant(3, 2, "m", [text("I begin")], { usage: usage(3) }),
  user(4, 3, [{ type: "text", text: "[Request interrupted by user]" }]),
  user(5, 4, "<bash-input>ls</bash-input>"),
  user(6, 5, "<bash-stdout>a.ts</bash-stdout><bash-stderr></bash-stderr>"),
  system(7, 6, "local_command", { content: "<command-name>/cost</command-name>" }),
  system(8, 7, "local_command", { content: "<local-command-stdout>none</local-command-stdout>" }),
  attachment(9, 8, { type: "queued_command", prompt: "and this", commandMode: "prompt" }),
  assistant(10, 9, "n", [text("Sure.")], { usage: usage(5) }),
  system(11, 10, "compact_boundary", { logicalParentUuid: uuid(10), compactMetadata: { preTokens: 900 } }),
  user(12, 11, "All was well.", { isCompactSummary: true }),
  assistant(13, 12, "p", [text("Next.")], { usage: usage(6) })
]

/** Lines of one message that all name what the message follows. */
export const besides: ReadonlyArray<Json> = [
  user(1, null, "go"),
  assistant(2, 1, "m", [thinking("Think")], { usage: usage(1) }),
  assistant(3, 1, "m", [text("I look.")], { usage: usage(5) }),
  assistant(4, 1, "m", [call("a", "Bash", { command: "ls" })], { usage: usage(9) }),
  user(5, 4, [result("a", "a.ts")])
]

export const claudeLogs: ReadonlyArray<GrowingLog> = [
  claude("lines beside one another", besides),
  claude("a session", session(2, 8)),
  claude("an answer that grows between results", woven),
  claude("commands, an interruption and a compaction", interrupted, { commands: true })
]

const events = (): ReadonlyArray<Json> => {
  const { event, item, line, meta, tokens, turn } = clock()
  return [
    meta(),
    turn("gpt-5.5"),
    event("user_message", { message: "go", kind: "plain" }),
    item(reasoning("Think")),
    item(message("assistant", "I look.")),
    item(CodexLogs.call("c", "shell", { command: ["ls"] })),
    item(output("c", "a.ts")),
    tokens({ input: 10, output: 3 }),
    item({ type: "web_search_call", id: "w", status: "completed", action: { type: "search", query: "x" } }),
    item(message("assistant", "I searched.")),
    tokens({ input: 25, output: 9 }),
    event("turn_aborted", { reason: "interrupted" }),
    event("thread_name_updated", { thread_name: "A name" }),
    event("thread_rolled_back", { num_turns: 1 }),
    item(message("user", "again")),
    item(message("assistant", "Here.")),
    line("compacted", { message: "So far." }),
    item(message("assistant", "More.")),
    tokens({ input: 40, output: 12 })
  ]
}

const documentLines = JSON.stringify(document, null, 2).split("\n")

export const codexLogs: ReadonlyArray<GrowingLog> = [
  codex("a rollout", linesOf(rollout(1, 8))),
  codex("interruptions, a roll-back and a compaction", linesOf(events())),
  codex("a bare rollout", linesOf(bareRollout)),
  {
    ...codex("a rollout in one object", documentLines),
    // The header and each item end with such a line.
    cuts: documentLines.flatMap((line, at) => (/^(?: {2}| {4})\},?$/.test(line) ? [at + 1] : []))
  }
]

/** Reads so many lines of the log, as those of a session of its own. */
export const read =
  ({ file, id, lines, reader }: GrowingLog, session: string, count: number): ReadLog<never, never> =>
  (ends) => {
    const text = lines.slice(0, count).map((line) => `${line}\n`)
    const bytes = Buffer.from(text.join("").replaceAll(id, session))
    return reader({ ends, name: file.replace(id, session) })(Stream.make(bytes))
  }

/** What messages show, without the borders of answers. */
const shown = (message: Message): ReadonlyArray<string> => {
  if (message.type === "user" || message.type === "synthetic") return [`${message.type} ${message.text}`]
  if (message.type !== "assistant") return [JSON.stringify({ ...message, id: "", seq: 0, createdAt: 0 })]
  return message.content.map((part) =>
    part.type === "tool"
      ? `${part.name} ${JSON.stringify(part.input)} ${JSON.stringify(part.content)}`
      : `${part.type} ${part.text}`
  )
}

let imported = 0

/** Imports the log at each of these lengths, then whole, and returns the session. */
const outcome = (log: GrowingLog, cuts: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const [sessions, session] = [yield* SessionStore, uuid(++imported)]
    for (const count of cuts) yield* importLog(read(log, session, count), { directory: "/tmp" })
    const report = yield* importLog(read(log, session, log.lines.length), { directory: "/tmp" })
    const again = yield* importLog(read(log, session, log.lines.length), { directory: "/tmp" })
    assert.strictEqual(again.status, "unchanged")
    const { items } = yield* sessions.messages({ sessionID: report.sessionID, limit: 200 })
    const { tokens } = yield* sessions.get(report.sessionID)
    return { records: report.records, tokens, shown: items.flatMap(shown) }
  }).pipe(Effect.mapError((error) => `${log.name}, cut at line ${cuts.join(", ")}: ${error.message}`))

/** Cuts the log at each line, and at all of them one after the other. */
export const assertGrows = Effect.fnUntraced(function* (log: GrowingLog) {
  const whole = yield* outcome(log, [])
  const every = log.cuts ?? log.lines.map((_, index) => index + 1)
  for (const cuts of [...every.map((count) => [count]), every]) {
    const grown = yield* outcome(log, cuts)
    const about = `${log.name}, cut at line ${cuts.join(", ")}`
    assert.deepStrictEqual(grown.tokens, whole.tokens, about)
    assert.strictEqual(grown.records, whole.records, about)
    if (log.commands !== true) assert.deepStrictEqual(grown.shown, whole.shown, about)
  }
})
