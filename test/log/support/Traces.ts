/** Plants a sentence in a session, and looks for it in every byte of a folder. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog, SessionNotFound } from "../../../packages/log/src/log/EventLog.ts"
import { childProgram, startChild } from "../../support/Child.ts"
import { logAt, temporaryDatabase } from "../../support/Database.ts"
import { admitted, begin, created, message, readAll, renamed, session, step } from "../../support/Logs.ts"

export const sentence = "the heron stood in the flooded meadow at dawn"

/** The paths of the files below the folder that hold the text, with how often. */
export const tracesIn = (folder: string, text: string = sentence): Readonly<Record<string, number>> => {
  const found: Record<string, number> = {}
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name)
    if (!statSync(path).isFile()) continue
    const count = readFileSync(path).toString("latin1").split(text).length - 1
    if (count > 0) found[name] = count
  }
  return found
}

/** Events with the sentence in every kind of row: titles, prompts, texts, inputs and outputs, short and of many pages. */
const turn = (n: number) => {
  const [prompt, assistantMessageID] = [message(), message()]
  const [text, textID, callID] = [`${n}: ${sentence}`, "t", `call-${n}`]
  const provider = { executed: false }
  const input = { path: text }
  return [
    admitted(prompt, text),
    draft("session.next.prompt.promoted", { messageID: prompt, prompt: { text }, timeCreated: 1_000 }),
    step(assistantMessageID),
    draft("session.next.text.started", { assistantMessageID, textID }),
    draft("session.next.text.ended", { assistantMessageID, textID, text: text.repeat(n % 5 === 0 ? 400 : 3) }),
    draft("session.next.tool.input.started", { assistantMessageID, callID, name: "read" }),
    draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) }),
    draft("session.next.tool.called", { assistantMessageID, callID, tool: "read", input, provider }),
    draft("session.next.tool.success", {
      assistantMessageID,
      callID,
      structured: { text },
      content: [{ type: "text", text }],
      provider
    }),
    renamed(`${text}, retitled`)
  ] as const
}

/** Fills a session with the sentence, between the events of another session. */
export const plant = Effect.fnUntraced(function* (id: SessionID, other: SessionID, turns: number) {
  const log = yield* EventLog
  yield* log.append(id, [created, renamed(sentence)])
  for (let n = 0; n < turns; n++) {
    yield* log.append(id, turn(n))
    yield* log.append(other, [renamed(`between ${n}`)])
  }
})

/**
 * Kills a process at a random instant while it removes a session. Afterwards the session is whole, or gone with its last
 * byte once the database was opened again; the other session is as before.
 */
export const erases = Effect.fnUntraced(function* (runs: number, random: () => number) {
  const program = yield* childProgram()
  for (let run = 0; run < runs; run++) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
        const before = yield* Effect.gen(function* () {
          yield* begin(other)
          // Long enough for several steps.
          yield* plant(id, other, 120)
          return [yield* readAll(id), yield* readAll(other)] as const
        }).pipe(Effect.provide(logAt(filename)))
        const child = yield* startChild(program.outfile, filename)
        yield* child.tell({ do: "open" })
        yield* child.answer
        // Every second time a reader keeps the removal from being finished before the kill.
        const reader = new Sqlite(filename, { readonly: true })
        if (run % 2 === 0) reader.exec("BEGIN; SELECT count(*) FROM event")
        yield* child.tell({ do: "remove", sessionID: id })
        yield* run % 2 === 0 ? child.answer : Effect.sleep(random() * 100)
        yield* child.kill
        reader.close()
        yield* Effect.gen(function* () {
          const log = yield* EventLog
          const left = yield* Effect.either(readAll(id))
          if (left._tag === "Right" && run % 2 === 1) return void (yield* same(left.right, before[0], "the session"))
          if (left._tag === "Right") return yield* Effect.dieMessage("an acknowledged removal was undone")
          if (!(left.left instanceof SessionNotFound)) return yield* left.left
          yield* same(yield* readAll(other), before[1], "the other session")
          // A removal returns after the sweep of every removal before it.
          const last = session()
          yield* begin(last)
          yield* log.remove(last)
          const sql = yield* SqlClient.SqlClient
          const unswept = yield* sql`SELECT number FROM session_removal WHERE swept = 0`
          yield* same([tracesIn(join(filename, "..")), unswept], [{}, []], "the traces")
        }).pipe(Effect.provide(logAt(filename)))
      })
    )
  }
})

const same = (found: unknown, expected: unknown, what: string) =>
  JSON.stringify(found) === JSON.stringify(expected)
    ? Effect.void
    : Effect.dieMessage(`${what} differs after the kill: ${JSON.stringify(found).slice(0, 500)}`)
