/** What rows hold, and what a read of them asks for. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { memoryLog } from "../support/Database.ts"
import { begin, contents, message, session, step, tokens } from "../support/Logs.ts"
import { statementsOf } from "../support/Statements.ts"

const provider = { executed: false, metadata: { p: { told: "said call metadata" } } }

/** An answer with a text, a reasoning and three calls: one that runs, one that failed, one that succeeded. */
const answered = (assistantMessageID: MessageID): ReadonlyArray<Draft> => {
  const callIn = (callID: string) =>
    [
      draft("session.next.tool.input.started", { assistantMessageID, callID, name: "read" }),
      draft("session.next.tool.input.ended", { assistantMessageID, callID, text: "said raw input" }),
      draft("session.next.tool.called", {
        assistantMessageID,
        callID,
        tool: "read",
        input: { path: "said input" },
        provider
      })
    ] as const
  const progress = { structured: { at: "said progress" }, content: [] }
  const content = [{ type: "text", text: "said result" }] as const
  return [
    step(assistantMessageID),
    draft("session.next.reasoning.started", {
      assistantMessageID,
      reasoningID: "r",
      providerMetadata: { p: { told: "said metadata" } }
    }),
    draft("session.next.reasoning.ended", { assistantMessageID, reasoningID: "r", text: "said reasoning" }),
    draft("session.next.text.started", { assistantMessageID, textID: "t" }),
    draft("session.next.text.ended", { assistantMessageID, textID: "t", text: "said answer" }),
    ...callIn("runs"),
    draft("session.next.tool.progress", { assistantMessageID, callID: "runs", ...progress }),
    ...callIn("failed"),
    draft("session.next.tool.failed", {
      assistantMessageID,
      callID: "failed",
      error: { type: "e", message: "said error" },
      provider
    }),
    ...callIn("done"),
    draft("session.next.tool.success", { assistantMessageID, callID: "done", structured: {}, content, provider }),
    draft("session.next.step.ended", { assistantMessageID, finish: "said finish", cost: 1, tokens: tokens(1) })
  ]
}

const withText = (messageID: MessageID): ReadonlyArray<Draft> => {
  const [prompt, callID] = [{ text: "said prompt" }, message()]
  return [
    draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
    draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1 }),
    ...answered(message()),
    draft("session.next.context.updated", { messageID: message(), text: "said context" }),
    draft("session.next.synthetic", { messageID: message(), text: "said note" }),
    draft("session.next.shell.started", { messageID: message(), callID, command: "said command" }),
    draft("session.next.shell.ended", { callID, output: "said output" }),
    draft("session.next.instructions.discovered", { paths: ["/said/AGENTS.md"] }),
    draft("session.next.compaction.ended", {
      messageID: message(),
      reason: "auto",
      text: "said summary",
      recent: "said recent"
    })
  ]
}

it.layer(Layer.provideMerge(layerStore, memoryLog))("text once", (it) => {
  it.effect("PJ-14, ST-30: no projected row holds what an event says, and readers see all of it", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* begin(id)
      for (const each of withText(message())) yield* log.append(id, [each])
      const { event, ...projected } = yield* contents
      assert.include(JSON.stringify(event), "said answer")
      assert.notInclude(JSON.stringify(projected), "said ")
      const read = JSON.stringify([
        yield* store.messages({ sessionID: id, limit: 500 }),
        yield* store.instructionFiles(id, 10)
      ])
      const said = "prompt,reasoning,metadata,answer,raw input,input,call metadata,progress,error,result,finish,context"
      // A call's decoded input replaces its raw input.
      for (const what of said.split(",")) assert.strictEqual(read.includes(`said ${what}`), what !== "raw input", what)
      for (const what of ["note", "command", "output", "summary", "recent"]) assert.include(read, `said ${what}`)
      assert.include(read, "/said/AGENTS.md")
    })
  )

  it.effect("PJ-15: a page of messages takes all its events in one statement, whatever its length", () =>
    Effect.gen(function* () {
      const [log, store, id] = [yield* EventLog, yield* SessionStore, session()]
      yield* begin(id)
      for (let n = 0; n < 40; n++) yield* log.append(id, [step(message()), ...withText(message())])
      for (const limit of [1, 20, 400]) {
        const statements = yield* statementsOf(store.messages({ sessionID: id, limit }))
        const payloads = statements.filter((text) => /\bdata\b/.test(text))
        assert.strictEqual(payloads.length, 1)
        assert.match(payloads[0] ?? "", /FROM event\b/)
        assert.isAtMost(statements.length, 7)
      }
    })
  )
})
