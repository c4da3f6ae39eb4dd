/** The views for people with a shell, and the queries that the specification documents. */
import { readFileSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { memoryLog } from "../support/Database.ts"
import { admitted, call, created, message, session, step, tokens } from "../support/Logs.ts"

/** A session with an answered prompt, a failed call, a shell command, and a prompt that waits. */
const talk = Effect.fnUntraced(function* () {
  const [log, id] = [yield* EventLog, session()]
  const [prompt, answer, note, shell, waiting] = [message(), message(), message(), message(), message()]
  const said = (textID: string, text: string) => [
    draft("session.next.text.started", { assistantMessageID: answer, textID }),
    draft("session.next.text.ended", { assistantMessageID: answer, textID, text })
  ]
  yield* log.append(id, [
    created,
    admitted(prompt, "What is here?"),
    draft("session.next.prompt.promoted", { messageID: prompt, prompt: { text: "What is here?" }, timeCreated: 1 }),
    step(answer),
    ...said("a", "I look."),
    ...call({ messageID: answer, callID: "call_1", tool: "read", input: { path: "a.ts" } }),
    draft("session.next.tool.failed", {
      assistantMessageID: answer,
      callID: "call_1",
      error: { type: "tool.execution", message: "no such file" },
      provider: { executed: false }
    }),
    ...said("b", "Nothing."),
    draft("session.next.step.ended", { assistantMessageID: answer, finish: "stop", cost: 0, tokens: tokens(1) }),
    draft("session.next.synthetic", { messageID: note, text: "A note" }),
    draft("session.next.shell.started", { messageID: shell, callID: shell, command: "ls" }),
    draft("session.next.shell.ended", { callID: shell, output: "a.ts" }),
    admitted(waiting, "And now?")
  ])
  return { id, answer, prompt, waiting }
})

it.effect("ST-31: the views show messages, parts and prompts with the content of their events", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { answer, id, prompt, waiting } = yield* talk()
    const messages = yield* sql`SELECT type, text, settled IS NOT NULL AS settled FROM messages
      WHERE session_id = ${id} ORDER BY seq`
    assert.deepStrictEqual(messages, [
      { type: "user", text: "What is here?", settled: 0 },
      { type: "assistant", text: "I look.\nNothing.", settled: 1 },
      { type: "synthetic", text: "A note", settled: 0 },
      { type: "shell", text: "ls", settled: 0 }
    ])
    const [first] = yield* sql`SELECT created FROM messages WHERE id = ${prompt}`
    assert.deepStrictEqual(first, { created: "1970-01-01T00:00:00.001Z" })
    const parts =
      yield* sql`SELECT kind, key, status, input, output FROM parts WHERE message_id = ${answer} ORDER BY seq`
    assert.deepStrictEqual(parts, [
      { kind: "text", key: "a", status: "completed", input: null, output: "I look." },
      {
        kind: "tool",
        key: "call_1",
        status: "error",
        input: '{"path":"a.ts"}',
        output: '{"type":"tool.execution","message":"no such file"}'
      },
      { kind: "text", key: "b", status: "completed", input: null, output: "Nothing." }
    ])
    assert.deepStrictEqual(yield* sql`SELECT output FROM parts WHERE kind = 'shell'`, [{ output: "a.ts" }])
    assert.deepStrictEqual(yield* sql`SELECT id, state, text FROM prompts ORDER BY seq`, [
      { id: prompt, state: "promoted", text: "What is here?" },
      { id: waiting, state: "waiting", text: "And now?" }
    ])
  }).pipe(Effect.provide(memoryLog))
)

it.effect("ST-32: each documented query runs and finds what it says it finds", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* talk()
    const page = readFileSync(new URL("../../specs/storage.md", import.meta.url), "utf8")
    const queries = Array.from(page.matchAll(/```sql\n([^`]+);\n```/g), ([, text = ""]) => text.replace("ses_...", id))
    const found = yield* Effect.forEach(queries, (text) => sql.unsafe<Record<string, unknown>>(text))
    const [events, transcript, failed, waiting, ...rest] = found
    assert.deepStrictEqual(rest, [])
    assert.deepStrictEqual(events?.map(Struct.get("prompt")), ["And now?", "What is here?"])
    assert.strictEqual(transcript?.length, 4)
    assert.deepStrictEqual(failed, [{ session_id: id, name: "read", input: '{"path":"a.ts"}', error: "no such file" }])
    assert.deepStrictEqual(waiting, [{ session_id: id, delivery: "steer", text: "And now?" }])
  }).pipe(Effect.provide(memoryLog))
)
